"""SentEval's classification tasks: a small head on frozen vectors, scored by its accuracy (Conneau
and Kiela 2018).
"""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from harness.results.facts import PAIRS, SENTENCES, Facts
from harness.results.outcomes import outcomes_frame
from harness.results.text_ids import pair_units, stack, text_ids
from harness.sources.senteval.labelled import (
    PREPARATION,
    Labelled,
    LabelledSplit,
    downstream_folder,
    read_task,
    unusual_sizes,
)
from harness.tasks.averages import Mean, Number
from harness.tasks.base import Array, TaskResult, Vectors, describe_damaged, finite
from harness.tasks.protocol import add_number
from harness.tasks.senteval.classifier import FULL, Classifier

if TYPE_CHECKING:
    import pandas as pd

    from harness.tasks.senteval.fits import Accuracies

TRANSFER = ("MR", "CR", "SUBJ", "MPQA", "SST2", "TREC", "MRPC")
PAIR = "|u-v|, u*v"
PAIR_WITH_BOTH = "u, v, u*v, |u-v|"
SINGLE = "u"
_SCHEMES = {
    1: "nested k-fold",
    2: "k-fold on train",
    3: "train, dev, test",
}  # by the number of parts

Load = Callable[[], Labelled]


class LabelledTask(ABC):
    """A task on labelled texts: its data, what it announces, and what a reader should know of it."""

    source = "senteval"
    preparation = PREPARATION

    def __init__(self, data: str, load: Load, *, name: str, suite: str) -> None:
        """`data`: the data set as the papers call it; `name`: of the task, where one set serves for
        several.
        """
        self.dataset = data
        self.name = name
        self.suite = suite
        self._load = load

    @cached_property
    def data(self) -> Labelled:
        """Raises:
        InputError: the files are missing or damaged.
        """
        return self._load()

    @property
    def sha256(self) -> str:
        return self.data.sha256

    @property
    def tested(self) -> LabelledSplit:
        """The test part; all there is where it is cut into folds."""
        parts = self.data.parts
        if "test" in parts:
            return parts["test"]
        return next(iter(parts.values()))

    def remarks(self, damaged: int) -> list[str]:
        """Sentences about sizes that are not the published ones, and about vectors with NaN or
        infinity.
        """
        sizes = {}
        for part, examples in self.data.parts.items():
            sizes[part] = len(examples)
        notes = []
        for note in unusual_sizes(self.dataset, sizes):
            notes.append(f"{self.name}: {note}")
        return notes + describe_damaged(self.name, damaged)

    def texts(self) -> list[str]:
        found = []
        for part in self.data.parts.values():
            for side in (part.first, part.second):
                found.extend(side)
        return found

    @property
    def features(self) -> str:
        """What is made of the vectors u and v of two sentences, or of u alone."""
        if self.dataset == "SNLI":
            return PAIR_WITH_BOTH
        if self.tested.second:
            return PAIR
        return SINGLE

    def inputs(self, vectors: Vectors) -> tuple[dict[str, Array], int]:
        """The features (n, d) of each part, and how many vectors held NaN or infinity (replaced by
        0).
        """
        x = {}
        damaged = 0
        for name, part in self.data.parts.items():
            x[name], bad = finite(vectors(part.first))
            damaged += bad
            if self.features != SINGLE:
                u = x[name]
                v, bad = finite(vectors(part.second))
                damaged += bad
                if self.features == PAIR:
                    pair = [np.abs(u - v), u * v]
                else:
                    pair = [u, v, u * v, np.abs(u - v)]
                x[name] = np.concatenate(pair, axis=1)
        return x, damaged

    @abstractmethod
    def evaluate(self, vectors: Vectors, *, pooling: str) -> TaskResult:
        """As `Task.evaluate`."""

    def _add(
        self,
        result: TaskResult,
        split: str,
        metric: str,
        value: float,
        pooling: str,
        how: dict[str, Any],
    ) -> None:
        parts = self.data.parts
        n = len(
            parts[split] if split in parts else next(iter(parts.values()))
        )  # of folds: all there is
        add_number(
            result,
            self,
            metric,
            value,
            n,
            pooling,
            split=split,
            preparation=self.preparation,
            **how,
        )


