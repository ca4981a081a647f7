"""Pairs of a file with two labels: average precision of the cosines (the main score), and the
accuracy at the best threshold, as `BinaryClassificationEvaluator` of sentence-transformers.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from harness.files.hashing import sha256_of_text
from harness.results.facts import PAIRS, Facts
from harness.results.outcomes import outcomes_frame, score_of
from harness.results.text_ids import pair_units
from harness.sources.senteval.labelled import LabelledSplit
from harness.tasks.base import TaskResult, Vectors, finite
from harness.tasks.own.data import true_labels
from harness.tasks.own.file_task import FileTask
from harness.tasks.protocol import add_number
from harness.tasks.sts import COSINE, cosine


class FilePairClassification(FileTask):
    """The test part of labelled pairs."""

    kind = "pair-classification"

    @cached_property
    def tested(self) -> LabelledSplit:
        """The pairs with 1 (alike) and 0."""
        rows = self.own.rows("test")
        labels = true_labels(rows, self.own.where)
        return LabelledSplit(rows["sentence1"].tolist(), rows["sentence2"].tolist(), labels)

    @property
    def sha256(self) -> str:
        pairs = (self.tested.first, self.tested.second, self.tested.labels.tolist())
        return sha256_of_text(repr(pairs))

    def texts(self) -> list[str]:
        return [*self.tested.first, *self.tested.second]

    def evaluate(self, vectors: Vectors, *, pooling: str) -> TaskResult:
        result = TaskResult(notes=list(self.data_remarks))
        first = self.tested.first
        second = self.tested.second
        gold = self.tested.labels
        u, bad_u = finite(vectors(first))
        v, bad_v = finite(vectors(second))
        result.note_damaged(self.name, bad_u + bad_v)
        similar = cosine(u, v)
        precision = score_of("cosine_ap", gold, similar, np.ones(len(gold)))
        accuracy = best_accuracy(similar, gold)
        how: dict[str, Any] = {"preparation": self.preparation, **COSINE}
        for metric, value in (("cosine_ap", precision), ("cosine_accuracy", accuracy)):
            add_number(result, self, metric, value, len(gold), pooling, **how)
        result.outcomes = outcomes_frame(
            task=self.name,
            source=self.source,
            split="test",
            metric="cosine_ap",
            outcome=similar,
            target=gold,
            unit=pair_units(first, second),
        )
        facts = Facts(PAIRS, metric="cosine_ap", chance=float(gold.mean()))
        result.figures[self.name] = facts.plain()
        return result


def best_accuracy(similar: NDArray[Any], gold: NDArray[np.int64]) -> float:
    """Return the largest share of pairs that one threshold on n similarities classifies rightly:
    pairs at or above it are called alike.

    >>> best_accuracy(np.array([0.9, 0.8, 0.1]), np.array([1, 0, 1]))
    0.6666666666666666
    """
    order = np.argsort(-np.asarray(similar), kind="stable")
    ranked = np.asarray(similar)[order]
    true = np.cumsum(gold[order])
    above = np.arange(1, len(gold) + 1)
    right = true + (len(gold) - gold.sum()) - (above - true)
    last = np.append(np.diff(ranked) != 0, True)  # of each run of equal similarities
    none_above = len(gold) - gold.sum()
    return float(max(right[last].max(), none_above) / len(gold))
