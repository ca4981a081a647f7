"""Faults that users and audits reported, and others of the same kinds: is each repaired?

    python -m tools.campaigns.reported FOLDER [--only POINT]

FOLDER holds inputs that were reported; a point finds its own by their names, anywhere below. Each
point is a function that is registered with its name, which begins with its letter; it yields a
`Finding` for each input of the folder and for inputs of its own, which differ in mechanism. A line
is printed for each: point, case, expected, seen, ok. `--only f` runs the points f-adapters,
f-prompts and so on. The last line counts the cases; the exit code is 1 if one fails.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import date
from pathlib import Path

from harness.files.printable import one_line
from tools.campaigns.counted import save_count


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


def point(name: str) -> Callable[[Point], Point]:
    """Register a function as the cases of a point."""

    def register(function: Point) -> Point:
        POINTS[name] = function
        return function

    return register


def run(folder: Path, names: list[str]) -> int:
    """Print the cases of the points, and return how many failed."""
    tried = 0
    failed = 0
    print("point, case, expected, seen, ok", flush=True)
    for name in names:
        of_point: list[bool] = []
        with tempfile.TemporaryDirectory() as room:
            for case in POINTS[name](folder, Path(room)):
                of_point.append(case.ok)
                parts = (name, case.name, case.expected, case.seen, "yes" if case.ok else "NO")
                print(", ".join(one_line(part) for part in parts), flush=True)
        tried += len(of_point)
        failed += of_point.count(False)
        save_count(f"reported {name}", len(of_point), of_point.count(False))
    print(f"tried {tried}, passed {tried - failed}, failed {failed}; {date.today()}")
    return failed


def names_of(asked: list[str]) -> list[str]:
    """Return the points that are asked for: all without any, and all that begin with a letter.

    Raises:
        SystemExit: there is no such point.
    """
    known = sorted(POINTS)
    found = [
        name
        for name in known
        if not asked or any(name.split("-")[0] == one or name == one for one in asked)
    ]
    if not found:
        raise SystemExit(f"no such point; known: {', '.join(known)}")
    return found


def main(arguments: list[str] | None = None) -> int:
    """Run the points and return the exit code."""
    from tools.campaigns import (  # noqa: F401 - register their points
        reported_code,
        reported_faults,
        reported_holds,
        reported_inputs,
        reported_models,
        reported_others,
        reported_plugins,
        reported_runs,
        reported_scores,
        reported_stops,
        reported_verdicts,
        reported_words,
    )

    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("--only", action="append", default=[], metavar="POINT")
    options = parser.parse_args(arguments)
    return 1 if run(options.folder, names_of(options.only)) else 0


if __name__ == "__main__":
    # As a module of this name, so that points register with the one that runs.
    from tools.campaigns.reported import main as run_as_module

    sys.exit(run_as_module())
