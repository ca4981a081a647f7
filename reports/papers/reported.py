"""What a published number is made of: one run, the mean or the best of several; and where our runs expect it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import Literal

import numpy as np

from harness.config import Config, option
from reports.stats.estimate import Floats, mean_sd


class Reported(Config):
    """The runs behind a published number of a method into which a seed enters."""

    runs: int = option(1, "how many runs (seeds) the paper made for a number", ge=1)
    by: Literal["mean", "best"] = option("mean", "their mean, or the one that was best on the dev set")

    @property
    def text(self) -> str:
        """ "a mean of 8 runs"; empty for a single run."""
        if self.runs == 1:
            return ""
        return f"a mean of {self.runs} runs" if self.by == "mean" else f"the best of {self.runs} runs"

    def interval(self, values: Sequence[float]) -> tuple[float, float]:
        """Where such a number is expected, from our runs' values (two or more)."""
        if self.by == "best" and self.runs > 1:
            return best_interval(values, self.runs)
        return prediction_interval(values, runs=self.runs)


ONE = Reported()


def prediction_interval(values: Sequence[float], confidence: float = 0.95, *, runs: int = 1) -> tuple[float, float]:
    """Where the mean of `runs` more runs is expected: mean +- t(n - 1, (1 + confidence) / 2) * s * sqrt(1/runs + 1/n).

    s is the sample standard deviation (n - 1 in the denominator) of n >= 2 values that are taken as independent draws
    of one normal distribution: then the mean of m others minus theirs has variance sigma^2 (1/m + 1/n), and over
    s sqrt(1/m + 1/n) it is Student's t with n - 1 degrees of freedom (Hahn and Meeker, "Statistical Intervals", 1991,
    section 4.8; Geisser, "Predictive Inference", 1993). A published number is of runs on the same test pairs, so the
    chance of the pairs does not enter.

    Raises:
        ValueError: fewer than two values, or a confidence outside of (0, 1).
    """
    from scipy.special import stdtrit

    mean, sd = _checked(values, confidence)
    half = float(stdtrit(len(values) - 1, (1 + confidence) / 2)) * sd * math.sqrt(1 / runs + 1 / len(values))
    return mean - half, mean + half


def best_interval(values: Sequence[float], runs: int) -> tuple[float, float]:
    """Where the test score of the best of `runs` more runs is expected (95 %), the best by dev score.

    How far the dev score tells the test score is not known, and a few runs do not say: the interval holds for any
    correlation from 0 (the best by dev is any run) to 1 (it is the maximum by test score too). A single run falls short
    of its lower bound mean - a s with probability p, the maximum of `runs` exceeds the upper one, mean + b s, with
    probability p (one-sided simultaneous prediction: Hahn and Meeker, "Statistical Intervals", 1991, section 4.9), and
    p is such that a single run is inside with 95 %. Simulated coverage: 95 to 98 % (docs/statistics.md).

    Raises:
        ValueError: fewer than two values.
    """
    mean, sd = _checked(values, 0.5)
    below, above = _factors(len(values), runs)
    return mean - below * sd, mean + above * sd


def _checked(values: Sequence[float], confidence: float) -> tuple[float, float]:
    if len(values) < 2 or not 0 < confidence < 1:
        raise ValueError(f"needs two values and a confidence in (0, 1), got {len(values)} and {confidence}")
    mean, sd = mean_sd(values)
    assert sd is not None
    return mean, sd


@lru_cache(maxsize=256)
def _factors(n: int, runs: int) -> tuple[float, float]:
    """(a, b) of `best_interval` for n values of ours."""
    from scipy.optimize import brentq

    def factor(p: float, k: int) -> float:
        return float(brentq(lambda c: _none_above(c, n, k) - (1 - p), -1.0, 1e4))

    def surplus(p: float) -> float:
        return p + 1 - _none_above(factor(p, runs), n, 1) - 0.05

    p = float(brentq(surplus, 0.02, 0.05, xtol=1e-5))
    return factor(p, 1), factor(p, runs)


def _none_above(c: float, n: int, k: int) -> float:
    """P(each of k further values <= mean + c s), mean and s those of n values of the same normal distribution.

    Given the mean, z / sqrt(n) off, and s the further values are independent: Phi(z / sqrt(n) + c s)^k, averaged over
    the normal z and over s, whose square is chi^2 / (n - 1).
    """
    from scipy.special import ndtr

    z, weight = np.polynomial.hermite_e.hermegauss(41)
    below = ndtr(z[:, None] / math.sqrt(n) + c * _deviations(n - 1)) ** k
    return float(weight / weight.sum() @ below.mean(axis=1))


@lru_cache(maxsize=64)
def _deviations(freedom: int) -> Floats:
    """400 values, as likely each, of a sample standard deviation over the true one."""
    from scipy.stats import chi2

    return np.asarray(np.sqrt(chi2.ppf((np.arange(400) + 0.5) / 400, freedom) / freedom))
