"""What choosing the best seed would claim."""

from __future__ import annotations

import numpy as np

from reports.document.table import Cell, Column, Table, TableRow, number
from reports.read.comparison_runs import SEEDLESS, Comparison, ResultRow
from reports.stats.aggregate_metrics import FEWEST_RUNS
from reports.stats.estimate import Floats
from reports.stats.significance import Significance
from reports.stats.targets import Target
from reports.tables.score_cells import HEAD, block_of, head_cells


def best_seed_table(comparison: Comparison, significance: Significance) -> Table | None:
    """What would be claimed by showing the best seed alone: on the dev set that chose it, and on the test data."""
    if not significance.targets:
        return None
    target = significance.targets[0]
    rows = [(row, scores) for row in comparison.rows if (scores := _by_dev(row, significance, target)) is not None]
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


def _by_dev(row: ResultRow, significance: Significance, target: Target) -> tuple[Floats, Floats, list[str]] | None:
    """(dev scores, test scores, run ids) by seed, times 100."""
    runs = significance.by_seed(row, target)
    if runs is None or row.supervision in SEEDLESS:
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
