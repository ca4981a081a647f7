"""`python -m harness.identity`: the maintainers' side of ids. See `harness.identity.ledger` for what a ledger holds."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from harness.errors import InputError
from harness.files.printable import tell, tell_error, tell_lines
from harness.identity.ledger import kept_ledgers
from harness.identity.review import Review

ADVICE = """
Do the numbers of a part change, for any setting?
  yes: python -m harness.identity bump PART --because "..."        runs that rest on it are made anew
  no:  python -m harness.identity no-effect PART --because "..."   all ids stay
A module that has only moved: python -m harness.identity moved. A function that has: write its new place
into ledger.toml. A new module: name it in a part of ledger.toml (with "" for its hash) and run no-effect, or put it
under "outside"."""


def main(argv: list[str] | None = None) -> int:
    """Exit code 0 when ledgers and code agree, 1 when they do not, 2 for bad input."""
    parser = argparse.ArgumentParser(prog="python -m harness.identity", description="Hold ledgers against the code.")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND")
    commands.add_parser("check", help="where they disagree (also without a command)")
    commands.add_parser("moved", help="write the new places of modules that were moved unchanged")
    for name, text in (("bump", "its numbers change"), ("no-effect", "its numbers stay")):
        command = commands.add_parser(name, help=f"the code of a part has changed: {text}")
        command.add_argument("parts", nargs="+", metavar="PART", help='as methods.simcse, or "all" that have changed')
        command.add_argument("--because", required=True, metavar="REASON", help="one line for the ledger")
    args = parser.parse_args(argv)
    try:
        return _run(args, kept_ledgers())
    except InputError as error:
        tell_error(str(error))
        return 2


def _run(args: argparse.Namespace, folders: list[Path]) -> int:
    review = Review(folders)
    if args.command == "moved":
        for old, new in review.follow().items():
            tell(f"{old} -> {new}")
    elif args.command in ("bump", "no-effect"):
        names = list(review.changed) if args.parts == ["all"] else args.parts
        review.enter(names, because=args.because, bump=args.command == "bump")
        for name in names if args.command == "bump" else ():
            tell(f"{name}: new ids for all that rests on it: {', '.join(review.ids_with(name))}")
    faults = Review(folders).faults()
    tell_lines("\n".join([*faults, ADVICE]) if faults else "ledgers and code agree")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
