"""The main tables of a comparison: scores, and differences to the untrained base."""

from __future__ import annotations

from harness.tasks.averages import mean_of
from reports.document.table import Cell, Column, Table
from reports.read.comparison_runs import Comparison, ResultRow
from reports.stats.significance import Significance
from reports.stats.targets import SOURCES, Target, alone, targets
from reports.tables.judged import judged_rows
from reports.tables.score_cells import HEAD, average_cell, head_cells, mark_unlike, score_cell, size_text


def _average_cell(row: ResultRow, target: Target) -> Cell:
    """Mean over the tasks for each seed, then over seeds; only where every task is there."""
    by_run: dict[str, dict[str, float]] = {}
    for task, source in target.tasks:
        for record, s in row.scores(task, source, "spearman", "all"):
            by_run.setdefault(record.id, {})[task] = 100 * s.value
    wanted = [task for task, _ in target.tasks]
    return average_cell(row, {run: mean_of(values, wanted) for run, values in by_run.items()})


def score_tables(comparison: Comparison, significance: Significance | None) -> list[Table]:
    """One table for each source of the STS tasks, one for the embedded tasks. Without `significance`, no marks."""
    groups: dict[str, list[Target]] = {}
    for target in significance.targets if significance else targets(comparison):
        groups.setdefault("embedded" if target.key.startswith("embedded-") else target.key, []).append(target)
    return [_score_table(comparison, significance, key, members) for key, members in groups.items()]


def _score_table(comparison: Comparison, significance: Significance | None, key: str, members: list[Target]) -> Table:
    rows = comparison.rows
    tasks = [measure for target in members for measure in target.measures]
    others = [measure for target in members for measure in target.others]
    columns = list(HEAD)
    cells = [list(head_cells(row)) for row in rows]
    for task, source, *_ in [*tasks, *others]:
        size = size_text(rows, task, source, "spearman", "all", "pairs")
        columns.append(Column(f"{task}", task, size, better="higher"))
        for i, row in enumerate(rows):
            cells[i].append(score_cell(row, task, source, "spearman", "all", scale=100, digits=2))
        mark_unlike(rows, cells, len(columns) - 1, task, source, "spearman", "all")
    by_column = {len(HEAD) + i: alone(measure) for i, measure in enumerate([*tasks, *others])}
    deciding = {len(HEAD) + i: target for i, target in enumerate(members)}
    if len(members[0].measures) > 1:
        deciding = {len(columns): members[0]}
        columns.append(Column("average", "Avg.", f"{len(members[0].measures)} tasks", better="higher"))
        for i, row in enumerate(rows):
            cells[i].append(_average_cell(row, members[0]))
    body, said = judged_rows(comparison, significance, columns, cells, by_column | deciding, list(deciding))
    legend = ["Spearman's correlation ×100, mean ± standard deviation over seeds.", *said]
    if others:
        names = ", ".join(measure.task for measure in others)
        legend.append(f"{names}: most rows were not scored on it, so it is in no average and decides nothing.")
    if any(row.supervision == "transductive" for row in rows):
        legend.append("Transductive rows were fitted on the text of the test set (without its scores).")
    if key == "embedded":
        title = "Embedded suite"
        caption = (
            "Tasks that ship with the harness, under their own names: natural pairs, where word overlap helps, and "
            "contrast pairs, where it says nothing. They are reported apart and never averaged."
        )
    else:
        source = members[0].measures[0].source
        title = f"Semantic textual similarity · {SOURCES.get(source, source)}"
        caption = 'Test splits, cosine similarity; aggregation "all": one correlation over all pairs of a task.'
    return Table(f"scores-{key}", title, caption, tuple(columns), body, tuple(legend))