class ClassificationTask(LabelledTask):
    """Accuracy on test and dev; F1 of the positive class too for MRPC.

    The number of its parts says how the L2 weight is chosen: one, nested k-fold; train and test,
    k-fold on train; with dev, on dev (`harness.tasks.senteval.fits.classify`).
    """

    def __init__(
        self,
        data: str,
        load: Load,
        *,
        name: str = "",
        suite: str = "transfer",
        classifier: Classifier = FULL,
    ) -> None:
        super().__init__(data, load, name=name or data, suite=suite)
        self.classifier = classifier
        if data == "SNLI":  # no search and few passes: the training set has half a million pairs
            self.classifier = replace(classifier, l2=(1e-9,), max_epoch=15, epoch_size=1)
        # SentEval: a hidden layer would know too little about a thousand words
        if data == "WordContent":
            self.classifier = replace(classifier, nhid=0)

    def for_rehearsal(self) -> ClassificationTask:
        """Return the task with a classifier that takes seconds: one L2 weight, one pass, few folds."""
        small = copy.copy(self)
        small.classifier = replace(
            self.classifier,
            kfold=2,
            l2=self.classifier.l2[:1],
            max_epoch=1,
            epoch_size=1,
            tenacity=1,
        )
        return small

    def outcome(self, vectors: Vectors) -> tuple[Accuracies, int]:
        """Accuracies, and how many vectors held NaN or infinity (replaced by 0)."""
        from harness.tasks.senteval.fits import classify

        x, damaged = self.inputs(vectors)
        y = {}
        for name, part in self.data.parts.items():
            y[name] = part.labels
        return classify(x, y, self.data.classes, self.classifier), damaged

    def evaluate(self, vectors: Vectors, *, pooling: str) -> TaskResult:
        result = TaskResult()
        outcome, damaged = self.outcome(vectors)
        result.notes += self.remarks(damaged)
        parts = self.data.parts
        tested = self.tested
        values = [("test", "accuracy", outcome.test), ("dev", "accuracy", outcome.dev)]
        if self.dataset == "MRPC":
            values.append(("test", "f1", f1(tested.labels, outcome.predicted)))
        how = {
            "features": self.features,
            "scheme": _SCHEMES[len(parts)],
            "classifier": self.classifier.describe(),
        }
        for split, metric, value in values:
            self._add(result, split, metric, value / 100, pooling, how)
        result.outcomes = self._outcomes(outcome, tested)
        largest = np.bincount(tested.labels).max()
        majority = float(largest / len(tested))
        facts = Facts(
            PAIRS if tested.second else SENTENCES,
            "",
            "accuracy",
            1 / self.data.classes,
            majority,
        )
        result.figures[self.name] = facts.plain()
        return result

    def _outcomes(self, outcome: Accuracies, tested: LabelledSplit) -> pd.DataFrame:
        """Whether each tested example was right; each of nested folds is a subset of its own. For
        F1 the prediction.
        """
        about: dict[str, Any] = {"task": self.name, "source": self.source, "split": "test"}
        if tested.second:
            about["unit"] = pair_units(tested.first, tested.second)
        else:
            about["unit"] = text_ids(tested.first)
        folds: str | list[str] = ""
        if outcome.fold is not None:
            folds = [f"fold {number + 1}" for number in outcome.fold]
        right = outcome.predicted == tested.labels
        frames = [outcomes_frame(**about, metric="accuracy", outcome=right, subset=folds)]
        if self.dataset == "MRPC":
            frames.append(
                outcomes_frame(
                    **about,
                    metric="f1",
                    outcome=outcome.predicted,
                    target=tested.labels,
                )
            )
        return stack(frames)


def f1(gold: Array, predicted: Array) -> float:
    """F1 of class 1 in percent, rounded to two decimals as SentEval rounds it; 0 without a true
    positive.
    """
    hits = int(((predicted == 1) & (gold == 1)).sum())
    claimed = int((predicted == 1).sum())
    true = int((gold == 1).sum())
    if hits:
        return round(200 * hits / (claimed + true), 2)
    return 0.0


def transfer_task(
    dataset: str,
    *,
    name: str = "",
    suite: str = "transfer",
    classifier: Classifier = FULL,
    root: Path | None = None,
) -> ClassificationTask:
    """MR, CR, SUBJ, MPQA, SST2, SST5, TREC, MRPC, SICK-E or SNLI from SentEval's files, read on
    first use.
    """
    return ClassificationTask(
        dataset,
        downstream(dataset, root),
        name=name,
        suite=suite,
        classifier=classifier,
    )


def downstream(dataset: str, root: Path | None) -> Load:
    """Reads a set of SentEval's below `root`, see
    `harness.sources.senteval.labelled.downstream_folder`.
    """
    return lambda: read_task(dataset, downstream_folder(root))


def transfer_mean(split: str = "test") -> Mean:
    """The mean of the seven accuracies, each rounded to two decimals first (Gao et al. 2021 and its
    successors).
    """
    numbers = (Number(task, "accuracy", split=split) for task in TRANSFER)
    return Mean("mean of the seven transfer tasks (accuracy)", tuple(numbers), decimals=2)
