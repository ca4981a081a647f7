"""What differs between the rows of a report: the columns in which they differ, those that usually matter with why."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from harness.comparison.row_differences import Differences, differences
from harness.comparison.row_facts import RowFacts, of_run
from harness.errors import InputError
from harness.results.manifest import read_manifest
from reports.document.blocks import Text
from reports.document.table import Cell, Column, Table, TableRow
from reports.read.comparison_runs import Comparison, ResultRow
from reports.tables.score_cells import HEAD, anchor, block_of

_NUMBER = re.compile(r"[\d,.]+(e-?\d+)?")
_LITTLE = "None of it usually matters much."
_ALIKE = (
    "Base model, pooling, text, length of training, learning rate and selection are the same for all rows: they differ "
    "in their methods, and in the methods' own options."
)


def difference_table(comparison: Comparison) -> Table | Text | None:
    """A line a row, a column for each thing in which rows differ; None where there is only one row."""
    rows = [row for row in comparison.rows if not row.lacking]
    if len(rows) < 2:
        return None
    found = of_rows(comparison, rows)
    if not found.columns:
        return Text((f"{_ALIKE} {_unrecorded(found)}".strip(),))
    notes = {fact.key: (fact.why,) for fact in found.mattering}
    minor = found.cells.keys() - notes.keys() if notes else set()  # a phone shows what matters, where something does
    columns = [HEAD[0]]
    for fact in found.columns:
        numeric = all(_NUMBER.fullmatch(text) for text in found.cells[fact.key] if text)
        columns += [
            Column(fact.key, fact.title, numeric=numeric, notes=notes.get(fact.key, ()), aside=fact.key in minor)
        ]
    lines = [
        TableRow(
            (
                Cell(row.label, link=anchor(row)),
                *(_cell(found.cells[fact.key][number], row) for fact in found.columns),
            ),
            block_of(row),
        )
        for number, row in enumerate(rows)
    ]
    matter = ", ".join(fact.title.lower() for fact in found.mattering)
    caption = "Only what is not the same for all rows. "
    caption += f"What usually matters stands first and has a footnote: {matter}." if matter else _LITTLE
    legend = ("–: the row has no such thing.", *filter(None, [_unrecorded(found)]))
    return Table("differences", "Settings in which the rows differ", caption, tuple(columns), tuple(lines), legend)


def of_rows(comparison: Comparison, rows: Iterable[ResultRow]) -> Differences:
    """As records, training logs and manifests tell it; finished runs speak for their row where there are any."""
    manifests: dict[str, dict[str, Any] | None] = {}
    facts: dict[tuple[str, str], list[RowFacts]] = {}
    for row in rows:
        logs = dict(comparison.training_logs.get(row.key, ()))
        for record in row.finished or row.records:
            if record.comparison not in manifests:
                manifests[record.comparison] = _manifest(comparison.workdir, record.comparison)
            run = of_run(record, logs.get(record.seed, ()), manifests[record.comparison])
            facts.setdefault((row.label, row.base_model), []).append(run)
    return differences(facts)


def _cell(text: str, row: ResultRow) -> Cell:
    return Cell(text, records=tuple(r.id for r in row.records)) if text else Cell("–", state="empty")


def _unrecorded(found: Differences) -> str:
    names = ", ".join(title.lower() for title in found.unrecorded)
    return f"Not recorded when these runs were made: {names}." if names else ""


def _manifest(workdir: Path, name: str) -> dict[str, Any] | None:
    """None where there is none, or a damaged one, which `read_comparison` tells."""
    try:
        return read_manifest(workdir, name)
    except InputError:
        return None
