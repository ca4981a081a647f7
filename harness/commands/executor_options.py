"""The options that say where runs are made: the same for comparisons and studies."""

from __future__ import annotations

import argparse
from typing import Any

from harness.errors import InputError


def add_executor_options(parser: argparse.ArgumentParser) -> None:
    """The keys of the table [executor] as options, but `retries`."""
    parser.add_argument("--executor", metavar="NAME", help="where runs are made: serial (this process), processes, "
                        "ray, slurm (default: the file's table [executor], else serial)")  # fmt: skip
    parser.add_argument(
        "--workers", type=int, metavar="N", help="runs at a time (default: as many as there is room for)"
    )
    parser.add_argument("--cpus-per-cell", type=int, metavar="N", help="cores of a run")
    parser.add_argument("--gpus-per-cell", type=float, metavar="N", help="GPUs of a run, as 0.33 or 4")
    parser.add_argument("--address", metavar="ADDRESS", help="of a Ray cluster, as auto (default: this machine)")
    parser.add_argument("--slurm", action="append", default=[], metavar="KEY=VALUE,...",
                        help="options of sbatch, as partition=gpu,time=4:00:00")  # fmt: skip


def given_executor(args: argparse.Namespace) -> dict[str, Any] | None:
    """What the options say about the executor; None where they say nothing."""
    names = ("workers", "cpus_per_cell", "gpus_per_cell", "address")
    keys = {key: getattr(args, key) for key in names if getattr(args, key) is not None}
    if args.executor is not None:
        keys["name"] = args.executor
    if args.slurm:
        pairs = [pair.partition("=") for given in args.slurm for pair in given.split(",")]
        if wrong := next(("".join(pair) for pair in pairs if not pair[0] or not pair[2]), None):
            raise InputError(f'--slurm: "{wrong}": expected KEY=VALUE, as partition=gpu')
        keys["slurm"] = {key: value for key, _, value in pairs}
    return keys or None
