"""Semantic textual similarity: cosine of the two vectors of a pair, correlated with the human
score.

Follows SentEval (Conneau and Kiela 2018) with the aggregations of SimCSE's fork (Gao et al. 2021,
appendix B): a year has several subsets, and `all`, `mean` and `wmean` over them are different
numbers for the same vectors.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from harness.errors import InputError
from harness.results.facts import PAIRS, Facts
from harness.results.text_ids import text_ids
from harness.sources.pair_sets import EMBEDDED_STS, TRANSLATED
from harness.tasks.averages import Mean, Number
from harness.tasks.base import (
    Array,
    Encode,
    TaskResult,
    Vectors,
    as_array,
    check_vectors,
    finite,
    unit_rows,
)
from harness.tasks.protocol import add_number
from harness.tasks.suite import Suite, TaskFamily

if TYPE_CHECKING:
    from harness.sources.pair_sets import PairSet, Source

STS = ("STS12", "STS13", "STS14", "STS15", "STS16", "STS-B", "SICK-R")
YEARS = STS[:5]  # several subsets each; the other two are one set

DEV = "STS-B-dev"  # the dev part as a task: what papers print of the checkpoint that it selected

COSINE = {"similarity": "cosine", "version": "harness-sts-1"}  # in the protocols of these scores
Correlation = Callable[[Any, Any], float]

AGGREGATIONS = ("all", "mean", "wmean")


def _ranks(x: Array) -> NDArray[np.float64]:
    """Ranks from 1, ties share their average rank."""
    _, place, counts = np.unique(x, return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    mean_ranks = last - (counts - 1) / 2.0
    average: NDArray[np.float64] = mean_ranks[place]
    return average


def _pair(similarities: Any, gold: Any) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    x = np.asarray(as_array(similarities), dtype=np.float64).ravel()
    y = np.asarray(as_array(gold), dtype=np.float64).ravel()
    if x.shape != y.shape:
        raise ValueError(f"{x.size} similarities for {y.size} gold scores")
    if not np.isfinite(y).all():
        raise ValueError("gold scores must be finite")
    return np.where(np.isfinite(x), x, 0.0), y


def pearson(similarities: Any, gold: Any) -> float:
    """Pearson correlation of two (n,) arrays or tensors, in [-1, 1].

    A similarity that is NaN or infinite counts as 0. An undefined correlation (fewer than two
    pairs, or one side constant) is 0: a method that gives every pair the same score knows nothing
    about them.
    """
    x, y = _pair(similarities, gold)
    if x.size < 2:
        return 0.0
    if np.ptp(x) == 0 or np.ptp(y) == 0:
        return 0.0
    x = x - x.mean()
    y = y - y.mean()
    # no under- or overflow in the squares
    x = x / np.abs(x).max()
    y = y / np.abs(y).max()
    scale = np.sqrt((x @ x) * (y @ y))
    return float(np.clip(x @ y / scale, -1.0, 1.0))


def spearman(similarities: Any, gold: Any) -> float:
    """Spearman rank correlation (ties get average ranks) of two (n,) arrays or tensors, in [-1, 1].

    NaN, infinity and constant input as in `pearson`.
    """
    x, y = _pair(similarities, gold)
    return pearson(_ranks(x), _ranks(y))


def aggregate(
    correlation: Correlation,
    similarities: Sequence[Any],
    gold: Sequence[Any],
    aggregation: str,
) -> float:
    """One number from subsets s = 1..m with n_s pairs and correlations r_s; the sequences hold one
    array a subset.

    "all": one correlation over the concatenation; "mean": (1/m) sum r_s; "wmean": sum n_s r_s / sum
    n_s.
    """
    if aggregation not in AGGREGATIONS:
        raise InputError(
            f'unknown aggregation "{aggregation}"; known: {", ".join(AGGREGATIONS)}',
            key="aggregation",
        )
    if len(similarities) != len(gold) or not gold:
        raise ValueError(
            f"{len(similarities)} subsets of similarities for {len(gold)} of gold scores"
        )
    if aggregation == "all":
        all_similarities = np.concatenate([as_array(s) for s in similarities])
        all_gold = np.concatenate([as_array(g) for g in gold])
        return correlation(all_similarities, all_gold)
    weights = [1] * len(gold)
    if aggregation == "wmean":
        weights = [len(g) for g in gold]
    correlations = [correlation(s, g) for s, g in zip(similarities, gold, strict=True)]
    return float(np.average(correlations, weights=weights))


def cosine(u: Array, v: Array) -> NDArray[np.float32]:
    """Row-wise cosine (n,) of two (n, d) arrays; 0 where a vector is zero.

    Computed in float64, returned in float32: the rounding makes pairs that are equally similar
    (such as two identical sentences) true ties, which last-digit noise would otherwise rank at
    random. SentEval computes in the vectors' own dtype and so ranks them at random. With real
    float32 vectors (embedded:mini-bert) ours is within 0.0006 points of the exact cosines'
    correlation in all 26 subsets; SentEval's is up to 0.071 below it (SMTeuroparl, 16 identical
    pairs of gold 5; 0.02 in the mean of STS12) and moves as much when the vectors' dimensions are
    put in another order.
    """
    products: NDArray[np.float64] = np.einsum("ij,ij->i", unit_rows(u), unit_rows(v))
    return np.clip(products, -1.0, 1.0).astype(np.float32)


class STSTask:
    """One STS task: Spearman and Pearson; `all`, `mean` and `wmean` where the data has subsets,
    `all` where not.
    """

    def __init__(
        self,
        name: str,
        source: Source,
        *,
        split: str = "test",
        suite: str = "sts",
        pair_set: str = "",
    ) -> None:
        """`pair_set`: the data, where the task has another name."""
        self.name = name
        self.pair_set = pair_set or name
        self.source = source
        self.split = split
        self.suite = suite

    @classmethod
    def of(cls, pairs: PairSet, *, suite: str = "sts") -> STSTask:
        """A task over data that is at hand already."""
        task = cls(pairs.task, pairs.source, split=pairs.split, suite=suite)
        task.data = pairs
        return task

    @cached_property
    def data(self) -> PairSet:
        from harness.sources.pair_sets import load_sts

        return load_sts(self.pair_set, source=self.source, split=self.split)

    @property
    def sha256(self) -> str:
        return self.data.sha256

    def texts(self) -> list[str]:
        return [
            text
            for s in self.data.subsets
            for side in (s.sentences1, s.sentences2)
            for text in side
        ]

    def evaluate(self, vectors: Vectors, *, pooling: str) -> TaskResult:
        import pandas as pd

        result = TaskResult()
        for text in self.data.unusual_sizes():
            result.notes.append(f"{self.name}: {text}")
        frames = []
        similarities = []
        golds = []
        damaged = 0
        for subset in self.data.subsets:
            u, bad_u = finite(vectors(subset.sentences1))
            v, bad_v = finite(vectors(subset.sentences2))
            damaged += bad_u + bad_v
            score = cosine(u, v)
            gold = np.asarray(subset.gold, dtype=np.float64)
            if gold.size < 2 or np.ptp(score) == 0 or np.ptp(gold) == 0:
                result.notes.append(
                    f"{self.name} {subset.name}: all {gold.size} pairs have the same similarity or gold score; "
                    "their correlation is undefined and counts as 0"
                )
            similarities.append(score)
            golds.append(gold)
            ids = {"text1": text_ids(subset.sentences1), "text2": text_ids(subset.sentences2)}
            about = {
                "task": self.name,
                "source": self.source,
                "split": self.split,
                "subset": subset.name,
                "pair": np.arange(gold.size),
                "gold": gold,
                "score": score,
            }
            frames.append(pd.DataFrame({**about, **ids}))
        result.note_damaged(self.name, damaged)
        n = sum(gold.size for gold in golds)
        for aggregation in AGGREGATIONS if len(golds) > 1 else AGGREGATIONS[:1]:
            for metric, correlation in (("spearman", spearman), ("pearson", pearson)):
                value = aggregate(correlation, similarities, golds, aggregation)
                how = {"aggregation": aggregation, "preparation": self.data.preparation, **COSINE}
                add_number(result, self, metric, value, n, pooling, split=self.split, **how)
        result.pairs = pd.concat(frames, ignore_index=True)
        result.figures[self.name] = Facts(PAIRS, metric="spearman", chance=0.0).plain()
        return result


class ModelOnPairs:
    """What tasks share that look into a model, or time it, on the sentences of one pair set."""

    suite: str

    def __init__(self, pair_set: str, source: Source, *, split: str = "test") -> None:
        """Named after its suite and the pair set."""
        self.name = f"{self.suite}:{pair_set}"
        self.source = source
        self.pairs = STSTask(pair_set, source, split=split)

    @classmethod
    def of(cls, pairs: PairSet) -> Self:
        """A task over data that is at hand already."""
        task = cls(pairs.task, pairs.source, split=pairs.split)
        task.pairs = STSTask.of(pairs)
        return task

    @property
    def sha256(self) -> str:
        return self.pairs.sha256

    def texts(self) -> list[str]:
        return self.pairs.texts()

    def evaluate(self, vectors: Vectors, *, pooling: str) -> TaskResult:
        """Raises:
        InputError: always; vectors alone do not suffice.
        """
        raise InputError(
            f"{self.name}: needs the model itself, not vectors: use `harness evaluate`",
            key=self.name,
        )


class DevSet:
    """A fast dev score for model selection: Spearman `all` of the cosines of one pair set.

    Everything that does not depend on the model (distinct texts, ranks of the gold scores) is
    prepared once.
    """

    def __init__(self, pairs: PairSet, remarks: Sequence[str] = ()) -> None:
        """`remarks`: sentences about its pairs that a reader should know.

        Raises:
        InputError: fewer than two pairs, or all gold scores equal: nothing could be selected by it.
        """
        self.pairs = pairs
        self.remarks = list(remarks)
        self.name = f"{pairs.task} {pairs.split}"
        self.sha256 = pairs.sha256
        left = []
        for s in pairs.subsets:
            left.extend(s.sentences1)
        right = []
        for s in pairs.subsets:
            right.extend(s.sentences2)
        self._texts = list(dict.fromkeys(left + right))
        self.num_texts = len(self._texts)
        place = {text: i for i, text in enumerate(self._texts)}
        left_rows = [place[text] for text in left]
        right_rows = [place[text] for text in right]
        self._left = np.array(left_rows, dtype=np.intp)
        self._right = np.array(right_rows, dtype=np.intp)
        gold = np.concatenate(
            [np.asarray(s.gold, dtype=np.float64) for s in pairs.subsets] or [np.empty(0)]
        )
        if gold.size < 2 or np.ptp(gold) == 0:
            raise InputError(
                f"{self.name} ({pairs.source}): a dev set needs at least two different gold scores",
                key=self.name,
            )
        self._gold_ranks = _ranks(gold)

    @property
    def notes(self) -> list[str]:
        """What a reader of runs that were selected by it should know."""
        if self.pairs.whole:
            part = []
        else:
            part = [f"{len(self):,} of its pairs alone select, the same ones in all runs"]
        found = []
        for text in [*self.pairs.unusual_sizes(), *part, *self.remarks]:
            found.append(f"dev set {self.name}: {text}")
        return found

    def __len__(self) -> int:
        """Number of pairs."""
        return int(self._left.size)

    def texts(self) -> list[str]:
        """The distinct sentences, in the order in which they are encoded."""
        return self._texts

    def score(self, encode: Encode) -> float:
        """Spearman in [-1, 1] of the vectors that `encode` gives; 0 when all similarities are
        equal.
        """
        return self._spearman(self._encode(encode))

    def evaluate(self, encode: Encode) -> dict[str, float]:
        """`spearman` as `score`, and collapse statistics of the same vectors
        (`harness.tasks.geometry`):

        `std`, about 1 when spread over the sphere and 0 when collapsed to a point;
        `effective_rank`, at most d and near 1 when collapsed to a line; `mean_cosine` of unlike
        sentences, near 1 in a narrow cone.
        """
        from harness.tasks.geometry import effective_rank, feature_std, mean_cosine

        x = self._encode(encode)
        if len(x) > 1:
            cosines = {"mean_cosine": mean_cosine(x)}
        else:
            cosines = {}
        return {
            "spearman": self._spearman(x),
            "std": feature_std(x),
            "effective_rank": effective_rank(x),
            **cosines,
        }

    def _encode(self, encode: Encode) -> Array:
        vectors = encode(list(self._texts))  # which an `encode` may change
        x, _ = finite(check_vectors(vectors, len(self._texts)))
        return x

    def _spearman(self, x: Array) -> float:
        similar = cosine(x[self._left], x[self._right])
        return pearson(_ranks(similar), self._gold_ranks)


def _task(name: str, source: Source) -> STSTask:
    if name in EMBEDDED_STS:
        return STSTask(name, "embedded", suite="embedded")
    if name in TRANSLATED:
        return STSTask(name, "stsb-multi-mt", suite="multilingual")
    if name == DEV:
        return STSTask(name, source, split="dev", suite="sts-dev", pair_set="STS-B")
    return STSTask(name, source)


def sts_mean(aggregation: str = "all") -> Mean:
    """The mean of the seven sets, each rounded to two decimals first (SimCSE, Gao et al. 2021, and
    its successors).

    `aggregation` is that of the years; STS-B and SICK-R are one set each: always "all".
    """
    title = f"mean of the seven STS sets (Spearman, {aggregation})"
    numbers = []
    for task in STS:
        of_task = aggregation if task in YEARS else "all"
        numbers.append(Number(task, "spearman", of_task))
    return Mean(title, tuple(numbers), decimals=2)


TASKS = TaskFamily((*STS, DEV, *EMBEDDED_STS, *TRANSLATED), _task)
SUITE = Suite(
    STS,
    "STS12-16, STS-B and SICK-R by cosine, as SimCSE, SCD and SG report them; all aggregations",
    metric="spearman",
    chance=0.0,
    averages=(sts_mean(),),
)
MULTILINGUAL = Suite(
    tuple(TRANSLATED), "the STS-B test set in ten languages", metric="spearman", chance=0.0
)
DEV_SUITE = Suite(
    (DEV,),
    "the STS-B dev part, as SimCSE's ablations print it; it may have selected the checkpoints",
    metric="spearman",
    chance=0.0,
)
