"""Tables of faults that were repaired and of attacks that are tried, for `docs.make`."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from docs.measured import markdown
from tools.campaigns.counted import read_counts

FILE = Path(__file__).with_suffix(".toml")


@dataclass(frozen=True)
class Repair:
    """A fault: what the product did, what it does, and the tests that show it.

    Attributes:
        case: what was attacked, or for a sentence what it is about.
        tests: `FILE::TEST`, below the folder of tests.
        code: a part of the sentence that is in the code; empty where no sentence is listed.
        seen: where the sentence is printed.
    """

    case: str
    before: str
    now: str
    tests: Sequence[str]
    code: str = ""
    seen: str = ""


@cache
def repairs(part: str) -> tuple[Repair, ...]:
    """Return the repairs of a part of the file: lost, ended, words or brought."""
    entries: list[dict[str, Any]] = tomllib.loads(FILE.read_text(encoding="utf-8"))[part]
    return tuple(
        Repair(
            entry.get("case") or entry["point"],
            entry["before"],
            entry["now"],
            entry["tests"],
            entry.get("code", ""),
            entry.get("seen", ""),
        )
        for entry in entries
    )


def repaired(part: str) -> str:
    """Return the table of the faults of a part, with their tests."""
    lines = []
    for repair in repairs(part):
        lines.append((repair.case, repair.before, repair.now, _names(repair.tests)))
    return _left(markdown(("case", "before", "now", "tests"), lines))


def sentences() -> str:
    """Return the table of sentences that were false or misled."""
    lines = []
    for repair in repairs("words"):
        lines.append((repair.case, repair.before, repair.now, repair.seen, _names(repair.tests)))
    return _left(markdown(("about", "before", "now", "where", "tests"), lines))


def _names(tests: Sequence[str]) -> str:
    """Return the tests as links to their files, by name."""
    found = []
    for test in tests:
        file, name = test.split("::")
        found.append(f"[`{name}`](../tests/{file})")
    return ", ".join(found)


def _left(table: str) -> str:
    """Return a table whose columns are all text."""
    return table.replace("---:", "---")


def attacks() -> str:
    """Return the table of campaigns: cases tried and failed in their last runs."""
    lines = []
    for count in read_counts():
        tried = f"{count.tried:,}"
        if count.known > count.tried:
            tried += f" of {count.known:,}"
        lines.append((f"`{count.campaign}`", tried, f"{count.failed:,}", count.day))
    return markdown(("campaign", "tried", "failed", "day"), lines)


MADE: dict[str, Callable[[], str]] = {
    "lost": lambda: repaired("lost"),
    "ended": lambda: repaired("ended"),
    "brought": lambda: repaired("brought"),
    "sentences": sentences,
    "attacks": attacks,
}
