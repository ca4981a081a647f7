"""The tables of the census, from studies/census.csv, which `python -m tools.census` writes."""

from __future__ import annotations

import csv
from collections.abc import Callable, Sequence

from harness.files.printable import markdown_text
from harness.runs.experiment import read_experiment
from studies import CENSUS_NAME, CENSUS_TABLE

_HEAD = (
    "",
    "row",
    "score",
    "± seeds",
    "rank",
    "group",
    "untrained start",
    "STS-B",
    "Embedded-Phenomena",
)
_ALIGNMENT = "| ---: | --- | ---: | ---: | ---: | --- | ---: | ---: | ---: |"

Line = dict[str, str]


def read_blocks() -> dict[str, list[Line]]:
    """Return the lines of each block of the census, best first, by the block's title."""
    blocks: dict[str, list[Line]] = {}
    with CENSUS_TABLE.open(encoding="utf-8", newline="") as file:
        for line in csv.DictReader(file):
            blocks.setdefault(line["block"], []).append(line)
    return blocks


def describe_rank(line: Line) -> str:
    """Return the ranks that a row may have: "2 to 5"."""
    first = line["first rank"]
    last = line["last rank"]
    if not first:
        return "–"
    if first == last:
        return first
    return f"{first} to {last}"


def table(lines: Sequence[Line], link: Callable[[str], str] = markdown_text) -> str:
    """Return lines of one block as a table in Markdown.

    Args:
        lines: of `read_blocks`.
        link: label of a row -> its cell.
    """
    rows = [f"| {' | '.join(_HEAD)} |", _ALIGNMENT]
    for line in lines:
        cells = (
            line["place"],
            link(line["row"]),
            line["score"],
            line["deviation"] or "–",
            describe_rank(line),
            line["group"],
            line["start"] or "–",
            line["STS-B"] or "–",
            line["Embedded-Phenomena"] or "–",
        )
        rows.append(f"| {' | '.join(cells)} |")
    return "\n".join(rows)


def all_tables() -> str:
    """Return the tables of all blocks, in Markdown."""
    parts = []
    for title, lines in read_blocks().items():
        parts.append(f"## {title}\n\n{table(lines)}")
    return "\n\n".join(parts)


def _list_missing() -> tuple[list[str], int]:
    """Return the rows of the experiment file that are not made yet, and how many it has."""
    made = {line["row"] for lines in read_blocks().values() for line in lines}
    names = [entry.name for entry in read_experiment(CENSUS_NAME).methods]
    return [name for name in names if name not in made], len(names)


def count_made() -> str:
    """Return how many rows are made; "" where all are."""
    left, count = _list_missing()
    if not left:
        return ""
    return f"**{count - len(left)} of {count} rows are made**; the others are [named below](#not-made-yet).\n"


def describe_missing() -> str:
    """Return a section with the rows that are not made yet; "" where all are."""
    left, _ = _list_missing()
    if not left:
        return ""
    return f"## Not made yet\n\n{'; '.join(map(markdown_text, left))}.\n"
