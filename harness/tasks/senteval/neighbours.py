"""Accuracy of the ten nearest neighbours by cosine: does a text lie among texts of its label?

No classifier is fitted and no setting is chosen, unlike in SentEval's tasks on the same texts.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from harness.config import drop_unset
from harness.results.facts import SENTENCES, Facts
from harness.results.text_ids import text_ids
from harness.tasks.base import Array, TaskResult, Vectors, describe_damaged, finite
from harness.tasks.protocol import add_accuracy
from harness.tasks.senteval.suites import (
    DOWNSTREAM,
    EMBEDDED_TRANSFER,
    TRANSFER_SUITE,
    make_task,
)
from harness.tasks.senteval.suites import EMBEDDED as EMBEDDED_CLASSIFICATION
from harness.tasks.senteval.transfer import ClassificationTask
from harness.tasks.suite import Suite, TaskFamily

if TYPE_CHECKING:
    from harness.sources.pair_sets import Source

PREFIX = "knn:"
NEIGHBOURS = 10
FOLDS = 10  # of a set without parts


def predict_labels(
    x: Array,
    labels: NDArray[np.int64],
    tested: Array,
    *,
    neighbours: int = NEIGHBOURS,
) -> NDArray[np.int64]:
    """Return the commonest label among the nearest rows of `x` by cosine, for each tested row; the
    smallest of labels that are equally common.

    Args:
        x: (n, d). labels: (n,). tested: (m, d).
        neighbours: how many; all rows, if there are fewer.
    """
    from sklearn.neighbors import KNeighborsClassifier  # slow

    count = min(neighbours, len(x))
    model = KNeighborsClassifier(count, metric="cosine", algorithm="brute")
    predicted: NDArray[np.int64] = model.fit(x, labels).predict(tested)
    return predicted


class NeighbourTask:
    """The texts of a classification task, each of which gets the label of its neighbours.

    Neighbours are training texts; of a set without parts, those of the other nine folds (stratified
    and shuffled as SentEval's). A dev part is not used.

    Named "knn:" and the task.
    """

    suite = "knn"

    def __init__(self, of: ClassificationTask) -> None:
        self.of = of
        self.name = f"{PREFIX}{of.name}"
        self.source = of.source

    @property
    def sha256(self) -> str:
        return self.of.sha256

    def texts(self) -> list[str]:
        parts = self.of.data.parts.items()
        texts: list[str] = []
        for name, part in parts:
            if name != "dev":
                texts.extend(part.first)
        return texts

    def predict(self, vectors: Vectors) -> tuple[NDArray[np.int64], NDArray[np.int64], int]:
        """Return the predicted label and the fold of each tested text (no folds: all 0), and how
        many vectors held NaN or infinity (replaced by 0).
        """
        from harness.tasks.senteval.fits import outer_folds  # imports torch

        parts = self.of.data.parts
        tested = self.of.tested
        x, damaged = finite(vectors(tested.first))
        fold = np.zeros(len(tested), dtype=np.int64)
        if "train" in parts:
            known, bad = finite(vectors(parts["train"].first))
            labels = parts["train"].labels.astype(np.int64)
            return predict_labels(known, labels, x), fold, damaged + bad
        labels = tested.labels.astype(np.int64)
        predicted = np.empty_like(labels)
        for number, (rest, held_out) in enumerate(outer_folds(labels, FOLDS)):
            train = x[rest]
            predicted[held_out] = predict_labels(train, labels[rest], x[held_out])
            fold[held_out] = number
        return predicted, fold, damaged

    def evaluate(self, vectors: Vectors, *, pooling: str) -> TaskResult:
        predicted, fold, damaged = self.predict(vectors)
        result = TaskResult(notes=describe_damaged(self.name, damaged))
        tested = self.of.tested
        right = predicted == tested.labels
        neighbours_from = "train"
        subset: str | list[str] = ""
        if "train" not in self.of.data.parts:
            neighbours_from = f"the other of {FOLDS} folds"
            subset = [f"fold {number + 1}" for number in fold]
        add_accuracy(
            result,
            self,
            right,
            text_ids(tested.first),
            pooling,
            subset=subset,
            preparation=self.of.preparation,
            neighbours=NEIGHBOURS,
            similarity="cosine",
            neighbours_from=neighbours_from,
        )
        counts = np.bincount(tested.labels.astype(np.int64))
        majority = float(counts.max() / len(tested))
        chance = 1 / self.of.data.classes
        facts = Facts(SENTENCES, "", "accuracy", chance, majority)
        result.figures[self.name] = facts.plain()
        return result


def _task(name: str, source: Source) -> NeighbourTask:
    of = make_task(name.removeprefix(PREFIX), source)
    assert isinstance(of, ClassificationTask)
    return NeighbourTask(of)


def _suite(names: list[str], about: str, of: tuple[Suite, ...]) -> Suite:
    chance = {}
    for one in of:
        for name in one.tasks:
            chance[f"{PREFIX}{name}"] = one.chance_of(name)
    known = drop_unset(chance)
    tasks = tuple(f"{PREFIX}{name}" for name in names)
    return Suite(
        tasks,
        about,
        metric="accuracy",
        chance={name: known[name] for name in tasks},
    )


_OF_SENTENCES = ["MR", "CR", "SUBJ", "MPQA", "SST2", "SST5", "TREC"]
_OF_EMBEDDED = [name for name in EMBEDDED_TRANSFER if "Paraphrase" not in name]
SUITE = _suite(
    _OF_SENTENCES,
    "ten nearest neighbours by cosine on SentEval's sentences",
    (TRANSFER_SUITE, DOWNSTREAM),
)
EMBEDDED = _suite(
    _OF_EMBEDDED,
    "ten nearest neighbours by cosine: question type, subjectivity, sentiment on embedded data",
    (EMBEDDED_CLASSIFICATION,),
)
TASKS = TaskFamily((*SUITE.tasks, *EMBEDDED.tasks), _task)
