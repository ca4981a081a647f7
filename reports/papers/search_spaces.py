"""What a paper searched, and what our studies tried."""

from __future__ import annotations

import math

from reports.document.table import MINUS, Cell, Column, Table, TableRow
from reports.papers.conditions import has_effect
from reports.papers.definition import PaperTable
from reports.papers.paper_results import PaperResults
from reports.papers.published_lines import source_note

SPACES = "search_spaces.csv"
_MOST_LISTED = 8  # values of a search that are listed one by one


def search_spaces(paper: PaperResults, table: PaperTable) -> Table | None:
    """What the paper searched, and what our studies tried."""
    keys = ("model", "task", "metric", "value", "source_mark", "notes", "option")
    bases: dict[tuple[str, ...], list[str]] = {}  # equal on several base models: one line
    for p in paper.definition.published_rows(SPACES):
        if p["paper"].startswith(tuple(table.published)):
            line = tuple(p[key] for key in keys)
            bases.setdefault(line, []).append(p["base_model"])
    rows = []
    for (model, task, metric, value, mark, notes, option), names in bases.items():
        log = task.startswith("log10")
        text = value.replace(";", ", ")
        if log:
            text = text.replace("-", MINUS)
        cells = (
            Cell(task),
            Cell(metric),
            Cell(text).with_notes(*filter(None, (notes, source_note(mark)))),
            Cell(_list_tried(paper, model, option, log) or "–"),
            Cell(", ".join(names)),
        )
        rows.append(TableRow(cells, model))
    columns = (
        Column("parameter", "Hyperparameter", numeric=False),
        Column("kind", "What it is", numeric=False, aside=True),
        Column("published", "Published", numeric=False),
        Column("tried", "Tried here", "in studies", numeric=False),
        Column("base", "Base model", "of the paper", numeric=False, aside=True),
    )
    if rows:
        return Table(table.key, table.title, table.caption, columns, tuple(rows))
    return None


def _list_tried(paper: PaperResults, model: str, option: str, log: bool) -> str:
    """List the values of an option that our trials of a published model tried and that had an
    effect.
    """
    method = _method_of_model(paper, model)
    values = []
    for trial in paper.library.trials:
        record = trial.runs[0]
        is_set = record.config.get(option) is not None
        if record.method == method and is_set and has_effect(record, option, {}):
            values.append(record.config[option])
    numbers = sorted({v for v in values if isinstance(v, int | float)})
    if log:
        numbers = [math.log10(v) for v in numbers if v > 0]
    if not numbers:
        words = set(map(str, values))
        return ", ".join(sorted(words))
    shown = [f"{v:.4g}" for v in numbers]
    if len(shown) > _MOST_LISTED:
        return f"{len(shown)} values from {shown[0]} to {shown[-1]}"
    text = ", ".join(shown)
    if log:
        text = text.replace("-", MINUS)
    return text


def _method_of_model(paper: PaperResults, model: str) -> str:
    """Return the method of the first row of a paper whose label begins as `model` does, or the
    other way round; "" if there is none.
    """
    for table in paper.definition.tables:
        for row in table.rows:
            begins_alike = row.label.startswith(model)
            begins_alike |= model.startswith(row.label)
            if row.method and begins_alike:
                return row.method
    return ""
