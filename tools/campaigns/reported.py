"""Faults that users and audits reported, and others of the same kinds: is each repaired?

    python -m tools.campaigns.reported FOLDER [--only LETTER]

FOLDER holds inputs that were reported; a point finds its own by their names, anywhere below. Each
point is a function that is registered with its letter; it yields a `Finding` for each input of the
folder and for inputs of its own, which differ in mechanism. A line is printed for each: letter, case, expected,
seen, ok. The exit code is 1 if a case fails.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from harness.files.printable import one_line


@dataclass(frozen=True)
class Finding:
    """What one input gave.

    Attributes:
        name: the input, in a few words.
        expected, seen: in words or numbers.
        ok: whether they agree.
    """

    name: str
    expected: str
    seen: str
    ok: bool


Point = Callable[[Path, Path], Iterator[Finding]]
"""(folder of reported inputs, empty folder to write to) -> cases."""

POINTS: dict[str, Point] = {}


def point(letter: str) -> Callable[[Point], Point]:
    """Register a function as the cases of a point."""

    def register(function: Point) -> Point:
        POINTS[letter] = function
        return function

    return register


def run(folder: Path, letters: list[str]) -> int:
    """Print the cases of the points, and return how many failed."""
    failed = 0
    print("letter, case, expected, seen, ok")
    for letter in letters:
        with tempfile.TemporaryDirectory() as room:
            for case in POINTS[letter](folder, Path(room)):
                failed += not case.ok
                parts = (letter, case.name, case.expected, case.seen, "yes" if case.ok else "NO")
                print(", ".join(one_line(part) for part in parts), flush=True)
    return failed


def main(arguments: list[str] | None = None) -> int:
    """Run the points and return the exit code."""
    from tools.campaigns import (  # noqa: F401 - register their points
        reported_faults,
        reported_models,
        reported_scores,
    )

    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("--only", action="append", choices=sorted(POINTS), default=[])
    options = parser.parse_args(arguments)
    failed = run(options.folder, options.only or sorted(POINTS))
    print(f"{failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    # As a module of this name, so that points register with the one that runs.
    from tools.campaigns.reported import main as run_as_module

    sys.exit(run_as_module())
