"""`harness power`: what differences a number of seeds can see, and how many seeds a difference takes."""

from __future__ import annotations

import argparse
from pathlib import Path

from harness.files.printable import tell_json, tell_lines


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
    from reports.decide.power_answer import power

    options = ("difference", "on", "block", "comparison", "sd", "pairs_sd", "rows", "correlation")
    answer = power(args.workdir, **{name: getattr(args, name) for name in options})
    if args.json:
        tell_json(answer.data)
    else:
        tell_lines(answer.text)
    return 0
