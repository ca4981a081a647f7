"""`harness verdict`: is A better than B, in a paragraph; without A and B, all pairs of rows."""

from __future__ import annotations

import argparse
from pathlib import Path

from harness.files.printable import tell_json, tell_lines


def register(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add `harness verdict`. Imports nothing slow."""
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
    parser.add_argument("--on", default="", metavar="STS|TASK|SUITE|BLOCK",
                        help="what to compare by, as STS, MR, transfer (default: as the report does)")  # fmt: skip
    parser.add_argument("--block", default="", metavar="NAME", help="one block of the file, on what it asks for")
    parser.add_argument("--comparison", default="", metavar="NAME", help="where a work directory holds several")
    parser.add_argument("--base-model", default="", metavar="MODEL", help="where a row stands on several")
    parser.add_argument(
        "--equivalence", type=float, default=0.5, metavar="POINTS", help="less is no difference that matters (0.5)"
    )
    parser.add_argument(
        "--without-overlap", action="store_true",
        help="leave out test examples that occur in the training data of a row",
    )  # fmt: skip
    parser.add_argument("--json", action="store_true", help="machine-readable")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Print the verdict."""
    from reports.decide.verdict_answer import verdict

    answer = verdict(
        args.workdir,
        args.rows,
        on=args.on,
        block=args.block,
        comparison=args.comparison,
        base_model=args.base_model,
        equivalence=args.equivalence,
        without_overlap=args.without_overlap,
    )
    if args.json:
        tell_json(answer.data)
    else:
        tell_lines(answer.text)
    return 0
