"""Means, deviations, and estimates with their intervals."""

from __future__ import annotations

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
