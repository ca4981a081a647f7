"""Uncertainty of scores: the bootstrap of test pairs.

Everything is plain numpy on arrays; nothing here knows records, tasks or tables.

The test pairs and the seeds of a comparison are crossed, not nested: every seed is scored on the same pairs. One
bootstrap replicate therefore draws pairs once, for all seeds and all models together (Owen, "The pigeonhole bootstrap",
Annals of Applied Statistics 1(2), 2007). Drawing new pairs for each seed would divide the variance that comes from the
pairs by the number of seeds and make intervals too narrow. Seeds are too few to be resampled: with three, a bootstrap
knows ten different means. Their part is computed, by Student's t (`reports.stats.simultaneous`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

_BLOCK = 32  # replicates handled at once: (3000 pairs x 32) float64 fits a processor core's second-level cache


def mean_sd(values: Sequence[float] | Floats) -> tuple[float, float | None]:
    """Mean and sample standard deviation (n - 1 in the denominator); no deviation for fewer than two values."""
    array = np.asarray(values, dtype=np.float64)
    if array.size == 0:
        raise ValueError("no values")
    return float(array.mean()), float(array.std(ddof=1)) if array.size > 1 else None


def resample_counts(n: int, replicates: int, seed: int) -> Floats:
    """How often each of n items occurs in each bootstrap sample of n draws with replacement; shape (n, replicates)."""
    generator = np.random.default_rng(seed)
    counts = np.empty((n, replicates), dtype=np.float64)
    for r in range(replicates):
        counts[:, r] = np.bincount(generator.integers(0, n, size=n), minlength=n)
    return counts


@dataclass(frozen=True)
class _Sorted:
    """The ascending order of some values and, where values are equal, the groups of equal ones."""

    order: NDArray[np.intp]
    starts: NDArray[np.intp] | None  # first place of each group; None when all values differ
    group: NDArray[np.intp] | None  # group of each place

    @classmethod
    def of(cls, values: Floats) -> _Sorted:
        order = np.argsort(values, kind="stable")
        ordered = values[order]
        new = np.r_[True, ordered[1:] != ordered[:-1]]
        return cls(order, None, None) if new.all() else cls(order, np.flatnonzero(new), np.cumsum(new) - 1)

    def ranks(self, sizes: Floats) -> Floats:
        """Average ranks minus their mean inside each resample; (n, replicates), rows in ascending order.

        `sizes` are the counts in that order. In ascending order a group of equal values that occupies c places after
        b earlier places has the average rank b + (c + 1) / 2, so one sort of the original values and a running sum of
        the counts re-rank every resample exactly. The mean rank of N places is (N + 1) / 2.
        """
        if self.starts is None or self.group is None:
            ranks = np.cumsum(sizes, axis=0)
            ranks -= ranks[-1] / 2
            ranks -= sizes / 2
            return ranks
        grouped = np.add.reduceat(sizes, self.starts, axis=0)
        ends = np.cumsum(grouped, axis=0)
        return np.asarray((ends - ends[-1] / 2 - grouped / 2)[self.group])


def bootstrap_spearman(models: Sequence[Floats], gold: Floats, counts: Floats) -> Floats:
    """Spearman's correlation of each model's scores with the gold scores inside each resample of the pairs.

    Args:
        models: one array of n scores for each model (or each seed of a model).
        gold: n gold scores.
        counts: (n, replicates) from `resample_counts`; a column of ones gives the correlation of the data itself.

    Returns:
        (len(models), replicates). Both variables are ranked anew in every resample, ties get average ranks
        (Spearman 1904; identical to `scipy.stats.spearmanr` on the drawn pairs). 0 where a variable is constant, as
        SentEval replaces an undefined correlation.
    """
    n, replicates = counts.shape
    result = np.zeros((len(models), replicates))
    by_gold = _Sorted.of(np.asarray(gold, dtype=np.float64))
    by_model = [_Sorted.of(np.asarray(scores, dtype=np.float64)) for scores in models]
    for start in range(0, replicates, _BLOCK):
        block = np.ascontiguousarray(counts[:, start : start + _BLOCK])
        y = np.empty_like(block)
        y[by_gold.order] = by_gold.ranks(block[by_gold.order])
        weighted_y = block * y
        yy = np.einsum("ij,ij->j", weighted_y, y)
        for m, model in enumerate(by_model):
            sizes = block[model.order]
            x = model.ranks(sizes)
            xy = np.einsum("ij,ij->j", weighted_y[model.order], x)
            sizes *= x
            scale = np.sqrt(np.einsum("ij,ij->j", sizes, x) * yy)
            # A constant variable has ranks that are zero up to rounding; n is far above that rounding.
            result[m, start : start + _BLOCK] = np.where(scale > n * 1e-9, xy / np.where(scale > 0, scale, 1.0), 0.0)
    return result


@dataclass(frozen=True)
class Estimate:
    """A value with its 95 % interval and the two-sided p-value of "the true value is 0"."""

    value: float
    low: float
    high: float
    p: float
