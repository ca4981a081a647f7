"""`harness why`: which settings make the difference between two rows."""

from __future__ import annotations

import argparse

from harness.commands.options import (
    COMPARISON,
    EQUIVALENCE,
    EXECUTOR,
    FORMATS,
    JSON,
    ON,
    QUIET,
    ROW_BASE_MODEL,
    TRACKING,
    WORKDIR,
    Commands,
    add_command,
    run_settings,
)
from harness.files.printable import tell_json, tell_lines

_SHARED = (
    "against_preset",
    "against",
    "published",
    "on",
    "comparison",
    "base_model",
    "factors",
    "join",
    "runs",
    "seeds",
    "equivalence",
)


def register(commands: Commands) -> None:
    """Add `harness why`. Imports nothing slow."""
    parser = add_command(
        commands,
        "why",
        run_why,
        WORKDIR,
        COMPARISON,
        ON,
        ROW_BASE_MODEL,
        EQUIVALENCE,
        EXECUTOR,
        TRACKING,
        FORMATS,
        QUIET,
        JSON,
        help="say which settings make the difference between two rows, and how much each of them",
        description="Train the rows between two rows of a comparison, each with some settings of A and the others of "
        "B, and split the difference into shares: what a setting adds, in the mean over all orders in which the "
        "settings can be changed. The shares sum to the difference and have intervals over seeds and test examples. "
        "Without --runs nothing is trained: the rows between and their cost are printed.",
        example="harness why 'Barlow Twins (shuffle)' SimCSE --workdir work/demo --runs 18",
    )
    _add_ends(parser)
    _add_design(parser)


def _add_ends(parser: argparse.ArgumentParser) -> None:
    """Add what is compared."""
    parser.add_argument("a", metavar="A", help="label of a row")
    parser.add_argument("b", nargs="?", default="", metavar="B", help="label of another row")
    parser.add_argument(
        "--against-preset",
        default="",
        metavar="METHOD:PRESET",
        help="a preset to compare A with, in place of B",
    )
    parser.add_argument(
        "--against",
        default="",
        metavar="DIR",
        help="another work directory: how its runs of A differ from those of this one",
    )
    parser.add_argument(
        "--published",
        default="",
        metavar="FILE.csv:MODEL",
        help="the published number that B repeats; the answer ends with what is left",
    )


def _add_design(parser: argparse.ArgumentParser) -> None:
    """Add what the rows between are."""
    parser.add_argument(
        "--factors",
        action="append",
        default=[],
        metavar="NAME",
        help="a factor of its own, all others being joined; may be repeated",
    )
    parser.add_argument(
        "--join",
        action="append",
        default=[],
        metavar="NAME+NAME",
        help="factors that are changed together; may be repeated",
    )
    parser.add_argument(
        "--runs",
        type=int,
        metavar="N",
        help="make at most N new runs (default: none, print the plan)",
    )
    parser.add_argument(
        "--seeds",
        type=int,
        metavar="N",
        help="of every row (default: those that both rows have)",
    )


def run_why(args: argparse.Namespace) -> int:
    """Print the shares, or the plan."""
    from harness.api.explain import why
    from reports.write.report_folder import FORMATS as USUAL

    answer = why(
        args.workdir,
        args.a,
        args.b,
        formats=USUAL if args.format is None else args.format,
        **{name: getattr(args, name) for name in _SHARED},
        **run_settings(args),
    )
    if args.json:
        tell_json(answer.data)
    else:
        tell_lines(answer.text)
    return 0
