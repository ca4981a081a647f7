"""What several commands share: how a command is added, and the options that they have in common."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any, TypeAlias

from harness.errors import InputError

Commands: TypeAlias = "argparse._SubParsersAction[argparse.ArgumentParser]"


def add_command(
    commands: Commands,
    name: str,
    run: Callable[[argparse.Namespace], int],
    *,
    help: str,
    example: str,
    description: str = "",
    **defaults: Any,
) -> argparse.ArgumentParser:
    """Add a command whose help ends with an example; `run` takes the parsed options and returns the exit code."""
    description = description or f"{help[0].upper()}{help[1:]}."
    parser: argparse.ArgumentParser = commands.add_parser(
        name, help=help, description=description, epilog=f"example: {example}"
    )
    parser.set_defaults(run=run, **defaults)
    return parser


def add_group(commands: Commands, name: str, *, help: str, example: str) -> Commands:
    """Add a command that has commands of its own."""
    parser = commands.add_parser(
        name, help=help, description=f"{help[0].upper()}{help[1:]}.", epilog=f"example: {example}"
    )
    return parser.add_subparsers(title="commands", metavar="COMMAND", required=True)


def add_json(parser: argparse.ArgumentParser) -> None:
    """The option of commands whose result another program can read."""
    parser.add_argument("--json", action="store_true", help="machine-readable output")


def add_settings(parser: argparse.ArgumentParser) -> None:
    """The preset and the config values of a method that a command names."""
    parser.add_argument("--preset", help="a preset of the method (see: harness list methods --verbose)")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="a value of its config; "
                        "may be repeated")  # fmt: skip
    parser.add_argument("--base-model", default="embedded:mini-bert", help="hub id, folder or embedded:NAME "
                        "(default: %(default)s)")  # fmt: skip


def add_executor_options(parser: argparse.ArgumentParser) -> None:
    """The keys of the table [executor] as options, except `retries`."""
    parser.add_argument("--executor", metavar="NAME", help="where runs are executed: serial (this process), processes, "
                        "ray, slurm (default: the file's table [executor], else serial)")  # fmt: skip
    parser.add_argument("--workers", type=int, metavar="N", help="runs at a time (default: as many as fit)")
    parser.add_argument("--cpus-per-cell", type=int, metavar="N", help="cores of a run")
    parser.add_argument("--gpus-per-cell", type=float, metavar="N", help="GPUs of a run, as 0.33 or 4")
    parser.add_argument("--address", help="address of a Ray cluster, as auto (default: this machine)")
    parser.add_argument("--slurm", action="append", default=[], metavar="KEY=VALUE,...",
                        help="options of sbatch, as partition=gpu,time=4:00:00")  # fmt: skip


def given_executor(args: argparse.Namespace) -> dict[str, Any] | None:
    """The keys of [executor] that the options give; None without any.

    Raises:
        InputError: --slurm is not KEY=VALUE.
    """
    names = {"name": "executor"} | {key: key for key in ("workers", "cpus_per_cell", "gpus_per_cell", "address")}
    keys = {key: value for key, option in names.items() if (value := getattr(args, option)) is not None}
    pairs = [pair.partition("=") for given in args.slurm for pair in given.split(",")]
    for key, _, value in pairs:
        if not key or not value:
            raise InputError(f'--slurm: "{key or value}": expected KEY=VALUE, as partition=gpu')
    if pairs:
        keys["slurm"] = {key: value for key, _, value in pairs}
    return keys or None
