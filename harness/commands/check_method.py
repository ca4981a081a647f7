"""`harness check-method`: does an installed method keep the promises of the interface?"""

from __future__ import annotations

import argparse
from dataclasses import asdict

from harness.commands.options import CONFIG, JSON, QUIET, Commands, add_command
from harness.commands.terminal import print_columns
from harness.files.printable import tell, tell_json


def register(commands: Commands) -> None:
    """Add `harness check-method` to the command line."""
    check = add_command(
        commands,
        "check-method",
        check_method,
        CONFIG,
        JSON,
        QUIET,
        help="check an installed method against the interface",
        description="Run the conformance kit on an installed method: config, card, shapes, invariances, saving, seeds, "
        "descent, resuming and clear errors. In tests: harness.testing.assert_method.",
        example="harness check-method simcse --json",
    )
    check.add_argument("method", help="see: harness list methods")


def check_method(args: argparse.Namespace) -> int:
    """Exit code 0 when every check passed, else 1."""
    from rich.console import Console

    from harness.testing import check_method

    with Console(stderr=True, quiet=args.quiet).status("") as status:
        checks = check_method(
            args.method,
            config=dict(args.config),
            preset=args.preset,
            base_model=args.base_model,
            progress=lambda name: status.update(f"{args.method}: {name}"),
        )
    passed = sum(check.passed for check in checks)
    if args.json:
        tell_json(
            {
                "method": args.method,
                "passed": passed == len(checks),
                "checks": [asdict(c) for c in checks],
            }
        )
    else:
        print_columns(
            [(check.name, "ok" if check.passed else "FAILED", check.detail) for check in checks]
        )
        result = f"{passed} of {len(checks)} checks passed"
        tell(f"{args.method}: {result}")
    if passed == len(checks):
        return 0
    return 1
