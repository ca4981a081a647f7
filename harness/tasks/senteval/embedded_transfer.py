"""Counterparts of the transfer tasks over the embedded data: question type, subjectivity, sentiment, paraphrase.

Scored by SentEval's classifier on train and test, the L2 weight chosen by folds of train, as TREC and MRPC are.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from harness.tasks.senteval.classifier import FULL, Classifier
from harness.tasks.senteval.transfer import PAIR, SINGLE, ClassificationTask
from harness.tasks.suite import Suite, TaskFamily

if TYPE_CHECKING:
    from harness.sources.senteval.labelled import Labelled

# Task -> file and parts of the suite. Natural and contrast parts are unlike data and reported apart.
EMBEDDED_TRANSFER: dict[str, tuple[str, tuple[str, ...]]] = {
    "Embedded-Questions": ("questions", ("a",)),
    "Embedded-Subjectivity": ("subjectivity", ("b",)),
    "Embedded-Sentiment-natural": ("sentiment", ("e",)),
    "Embedded-Sentiment-contrast": ("sentiment", ("c",)),
    "Embedded-Paraphrase-natural": ("paraphrase", ("e",)),
    "Embedded-Paraphrase-contrast": ("paraphrase", ("a",)),
}


def labelled(rows: Sequence[dict[str, Any]]) -> Labelled:
    """Rows with "split" (train, test), "label" and either "text" or "sentence1" and "sentence2".

    Classes are numbered in the order of their names.
    """
    from harness.sources.senteval.labelled import Labelled, LabelledSplit

    pairs = "sentence1" in rows[0]
    classes = sorted({row["label"] for row in rows})
    parts: dict[str, LabelledSplit] = {}
    digest = hashlib.sha256()
    for split in ("train", "test"):
        chosen = [row for row in rows if row["split"] == split]
        first = [row["sentence1" if pairs else "text"] for row in chosen]
        second = [row["sentence2"] for row in chosen] if pairs else []
        labels = np.array([classes.index(row["label"]) for row in chosen], dtype=np.int64)
        digest.update(repr((split, first, second, labels.tolist())).encode("utf-8", "surrogatepass"))
        parts[split] = LabelledSplit(first, second, labels)
    return Labelled(parts, len(classes), digest.hexdigest())


class EmbeddedTransferTask(ClassificationTask):
    """One of `EMBEDDED_TRANSFER`: accuracy on test, and of the folds of train ("dev")."""

    source = "embedded"
    preparation = "raw text"

    def __init__(self, name: str, *, classifier: Classifier = FULL) -> None:
        file, parts = EMBEDDED_TRANSFER[name]

        def load() -> Labelled:
            from harness.sources.embedded import embedded_rows

            return labelled(embedded_rows(file, parts))

        super().__init__(name, load, suite="embedded-transfer", classifier=classifier)

    @property
    def features(self) -> str:
        return PAIR if self.data.parts["train"].second else SINGLE


TASKS = TaskFamily(tuple(EMBEDDED_TRANSFER), lambda name, source: EmbeddedTransferTask(name))
SUITE = Suite(
    TASKS.names,
    "question type, subjectivity, sentiment, paraphrase on embedded data",
    metric="accuracy",
    # The classes of each task are equally frequent: six types of question, two of all else.
    chance={name: 1 / 6 if name == "Embedded-Questions" else 1 / 2 for name in EMBEDDED_TRANSFER},
)
