"""What several seeds say: where spread comes from."""

from __future__ import annotations

from collections.abc import Sequence

from reports.document.table import EMPTY, Cell, Column, Table, TableRow, number_text
from reports.read.comparison_runs import Comparison, base_name
from reports.stats.significance import Significance
from reports.stats.spread_sources import FEWEST, NAMES, Decomposition, Source, decompositions, share_of
from reports.tables.score_cells import name_cell


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
            cells = (name_cell(d.row), Cell(source.name), _runs(source), _deviation(source), _share(source, d))
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
    return Cell(str(len(source.scores)), value=len(source.scores)) if source.scores else EMPTY


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
        return EMPTY
    if source is d.whole:
        return Cell("100", value=100.0, state="value", records=source.records)
    share = share_of(source, d.whole)
    if share is None:
        return EMPTY
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
