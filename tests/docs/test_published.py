"""The page of published numbers: its counts are those of the files, and no number is left without
an answer.
"""

from __future__ import annotations

import csv

from docs import published
from reports import PUBLISHED

FILES = {
    "scd": "scd.csv",
    "noncontrastive": "noncontrastive.csv",
    "declutr": "declutr.csv",
    "self-guided": "sg.csv",
    "cropping": "cropping.csv",
    "simcse": "simcse.csv",
}


def test_lines_and_totals_count_every_published_number_once() -> None:
    lines = {}
    for name, file in FILES.items():
        with (PUBLISHED / file).open(newline="", encoding="utf-8") as stream:
            lines[name] = sum(1 for _ in csv.DictReader(stream))
    assert {name: len(found) for name, found in published.sources().items()} == lines
    assert sum(int(count) for _, rows in published.papers() for *_, count, _ in rows) == sum(
        lines.values()
    )
    *papers, total = published.totals()
    assert int(total[1]) == sum(lines.values()) == sum(int(number) for number in total[2:])
    assert [int(line[1]) for line in papers] == [
        lines[paper.name] for paper in published.definitions()
    ]


def test_every_published_number_has_a_row_or_a_reason() -> None:
    assert published.totals()[-1][-1] == "0"
