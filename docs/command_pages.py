"""The page of the command line for the site: the help of every command, as the parser prints it."""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator

from harness.cli import build_parser


def page() -> str:
    """Markdown: every command with its help."""
    os.environ["COLUMNS"] = "100"  # argparse wraps to the terminal
    parts = ["# Command line\n\nAs `harness COMMAND --help` prints it.\n"]
    for parser in _parsers(build_parser()):
        words = parser.prog.split()
        parts.append(
            f"{'#' * min(3, 1 + len(words))} {parser.prog}\n\n```text\n{parser.format_help().rstrip()}\n```\n"
        )
    return "\n".join(parts)


def _parsers(parser: argparse.ArgumentParser) -> Iterator[argparse.ArgumentParser]:
    yield parser
    for action in parser._actions:  # argparse has no public way to its sub-commands
        if isinstance(action, argparse._SubParsersAction):
            for inner in action.choices.values():
                yield from _parsers(inner)
