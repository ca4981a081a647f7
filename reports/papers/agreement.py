"""Whether a published number agrees with what was measured here, and when the question has no
answer.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from reports.document.table import number_text
from reports.stats.best_of import predict_best
from reports.stats.estimate import mean_sd, predict

Kind = Literal[
    "inside", "above", "below", "one seed", "not comparable", "not measured", "not published"
]
ROUNDING = 0.05  # half of the last decimal that a paper prints at one digit, in points


@dataclass(frozen=True)
class Verdict:
    """`kind` for programs, `text` and `short` for readers, the interval where there is one.

    `reasons`: why a number is not comparable, as sentences; why it was not measured, as one clause.
    """

    kind: Kind
    text: str
    low: float | None = None
    high: float | None = None
    reasons: tuple[str, ...] = ()

    @classmethod
    def not_measured(cls, reason: str) -> Verdict:
        return cls("not measured", f"Not measured: {reason}.", reasons=(reason,))

    @property
    def short(self) -> str:
        """The first reason in full, further ones without their details."""
        if self.kind != "not comparable":
            return self.text
        kinds: dict[str, None] = {}
        for reason in self.reasons[1:]:
            kinds[f"{reason.partition(':')[0]}."] = None
        return " ".join(("Not comparable.", self.reasons[0], *kinds))


def judge(
    published: float | None,
    values: Sequence[float],
    *,
    deterministic: bool = False,
    sides: Sequence[Sequence[float]] = (),
    reasons: Sequence[str] = (),
    digits: int = 2,
    runs: int = 1,
    best_of: int = 1,
) -> Verdict:
    """The verdict on one published number.

    Args:
        published: the number; None where its cell is blank.
        values: our runs' values, one per seed.
        deterministic: the method does not depend on a seed, so its one value agrees within
            `ROUNDING`.
        sides: of a difference between rows with different seeds, the values of the sides that
            depend on a seed.
        reasons: why the two cannot be compared, as sentences.
        digits: decimals of the interval in the text.
        runs: how many runs the published number is the mean of.
        best_of: how many runs it is the best of; of differences and of one run nothing changes.
    """
    if published is None:
        return Verdict("not published", "The published number is not legible.")
    if reasons:
        return Verdict(
            "not comparable",
            f"Not comparable. {' '.join(reasons)}",
            reasons=tuple(reasons),
        )
    mean = mean_sd(values)[0]
    if deterministic:
        low = mean - ROUNDING
        high = mean + ROUNDING
        what = f"our value ± {ROUNDING} (rounding)"
    elif min(len(side) for side in sides or [values]) < 2:
        return Verdict("one seed", "One seed: there is no interval.")
    elif best_of > 1 and not sides:
        expected = predict_best(values, best_of)
        low = expected.low
        high = expected.high
        bounds = f"{number_text(low, digits)} to {number_text(high, digits)}"
        what = f"our interval for the best of {best_of} runs: {bounds}"
    else:
        expected = predict(mean, sides or [values], runs=runs)
        low = expected.low
        high = expected.high
        if runs > 1:
            of = f" for a mean of {runs} runs"
        else:
            of = ""
        what = f"our interval{of}: {number_text(low, digits)} to {number_text(high, digits)}"
    # A number on the bound itself is inside, whatever its binary fraction.
    if published > high + 1e-9:
        kind: Kind = "above"
    elif published < low - 1e-9:
        kind = "below"
    else:
        kind = "inside"
    return Verdict(kind, f"{kind.capitalize()} {what}.", low, high)
