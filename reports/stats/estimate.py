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
class Estimate:
    """A value with its 95 % interval and the two-sided p-value of "the true value is 0"."""

    value: float
    low: float
    high: float
    p: float


def optimism(chosen: float, held_out: Floats, confidence: float = 0.95) -> Estimate:
    """How much the score by which a configuration was chosen promises above what fresh seeds of it reach.

    chosen - mean(held_out), with Student's interval over the n held-out scores and the p-value of "no optimism". The
    best of k noisy scores is too high by the very choice (Jensen & Cohen, Machine Learning 38, 2000; Cawley & Talbot,
    JMLR 11, 2010); scores that had no part in it are not.

    Args:
        chosen: the best score, by which the choice was made; its own chance is what is measured.
        held_out: (n,) scores of the chosen configuration under seeds that chose nothing, n >= 2.
    """
    from scipy.stats import t

    n = len(held_out)
    if n < 2:
        raise ValueError(f"needs at least two held-out scores, not {n}")
    value = float(chosen - held_out.mean())
    error = float(held_out.std(ddof=1)) / math.sqrt(n)
    half = float(t.ppf((1 + confidence) / 2, n - 1)) * error
    p = 2 * float(t.sf(abs(value) / error, n - 1)) if error > 0 else float(value == 0)
    return Estimate(value, value - half, value + half, p)
