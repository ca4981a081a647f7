"""Means, quartiles, bins, and estimates with their intervals; what a search of a given budget is
expected to find.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import comb

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


def mean_sd(values: Sequence[float] | Floats) -> tuple[float, float | None]:
    """Mean and sample standard deviation (n - 1 in the denominator); no deviation for fewer than
    two values.
    """
    array = np.asarray(values, dtype=np.float64)
    if array.size == 0:
        raise ValueError("no values")
    mean = float(array.mean())
    if array.size == 1:
        return mean, None
    return mean, float(array.std(ddof=1))


@dataclass(frozen=True)
class Interval:
    """A value with its 95 % interval."""

    value: float
    low: float
    high: float


@dataclass(frozen=True)
class Estimate(Interval):
    """With the two-sided p-value of "the true value is 0"."""

    p: float

    @property
    def reversed(self) -> Estimate:
        """Of the difference the other way round."""
        return Estimate(-self.value, -self.high, -self.low, self.p)


def p_of_at_most(estimate: Estimate, bound: float, variance: float) -> float:
    """One-sided p-value of "the true value is `bound` or less", of an estimate by Student's t.

    Its degrees of freedom are those by which its 95 % interval is that wide. An interval that is
    wider still than with one degree, as after interim analyses, counts as that of one.

    >>> one = Estimate(0.02, 0.02 - 0.0196, 0.02 + 0.0196, 0.0455)
    >>> round(p_of_at_most(one, 0.0, 0.0001), 4), round(p_of_at_most(one, -0.01, 0.0001), 4)
    (0.0228, 0.0013)

    Args:
        variance: of the value.
    """
    from scipy.optimize import brentq
    from scipy.special import ndtr, stdtr, stdtrit

    distance = estimate.value - bound
    half = (estimate.high - estimate.low) / 2
    if half <= 0:
        return 0.0 if distance > 0 else 1.0
    error = math.sqrt(variance)
    widest = float(stdtrit(1, 0.975))
    if error * widest <= half:
        return float(stdtr(1, -distance * widest / half))

    def excess(log_freedom: float) -> float:
        freedom = math.exp(log_freedom)
        critical = float(stdtrit(freedom, 0.975))
        return critical * error - half

    most = math.log(1e9)
    if excess(most) >= 0:
        return float(ndtr(-distance / error))
    freedom = math.exp(brentq(excess, 0.0, most))
    return float(stdtr(freedom, -distance / error))


def predict(value: float, sides: Sequence[Sequence[float]], *, runs: float = 1) -> Interval:
    """Where the mean of `runs` more runs, or the difference of two such means, is expected at 95 %.

    Of infinitely many runs it is where the true mean lies.

    The runs of a side are taken as independent draws of one normal distribution with the sample
    variance s^2 of n runs: the mean of m others minus theirs has variance s^2 (1/m + 1/n), and over
    its root it is Student's t with n - 1 degrees of freedom (Hahn and Meeker, "Statistical
    Intervals", 1991, section 4.8; Geisser, "Predictive Inference", 1993). The variances of two
    sides add up, with Welch's degrees of freedom (Biometrika 34, 1947). Published runs use the same
    test pairs, so the chance of the pairs does not enter.

    Args:
        value: the mean, or the difference of two.
        sides: the values of each side that depends on a seed, two or more each.
    """
    from scipy.special import stdtrit

    variances = []
    weights = []
    for side in sides:
        _, sd = mean_sd(side)
        of_one = (sd or 0) ** 2
        variance = of_one * (1 / runs + 1 / len(side))
        freedom_of_side = len(side) - 1
        variances.append(variance)
        weights.append(variance**2 / freedom_of_side)
    total = sum(variances)
    if total == 0:
        return Interval(value, value, value)
    freedom = total**2 / sum(weights)
    critical = float(stdtrit(freedom, 0.975))
    half = critical * math.sqrt(total)
    return Interval(value, value - half, value + half)


def quartile(values: Sequence[float], share: float) -> float:
    """The quantile by linear interpolation (Hyndman and Fan's type 7); the papers name no
    convention.
    """
    array = np.asarray(values, dtype=np.float64)
    return float(np.quantile(array, share, method="linear"))


def expected_maximum(values: Sequence[float], budgets: Sequence[int]) -> NDArray[np.float64]:
    """Expected validation performance: the mean of the best of n trials out of the N that were
    seen.

    Over all sets of n different trials: the i-th smallest value is the best of C(i - 1, n - 1) of
    C(N, n) sets. That is unbiased for a budget of n trials. Dodge et al. (EMNLP 2019, "Show Your
    Work", section 3), who name the quantity,
    draw with replacement: a trial drawn twice is no second trial, and their curve lies too low, by
    0.2 standard deviations at n = N (Tang et al., ACL 2020, "Showing Your Work Doesn't Always
    Work"). The trials must be
    exchangeable: of an adaptive sampler it says what the same trials would give in random order.

    Args:
        values: one a trial, larger is better.
        budgets: numbers of trials n, each from 1 to N.

    Raises:
        ValueError: a budget of more trials than there are values: nothing is known of those.
    """
    ordered = np.sort(np.asarray(values, dtype=np.float64))
    count = len(ordered)
    if not all(1 <= n <= count for n in budgets):
        raise ValueError(f"budgets from 1 to {count}, the number of trials")
    weights = np.empty((len(budgets), count))
    for line, n in zip(weights, budgets, strict=True):
        sets = comb(count, n)
        line[:] = [comb(i, n - 1) / sets for i in range(count)]
    return np.asarray(weights @ ordered)


def bins(
    values: Sequence[float],
    *,
    log: bool,
    count: int = 8,
    listed: bool = False,
) -> list[tuple[float, float]]:
    """Intervals that cover the values: `count` equally wide ones (on a log scale with `log`), or
    one a value where they are `listed` values of a search space and no more than `count`. Intervals
    are closed below and open above, the last one closed.
    """
    distinct = sorted(set(values))
    one_each = listed and len(distinct) <= count
    if len(distinct) == 1 or one_each:
        return [(v, v) for v in distinct]
    low, high = distinct[0], distinct[-1]
    if log and low > 0:
        edges = np.geomspace(low, high, count + 1)
    else:
        edges = np.linspace(low, high, count + 1)
    edges[0] = low
    edges[-1] = high
    return list(pairwise(edges.tolist()))


def bin_of(value: float, intervals: Sequence[tuple[float, float]]) -> int:
    """The number of the interval that holds `value`.

    Raises:
        ValueError: none does.
    """
    last = len(intervals) - 1
    for i, (low, high) in enumerate(intervals):
        if low <= value < high:
            return i
        is_closed = low == high or i == last
        if is_closed and value == high:
            return i
    raise ValueError(f"{value} is in no interval")
