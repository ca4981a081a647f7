"""Means, deviations, and estimates with their intervals."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


def mean_sd(values: Sequence[float] | Floats) -> tuple[float, float | None]:
    """Mean and sample standard deviation (n - 1 in the denominator); no deviation for fewer than two values."""
    array = np.asarray(values, dtype=np.float64)
    if array.size == 0:
        raise ValueError("no values")
    return float(array.mean()), float(array.std(ddof=1)) if array.size > 1 else None


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


def predict(value: float, sides: Sequence[Sequence[float]], *, runs: float = 1) -> Interval:
    """Where the mean of `runs` more runs, or the difference of two such means, is expected at 95 %.

    Of infinitely many runs it is where the true mean lies.

    The runs of a side are taken as independent draws of one normal distribution with the sample variance s^2 of n runs:
    the mean of m others minus theirs has variance s^2 (1/m + 1/n), and over its root it is Student's t with n - 1
    degrees of freedom (Hahn and Meeker, "Statistical Intervals", 1991, section 4.8; Geisser, "Predictive Inference",
    1993). The variances of two sides add up, with Welch's degrees of freedom (Biometrika 34, 1947). Published runs use
    the same test pairs, so the chance of the pairs does not enter.

    Args:
        value: the mean, or the difference of two.
        sides: the values of each side that depends on a seed, two or more each.
    """
    from scipy.special import stdtrit

    parts = [((mean_sd(side)[1] or 0) ** 2 * (1 / runs + 1 / len(side)), len(side) - 1) for side in sides]
    total = sum(variance for variance, _ in parts)
    if total == 0:
        return Interval(value, value, value)
    freedom = total**2 / sum(variance**2 / own for variance, own in parts)
    half = float(stdtrit(freedom, 0.975)) * math.sqrt(total)
    return Interval(value, value - half, value + half)
