"""The table of single examples in a report: those that most rows get wrong, and those on which two rows differ."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice

import numpy as np

from reports.document.table import Cell, Column, Table, TableRow, number
from reports.explore.examples import Chosen, ExploredTask, choose_differing, choose_hard, read_tasks
from reports.read.comparison_runs import Comparison, ResultRow

_TASKS, _EXAMPLES, _SHOWN = 4, 3, 160  # tasks in the table of examples, examples of each kind, characters of a text
_OWN_SOURCE = "embedded"  # the source whose texts were written for this project, and may be copied into a report


def example_table(comparison: Comparison) -> Table | None:
    """Of each of the first tasks the examples that most rows get wrong, and those on which its two best rows differ;
    None if no run stored its examples, or there is one row."""
    if len([row for row in comparison.rows if row.finished]) < 2:
        return None
    pairs_first = sorted(read_tasks(comparison), key=lambda task: task.metric != "spearman")
    able = (task for task in pairs_first if len(task.rows(comparison)) > 1 and any(task.known[0]))
    lines = []
    for task in (one for one in islice(able, _TASKS) if comparison.show_texts or one.source == _OWN_SOURCE):
        rows = sorted(task.rows(comparison), key=lambda row: float(task.errors[row.key].mean()))
        a, b = rows[:2]
        lines += [_line(task, one, rows, "most rows wrong") for one in choose_hard(task, rows, _EXAMPLES)]
        differing = choose_differing(task, a, b, _EXAMPLES)
        lines += [_line(task, one, rows, f"{a.label} and {b.label} differ") for one in differing]
    if not lines:
        return None
    heads = {"example": "Example", "why": "Chosen because", "gold": "Gold", "best": "Error of the best row",
             "second": "of the second best", "median": "Median of all rows"}  # fmt: skip
    columns = tuple(Column(key, title, numeric=key not in ("example", "why")) for key, title in heads.items())
    caption = (
        f"Of each task the {_EXAMPLES} examples with the largest median error, and the {_EXAMPLES} on which the errors "
        "of the two rows with the smallest mean error differ most."
    )
    legend = (
        "Error of a pair: distance between its rank by cosine and its rank by gold score, as a share of all ranks; of "
        "a classified text: share of seeds that are wrong; of a query: 1 minus its score. More: harness examples "
        "A B. Texts of other data sets are left out here, since licences may forbid copies."
    )
    return Table("examples", "Hard and contested examples", caption, columns, tuple(lines), (legend,))


def _line(task: ExploredTask, one: Chosen, rows: Sequence[ResultRow], why: str) -> TableRow:
    shown = " | ".join(text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…" for text in one.texts) or ", ".join(one.ids)
    errors = [float(task.errors[row.key][one.example - 1]) for row in rows]
    cells = [number(value, digits=2) for value in (errors[0], errors[1], float(np.median(errors)))]
    best, second = rows[0].label, rows[1].label
    return TableRow((Cell(shown), Cell(why), Cell(one.gold), *cells), f"{task.task} (best: {best}, then {second})")
