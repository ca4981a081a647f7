"""Where the best of several further runs is expected: for published numbers that are such a best."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from reports.stats.estimate import Interval, mean_sd

_NODES = 40  # of the quadrature over the true mean
_LEVELS = 200  # quantiles of the true standard deviation


def predict_best(values: Sequence[float], count: int, *, level: float = 0.95) -> Interval:
    """Interval that holds the largest of `count` further runs with chance `level`.

        >>> one = predict_best([70.0, 71.0, 72.0], 1)
        >>> round(one.low, 2), round(one.high, 2)  # as for one more run: 71 -+ 4.303 sqrt(4/3)
        (66.03, 75.97)

    Runs are independent draws of one normal distribution, n of which were seen. With their mean
    m and standard deviation s, (largest - m)/s is distributed as (M - Z/sqrt(n))/S: M the largest
    of `count` standard normal draws, Z a standard normal one, S^2 chi-square by its n - 1 degrees
    of freedom. So P(largest <= m + q s) = E[Phi(q S + Z/sqrt(n))^count].

    Args:
        values: two runs or more.
    """
    from scipy.optimize import brentq
    from scipy.special import chdtri, ndtr

    mean, sd = mean_sd(values)
    if not sd:
        return Interval(mean, mean, mean)
    n = len(values)
    nodes, weights = np.polynomial.hermite_e.hermegauss(_NODES)
    weights = weights / weights.sum()
    tails = (np.arange(_LEVELS) + 0.5) / _LEVELS
    freedom = n - 1
    variances = chdtri(freedom, tails) / freedom
    scales = np.sqrt(variances)[:, None]
    errors = nodes[None, :] / np.sqrt(n)

    def chance(q: float) -> float:
        below = ndtr(q * scales + errors) ** count
        return float((below @ weights).mean())

    def quantile(share: float) -> float:
        def excess(q: float) -> float:
            return chance(q) - share

        root = brentq(excess, -1e3, 1e3)
        return mean + sd * float(root)

    half = (1 - level) / 2
    middle = quantile(0.5)
    return Interval(middle, quantile(half), quantile(1 - half))
