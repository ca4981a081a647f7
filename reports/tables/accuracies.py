"""The tables of the classification suites: accuracies, and an average only where a paper takes one."""

from __future__ import annotations

from harness.tasks.averages import mean_of
from harness.tasks.senteval.transfer import TRANSFER
from reports.document.table import Cell, Column, Table
from reports.read.comparison_runs import Comparison, ResultRow
from reports.stats.significance import Significance
from reports.stats.suite_targets import main_measure, transfer_average
from reports.stats.targets import Measure, Target, alone
from reports.tables.judged import judged_rows
from reports.tables.score_cells import HEAD, average_cell, head_cells, mark_unlike, score_cell, size_text

# Suite -> title, what stands before its tasks' names.
SUITES = {
    "transfer": ("Transfer tasks", ""),
    "transfer-prototyping": ("Transfer tasks, prototyping configuration", "prototyping:"),
    "downstream": ("Other downstream tasks", ""),
    "probing": ("Probing tasks", ""),
    "embedded-transfer": ("Embedded transfer tasks", "Embedded-"),
}


def accuracy_tables(comparison: Comparison, significance: Significance | None = None) -> list[Table]:
    """One table for each suite of `SUITES` that has scores. Without `significance`, no marks."""
    return [table for suite in SUITES if (table := _table(comparison, significance, suite)) is not None]


def _table(comparison: Comparison, significance: Significance | None, suite: str) -> Table | None:
    title, prefix = SUITES[suite]
    tasks = comparison.columns(suite)
    if not tasks:
        return None
    rows = comparison.rows
    columns, cells = list(HEAD), [list(head_cells(row)) for row in rows]
    by_column: dict[int, Target] = {}
    for task, source in tasks:
        measure = main_measure(comparison, suite, task, source) or Measure(task, source, "accuracy", "")
        metric, how = measure.metric, measure.aggregation
        by_column[len(columns)] = alone(measure)
        name = task.removeprefix(prefix)
        size = size_text(rows, task, source, metric, how, "examples")
        group, dash, part = name.partition("-") if suite == "embedded-transfer" else ("", "", name)
        group, name = (group, part) if dash else ("", name)  # both parts of a task under one head
        below = size if metric == "accuracy" else f"{metric} · {size}"
        columns.append(Column(task, name, below, group=group, better="higher"))
        for line, row in zip(cells, rows, strict=True):
            line.append(score_cell(row, task, source, metric, how, scale=100, digits=2))
        mark_unlike(rows, cells, len(columns) - 1, task, source, metric, how)
    legend = ["Accuracy on the test part ×100 where the head says nothing else, mean ± standard deviation over seeds."]
    deciding = list(by_column)
    if {task.removeprefix(prefix) for task, _ in tasks} == set(TRANSFER):
        if (average := transfer_average(comparison, suite)) is not None:
            by_column[len(columns)] = average
            deciding = [len(columns)]
        columns.append(Column("average", "Avg.", f"{len(TRANSFER)} tasks", better="higher"))
        for line, row in zip(cells, rows, strict=True):
            line.append(_average(row, tasks, prefix))
    elif suite == "embedded-transfer":
        legend.append("Natural and contrast parts are unlike data: reported apart and never averaged.")
    body, said = judged_rows(comparison, significance, columns, cells, by_column, deciding)
    caption = "A small classifier on the frozen vectors, as in SentEval; the protocols are in the records."
    return Table(f"accuracy-{suite}", title, caption, tuple(columns), body, (*legend, *said))


def _average(row: ResultRow, tasks: list[tuple[str, str]], prefix: str) -> Cell:
    """SentEval's mean of seven for each seed, then over seeds; only of seeds that have all seven."""
    values: dict[str, dict[str, float]] = {}
    for task, source in tasks:
        for record, s in row.scores(task, source, "accuracy"):
            values.setdefault(record.id, {})[task.removeprefix(prefix)] = 100 * s.value
    return average_cell(row, {run: mean_of(by_task, TRANSFER, decimals=2) for run, by_task in values.items()})
