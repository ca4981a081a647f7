"""Probing tasks on generated files: format, parts, training, and files that are wrong."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from harness.evaluation.scoring import evaluate
from harness.sources.senteval.labelled import PROBING as FILES
from harness.sources.senteval.labelled import read_probing
from harness.tasks.base import Task
from harness.tasks.senteval.classifier import Classifier
from harness.tasks.senteval.suites import probing_task
from tests.support.errors import raises_input_error
from tests.support.senteval_data import noise, probing, sentence

Array = np.ndarray[Any, Any]
BINS = ((5, 8), (9, 12), (13, 16), (17, 20), (21, 25), (26, 28))


def lengths(texts: list[str]) -> Array:
    """One-hot of the number of words: a bag of words that knows its length."""
    n = np.array([len(text.split()) for text in texts])
    return (n[:, None] == np.arange(40)[None]).astype(np.float32)


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    rng = np.random.default_rng(3)

    def rows(n: int) -> list[tuple[str, str]]:
        labelled = []
        for i in range(n):
            low, high = BINS[i % 6]
            labelled.append((str(i % 6), sentence(rng, length=int(rng.integers(low, high + 1)))))
        return labelled

    return probing(
        tmp_path_factory.mktemp("probing"),
        FILES["Length"],
        {"tr": rows(1800), "va": rows(300), "te": rows(300)},
    )


def test_sentence_length_is_read_from_lengths_and_not_from_noise(root: Path) -> None:
    task: Task = probing_task("Length", root=root)
    value = {s.split: s.value for s in evaluate(lengths, [task], pooling="x").scores}
    assert value["test"] > 0.9
    assert value["dev"] > 0.9
    blind = {s.split: s.value for s in evaluate(noise, [task], pooling="x").scores}
    assert abs(blind["test"] - 1 / 6) < 4 * np.sqrt(1 / 6 * 5 / 6 / 300)  # four standard errors


def test_parts_labels_and_order(tmp_path: Path) -> None:
    rows = {
        "va": [("PAST", "he went")],
        "tr": [("PRES", "a b c"), ("PAST", "a b c"), ("PRES", "one")],
        "te": [("PRES", "she goes home")],
    }
    data = read_probing("Tense", probing(tmp_path, FILES["Tense"], rows) / "probing")
    assert data.classes == 2
    assert data.parts["train"].first == ["one", "a b c", "a b c"]
    assert data.parts["train"].labels.tolist() == [
        1,
        0,
        1,
    ]  # labels in the order of their names: PAST, PRES
    assert (len(data.parts["dev"]), len(data.parts["test"])) == (1, 1)


def test_word_content_never_has_a_hidden_layer() -> None:
    assert probing_task("WordContent", classifier=Classifier(nhid=100)).classifier.nhid == 0
    assert probing_task("Depth", classifier=Classifier(nhid=100)).classifier.nhid == 100


def test_the_ten_tasks_and_their_files() -> None:
    assert len(FILES) == 10
    assert FILES["Tense"] == "past_present.txt"


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("tr\t0\tfine\nxx\t0\tfine\n", 2),
        ("tr\t0\tfine\nva\t0\n", 2),  # no sentence
        ("tr\t0\ta\nva\t1\tb\nte\t0\tc\n", 2),  # a label that is not in the training part
        ("tr\t0\ta\nva\t0\tb\n", None),  # no test examples
        ("", None),
    ],
)
def test_wrong_files_are_one_clear_line(tmp_path: Path, text: str, line: int | None) -> None:
    (tmp_path / "probing").mkdir()
    file = tmp_path / "probing" / "past_present.txt"
    file.write_text(text)
    with raises_input_error(file=file, line=line):
        probing_task("Tense", root=tmp_path).texts()


def test_missing_files_are_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("HARNESS_SENTEVAL", raising=False)
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    with raises_input_error() as caught:
        probing_task("Tense").texts()
    assert "probing" in str(caught.value.file)
    monkeypatch.setenv("HARNESS_SENTEVAL", str(tmp_path / "nowhere"))
    with raises_input_error(file=tmp_path / "nowhere"):
        probing_task("Tense").texts()
