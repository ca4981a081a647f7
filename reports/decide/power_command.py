"""`harness power`: what differences a number of seeds can see, and how many seeds a difference takes."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from harness.errors import InputError
from harness.files.printable import one_line, tell, tell_json

if TYPE_CHECKING:
    from reports.stats.power import Design

SEEDS = (2, 3, 4, 5, 6, 8, 10, 15, 20)


def register(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add `harness power`. Imports nothing slow."""
    parser = subparsers.add_parser(
        "power",
        help="say what differences a number of seeds can see, and how many seeds a difference takes",
        description="Plays the verdicts of `harness verdict` through on drawn scores: with the spread of seeds and "
        "examples that the records of a work directory show, or with given ones. A difference counts as seen where it "
        "is found in 80 % of comparisons.",
        epilog="example: harness power work/demo --difference 1.5; harness power --sd 0.84 --rows 6 --difference 2",
    )
    parser.add_argument("workdir", type=Path, nargs="?", metavar="WORKDIR")
    parser.add_argument("--difference", type=float, metavar="POINTS", help="how many seeds does this one take?")
    parser.add_argument("--on", default="", metavar="STS|TASK|SUITE|BLOCK",
                        help="what to compare by, as STS, MR, transfer (default: as the report does)")  # fmt: skip
    parser.add_argument("--block", default="", metavar="NAME", help="one block of the file, on what it asks for")
    parser.add_argument("--comparison", default="", metavar="NAME", help="where a work directory holds several")
    parser.add_argument("--sd", type=float, metavar="POINTS", help="standard deviation over seeds (else: the records')")
    parser.add_argument("--pairs-sd", type=float, metavar="POINTS", help="standard deviation of a difference by the "
                        "choice of test pairs (else: the records', or 0.3)")  # fmt: skip
    parser.add_argument("--rows", type=int, metavar="K", help="rows that are compared (else: the records', or 2)")
    parser.add_argument(
        "--correlation", type=float, default=0.0, metavar="R",
        help="of the scores of two rows with the same seed, where they share the order of data (0)",
    )  # fmt: skip
    parser.add_argument("--json", action="store_true", help="machine-readable")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Print the table of seeds and differences for each base model."""
    import numpy as np

    from reports.stats.power import CHANCE, MOST_SEEDS, seeds_needed, smallest_difference

    _check(args)
    found = []
    for name, design in _designs(args):
        rows = len(design.deviations)
        seen = {n: smallest_difference(design, np.full(rows, n)) for n in SEEDS}
        needed = seeds_needed(design, args.difference) if args.difference is not None else None
        found.append(
            {
                "what": name,
                "rows": rows,
                "sd": max(design.deviations),
                "pairs_sd": design.pairs,
                "correlation": design.correlation,
                "chance": CHANCE,
                "seeds": {str(n): least for n, least in seen.items()},
                **({"difference": args.difference, "needed": needed} if args.difference is not None else {}),
            }
        )
    if args.json:
        tell_json(found)
        return 0
    for one in found:
        tell(
            one_line(
                f"{one['what']}: {one['rows']} rows; standard deviation {one['sd']:.2f} points over seeds, "
                f"{one['pairs_sd']:.2f} of a difference over pairs"
            )
        )
        for n, least in one["seeds"].items():
            tell(f"  {n:>3} seeds can see differences from {least:.1f} points on")
        if args.difference is not None:
            said = (
                f"takes {one['needed']} seeds of every row"
                if one["needed"]
                else f"does not show with {MOST_SEEDS} seeds"
            )
            tell(f"  a difference of {args.difference:g} points {said}")
    return 0


def _check(args: argparse.Namespace) -> None:
    if args.workdir is None and args.sd is None:
        raise InputError("harness power: give a work directory, or --sd (BERT-base has about 0.84 points on STS)")
    for key, low, high in (("difference", 0, 100), ("sd", 0, 100), ("pairs_sd", 0, 100), ("rows", 2, 200)):
        value = getattr(args, key)
        if value is not None and not (low < value <= high or (key == "rows" and value == low)):
            raise InputError(f"--{key.replace('_', '-')} {value:g}: expected a number from {low} to {high}")
    if not 0 <= args.correlation <= 1:
        raise InputError(f"--correlation {args.correlation:g}: expected a number from 0 to 1")


def _designs(args: argparse.Namespace) -> list[tuple[str, Design]]:
    """(what, design) of each base model, or of the given numbers alone."""
    from reports.decide.question import comparison_of, question_of
    from reports.read.comparison_runs import base_name
    from reports.stats.power import Design
    from reports.stats.simultaneous import AllPairs
    from reports.stats.verdicts import common_design

    if args.workdir is None:
        rows = args.rows or 2
        pairs = 0.3 if args.pairs_sd is None else args.pairs_sd
        return [("given numbers", Design((args.sd,) * rows, pairs, AllPairs(rows), args.correlation))]
    question = question_of(comparison_of(args.workdir, args.comparison, args.block), args.on)
    comparison, target = question.comparison, question.target
    found = []
    for base in comparison.base_models:
        known = common_design(question.block((base,)))
        if known is None:
            continue
        deviation = max(known.deviations) if args.sd is None else args.sd
        deviations = tuple(deviation if own > 0 else 0.0 for own in known.deviations)
        sides = known.sides
        if args.rows is not None:
            deviations, sides = (deviation,) * args.rows, (0, 1)
        pairs = known.pairs if args.pairs_sd is None else args.pairs_sd
        design = Design(deviations, pairs, AllPairs(len(deviations)), args.correlation, sides)
        found.append((f"{base_name(base)}, {target.title}", design))
    if not found:
        raise InputError(
            f"{comparison.name}: no base model has two rows with two seeds or more, so the spread of seeds is not "
            "known; give --sd (BERT-base has about 0.84 points on STS)"
        )
    return found
