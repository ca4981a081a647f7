"""`harness check-method`: does a method keep the promises of the interface?"""

from __future__ import annotations

import argparse
from dataclasses import asdict
from typing import TYPE_CHECKING

from harness.commands.terminal import plain
from harness.files.printable import tell_json, told

if TYPE_CHECKING:
    from harness.testing import Check


def register(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add `harness check-method` to the command line."""
    parser = subparsers.add_parser(
        "check-method",
        help="check an installed method against the interface",
        description="Run the conformance kit on an installed method: config, card, shapes, invariances, saving, seeds, "
        "descent, resuming and clear errors. In tests: harness.testing.assert_method.",
        epilog="example: harness check-method simcse --json",
    )
    parser.add_argument("method", help="see: harness list methods")
    parser.add_argument("--preset", help="a preset of the method (default: mini where there is one)")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="a value of its config")
    parser.add_argument("--base-model", default="embedded:mini-bert", help="hub id, folder or embedded:NAME")
    parser.add_argument("--thorough", action="store_true", help="the preset's own batches and ten times the updates")
    parser.add_argument("--json", action="store_true", help="machine-readable")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Exit code 0 when every check passed, else 1."""
    from rich.console import Console

    from harness.config import setting
    from harness.testing import check_method

    console = Console(highlight=False)
    with Console(stderr=True).status("") as status:
        checks = check_method(
            args.method,
            config=dict(setting(text) for text in args.set),
            preset=args.preset,
            base_model=args.base_model,
            quick=not args.thorough,
            progress=lambda name: status.update(f"{args.method}: {name}"),
        )
    passed = all(check.passed for check in checks)
    if args.json:
        tell_json({"method": args.method, "passed": passed, "checks": [asdict(c) for c in checks]})
    else:
        _show(console, args.method, checks)
    return 0 if passed else 1


def _show(console: object, method: str, checks: list[Check]) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    assert isinstance(console, Console)
    table = Table(title=plain(method), title_justify="left")
    table.add_column("check", no_wrap=True)
    table.add_column("", no_wrap=True)
    table.add_column("seen", overflow="fold")
    for check in checks:
        mark = Text("ok", style="green") if check.passed else Text("FAILED", style="bold red")
        table.add_row(check.name, mark, Text(told(check.detail), style="" if check.passed else "red"))
    console.print(table)
    broken = sum(not check.passed for check in checks)
    console.print(f"{len(checks) - broken} of {len(checks)} checks passed")
