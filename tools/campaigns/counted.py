"""Counts of attacks: how many cases a campaign tried, and how many failed.

A campaign that ran to its end saves its counts in `attacks.csv`, of which `python -m
docs.make` writes a table of [docs/robustness.md](../../docs/robustness.md).
"""

from __future__ import annotations

import argparse
import csv
import os
import random
from collections.abc import Iterable, Sequence
from dataclasses import astuple, dataclass, fields
from datetime import UTC, datetime
from pathlib import Path
from typing import TypeVar

FILE = Path(__file__).with_name("attacks.csv")
T = TypeVar("T")


@dataclass(frozen=True)
class Count:
    """What one run of a campaign, or of a part of it, gave.

    Attributes:
        campaign: its name, and the part after a blank.
        tried, failed: numbers of cases.
        known: how many cases there are; more than `tried` where a sample was drawn.
        day: of the run, as 2026-11-28.
    """

    campaign: str
    tried: int
    failed: int
    known: int
    day: str


def read_counts(file: Path = FILE) -> list[Count]:
    """Return the counts of a file, sorted by campaign; none where there is no file."""
    if not file.exists():
        return []
    found = []
    with file.open(encoding="utf-8", newline="") as lines:
        for line in csv.DictReader(lines):
            tried, failed, known = (int(line[name]) for name in ("tried", "failed", "known"))
            found.append(Count(line["campaign"], tried, failed, known, line["day"]))
    return sorted(found, key=lambda count: count.campaign)


def save_count(
    campaign: str, tried: int, failed: int, *, known: int | None = None, file: Path = FILE
) -> None:
    """Write what a campaign gave in place of what it gave before."""
    day = datetime.now(UTC).date().isoformat()
    new = Count(campaign, tried, failed, known or tried, day)
    others = [count for count in read_counts(file) if count.campaign != campaign]
    unfinished = file.with_suffix(".part")
    with unfinished.open("w", encoding="utf-8", newline="") as lines:
        writer = csv.writer(lines, lineterminator="\n")
        writer.writerow([field.name for field in fields(Count)])
        for count in sorted([*others, new], key=lambda count: count.campaign):
            writer.writerow(astuple(count))
    os.replace(unfinished, file)


class Log:
    """Cases that have ended, a line each, in a file or on the terminal. Those that a file holds from
    a call before, which was cut, are not tried again.
    """

    def __init__(self, file: Path | None) -> None:
        self._file = file
        self._faults: dict[str, str] = {}
        if file is not None and file.exists():
            for line in file.read_text(encoding="utf-8").splitlines():
                name, _, end = line.partition("\t")
                self._faults[name] = end

    def __contains__(self, name: str) -> bool:
        return name in self._faults

    def add(self, name: str, fault: str) -> None:
        """Add a case and what is wrong with its end, "" where nothing is."""
        fault = " ".join(fault.split())[:600]
        self._faults[name] = fault
        print(f"{name}: {f'FELL: {fault}' if fault else 'passed'}", flush=True)
        if self._file is not None:
            with self._file.open("a", encoding="utf-8") as lines:
                lines.write(f"{name}\t{fault}\n")

    def count(self, names: Iterable[str]) -> tuple[int, int]:
        """Return how many of the cases have ended, and how many of these failed."""
        faults = [self._faults[name] for name in names if name in self._faults]
        return len(faults), sum(map(bool, faults))


def add_sampling(parser: argparse.ArgumentParser) -> None:
    """Add the options `--cases` and `--seed`, by which a campaign tries a sample of its cases, and
    `--log`, by which a call that was cut goes on.
    """
    parser.add_argument("--cases", type=int, metavar="N", help="draw so many of the cases")
    parser.add_argument("--seed", type=int, default=0, help="of what is drawn")
    parser.add_argument("--log", type=Path, help="cases that this file holds are not tried again")


def sample(cases: Sequence[T], count: int | None, seed: int) -> list[T]:
    """Return `count` of the cases, drawn with a seed, in their order; all of them without a count.

    >>> sample("abcdef", 3, seed=1)
    ['a', 'b', 'e']
    """
    if count is None or count >= len(cases):
        return list(cases)
    drawn = random.Random(seed).sample(range(len(cases)), count)
    return [cases[number] for number in sorted(drawn)]
