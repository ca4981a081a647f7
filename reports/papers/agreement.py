"""Whether a published number agrees with what was measured here, and when the question has no answer."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from reports.document.table import number_text
from reports.stats.bootstrap import mean_sd

Kind = Literal["inside", "above", "below", "one seed", "not comparable", "not measured", "not published"]
ROUNDING = 0.05  # a method without a seed agrees within this, in points: half of a paper's last decimal at one digit


@dataclass(frozen=True)
class Obstacle:
    """Something that is another one than the paper's, so that two numbers cannot be compared."""

    what: Literal["base model", "training data", "recipe", "protocol", "reference"]
    detail: str

    def __str__(self) -> str:
        return f"other {self.what}: {self.detail}" if self.what == "recipe" else f"other {self.what} ({self.detail})"


@dataclass(frozen=True)
class Verdict:
    """`kind` for machines, `text` for readers; the interval where there is one.

    `reason`: of a number that was not measured, why; `obstacles`: of one that is not comparable.
    """

    kind: Kind
    text: str
    low: float | None = None
    high: float | None = None
    reason: str = ""
    obstacles: tuple[Obstacle, ...] = ()

    @classmethod
    def not_measured(cls, reason: str) -> Verdict:
        """There is no number of ours, and why."""
        return cls("not measured", f"not measured: {reason}", reason=reason)

    @property
    def short(self) -> str:
        """The first reason in full, of further obstacles only what is another one."""
        if not self.obstacles:
            return self.text.partition("; ")[0]
        first, *others = self.obstacles
        return "; ".join(dict.fromkeys((f"not comparable: {first}", *(f"other {one.what}" for one in others))))


def prediction_interval(values: Sequence[float], confidence: float = 0.95) -> tuple[float, float]:
    """Where one more run is expected: mean +- t(n - 1, (1 + confidence) / 2) * s * sqrt(1 + 1/n).

    s is the sample standard deviation (n - 1 in the denominator) of n >= 2 values that are taken as independent draws
    of one normal distribution: then x - mean has variance sigma^2 (1 + 1/n), and (x - mean) / (s sqrt(1 + 1/n))
    Student's t with n - 1 degrees of freedom (Hahn and Meeker, "Statistical Intervals", 1991, section 4.8; Geisser,
    "Predictive Inference", 1993). A published number is one more run on the same test pairs, so the chance of the pairs
    does not enter.

    Raises:
        ValueError: fewer than two values, or a confidence outside of (0, 1).
    """
    from scipy.special import stdtrit

    if len(values) < 2 or not 0 < confidence < 1:
        raise ValueError(f"needs two values and a confidence in (0, 1), got {len(values)} and {confidence}")
    mean, sd = mean_sd(values)
    assert sd is not None
    half = float(stdtrit(len(values) - 1, (1 + confidence) / 2)) * sd * math.sqrt(1 + 1 / len(values))
    return mean - half, mean + half


def prediction_of_difference(
    difference: float, sides: Sequence[Sequence[float]], confidence: float = 0.95
) -> tuple[float, float]:
    """Where the difference of one more run of each side is expected.

    The variances s^2 (1 + 1/n) of the sides add up, with Welch's degrees of freedom (Biometrika 34, 1947).

    Args:
        difference: of the means of both sides.
        sides: values of each side that a seed enters, two or more each.
    """
    from scipy.special import stdtrit

    parts = [(sd**2 * (1 + 1 / len(side)), len(side) - 1) for side in sides if (sd := mean_sd(side)[1]) is not None]
    total = sum(variance for variance, _ in parts)
    if total == 0:
        return difference, difference
    freedom = total**2 / sum(variance**2 / own for variance, own in parts)
    half = float(stdtrit(freedom, (1 + confidence) / 2)) * math.sqrt(total)
    return difference - half, difference + half


def judge(
    published: float | None,
    values: Sequence[float],
    *,
    deterministic: bool = False,
    sides: Sequence[Sequence[float]] = (),
    obstacles: Sequence[Obstacle] = (),
    unmeasured: str = "",
    digits: int = 2,
) -> Verdict:
    """The verdict on one published number.

    Args:
        published: the number; None where its cell is blank.
        values: our runs' values, one a seed; empty: nothing was measured.
        deterministic: no seed enters the method: it agrees within `ROUNDING`, one run says it all.
        sides: of a difference between rows whose seeds are not the same, the values of the sides that a seed enters.
        obstacles: why the two cannot be compared, from the records.
        unmeasured: why there is no value of ours.
    """
    if not values:
        return Verdict.not_measured(unmeasured) if unmeasured else Verdict("not measured", "not measured")
    if published is None:
        return Verdict("not published", "no legible published number")
    if obstacles:
        said = "; ".join(map(str, obstacles))
        return Verdict("not comparable", f"not comparable: {said}", obstacles=tuple(obstacles))
    if deterministic:
        mean = mean_sd(values)[0]
        low, high = mean - ROUNDING, mean + ROUNDING
        where = f"within rounding (± {ROUNDING})"
    elif min((len(side) for side in sides), default=len(values)) < 2:
        return Verdict("one seed", "one seed: no interval")
    else:
        low, high = prediction_of_difference(mean_sd(values)[0], sides) if sides else prediction_interval(values)
        where = f"[{number_text(low, digits)}, {number_text(high, digits)}]"
    # Binary fractions: a number on the bound itself is inside.
    if low - 1e-9 <= published <= high + 1e-9:
        return Verdict("inside", f"inside our interval {where}", low, high)
    if published > high:
        return Verdict("above", f"above our interval {where}", low, high)
    return Verdict("below", f"below our interval {where}", low, high)
