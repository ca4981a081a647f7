"""Each row over all tasks of a benchmark: interquartile mean and probability of improvement."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

from reports.document.table import Cell, Column, Table, TableRow, number, number_text, ranked
from reports.read.comparison_runs import SEEDLESS, Comparison, ResultRow
from reports.stats.aggregate_metrics import FEWEST_RUNS, Interval, improvement_interval, stratified_bootstrap
from reports.stats.score_matrices import ScoreMatrix
from reports.tables.score_cells import HEAD, block_of, head_cells


def reference_row(rows: Sequence[ResultRow], matrix: ScoreMatrix, baselines: Collection[str]) -> ResultRow | None:
    """The row that a base model's others are held against: that of a baseline of the field (`baselines`: methods),
    where it has enough seeds; else the best untrained row."""

    def merit(row: ResultRow) -> tuple[int, float]:
        scores = matrix.scores[row.key]
        return len(scores), float(scores.mean())

    there = [row for row in rows if matrix.of(row) is not None]
    known = [row for row in there if row.records[0].method in baselines]
    if enough := [row for row in known if len(matrix.scores[row.key]) >= FEWEST_RUNS]:
        return max(enough, key=merit)
    untrained = [row for row in there if row.supervision == "untrained"]
    return max(untrained, key=lambda row: merit(row)[1], default=None)


def aggregate_table(comparison: Comparison, matrix: ScoreMatrix, baselines: Collection[str] = ()) -> Table | None:
    """Interquartile mean and probability of improvement; None unless some row has enough seeds for an interval."""
    if not any(len(scores) >= FEWEST_RUNS for scores in matrix.scores.values()):
        return None
    rows = [row for row in comparison.rows if matrix.of(row) is not None]
    references = {block: reference_row(some, matrix, baselines) for block, some in comparison.blocks.items()}
    said = [
        f"{row.label} ({block})" if len(references) > 1 else row.label
        for block, row in references.items()
        if row is not None
    ]
    columns = [*HEAD, Column("iqm", "IQM", "95 % interval", better="higher")]
    if said:
        columns.append(Column("improvement", "P(better)", "95 % interval"))
    body = []
    for row in rows:
        scores = matrix.scores[row.key]
        cells = [*head_cells(row), _iqm(row, matrix)]
        if said:
            cells.append(_improvement(row, references[row.block], matrix))
        if len(scores) < len(row.finished):
            cells[3] = cells[3].noted(f"of {len(scores)} seeds: the others lack a task")
        body.append(TableRow(tuple(cells), block_of(row)))
    legend = "IQM: mean of the middle half of all seeds' scores on all tasks (Agarwal et al., NeurIPS 2021), ×100."
    if said:
        legend += f" P(better): chance that one seed beats one of {' and of '.join(said)} on a task drawn at random."
    return Table(
        f"aggregate-{matrix.key}",
        f"Over all {matrix.title}",
        f"{len(matrix.tasks)} tasks: {_names(matrix.tasks)}."
        + (f" Without {_names(matrix.others)}, which most rows were not scored on." if matrix.others else ""),
        tuple(columns),
        ranked(columns, body),
        (legend,),
    )


def _names(tasks: Sequence[str]) -> str:
    return ", ".join(task.rsplit(":", 1)[-1] for task in tasks)


def _iqm(row: ResultRow, matrix: ScoreMatrix) -> Cell:
    interval = stratified_bootstrap(matrix.scores[row.key])
    ids = [r.id for r in matrix.records[row.key]]
    return _with_interval(number(interval.value, n=len(ids), records=ids), interval, 2)


def _improvement(row: ResultRow, reference: ResultRow | None, matrix: ScoreMatrix) -> Cell:
    if reference is None:
        return Cell("–", state="empty")
    if row is reference:
        return Cell("reference")
    interval = improvement_interval(matrix.scores[row.key], matrix.scores[reference.key])
    ids = [r.id for r in matrix.records[row.key]]
    cell = number(interval.value, n=len(ids), records=ids)
    known = all(len(matrix.scores[r.key]) >= FEWEST_RUNS or r.supervision in SEEDLESS for r in (row, reference))
    return _with_interval(cell, interval, 2) if known else cell


def _with_interval(cell: Cell, interval: Interval, digits: int) -> Cell:
    if interval.low is None or interval.high is None:
        return cell
    low, high = (number_text(x, digits) for x in (interval.low, interval.high))
    return replace(cell, spread=f"[{low}, {high}]")
