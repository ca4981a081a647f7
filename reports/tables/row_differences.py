"""What differs between the rows of a report: the columns in which they differ, those that usually
matter with why.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace

from harness.runs.differences import Differences, Settings, find_differences, list_recorded_settings
from reports.document.blocks import Text
from reports.document.table import EMPTY, Column, Table, TableRow
from reports.load import RecordedResults, RecordedRow
from reports.tables.score_cells import HEAD, block_of, name_cell

_NUMBER = re.compile(r"[\d,.]+(e-?\d+)?")
_LITTLE = "None of it is known to matter much."
_ALIKE = (
    "Base model, pooling, text, length of training, learning rate and selection are the same for all rows: they differ "
    "in their methods, and in the methods' own options."
)


def difference_table(comparison: RecordedResults) -> Table | Text | None:
    """A line a row, a column for each thing in which rows differ; None where there is only one row."""
    rows = [row for row in comparison.rows if not row.unavailable]
    if len(rows) < 2:
        return None
    found = of_rows(comparison, rows)
    if not found.columns:
        return Text((_ALIKE,))
    notes = {}
    for fact in found.marked:
        notes[fact.key] = (f"{fact.title}: {fact.why}",)
    # a phone shows what matters, where something does
    if notes:
        minor = found.texts.keys() - notes.keys()
    else:
        minor = set()
    columns = [HEAD[0]]
    cells = [[name_cell(row)] for row in rows]
    for fact in found.columns:
        texts = found.texts[fact.key]
        numeric = all(_NUMBER.fullmatch(text) for text in texts if text)
        columns.append(
            Column(
                fact.key,
                fact.title,
                numeric=numeric,
                notes=notes.get(fact.key, ()),
                aside=fact.key in minor,
            )
        )
        for line, text in zip(cells, texts, strict=True):
            line.append(replace(line[0], text=text, link="") if text else EMPTY)
    lines = []
    for row, line in zip(rows, cells, strict=True):
        lines.append(TableRow(tuple(line), block_of(row)))
    matter = ", ".join(fact.title.lower() for fact in found.marked)
    caption = "Only what is not the same for all rows. "
    if matter:
        caption += f"What usually matters is first and has a footnote: {matter}."
    else:
        caption += _LITTLE
    legend = ("–: the row has no such thing.",)
    return Table(
        "differences",
        "Settings in which the rows differ",
        caption,
        tuple(columns),
        tuple(lines),
        legend,
    )


def of_rows(comparison: RecordedResults, rows: Iterable[RecordedRow]) -> Differences:
    """The differences between rows by their records and training logs; finished runs count where
    there are any.
    """
    listed = comparison.file.runs_by_row
    by_row: dict[tuple[str, str], list[Settings]] = {}
    for row in rows:
        logs = dict(comparison.training_logs.get(row.key, ()))
        for record in row.finished or row.records:
            entry = listed.get((record.id, record.row))
            if entry is not None:
                rate = entry.rate_from or None
            else:
                rate = None
            run = list_recorded_settings(record, logs.get(record.seed, ()), rate)
            by_row.setdefault((row.label, row.base_model), []).append(run)
    return find_differences(by_row)
