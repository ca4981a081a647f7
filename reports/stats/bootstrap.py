"""Uncertainty of scores and of differences between runs: hierarchical bootstrap, permutation test, Holm.

Everything is plain numpy on arrays; nothing here knows records, tasks or tables.

The test pairs and the seeds of a comparison are crossed, not nested: every seed is scored on the same pairs. One
bootstrap replicate therefore draws pairs once, for all seeds and all models together (Owen, "The pigeonhole bootstrap",
Annals of Applied Statistics 1(2), 2007). Drawing new pairs for each seed would divide the variance that comes from the
pairs by the number of seeds and make intervals too narrow. Seeds are too few to be resampled: with three, a bootstrap
knows ten different means. Their part is a normal deviation with Student's correction (`with_seed_spread`).
"""

from __future__ import annotations

import math
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


def percentile_estimate(value: float, replicates: Floats, confidence: float = 0.95) -> Estimate:
    """Percentile interval (Efron & Tibshirani 1993, chapter 13) and the p-value that its inversion gives.

    p = 2 min(#{r <= 0} + 1, #{r >= 0} + 1) / (R + 1), at most 1: never below 2 / (R + 1), the resolution of R
    replicates (Davison & Hinkley 1997, section 4.4).
    """
    tail = (1 - confidence) / 2
    low, high = np.quantile(replicates, [tail, 1 - tail])
    side = min(int((replicates <= 0).sum()), int((replicates >= 0).sum())) + 1
    return Estimate(value, float(low), float(high), min(1.0, 2 * side / (replicates.size + 1)))


def with_seed_spread(
    replicates: Floats, groups: Sequence[Floats], *, seed: int = 0, confidence: float = 0.95
) -> Floats:
    """Replicates of a mean over seeds whose spread holds the pairs' chance and the seeds' chance.

    Args:
        replicates: (R,) the mean over seeds in R resamples of the pairs: what the pairs alone do.
        groups: scores by seed of each independently seeded side; a side with one seed adds nothing, since nothing is
            known about its seeds.

    The standard error of each side's mean over n seeds is sd / sqrt(n), of variance V_g. It is estimated from few
    values, so deviations are widened by t(f) / z. The seeds' part has f_s = (sum V_g)^2 / sum(V_g^2 / (n_g - 1))
    effective degrees of freedom (Welch, Biometrika 34, 1947; Satterthwaite, Biometrics Bulletin 2, 1946). The pairs'
    variance counts as known and raises them in proportion: f = f_s (1 + V_pairs / sum V_g). Satterthwaite's square in
    its place covers 91-93 % with three seeds. Simulated coverage of 95 % intervals with this rule, over 3 to 5 seeds on
    one or both sides and spreads of seeds from far below to far above the pairs': 94.5-96.7 %; with two seeds 92-96 %.
    """
    from scipy.stats import norm, t

    variances = [(float(np.var(g, ddof=1)) / len(g), len(g) - 1) for g in groups if len(g) > 1]
    from_seeds = sum(v for v, _ in variances)
    if from_seeds == 0:
        return replicates
    seeds_freedom = from_seeds**2 / sum(v * v / f for v, f in variances)
    freedom = seeds_freedom * (1 + float(replicates.var()) / from_seeds)
    tail = (1 + confidence) / 2
    widening = float(t.ppf(tail, freedom)) / float(norm.ppf(tail))
    noise = np.random.default_rng(seed).standard_normal(replicates.size) * math.sqrt(from_seeds)
    centre = replicates.mean()
    return np.asarray(centre + widening * (replicates - centre + noise))


def hierarchical_mean(by_seed: Floats, replicates_by_seed: Floats, *, seed: int = 0) -> Estimate:
    """A model's mean score over seeds with an interval over seeds (outer) and pairs (inner).

    Args:
        by_seed: (s,) scores of the s seeds.
        replicates_by_seed: (s, R) the same scores in R resamples of the pairs (the same resamples for every seed).
    """
    drawn = with_seed_spread(replicates_by_seed.mean(axis=0), [by_seed], seed=seed)
    return percentile_estimate(float(np.mean(by_seed)), drawn)


def hierarchical_difference(
    a: Floats, b: Floats, replicates_a: Floats, replicates_b: Floats, *, paired_seeds: bool, seed: int = 0
) -> Estimate:
    """Difference mean(a) - mean(b) between two models scored on the same resamples of the same pairs.

    Args:
        a, b: (s_a,) and (s_b,) scores by seed.
        replicates_a, replicates_b: (s_a, R) and (s_b, R), from the same `counts`.
        paired_seeds: entry i of a and of b come from the same seed (same data order, same initialisation): the spread
            of their differences counts then; otherwise that of each side.

    With one seed on a side, the interval holds no seed variation of that side.
    """
    if paired_seeds and len(a) != len(b):
        raise ValueError(f"paired seeds need equally many on both sides, not {len(a)} and {len(b)}")
    difference = replicates_a.mean(axis=0) - replicates_b.mean(axis=0)
    groups = [a - b] if paired_seeds else [a, b]
    return percentile_estimate(float(np.mean(a) - np.mean(b)), with_seed_spread(difference, groups, seed=seed))


def holm(p_values: Sequence[float]) -> list[float]:
    """Holm's step-down adjusted p-values, in the order given (Holm, Scandinavian Journal of Statistics 6, 1979).

    Sorted ascending, p~_(i) = max over j <= i of min(1, (m - j + 1) p_(j)): comparing them with alpha holds the
    probability of any false rejection below alpha, whatever the dependence.
    """
    m = len(p_values)
    adjusted = [1.0] * m
    running = 0.0
    for place, index in enumerate(sorted(range(m), key=lambda i: p_values[i])):
        running = max(running, min(1.0, (m - place) * p_values[index]))
        adjusted[index] = running
    return adjusted
