"""`harness verdict`: is A better than B? `harness power`: what differences can a number of seeds see?"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from harness.files.printable import tell_json, tell_lines

if TYPE_CHECKING:
    from harness.results.answer import Answer

_SHARED = ("on", "block", "comparison")


def register(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add `harness verdict` and `harness power`. Imports nothing slow."""
    parser = subparsers.add_parser(
        "verdict",
        help="say which of two rows is better and how sure that is; or all pairs of rows",
        description="From the records of a work directory: better, worse, no difference that matters or cannot tell "
        "yet, with an interval over seeds and examples that is corrected for all pairs of rows. Without A and B: a "
        "matrix of all differences, and groups of rows that are not significantly different.",
        epilog="example: harness verdict work/demo SimCSE SCD --on STS",
    )
    parser.add_argument("workdir", type=Path, metavar="WORKDIR")
    parser.add_argument("rows", nargs="*", metavar="A B", help="labels of two rows")
    _add_shared(parser)
    parser.add_argument("--base-model", default="", metavar="MODEL", help="where a row stands on several")
    parser.add_argument(
        "--equivalence", type=float, default=0.5, metavar="POINTS", help="less is no difference that matters (0.5)"
    )
    parser.add_argument(
        "--without-overlap", action="store_true",
        help="leave out test examples that occur in the training data of a row",
    )  # fmt: skip
    parser.set_defaults(run=run_verdict)

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
    _add_shared(parser)
    parser.add_argument("--sd", type=float, metavar="POINTS", help="standard deviation over seeds (else: the records')")
    parser.add_argument("--pairs-sd", type=float, metavar="POINTS", help="standard deviation of a difference by the "
                        "choice of test pairs (else: the records', or 0.3)")  # fmt: skip
    parser.add_argument("--rows", type=int, metavar="K", help="rows that are compared (else: the records', or 2)")
    parser.add_argument(
        "--correlation", type=float, default=0.0, metavar="R",
        help="of the scores of two rows with the same seed, where they share the order of data (0)",
    )  # fmt: skip
    parser.set_defaults(run=run_power)


def _add_shared(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--on", default="", metavar="STS|TASK|SUITE|BLOCK",
                        help="what to compare by, as STS, MR, transfer (default: as the report does)")  # fmt: skip
    parser.add_argument("--block", default="", metavar="NAME", help="one block of the file, on what it asks for")
    parser.add_argument("--comparison", default="", metavar="NAME", help="where a work directory holds several")
    parser.add_argument("--json", action="store_true", help="machine-readable")


def run_verdict(args: argparse.Namespace) -> int:
    """Print the verdict."""
    from reports.decide.verdict_answer import verdict

    options = (*_SHARED, "base_model", "equivalence", "without_overlap")
    return _show(args, verdict(args.workdir, args.rows, **{name: getattr(args, name) for name in options}))


def run_power(args: argparse.Namespace) -> int:
    """Print the table of seeds and differences for each base model."""
    from reports.decide.power_answer import power

    options = (*_SHARED, "difference", "sd", "pairs_sd", "rows", "correlation")
    return _show(args, power(args.workdir, **{name: getattr(args, name) for name in options}))


def _show(args: argparse.Namespace, answer: Answer) -> int:
    if args.json:
        tell_json(answer.data)
    else:
        tell_lines(answer.text)
    return 0
