"""How sure a comparison is: tables of statistics over tasks and seeds, and the section they stand in."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from reports.document.blocks import Block
from reports.document.table import Cell, Column, Table, TableRow, number, number_text, ranked
from reports.read.comparison_runs import Comparison, Row, base_name
from reports.stats.aggregates import FEWEST_RUNS, Interval, improvement_interval, stratified_bootstrap
from reports.stats.bootstrap import Floats
from reports.stats.resamples import Analysis, Target
from reports.stats.score_matrices import Bench, benches
from reports.tables.scores import HEAD, block_of, head_cells

_FIXED = ("untrained", "transductive", "supervised")  # no seed takes part in these: one run is all there is to know


def certainty(comparison: Comparison, analysis: Analysis) -> list[Block | None]:
    """Seeds as dots, statistics over tasks, ranks: what the data suffices for, None or nothing for the rest."""
    from reports.figures.rank_diagram import diagrams
    from reports.figures.seed_strips import strip

    found = list(benches(comparison))
    return [
        strip(comparison, analysis),
        *(aggregate_table(comparison, bench) for bench in found),
        *(figure for bench in found for figure in diagrams(comparison, bench)),
        best_seed_table(comparison, analysis),
    ]


def reference_row(rows: Sequence[Row], bench: Bench) -> Row | None:
    """The row that a base model's others are held against: SimCSE, the baseline of the field, where it has enough
    seeds; else the best untrained row."""

    def merit(row: Row) -> tuple[int, float]:
        scores = bench.scores[row.key]
        return len(scores), float(scores.mean())

    there = [row for row in rows if bench.of(row) is not None]
    simcse = [row for row in there if row.records[0].method == "simcse" and len(bench.scores[row.key]) >= FEWEST_RUNS]
    if simcse:
        return max(simcse, key=merit)
    untrained = [row for row in there if row.supervision == "untrained"]
    return max(untrained, key=lambda row: merit(row)[1], default=None)


def aggregate_table(comparison: Comparison, bench: Bench) -> Table | None:
    """Interquartile mean and probability of improvement; None unless some row has enough seeds for an interval."""
    if not any(len(scores) >= FEWEST_RUNS for scores in bench.scores.values()):
        return None
    rows = [row for row in comparison.rows if bench.of(row) is not None]
    references = {
        base: reference_row([r for r in rows if r.base_model == base], bench) for base in comparison.base_models
    }
    said = [
        f"{row.label} ({base_name(base)})" if len(comparison.base_models) > 1 else row.label
        for base, row in references.items()
        if row is not None
    ]
    columns = [*HEAD, Column("iqm", "IQM", "95 % interval", better="higher")]
    if said:
        columns.append(Column("improvement", "P(better)", "95 % interval"))
    body = []
    for row in rows:
        scores = bench.scores[row.key]
        cells = [*head_cells(row), _iqm(row, bench)]
        if said:
            cells.append(_improvement(row, references[row.base_model], bench))
        if len(scores) < len(row.finished):
            cells[3] = cells[3].noted(f"of {len(scores)} seeds: the others lack a task")
        body.append(TableRow(tuple(cells), block_of(row), row.supervision != "supervised"))
    legend = [
        "IQM: interquartile mean, the mean of the middle half of all seeds' scores on all tasks (Agarwal et al., "
        f"NeurIPS 2021), ×100. Intervals: over seeds, bootstrap by task, {FEWEST_RUNS} seeds or more; the tasks are as "
        "given. On tasks of unlike difficulty it leaves out the easiest and the hardest."
    ]
    if said:
        legend.append(
            f"P(better): the chance that one seed of the row beats one of {' and of '.join(said)} on a task drawn at "
            "random, counted over all of them; how much better does not count. Its interval takes scores as normal."
        )
    return Table(
        f"aggregate-{bench.key}",
        f"Over all {bench.title}",
        f"{len(bench.tasks)} tasks: {', '.join(task.rsplit(':', 1)[-1] for task in bench.tasks)}.",
        tuple(columns),
        ranked(columns, body),
        tuple(legend),
    )


def _iqm(row: Row, bench: Bench) -> Cell:
    found = stratified_bootstrap(bench.scores[row.key])
    ids = [r.id for r in bench.records[row.key]]
    return _with_interval(number(found.value, n=len(ids), records=ids), found, 2)


def _improvement(row: Row, reference: Row | None, bench: Bench) -> Cell:
    if reference is None or row.supervision == "supervised":
        return Cell("–", state="empty")
    if row is reference:
        return Cell("reference")
    found = improvement_interval(bench.scores[row.key], bench.scores[reference.key])
    ids = [r.id for r in bench.records[row.key]]
    cell = number(found.value, n=len(ids), records=ids)
    known = all(len(bench.scores[r.key]) >= FEWEST_RUNS or r.supervision in _FIXED for r in (row, reference))
    return _with_interval(cell, found, 2) if known else cell


def _with_interval(cell: Cell, found: Interval, digits: int) -> Cell:
    if found.low is None or found.high is None:
        return cell
    low, high = (number_text(x, digits) for x in (found.low, found.high))
    return replace(cell, spread=f"[{low}, {high}]")


def best_seed_table(comparison: Comparison, analysis: Analysis) -> Table | None:
    """What would be claimed by showing the best seed alone: on the dev set that chose it, and on the test data."""
    if not analysis.targets:
        return None
    target = analysis.targets[0]
    rows = [(row, found) for row in comparison.rows if (found := _by_dev(row, analysis, target)) is not None]
    if not rows:
        return None
    columns = [
        HEAD[0],
        HEAD[2],
        Column("dev mean", "Mean", group="Dev score"),
        Column("dev best", "Best seed", group="Dev score"),
        Column("optimism", "Optimism", "best − mean", group="Dev score"),
        Column("test mean", "Mean", group=target.short),
        Column("test best", "Same seed", group=target.short),
        Column("left", "What is left", "same − mean", group=target.short),
    ]
    body = []
    for row, (dev, test, ids) in rows:
        best = int(np.argmax(dev))
        cells = [head_cells(row)[0], Cell(str(len(dev)), value=len(dev))]
        for values in (dev, test):
            mean, chosen = float(values.mean()), float(values[best])
            cells += [
                number(mean, n=len(dev), records=ids),
                number(chosen, records=[ids[best]]),
                number(chosen - mean, signed=True, records=ids),
            ]
        body.append(TableRow(tuple(cells), block_of(row)))
    return Table(
        "best-seed",
        "What choosing the best seed would claim",
        "Rows with three seeds or more that were scored on a dev set.",
        tuple(columns),
        tuple(body),
        (
            "Seeds of one configuration differ by chance: another seed's expected dev score is the mean, and what the "
            "best one has above it is optimism. Tables above hold means, never a chosen seed.",
        ),
    )


def _by_dev(row: Row, analysis: Analysis, target: Target) -> tuple[Floats, Floats, list[str]] | None:
    """(dev scores, test scores, run ids) by seed, times 100."""
    runs = analysis.by_seed(row, target)
    if runs is None or row.supervision in _FIXED:
        return None
    test = dict(zip(runs[0], runs[1], strict=True))
    have = [
        (float(dev), test[r.seed], r.id)
        for r in row.finished
        if r.seed in test and isinstance(dev := r.training.get("best_dev"), int | float)
    ]
    if len(have) < FEWEST_RUNS:
        return None
    dev_scores, test_scores, ids = zip(*have, strict=True)
    return 100 * np.array(dev_scores), 100 * np.array(test_scores), list(ids)
