"""STSb Multi MT: what its files must look like, and on a hub that every language has the scores of
the English set.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from harness.sources import load_sts, pair_sets
from harness.tasks.catalogue import resolve_tasks
from tests.support.errors import raises_input_error


def lines(count: int = 1379) -> list[str]:
    return [f'"Ein Satz, {i}.",Noch einer.,{i % 6}.0' for i in range(count)]


def test_a_file_is_read(tmp_path: Path) -> None:
    file = tmp_path / "stsb-de-test.csv"
    file.write_text("\n".join(lines()) + "\n", encoding="utf-8")
    first, second, gold = pair_sets.read_translated_file(file)
    assert (first[3], second[3], gold[3]) == ("Ein Satz, 3.", "Noch einer.", 3.0)
    assert len(gold) == 1379


@pytest.mark.parametrize(
    ("content", "key"),
    [
        ("\n".join(lines(1000)), None),
        ("\n".join([*lines(5), "nur ein Satz,3.0"]), None),
        ("\n".join([*lines(5), "a,b,viel"]), None),
        ("\n".join([*lines(5), "a,b,7"]), "row 6"),
        ("\n".join([*lines(5), "a,b,nan"]), "row 6"),
        ("\n".join([*lines(5), '"a,b,3']), None),
        ("\n".join([*lines(5), '"two\nlines",b,3', '"a,b,3', *lines(9)]), None),
        ("", None),
    ],
)
def test_a_damaged_file_is_one_clear_line(tmp_path: Path, content: str, key: str | None) -> None:
    file = tmp_path / "stsb-de-test.csv"
    file.write_text(content, encoding="utf-8")
    with raises_input_error(file=file, key=key):
        pair_sets.read_translated_file(file)


def test_a_file_that_is_not_utf8(tmp_path: Path) -> None:
    file = tmp_path / "stsb-de-test.csv"
    file.write_bytes("Mädchen,b,3\n".encode("latin-1"))
    with raises_input_error(file=file):
        pair_sets.read_translated_file(file)


def test_the_suite_names_each_language() -> None:
    tasks = resolve_tasks(["multilingual"], source="mteb")
    assert [t.name for t in tasks] == [f"STS-B-{language}" for language in pair_sets.LANGUAGES]
    assert {(t.suite, t.source) for t in tasks} == {("multilingual", "stsb-multi-mt")}


@pytest.mark.hub
def test_every_language_has_the_gold_scores_of_the_benchmark() -> None:
    expected = load_sts("STS-B", source="senteval").subsets[0].gold
    for task in pair_sets.TRANSLATED:
        (subset,) = load_sts(task, source="stsb-multi-mt").subsets
        np.testing.assert_allclose(subset.gold, expected, atol=1e-9)
        assert all(subset.sentences1)
