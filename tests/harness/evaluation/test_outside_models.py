"""Models that lie in no folder: vectors in a file, and functions of a module."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch

import harness
from harness.cli import main
from harness.errors import InputError, RunError
from harness.evaluation.given_models import GivenObject
from harness.evaluation.outside_models import FileVectors
from harness.tasks.catalogue import resolve_tasks
from tests.support import own_files
from tests.support.errors import raises_input_error

TASK = "Embedded-STS-natural"
pytestmark = pytest.mark.usefixtures("few_pairs")


def letters(texts: list[str]) -> np.ndarray:
    """Counts of letters: vectors that need no model."""
    return np.array(
        [[text.lower().count(chr(97 + i)) + 0.1 for i in range(26)] for text in texts], np.float32
    )


def score(model: object) -> float:
    scores = harness.evaluate(model, TASK).scores()
    return float(scores.query("metric == 'spearman' and aggregation == 'all'")["value"].iloc[0])


@pytest.fixture(scope="module")
def texts(few_pairs: None) -> list[str]:
    return list(dict.fromkeys(resolve_tasks([TASK])[0].texts()))


@pytest.mark.parametrize("suffix", [".npz", ".parquet"])
def test_vectors_of_a_file_score_as_the_function_that_made_them(
    suffix: str, texts: list[str], tmp_path: Path
) -> None:
    file = tmp_path / f"letters{suffix}"
    vectors = letters(texts)
    if suffix == ".npz":
        np.savez(file, text=np.array(texts), vector=vectors)
    else:
        pd.DataFrame({"text": texts, "vector": list(vectors)}).to_parquet(file)
    assert score(str(file)) == score(letters)
    costs = [harness.evaluate(model, TASK, cached=False).costs() for model in (str(file), letters)]
    known = ["sentences_per_second" in frame.dropna(axis=1).columns for frame in costs]
    assert known == [False, True]  # a file is read, and not encoded


def test_a_function_of_a_module_that_changed_after_its_import_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As a method is: the function of before gave the scores, in the name of the file of now."""
    monkeypatch.syspath_prepend(tmp_path)
    aid = tmp_path / "aid_of_counting.py"
    aid.write_text("LETTER = 'e'\n")
    file = tmp_path / "counting.py"
    file.write_text(
        "from aid_of_counting import LETTER\n\n\n"
        "def embed(texts):\n    return [[text.count(LETTER), 1.0] for text in texts]\n"
    )
    assert score("counting:embed") == score("counting:embed")
    aid.write_text("LETTER = 'a'\n")
    with raises_input_error(file=aid):
        score("counting:embed")


def test_objects_that_cut_texts_at_unlike_lengths_are_two(tmp_path: Path) -> None:
    """They agree on every sentence of the set by which objects are known, and had one run."""
    file = own_files.write_table(
        tmp_path / "long.csv",
        ("sentence1", "sentence2", "score"),
        [(f"{'word ' * 60}{'e' * n}", f"{'word ' * 60}ee", n) for n in range(5)],
    )

    def whole(texts: list[str]) -> list[list[float]]:
        return [[text.count("e"), 1.0] for text in texts]

    def start(texts: list[str]) -> list[list[float]]:
        return whole([text[:200] for text in texts])

    def short_only(texts: list[str]) -> list[list[float]]:
        if max(map(len, texts)) > 1000:
            raise IndexError("longer than the table of positions")
        return whole(texts)

    def known_by(model: object) -> str:
        return GivenObject(model).identity

    assert len({known_by(whole), known_by(start), known_by(short_only)}) == 3
    found = harness.compare(
        [whole, start],
        suites=[str(file)],
        workdir=tmp_path / "work",
        tracking_uri="none",
        formats=[],
    )
    by_row = {record.row: record.score("long.csv") for record in found.records}
    assert by_row["start"] == 0.0 != by_row["whole"]


def test_a_function_of_a_module_is_a_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "lettermodel.py").write_text(
        "def letters(texts):\n"
        "    return [[t.lower().count(chr(97 + i)) + 0.1 for i in range(26)] for t in texts]\n"
    )
    monkeypatch.chdir(tmp_path)
    assert score("lettermodel:letters") == score(letters)


def test_texts_may_be_hashed(texts: list[str], tmp_path: Path) -> None:
    file = tmp_path / "hashed.parquet"
    hashes = [hashlib.sha256(text.encode()).hexdigest() for text in texts]
    pd.DataFrame({"sha256": hashes, "vector": list(letters(texts))}).to_parquet(file)
    assert score(str(file)) == score(letters)
    pd.DataFrame({"sha256": hashes[1:], "vector": list(letters(texts[1:]))}).to_parquet(file)
    with pytest.raises(InputError) as error:
        harness.evaluate(str(file), TASK)
    assert (error.value.file, error.value.key) == (str(file), "sha256")


@pytest.mark.parametrize("values", [["a", None], [1.5, 7.5]])
def test_a_row_without_text_is_named(values: list[Any], tmp_path: Path) -> None:
    file = tmp_path / "odd.parquet"
    pd.DataFrame({"text": values, "vector": [[0.0, 1.0], [1.0, 0.0]]}).to_parquet(file)
    with pytest.raises(InputError) as error:
        FileVectors(file)
    assert (error.value.file, error.value.key) == (str(file), "text")


def test_two_vectors_of_one_text_are_refused(tmp_path: Path) -> None:
    file = tmp_path / "twice.npz"
    np.savez(file, text=np.array(["a", "b", "a"]), vector=np.eye(3))
    with pytest.raises(InputError) as error:
        FileVectors(file)
    assert (error.value.file, error.value.key) == (str(file), "text")
    np.savez(file, text=np.array(["a", "b", "a"]), vector=np.ones((3, 2)))
    assert FileVectors(file).encode("a").tolist() == [1.0, 1.0]


