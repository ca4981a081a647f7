"""The answer of `harness power`, in Python and on the command line."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from harness.errors import InputError
from harness.files.printable import one_line
from harness.results.answer import Answer
from reports.decide.question import Compared, Question, comparison_of, question_of
from reports.read.comparison_runs import base_name
from reports.stats.power import CHANCE, MOST_SEEDS, Design, seeds_needed, smallest_difference
from reports.stats.simultaneous import AllPairs
from reports.stats.verdicts import common_design, sight

SEEDS = (2, 3, 4, 5, 6, 8, 10, 15, 20)


def power(
    found: Compared | str | Path | None = None,
    difference: float | None = None,
    *,
    on: str = "",
    block: str = "",
    comparison: str = "",
    sd: float | None = None,
    pairs_sd: float | None = None,
    rows: int | None = None,
    correlation: float = 0.0,
) -> Answer:
    """What differences a number of seeds can see, and how many seeds `difference` takes (found in 80 % of comparisons).

        >>> harness.power(sd=0.84, difference=2, rows=2).data[0]["needed"]
        5

    Args:
        found: a comparison or its work directory, whose spread counts; None where `sd` is given.
        difference: in points.
        on, block, comparison: as `harness.verdict` has them.
        sd, pairs_sd: standard deviation in points over seeds, and of a difference by the choice of test pairs.
        rows: how many are compared.
        correlation: of the scores of two rows with the same seed.

    Returns:
        In `data`, by base model: "seeds" (number -> least difference in points), "needed". `frame()`: one row a number
        of seeds.

    Raises:
        InputError: neither records nor `sd`, a number out of range, or no spread of seeds known.
    """
    for name, value, low, high in (
        ("difference", difference, 0, 100), ("sd", sd, 0, 100), ("pairs-sd", pairs_sd, 0, 100),
        ("rows", rows, 2, 200), ("correlation", correlation, 0, 1),
    ):  # fmt: skip
        if value is not None and not (low <= value <= high and (value or name == "correlation")):
            raise InputError(f"--{name} {value:g}: expected a number from {low} to {high}")
    if found is not None:
        question = question_of(comparison_of(found, comparison, block), on)
        designs = _designs(question, sd, pairs_sd, rows, correlation)
    elif sd is not None:
        pairs = 0.3 if pairs_sd is None else pairs_sd
        designs = [("given numbers", Design((sd,) * (rows or 2), pairs, AllPairs(rows or 2), correlation))]
    else:
        raise InputError("harness power: needs a work directory or --sd (BERT-base has about 0.84 points on STS)")
    seen = [_seen(what, design, difference) for what, design in designs]
    lines = [line for one in seen for line in _lines(one)]
    table = [
        {"what": one["what"], "seeds": int(n), "least": least} for one in seen for n, least in one["seeds"].items()
    ]
    return Answer("\n".join(lines), seen, table)


def _designs(
    question: Question, sd: float | None, pairs_sd: float | None, rows: int | None, correlation: float
) -> list[tuple[str, Design]]:
    """(what, design) of each base model; the records' numbers where the others are None."""
    comparison = question.comparison
    found = []
    for base in comparison.base_models:
        known = common_design(question.block((base,)))
        if known is None:
            continue
        deviation = max(known.deviations) if sd is None else sd
        deviations = tuple(deviation if own > 0 else 0.0 for own in known.deviations)
        sides = known.sides
        if rows is not None:
            deviations, sides = (deviation,) * rows, (0, 1)
        pairs = known.pairs if pairs_sd is None else pairs_sd
        design = Design(deviations, pairs, AllPairs(len(deviations)), correlation, sides)
        found.append((f"{base_name(base)}, {question.target.title}", design))
    if not found:
        raise InputError(
            f"{comparison.name}: no base model has two rows with two seeds or more, so the spread of seeds is not "
            "known; give --sd (BERT-base has about 0.84 points on STS)"
        )
    return found


def _seen(what: str, design: Design, difference: float | None) -> dict[str, Any]:
    """Everything that is known of one design."""
    rows = len(design.deviations)
    seen = {
        "what": what,
        "rows": rows,
        "sd": max(design.deviations),
        "pairs_sd": design.pairs,
        "correlation": design.correlation,
        "chance": CHANCE,
        "seeds": {str(n): smallest_difference(design, np.full(rows, n)) for n in SEEDS},
    }
    if difference is not None:
        seen |= {"difference": difference, "needed": seeds_needed(design, difference)}
    return seen


def _lines(one: dict[str, Any]) -> list[str]:
    lines = [
        one_line(
            f"{one['what']}: {one['rows']} rows; standard deviation {one['sd']:.2f} points over seeds, "
            f"{one['pairs_sd']:.2f} of a difference over pairs"
        ),
        *(f"  {n:>3} seeds: {sight(least)}" for n, least in one["seeds"].items()),
    ]
    if "difference" in one:
        needed = one["needed"]
        takes = f"takes {needed} seeds of every row" if needed else f"does not show with {MOST_SEEDS} seeds"
        lines.append(f"  a difference of {one['difference']:g} points {takes}")
    return lines
