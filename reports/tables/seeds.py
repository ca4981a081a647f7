"""What several seeds say: where spread comes from, and what choosing the best seed would claim."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from reports.document.table import Cell, Column, Table, TableRow, number, number_text
from reports.read.comparison_runs import SEEDLESS, Comparison, ResultRow, base_name
from reports.stats.estimate import Floats
from reports.stats.significance import Significance
from reports.stats.simultaneous import FEWEST_SEEDS
from reports.stats.spread_sources import FEWEST, NAMES, Decomposition, Source, decompositions, share_of
from reports.stats.targets import Target
from reports.tables.score_cells import HEAD, block_of, head_cells


def spread_table(comparison: Comparison, significance: Significance) -> Table | None:
    """A line for each source of each row; None where no run held a stream."""
    found = decompositions(comparison, significance)
    target = significance.first
    if not found or target is None:
        return None
    columns = (
        Column("row", "Method", numeric=False),
        Column("source", "What is redrawn", numeric=False),
        Column("runs", "Runs", aside=True),
        Column("deviation", "Standard deviation", "points, 95 % interval"),
        Column("share", "Of all streams' variance", "%, 95 % interval"),
    )
    several = len(comparison.base_models) > 1
    body = []
    for d in found:
        block = f"{base_name(d.row.base_model)} · {d.row.label}" if several else d.row.label
        for source in d.sources:
            cells = (head_cells(d.row)[0], Cell(source.name), _runs(source), _deviation(source), _share(source, d))
            body.append(TableRow(cells, block))
    return Table(
        "spread",
        "Where the spread comes from",
        f"By {target.title}: how far scores lie apart when one source of chance alone is redrawn.",
        columns,
        tuple(body),
        (f"Shares do not add up: what a stream does together with others is in each of them.{_lacking(found)}",),
    )


def _runs(source: Source) -> Cell:
    return Cell(str(len(source.scores)), value=len(source.scores)) if source.scores else Cell("–", state="empty")


def _deviation(source: Source) -> Cell:
    if source.silent:
        note = "all runs have the same score to the last digit: the method draws nothing from it"
        return Cell("0", value=0.0, state="value", records=source.records, notes=(note,))
    low, high = source.interval
    spread = f"[{number_text(low, 2)}, {number_text(high, 2)}]"
    return Cell(
        number_text(source.deviation, 2), spread, source.deviation, state="value", records=source.records, digits=2
    )


def _share(source: Source, d: Decomposition) -> Cell:
    if d.whole is None or not source.streams:
        return Cell("–", state="empty")
    if source is d.whole:
        return Cell("100", value=100.0, state="value", records=source.records)
    share = share_of(source, d.whole)
    if share is None:
        return Cell("–", state="empty")
    records = (*source.records, *d.whole.records)
    text, low, high = (f"{100 * value:,.0f}" for value in (share.value, share.low, share.high))
    spread = "" if source.silent else f"[{low}, {high}]"
    return Cell(text, spread, 100 * share.value, state="value", records=records, digits=0)


def _lacking(found: Sequence[Decomposition]) -> str:
    """What a reader may miss."""
    unvaried = [f"{', '.join(NAMES[stream] for stream in d.unvaried)} of {d.row.label}" for d in found if d.unvaried]
    few = [d.row.label for d in found if d.whole is None or len(d.whole.scores) < FEWEST]
    said = f" Not varied alone: {'; '.join(unvaried)}." if unvaried else ""
    return said + (
        f" Fewer than {FEWEST} runs in which all streams vary, so no shares: {', '.join(few)}." if few else ""
    )


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
        ("Another seed's expected dev score is the mean; what the best seed has above it is optimism.",),
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
    if len(have) < FEWEST_SEEDS:
        return None
    dev_scores, test_scores, ids = zip(*have, strict=True)
    return 100 * np.array(dev_scores), 100 * np.array(test_scores), list(ids)
