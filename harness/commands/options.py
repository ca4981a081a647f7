"""What several commands share: how a command is added, and the options that they have in common."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias

from harness.errors import InputError
from harness.machine.progress import Reporter

Commands: TypeAlias = "argparse._SubParsersAction[argparse.ArgumentParser]"
Options: TypeAlias = argparse.ArgumentParser


def add_command(
    commands: Commands,
    name: str,
    run: Callable[[argparse.Namespace], int],
    *parents: Options,
    help: str,
    example: str,
    description: str = "",
) -> argparse.ArgumentParser:
    """Add a command whose help ends with an example.

    Args:
        run: takes the parsed options and returns the exit code.
        parents: options that the command shares with others.
    """
    parser: argparse.ArgumentParser = commands.add_parser(
        name,
        help=help,
        description=description or f"{help[0].upper()}{help[1:]}.",
        epilog=f"example: {example}",
        parents=parents,
    )
    parser.set_defaults(run=run)
    return parser


def add_group(commands: Commands, name: str, *, help: str, example: str) -> Commands:
    """Add a command that has commands of its own."""
    parser = commands.add_parser(
        name, help=help, description=f"{help[0].upper()}{help[1:]}.", epilog=f"example: {example}"
    )
    return parser.add_subparsers(title="commands", metavar="COMMAND", required=True)


def _shared() -> Options:
    return argparse.ArgumentParser(add_help=False)


def one_name(text: str) -> str:
    """One name of an option that takes several by being repeated."""
    if "," in text:
        raise argparse.ArgumentTypeError(f'expected one name, not "{text}"; repeat the option for each')
    return text


WORKDIR = _shared()
WORKDIR.add_argument("--workdir", type=Path, default=Path("work"), metavar="DIR", help="the work directory "
                     "(default: work)")  # fmt: skip

JSON = _shared()
JSON.add_argument("--json", action="store_true", help="machine-readable output")

QUIET = _shared()
QUIET.add_argument("--quiet", action="store_true", help="show no progress")

TRACKING = _shared()
TRACKING.add_argument("--tracking-uri", metavar="URI|none", help="MLflow server or database (default: "
                      "DIR/mlflow.db of the work directory)")  # fmt: skip

SET = _shared()
SET.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", dest="overrides", help="override a value "
                 "of the file, as seeds='[1, 2]' or executor.address=auto; may be repeated")  # fmt: skip

FORMATS = _shared()
FORMATS.add_argument("--format", action="append", type=one_name, metavar="NAME", help="html, md, latex, csv, pdf, "
                     "ro-crate or every-eval-ever; may be repeated (default: the first four)")  # fmt: skip

EXECUTOR = _shared()
EXECUTOR.add_argument("--executor", metavar="NAME", help="where runs are executed: serial (this process), processes, "
                      "ray or slurm (default: that of the file, else serial)")  # fmt: skip
EXECUTOR.add_argument("--workers", type=int, metavar="N", help="runs at a time (default: as many as fit)")
EXECUTOR.add_argument(
    "--gpus-per-run", type=float, metavar="N", help="1, or the part of a GPU that a run takes, as 0.33"
)

RUNS = (WORKDIR, SET, EXECUTOR, TRACKING, QUIET)
"""Of the commands that execute runs."""

CONFIG = _shared()
CONFIG.add_argument("--preset", help="a preset of the method (see: harness list methods --verbose)")
CONFIG.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", dest="config", help="a value of its "
                    "config; may be repeated")  # fmt: skip
CONFIG.add_argument("--base-model", default="embedded:mini-bert", metavar="MODEL", help="hub id, folder or "
                    "embedded:NAME (default: %(default)s)")  # fmt: skip

DEVICE = _shared()
DEVICE.add_argument("--device", default="auto", help="auto, cpu, cuda, cuda:N or mps (default: auto)")

CORPUS = _shared()
CORPUS.add_argument("--corpus", default="embedded:sentences", metavar="URI", help="the text (default: %(default)s)")
CORPUS.add_argument("--limit", type=int, metavar="N", help="use the first N items of the text")


def config_values(args: argparse.Namespace) -> dict[str, Any]:
    """The values that `--set` of a method gives.

    Raises:
        InputError: one of them is not KEY=VALUE.
    """
    from harness.config import setting

    return dict(setting(text) for text in args.config)


def run_settings(args: argparse.Namespace) -> dict[str, Any]:
    """What the options of `RUNS` say, as the functions of the API take it."""
    given = {"name": args.executor, "workers": args.workers, "gpus_per_run": args.gpus_per_run}
    return {
        "executor": {key: value for key, value in given.items() if value is not None},
        "tracked": args.tracking_uri != "none",
        "tracking_uri": args.tracking_uri,
        "progress": Reporter(quiet=args.quiet),
    }


def two_rows(args: argparse.Namespace) -> list[str]:
    """The labels of two rows, or none.

    Raises:
        InputError: another number of rows.
    """
    if len(args.rows) not in (0, 2):
        hint = f"; a work directory is given as --workdir {args.rows[0]}" if Path(args.rows[0]).is_dir() else ""
        raise InputError(f"rows: name two rows or none, not {len(args.rows)}{hint}")
    return list(args.rows)
