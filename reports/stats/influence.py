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
    if metric.removeprefix("cosine_") not in _CLOSED and is_mean(metric):
        return of_mean(outcome)
    closed = _CLOSED.get("ap" if metric.endswith("_ap") else metric.removeprefix("cosine_"))
    if closed is not None:
        return closed(target, outcome)
    return _by_differences(metric, target, outcome)


def of_mean(outcome: Floats) -> Influence:
    mean = float(outcome.mean())
    return mean, (outcome - mean) / len(outcome)


def of_spearman(target: Floats, outcome: Floats) -> Influence:
    """Spearman's correlation with average ranks for ties.

    A rank less its mean is half the sum of sgn(a_i - a_j) over all examples j, so that the ranks of
    all others move with an example's weight too.
    """
    ones = np.ones(len(target))
    (y,), (x,) = (_above_less_below(side, -ones / 2) for side in (target, outcome))
    yy, xx, xy = float(y @ y), float(x @ x), float(x @ y)
    if min(xx, yy) < 1e-9 * len(target):
        return 0.0, np.zeros(len(target))
    y_by_x, x_by_x = _above_less_below(outcome, y / 2, x)
    x_by_y, y_by_y = _above_less_below(target, x / 2, y)
    return _ratio(xy, xx, yy, x * y + y_by_x + x_by_y, x * x + x_by_x, y * y + y_by_y)


def _of_pearson(target: Floats, outcome: Floats) -> Influence:
    y, x = target - target.mean(), outcome - outcome.mean()
    yy, xx, xy = float(y @ y), float(x @ x), float(x @ y)
    if min(xx, yy) == 0:
        return 0.0, np.zeros(len(target))
    return _ratio(xy, xx, yy, x * y, x * x, y * y)


def _ratio(
    xy: float,
    xx: float,
    yy: float,
    d_xy: Floats,
    d_xx: Floats,
    d_yy: Floats,
) -> Influence:
    """xy / sqrt(xx yy) and its derivative."""
    scale = np.sqrt(xx * yy)
    value = xy / scale
    return float(value), d_xy / scale - value / 2 * (d_xx / xx + d_yy / yy)


def _above_less_below(by: Floats, *summed: Floats) -> list[Floats]:
    """For each m: the sum of some values over the examples with a greater `by` than m, less that
    over smaller ones.
    """
    order = np.argsort(by, kind="stable")
    first = np.r_[True, np.diff(by[order]) != 0]
    starts, group = np.flatnonzero(first), np.cumsum(first) - 1
    found = []
    for values in summed:
        parts = np.add.reduceat(values[order], starts)
        upto = np.cumsum(parts)
        result = np.empty(len(by))
        result[order] = (upto[-1] - 2 * upto + parts)[group]
        found.append(result)
    return found


def _of_f1(target: Floats, outcome: Floats) -> Influence:
    true, claimed = target == 1, outcome == 1
    hits, total = float((true & claimed).sum()), float(true.sum() + claimed.sum())
    if hits == 0:
        return 0.0, np.zeros(len(target))
    return 2 * hits / total, 2 * (true & claimed) / total - 2 * hits * (
        true.astype(float) + claimed
    ) / total**2


def _of_average_precision(target: Floats, outcome: Floats) -> Influence:
    """sum_k precision_k gain_k / T over distinct scores k, falling; an example counts at its own
    score and below.
    """
    order = np.argsort(-outcome, kind="stable")
    last = np.r_[np.diff(outcome[order]) != 0, True]
    place = np.empty(len(order), dtype=np.intp)
    place[order] = np.cumsum(np.r_[False, last[:-1]])
    drawn, true = np.cumsum(np.ones(len(order)))[last], np.cumsum(target[order])[last]
    if true[-1] == 0:
        return 0.0, np.zeros(len(order))
    gain = np.diff(true, prepend=0.0)
    value = float((true / drawn) @ gain / true[-1])

    def from_here(terms: Floats) -> Floats:
        """Sums over the example's own score and all below."""
        return np.asarray(np.cumsum(terms[::-1])[::-1][place])

    moved = target * ((true / drawn)[place] + from_here(gain / drawn) - value) - from_here(
        true * gain / drawn**2
    )
    return value, moved / true[-1]


def _by_differences(metric: str, target: Floats, outcome: Floats) -> Influence:
    """Return the influences on a metric that is not written out here: each weight a little higher and
    a little lower.
    """
    n = len(outcome)
    found = np.empty(n)
    for start in range(0, n, _BLOCK):
        some = np.arange(start, min(start + _BLOCK, n))
        sides = []
        for step in (_STEP, -_STEP):
            weights = np.ones((len(some), n))
            weights[np.arange(len(some)), some] += step
            sides.append(scores_of(metric, target, outcome, weights))
        found[some] = (sides[0] - sides[1]) / (2 * _STEP)
    return score_of(metric, target, outcome, np.ones(n)), found


_CLOSED: dict[str, Callable[[Floats, Floats], Influence]] = {
    "spearman": of_spearman,
    "pearson": _of_pearson,
    "f1": _of_f1,
    "ap": _of_average_precision,
}
