"""The main tables of a comparison: scores, and differences to the untrained base."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from harness.tasks.averages import mean_of
from reports.document.table import Cell, Column, Table, TableRow, ranked
from reports.read.comparison_runs import Comparison, ResultRow, base_name
from reports.stats.significance import PairedBootstrap
from reports.stats.targets import SOURCES, Target, targets
from reports.stats.verdicts import Block, seen_text
from reports.tables.score_cells import HEAD, average_cell, block_of, head_cells, mark_unlike, score_cell, size_text


def _average_cell(row: ResultRow, target: Target) -> Cell:
    """Mean over the tasks for each seed, then over seeds; only where every task is there."""
    by_run: dict[str, dict[str, float]] = {}
    for task, source in target.tasks:
        for record, s in row.scores(task, source, "spearman", "all"):
            by_run.setdefault(record.id, {})[task] = 100 * s.value
    wanted = [task for task, _ in target.tasks]
    return average_cell(row, {run: mean_of(values, wanted) for run, values in by_run.items()})


def score_tables(comparison: Comparison, bootstrap: PairedBootstrap | None) -> list[Table]:
    """One table for each source of the STS tasks, one for the embedded tasks. Without `bootstrap`, no marks of it."""
    groups: dict[str, list[Target]] = {}
    for target in bootstrap.targets if bootstrap else targets(comparison):
        groups.setdefault("embedded" if target.key.startswith("embedded-") else target.key, []).append(target)
    return [_score_table(comparison, bootstrap, key, members) for key, members in groups.items()]


def _score_table(comparison: Comparison, bootstrap: PairedBootstrap | None, key: str, members: list[Target]) -> Table:
    rows = comparison.rows
    tasks = [task for target in members for task in target.tasks]
    others = [task for target in members for task in target.others]
    columns = list(HEAD)
    cells = [list(head_cells(row)) for row in rows]
    for task, source in [*tasks, *others]:
        size = size_text(rows, task, source, "spearman", "all", "pairs")
        columns.append(Column(f"{task}", task, size, better="higher"))
        for i, row in enumerate(rows):
            cells[i].append(score_cell(row, task, source, "spearman", "all", scale=100, digits=2))
        mark_unlike(rows, cells, len(columns) - 1, task, source, "spearman", "all")
    deciding = {target.key: len(HEAD) + i for i, target in enumerate(members)}
    if len(members[0].tasks) > 1:
        deciding = {members[0].key: len(columns)}
        columns.append(Column("average", "Avg.", f"{len(members[0].tasks)} tasks", better="higher"))
        for i, row in enumerate(rows):
            cells[i].append(_average_cell(row, members[0]))
    body = ranked(
        columns,
        [
            TableRow(tuple(c), block_of(row), row.supervision != "supervised")
            for row, c in zip(rows, cells, strict=True)
        ],
    )
    legend = ["Spearman's correlation ×100, mean ± standard deviation over seeds."]
    if bootstrap:
        body = _mark_tied(comparison, bootstrap, members, deciding, body)
        where = columns[next(iter(deciding.values()))].title if len(deciding) == 1 else "each column"
        legend.append(
            f"Separation is judged on {where}: the spread of seeds and of pairs (bootstrap, {bootstrap.replicates:,} "
            "resamples, the same pairs for all rows), at 0.05 for all pairs of rows of a block together."
        )
        legend += _unjudged(rows, bootstrap, members)
        if len(deciding) == 1:
            legend += _seen(comparison, bootstrap, members[0])
    if others:
        names = ", ".join(task for task, _ in others)
        legend.append(f"{names}: most rows were not scored on it, so it stands in no average and decides nothing.")
    if any(row.supervision == "transductive" for row in rows):
        legend.append("Transductive rows were fitted on the text of the test set (without its scores).")
    if key == "embedded":
        title = "Embedded suite"
        caption = (
            "Tasks that ship with the harness, under their own names: natural pairs, where word overlap helps, and "
            "contrast pairs, where it says nothing. They are reported apart and never averaged."
        )
    else:
        source = members[0].tasks[0][1]
        title = f"Semantic textual similarity · {SOURCES.get(source, source)}"
        caption = 'Test splits, cosine similarity; aggregation "all": one correlation over all pairs of a task.'
    return Table(f"scores-{key}", title, caption, tuple(columns), body, tuple(legend))


def _unjudged(rows: Sequence[ResultRow], bootstrap: PairedBootstrap, members: Sequence[Target]) -> list[str]:
    """Which rows a missing mark says nothing about."""
    scored = [row for row in rows if any(bootstrap.by_seed(row, target) for target in members)]
    alone = [row for row in scored if not any(bootstrap.judged(row, target) for target in members)]
    if not alone:
        return []
    if len(alone) == len(scored):
        return ["No row is judged: each has one seed, and what another would change is not known."]
    names = ", ".join(row.label for row in alone[:12]) + (f" and {len(alone) - 12} more" if len(alone) > 12 else "")
    return [f"One seed, so not judged, with or without a mark: {names}."]


def _seen(comparison: Comparison, bootstrap: PairedBootstrap, target: Target) -> list[str]:
    """What differences the number of seeds can see, for each base model."""
    lines = []
    for base in comparison.base_models:
        rows = [r for r in comparison.rows if r.base_model == base and r.supervision != "supervised"]
        if said := seen_text(Block(rows, bootstrap, target)):
            lines.append(f"{base_name(base)}: {said}" if len(comparison.base_models) > 1 else said)
    return lines


def _mark_tied(
    comparison: Comparison,
    bootstrap: PairedBootstrap,
    members: Sequence[Target],
    deciding: dict[str, int],
    body: tuple[TableRow, ...],
) -> tuple[TableRow, ...]:
    """Mark the rows that are not separated from the best of their block."""
    tied: set[tuple[tuple[str, str], int]] = set()
    for target in members:
        for base in comparison.base_models:
            rows = [r for r in comparison.rows if r.base_model == base and r.supervision != "supervised"]
            leaders = bootstrap.leaders(rows, target)
            tied |= {(row.key, deciding[target.key]) for row in leaders.tied} if leaders else set()
    return tuple(
        replace(line, cells=tuple(replace(c, tied=(row.key, j) in tied) for j, c in enumerate(line.cells)))
        for row, line in zip(comparison.rows, body, strict=True)
    )
