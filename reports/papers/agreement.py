"""Whether a published number agrees with what was measured here, and when the question has no answer."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from reports.document.table import number_text
from reports.papers.reported import ONE, Reported
from reports.stats.estimate import mean_sd

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


def prediction_of_difference(
    difference: float, sides: Sequence[Sequence[float]], confidence: float = 0.95, *, runs: int = 1
) -> tuple[float, float]:
    """Where the difference of the means of `runs` more runs of each side is expected.

    The variances s^2 (1/runs + 1/n) of the sides add up, with Welch's degrees of freedom (Biometrika 34, 1947).

    Args:
        difference: of the means of both sides.
        sides: values of each side that a seed enters, two or more each.
    """
    from scipy.special import stdtrit

    parts = [
        (sd**2 * (1 / runs + 1 / len(side)), len(side) - 1) for side in sides if (sd := mean_sd(side)[1]) is not None
    ]
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
    reported: Reported = ONE,
) -> Verdict:
    """The verdict on one published number.

    Args:
        published: the number; None where its cell is blank.
        values: our runs' values, one a seed; empty: nothing was measured.
        deterministic: no seed enters the method: it agrees within `ROUNDING`, one run says it all.
        sides: of a difference between rows whose seeds are not the same, the values of the sides that a seed enters.
        obstacles: why the two cannot be compared, from the records.
        unmeasured: why there is no value of ours.
        reported: what the published number is made of, one run or several.
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
        mean = mean_sd(values)[0]
        low, high = prediction_of_difference(mean, sides, runs=reported.runs) if sides else reported.interval(values)
        what = f"for {reported.text} " if reported.text else ""
        where = f"{what}[{number_text(low, digits)}, {number_text(high, digits)}]"
    # Binary fractions: a number on the bound itself is inside.
    if low - 1e-9 <= published <= high + 1e-9:
        return Verdict("inside", f"inside our interval {where}", low, high)
    if published > high:
        return Verdict("above", f"above our interval {where}", low, high)
    return Verdict("below", f"below our interval {where}", low, high)
