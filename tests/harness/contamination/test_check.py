"""Tasks compared with a text: what is counted, which examples are touched, and that it is computed
once.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from harness.contamination import check as module
from harness.contamination.check import (
    CheckedText,
    check,
    overlap_file,
    read_overlap,
    selection_text,
    training_text,
)
from harness.sources import load_corpus
from harness.sources.pair_sets import PairSet, Subset
from harness.sources.senteval.labelled import Labelled, LabelledSplit
from harness.tasks.senteval.transfer import ClassificationTask
from harness.tasks.sts import DevSet, STSTask

ABOUT = {"uri": "own", "kind": "sentences", "sha256": "ab" * 32}


def task(sha256: str = "cd" * 32, name: str = "STS-B") -> STSTask:
    gold = np.array([1.0, 2.0, 3.0])
    subsets = (
        Subset(
            "news",
            ["A dog runs.", "A cat.", "Rain falls."],
            ["A dog ran.", "The cat", "Snow falls."],
            gold,
        ),
        Subset("forum", ["Hello there", "A cat", "One"], ["Good day", "Two", "a dog runs"], gold),
    )
    return STSTask.of(PairSet(name, "senteval", "test", subsets, sha256, "raw"))


def text(*sentences: str, **about: Any) -> CheckedText:
    return CheckedText({**ABOUT, **about}, lambda: sentences)


def test_distinct_texts_are_counted_and_pairs_are_touched_by_either_side(tmp_path: Path) -> None:
    one = check(tmp_path, text("a cat!", "A DOG RUNS"), [task()]).tasks["senteval:STS-B"]
    # 10 texts: "a dog runs" and "a cat" stand in both subsets.
    assert (one.texts, one.equal, one.near, one.pairs) == (10, 2, 0, 6)
    assert one.touched == {"news": [0, 1], "forum": [1, 2]}
    assert one.share == pytest.approx(0.2)
    assert one.touched_share == pytest.approx(4 / 6)


def test_examples_that_are_classified_are_counted(tmp_path: Path) -> None:
    labels = np.array([0, 1])
    parts = {
        "train": LabelledSplit(["A cat.", "Two"], ["x", "y"], labels),
        "test": LabelledSplit(["Three", "Four", "A dog"], ["A cat", "z", "w"], np.array([0, 1, 1])),
    }
    own = ClassificationTask("MRPC", lambda: Labelled(parts, 2, "ab" * 32))
    one = check(tmp_path, text("a cat", "a dog"), [own]).tasks["senteval:MRPC"]
    assert (one.pairs, one.touched) == (
        3,
        {"": [0, 2]},
    )  # of the test part, numbered as its outcomes are


def test_stored_results_are_reused_until_data_or_rule_change(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read = 0

    def stream() -> list[str]:
        nonlocal read
        read += 1
        return ["A cat"]

    own = CheckedText(ABOUT, stream)
    first = check(tmp_path, own, [task()])
    assert check(tmp_path, own, [task()]) == first
    assert read == 1
    both = check(tmp_path, own, [task(), task(name="STS12")])
    assert (set(both.tasks), read) == ({"senteval:STS-B", "senteval:STS12"}, 2)
    check(tmp_path, own, [task("ef" * 32)])
    assert read == 3
    kept = read_overlap(tmp_path, ABOUT)
    assert kept is not None
    assert set(kept.tasks) == {"senteval:STS-B", "senteval:STS12"}
    overlap_file(tmp_path, ABOUT).write_text("{")
    assert check(tmp_path, own, [task()]) == first
    monkeypatch.setattr(module, "RULE", "another rule")
    check(tmp_path, own, [task()])
    assert read == 5


def test_documents_are_read_by_their_sentences_and_pairs_by_all_sides(tmp_path: Path) -> None:
    documents = tmp_path / "documents.jsonl"
    documents.write_text(
        '{"text": "Once. A dog runs.\\nThen it slept!"}\n{"text": "Nothing here"}\n'
    )
    pairs = tmp_path / "pairs.csv"
    pairs.write_text("anchor,positive,negative\nA dog runs,x y,The cat\nu v,Hello there,\n")
    corpora = [load_corpus(str(documents), kind="documents"), load_corpus(str(pairs), kind="pairs")]
    found = [
        check(tmp_path, training_text(c), [task()]).tasks["senteval:STS-B"].equal for c in corpora
    ]
    assert found == [1, 3]


def test_a_dev_set_is_a_text_too(tmp_path: Path) -> None:
    dev = DevSet(task().data)
    about = {"task": "STS-B", "split": "dev", "sha256": dev.sha256}
    one = check(tmp_path, selection_text(dev, about), [task()]).tasks["senteval:STS-B"]
    assert one.equal == one.texts
    assert read_overlap(tmp_path, about) is not None  # as a record names it


@dataclass(frozen=True)
class Odd:
    """A task of another package that does what it likes."""

    error: Exception | None = None
    name: str = "odd"
    suite: str = "own"
    source: str = "elsewhere"
    sha256: str = ""

    def texts(self) -> list[str]:
        if self.error is not None:
            raise self.error
        return []

    def evaluate(self, vectors: Any, *, pooling: str) -> Any:
        raise AssertionError


@pytest.mark.parametrize(
    ("error", "said"), [(None, "not known before"), (KeyError("no such column"), "no such col")]
)
def test_a_task_that_cannot_be_checked_does_not_stop_the_others(
    tmp_path: Path, error: Exception | None, said: str
) -> None:
    found = check(tmp_path, text("A cat"), [Odd(error), task()]).tasks
    assert said in found["elsewhere:odd"].unchecked
    assert found["senteval:STS-B"].equal == 1
