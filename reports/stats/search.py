"""The numbers that papers report of searches: quartiles, values by bins, and what a budget can be expected to find."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from math import comb

import numpy as np
from numpy.typing import NDArray


def quartile(values: Sequence[float], share: float) -> float:
    """The quantile by linear interpolation (Hyndman and Fan's type 7); the papers name no convention."""
    return float(np.quantile(np.asarray(values, dtype=np.float64), share, method="linear"))


def expected_maximum(values: Sequence[float], budgets: Sequence[int]) -> NDArray[np.float64]:
    """Expected validation performance: the mean of the best of n trials out of the N that were seen.

    Over all sets of n different trials: the i-th smallest value is the best of C(i - 1, n - 1) of C(N, n) sets. That is
    unbiased for a budget of n trials. Dodge et al. (EMNLP 2019, "Show Your Work", section 3), who name the quantity,
    draw with replacement: a trial drawn twice is no second trial, and their curve lies too low, by 0.2 standard
    deviations at n = N (Tang et al., ACL 2020, "Showing Your Work Doesn't Always Work"). The trials must be
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
    weights = np.array([[comb(i, n - 1) / comb(count, n) for i in range(count)] for n in budgets])
    return np.asarray(weights @ ordered)


def bins(values: Sequence[float], *, log: bool, count: int = 8, listed: bool = False) -> list[tuple[float, float]]:
    """Intervals that cover the values: `count` equally wide ones (on a log scale with `log`), or one a value where they
    are `listed` values of a search space and no more than `count`. Intervals are closed below and open above, the last
    one closed."""
    distinct = sorted(set(values))
    if len(distinct) == 1 or (listed and len(distinct) <= count):
        return [(v, v) for v in distinct]
    low, high = distinct[0], distinct[-1]
    edges = np.geomspace(low, high, count + 1) if log and low > 0 else np.linspace(low, high, count + 1)
    edges[0], edges[-1] = low, high
    return [(float(a), float(b)) for a, b in pairwise(edges)]


def bin_of(value: float, intervals: Sequence[tuple[float, float]]) -> int:
    """The number of the interval that holds `value`.

    Raises:
        ValueError: none does.
    """
    for i, (low, high) in enumerate(intervals):
        if low <= value < high or value == low == high or (i == len(intervals) - 1 and value == high):
            return i
    raise ValueError(f"{value} is in no interval")
