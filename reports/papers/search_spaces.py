"""What a paper searched, and what our studies and runs tried."""

from __future__ import annotations

import json
import math

from reports.document.table import MINUS, Cell, Column, Table, TableRow
from reports.papers.definition import PaperTable
from reports.papers.matching import Matching
from reports.papers.paper_cells import source_note
from reports.papers.published_file import published_file

SPACES = "search_spaces.csv"


def search_spaces(matching: Matching, table: PaperTable) -> Table | None:
    """What the paper searched, and what our studies and runs tried."""
    lines: dict[tuple[str, ...], list[str]] = {}  # equal on several base models: one line
    for p in published_file(matching.definition, SPACES):
        if p["paper"].startswith(tuple(table.papers)):
            key = (p["model"], p["task"], p["metric"], p["value"], p["source_mark"], p["notes"])
            lines.setdefault(key, []).append(p["base_model"])
    rows = []
    for (model, task, metric, value, mark, notes), bases in lines.items():
        field, method = table.fields.get(task, ""), _method_of(matching, model)
        tried = _tried(matching, table, method, field, logarithm=task.startswith("log10")) if method and field else ""
        note = [n for n in (notes, source_note(mark) if mark != "paper" else "") if n]
        shown = value.replace(";", ", ")
        shown = shown.replace("-", MINUS) if task.startswith("log10") else shown
        cells = (Cell(task), Cell(metric), Cell(shown).noted(*note), Cell(tried or "–"))
        rows.append(TableRow((*cells, Cell(", ".join(bases))), model))
    if not rows:
        return None
    columns = (
        Column("parameter", "Hyperparameter", numeric=False),
        Column("kind", "What it is", numeric=False, aside=True),
        Column("published", "Published", numeric=False),
        Column("tried", "Tried here", "in studies", numeric=False),
        Column("base", "Base model", "of the paper", numeric=False, aside=True),
    )
    return Table(table.key, table.title, table.caption, columns, tuple(rows), tuple(table.notes))


def _method_of(matching: Matching, model: str) -> str:
    """Our method of a model of the file of search spaces, by the label that a row of the paper has."""
    for table in matching.definition.tables:
        for row in table.rows:
            if row.method and (row.label.startswith(model) or model.startswith(row.label)):
                return row.method
    return ""


def _tried(matching: Matching, table: PaperTable, method: str, field: str, *, logarithm: bool) -> str:
    used_with = table.used_with.get(field, {})
    values = {
        json.dumps(record.config[field]): record.config[field]
        for trial in matching.library.trials
        for record in trial.runs[:1]
        if record.method == method and record.config.get(field) is not None
        and all(record.config.get(key, wanted) == wanted for key, wanted in used_with.items())
    }  # fmt: skip
    numbers = sorted(v for v in values.values() if isinstance(v, int | float))
    if logarithm:
        numbers = [math.log10(v) for v in numbers if v > 0]
    if len(numbers) > 8:
        return f"{len(numbers)} values from {numbers[0]:.4g} to {numbers[-1]:.4g}"
    if numbers:
        return ", ".join(f"{v:.4g}" for v in numbers).replace("-", MINUS if logarithm else "-")
    return ", ".join(sorted(str(v) for v in values.values()))
