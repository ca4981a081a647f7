"""How much each example moves a score: the derivative of the score by the example's weight, at
weights of 1.

With x_m the influence of example m, a resample that draws example m w_m times changes the score by
about sum_m x_m (w_m - 1). The variance of the score under any way of drawing examples is therefore
a quadratic form in x, and need not be simulated (the infinitesimal jackknife: Jaeckel 1972; Efron,
"The Jackknife, the Bootstrap and Other Resampling Plans", SIAM 1982, chapter 6):
`reports.stats.clusters`. The influences of a score sum to 0, since weights that are all doubled do
not change it.

Everything is plain numpy on arrays. The scores are those of `harness.results.outcomes`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from harness.results.outcomes import is_mean, score_of, scores_of
from reports.stats.estimate import Floats

Influence = tuple[float, Floats]  # a score, and the influence (n,) of each of its n examples
_STEP = 1e-4
_BLOCK = 256  # examples whose weight is changed at once


def influence(metric: str, target: Floats, outcome: Floats) -> Influence:
    """Of n examples on the score that `metric` makes of them; (n,) arrays, no influence where the
    score is constant.
    """
    return influence_with(metric, target)(outcome)


def influence_with(metric: str, target: Floats) -> Callable[[Floats], Influence]:
    """Return `influence` as a function of the outcomes alone: what the target (n,) says is computed
    once for all runs.
    """
    if is_mean(metric, target):
        return of_mean
    name = metric.removeprefix("cosine_")
    if name == "spearman":
        return _Spearman(target)
    if name.endswith("_ap"):
        name = "ap"
    closed = _CLOSED.get(name)
    if closed is not None:
        return partial(closed, target)
    return partial(_by_differences, metric, target)


def of_mean(outcome: Floats) -> Influence:
    mean = float(outcome.mean())
    return mean, (outcome - mean) / len(outcome)


def of_spearman(target: Floats, outcome: Floats) -> Influence:
    """Spearman's correlation with average ranks for ties."""
    return _Spearman(target)(outcome)


class _Spearman:
    """Spearman's correlation of a target (n,) with outcomes, with average ranks for ties.

    A rank less its mean is half the sum of sgn(a_i - a_j) over all examples j, so that the ranks of
    all others move with an example's weight too.
    """

    def __init__(self, target: Floats) -> None:
        self._n = len(target)
        self._halves = -np.ones(self._n) / 2
        self._order = _Order(target)
        self._y = self._order.above_less_below(self._halves)
        self._yy = float(self._y @ self._y)
        self._y_by_y = self._order.above_less_below(self._y)

    def __call__(self, outcome: Floats) -> Influence:
        order = _Order(outcome)
        y = self._y
        x = order.above_less_below(self._halves)
        xx = float(x @ x)
        if min(xx, self._yy) < 1e-9 * self._n:
            return 0.0, np.zeros(self._n)

        y_by_x = order.above_less_below(y / 2)
        x_by_x = order.above_less_below(x)
        x_by_y = self._order.above_less_below(x / 2)
        return _ratio(
            (float(x @ y), x * y + y_by_x + x_by_y),
            (xx, x * x + x_by_x),
            (self._yy, y * y + self._y_by_y),
        )


def _of_pearson(target: Floats, outcome: Floats) -> Influence:
    y = target - target.mean()
    x = outcome - outcome.mean()
    xx = float(x @ x)
    yy = float(y @ y)
    if min(xx, yy) == 0:
        return 0.0, np.zeros(len(target))
    return _ratio(
        (float(x @ y), x * y),
        (xx, x * x),
        (yy, y * y),
    )


def _ratio(of_xy: Influence, of_xx: Influence, of_yy: Influence) -> Influence:
    """xy / sqrt(xx yy) and its derivative, from three sums of products and theirs."""
    xy, d_xy = of_xy
    xx, d_xx = of_xx
    yy, d_yy = of_yy
    scale = np.sqrt(xx * yy)
    value = xy / scale
    of_scale = d_xx / xx + d_yy / yy
    moved = d_xy / scale - value / 2 * of_scale
    return float(value), moved


class _Order:
    """Examples (n,) sorted by a number, equal ones as one group."""

    def __init__(self, by: Floats) -> None:
        self._order = np.argsort(by, kind="stable")
        is_first = np.ones(len(by), dtype=bool)  # of equal ones
        is_first[1:] = np.diff(by[self._order]) != 0
        self._starts = np.flatnonzero(is_first)
        self._group = np.empty(len(by), dtype=np.intp)
        self._group[self._order] = np.cumsum(is_first) - 1

    def above_less_below(self, values: Floats) -> Floats:
        """For each example: the sum of the values over the examples with a greater number, less
        that over smaller ones.
        """
        parts = np.add.reduceat(values[self._order], self._starts)
        upto = np.cumsum(parts)
        of_group = upto[-1] - 2 * upto + parts
        return np.asarray(of_group[self._group])


def _of_f1(target: Floats, outcome: Floats) -> Influence:
    true = target == 1
    claimed = outcome == 1
    hit = true & claimed
    hits = float(hit.sum())
    total = float(true.sum() + claimed.sum())
    if hits == 0:
        return 0.0, np.zeros(len(target))
    counted = true.astype(float) + claimed
    by_hits = 2 * hit / total
    by_total = 2 * hits * counted / total**2
    return 2 * hits / total, by_hits - by_total


def _of_average_precision(target: Floats, outcome: Floats) -> Influence:
    """sum_k precision_k gain_k / T over distinct scores k, falling; an example counts at its own
    score and below.
    """
    n = len(outcome)
    order = np.argsort(-outcome, kind="stable")
    steps = np.diff(outcome[order])
    last = np.append(steps != 0, True)  # of examples with equal scores
    first = np.append(False, last[:-1])
    place = np.empty(n, dtype=np.intp)
    place[order] = np.cumsum(first)
    drawn = np.cumsum(np.ones(n))[last]
    true = np.cumsum(target[order])[last]
    every = true[-1]
    if every == 0:
        return 0.0, np.zeros(n)

    precision = true / drawn
    gain = np.diff(true, prepend=0.0)
    value = float(precision @ gain / every)

    def from_here(terms: Floats) -> Floats:
        """Sums over the example's own score and all below."""
        upwards = np.cumsum(terms[::-1])
        return np.asarray(upwards[::-1][place])

    as_true = precision[place] + from_here(gain / drawn) - value
    as_drawn = from_here(true * gain / drawn**2)
    influence = target * as_true - as_drawn
    return value, influence / every


def _by_differences(metric: str, target: Floats, outcome: Floats) -> Influence:
    """Return the influences on a metric that is not written out here: each weight a little higher and
    a little lower.
    """
    n = len(outcome)
    found = np.empty(n)
    for start in range(0, n, _BLOCK):
        some = np.arange(start, min(start + _BLOCK, n))
        lines = np.arange(len(some))
        sides = []
        for step in (_STEP, -_STEP):
            weights = np.ones((len(some), n))
            weights[lines, some] += step
            sides.append(scores_of(metric, target, outcome, weights))
        higher, lower = sides
        found[some] = (higher - lower) / (2 * _STEP)
    value = score_of(metric, target, outcome, np.ones(n))
    return value, found


_CLOSED: dict[str, Callable[[Floats, Floats], Influence]] = {
    "pearson": _of_pearson,
    "f1": _of_f1,
    "ap": _of_average_precision,
}