def test_blanks_around_texts_are_no_other_texts(tmp_path: Path) -> None:
    """A program that reads a table as it is and writes vectors of it, as pandas does."""
    file = tmp_path / "blanks.npz"
    np.savez(file, text=np.array(["a ", " b\n", "c", "c "]), vector=np.eye(4))
    model = FileVectors(file)
    found = model.encode(["a", "a ", "b", "c", "c "]).argmax(axis=1)
    assert found.tolist() == [0, 0, 1, 2, 3]


def test_complex_vectors_are_refused(tmp_path: Path) -> None:
    file = tmp_path / "complex.npz"
    np.savez(file, text=np.array(["a", "b"]), vector=np.eye(2, dtype=complex))
    with raises_input_error(file=file, key="vector"):
        FileVectors(file)


def test_a_function_that_fails_is_one_line_with_its_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "failingmodel.py").write_text(
        "def embed(texts):\n    return texts[0] / 2  # no number\n"
    )
    (tmp_path / "leavingmodel.py").write_text("import sys\nsys.exit(3)\n")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(RunError) as error:
        harness.evaluate("failingmodel:embed", TASK)
    assert "failingmodel.py, line 2" in str(error.value)
    assert len(str(error.value).splitlines()) == 1
    with pytest.raises(InputError) as left:
        harness.evaluate("leavingmodel:embed", TASK)
    assert left.value.key == "model"


def test_missing_texts_are_counted_and_named(texts: list[str], tmp_path: Path) -> None:
    file = tmp_path / "few.npz"
    np.savez(file, text=np.array(texts[3:]), vector=letters(texts[3:]))
    with pytest.raises(InputError) as error:
        harness.evaluate(str(file), TASK)
    assert (error.value.file, error.value.key) == (str(file), "text")
    assert "3 of" in error.value.message
    assert any(text[:40] in error.value.message for text in texts[:3])


@pytest.mark.parametrize(
    ("arrays", "key"),
    [
        ({"text": np.array(["a"])}, "vector"),
        ({"text": np.array(["a", "b"]), "vector": np.ones((1, 3))}, "vector"),
        ({"text": np.array(["a"]), "vector": np.full((1, 3), np.nan)}, "vector"),
        ({"text": np.array(["a"], dtype=object), "vector": np.ones((1, 3))}, "text"),
        ({"text": np.array(["a"]), "vector": np.ones((1, 3)).astype(object)}, "vector"),
    ],
)
def test_a_file_of_another_kind_is_one_line(
    arrays: dict[str, np.ndarray], key: str, tmp_path: Path
) -> None:
    file = tmp_path / "odd.npz"
    np.savez(file, **arrays)
    with pytest.raises(InputError) as error:
        harness.evaluate(str(file), TASK)
    assert (error.value.file, error.value.key) == (str(file), key)


def test_a_function_that_is_not_there_is_one_line() -> None:
    with pytest.raises(InputError) as error:
        harness.evaluate("no_such_module:encode", TASK)
    assert error.value.key == "model"


@pytest.mark.parametrize(
    "deed",
    ["sys.exit(0)", "os._exit(0)", "raise BaseException('why')", "raise GeneratorExit"],
)
def test_a_function_that_exits_is_an_error(
    deed: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = f"exiting_{abs(hash(deed))}"
    (tmp_path / f"{name}.py").write_text(f"import os, sys\ndef embed(texts):\n    {deed}\n")
    (tmp_path / f"{name}_at_once.py").write_text(f"import os, sys\n{deed}\n")
    monkeypatch.chdir(tmp_path)
    leave = os._exit
    assert main(["evaluate", f"{name}:embed", "--suite", TASK, "--quiet"]) == 1
    if "BaseException" not in deed:
        assert main(["evaluate", f"{name}_at_once:embed", "--suite", TASK, "--quiet"]) == 2
    assert os._exit is leave


def test_values_beyond_float32_print_no_warning(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, recwarn: pytest.WarningsRecorder
) -> None:
    (tmp_path / "hugemodel.py").write_text(
        "import numpy as np\ndef embed(texts):\n    return np.full((len(texts), 4), 1e308)\n"
    )
    monkeypatch.chdir(tmp_path)
    harness.evaluate("hugemodel:embed", TASK)
    assert [str(one.message) for one in recwarn if issubclass(one.category, RuntimeWarning)] == []


@pytest.mark.parametrize(
    "make",
    [
        lambda: torch.ones(2, 3, device="meta"),
        lambda: np.ones((2, 3)) + 1j,
        lambda: np.ones((2, 3)).astype(str),
        lambda: np.ones((2, 3), "datetime64[s]"),
        lambda: (row for row in np.ones((2, 3))),
        lambda: torch.eye(2).to_sparse(),
    ],
)
def test_what_holds_no_real_numbers_is_one_line(make: Callable[[], Any]) -> None:
    with raises_input_error(key="model"):
        GivenObject(lambda _: make()).encode(["a", "b"])


def test_what_a_mask_hides_is_no_number() -> None:
    hidden = np.ma.masked_array(np.ones((2, 2)), mask=[[False, True], [False, False]])
    assert np.isnan(GivenObject(lambda _: hidden).encode(["a", "b"])).tolist() == [
        [False, True],
        [False, False],
    ]


def test_an_error_that_cannot_be_written_is_its_type(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "silentmodel.py").write_text(
        "class Silent(Exception):\n    def __str__(self):\n        raise RuntimeError\n"
        "def embed(texts):\n    raise Silent\n"
    )
    monkeypatch.chdir(tmp_path)
    with pytest.raises(RunError, match="Silent"):
        harness.evaluate("silentmodel:embed", TASK)
