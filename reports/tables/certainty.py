"""How sure differences are: planned ones, those of all pairs of rows, interim analyses, and where
spread comes from.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from reports.document.table import EMPTY, Cell, Column, Table, TableRow, number_text
from reports.load import RecordedResults
from reports.results import ResultRow, base_name, find_start
from reports.stats.significance import SAME, Difference, Significance
from reports.stats.spread_sources import (
    FEWEST,
    NAMES,
    Decomposition,
    SpreadSource,
    decompositions,
    share_of,
)
from reports.stats.verdicts import (
    Family,
    Ranking,
    describe_detectable,
    judge_family,
    own_against_others,
    planned_family,
    replaces_model,
    starts,
)
from reports.suite_targets import primary_target
from reports.tables.score_cells import HEAD, absent_cell, anchor, block_of, name_cell
from reports.targets import common_unit

MOST_COLUMNS = 14  # columns of the matrix that a page has room for


def against_base(comparison: RecordedResults, significance: Significance) -> Table | None:
    """Each trained row against its untrained start, by every target; None when there is nothing to
    compare.
    """
    family = starts(comparison)
    without = []
    for row in comparison.rows:
        if why := find_start(row, comparison.rows)[1]:
            without.append((row, why))
    if not significance.targets or not (family.pairs or without):
        return None
    table = _family_table(
        comparison,
        significance,
        family,
        "against-base",
        "Difference to the untrained start",
        "Untrained start",
    )
    more = [
        TableRow(
            (name_cell(row), EMPTY.with_notes(why), *[EMPTY] * (len(table.columns) - 2)),
            block_of(row),
        )
        for row, why in without
    ]
    return replace(table, rows=(*table.rows, *more))


def planned_tables(comparison: RecordedResults, significance: Significance) -> list[Table]:
    """The comparisons that the file names, and those with rows made elsewhere."""
    frozen = comparison.plan
    if frozen is None and replaces_model(comparison):
        title = "Each row against the model in use"
    elif frozen is None:
        title = "Comparisons chosen in the experiment file, not frozen"
    elif frozen.deviations:
        title = "Named comparisons, not as planned"
    else:
        title = "Planned comparisons"
    wanted = (
        (planned_family(comparison), "planned", title, "Compared with"),
        (
            own_against_others(comparison),
            "elsewhere",
            "Own rows and those made elsewhere",
            "Made elsewhere",
        ),
    )
    found = []
    for family, *heads in wanted:
        if family.pairs and significance.targets:
            found.append(_family_table(comparison, significance, family, *heads))
    return found


def _family_table(
    comparison: RecordedResults,
    significance: Significance,
    family: Family,
    key: str,
    title: str,
    other: str,
) -> Table:
    """A line for each pair of a family, by every target."""
    columns = [
        HEAD[0],
        Column("base", other, numeric=False, aside=True),
        Column("seeds", "Seeds", "of both", aside=True),
    ]
    cells = []
    for a, b in family.pairs:
        seeds = Cell(f"{len(a.finished)} · {len(b.finished)}")
        cells.append([name_cell(a), Cell(b.label, link=anchor(b)), seeds])
    primary = primary_target(comparison)
    for target in significance.targets:
        group = target.short
        if primary is not None:
            if target == primary:
                group += ", primary"
            else:
                group += ", secondary"
        columns += [
            Column(f"{target.key} difference", "Difference", "points, 95 % interval", group=group),
            Column(f"{target.key} p", "p", group=group),
            Column(f"{target.key} verdict", "Verdict", group=group, numeric=False),
        ]
        found = dict(judge_family(family, significance, target))
        for line, pair in zip(cells, family.pairs, strict=True):
            line += _difference_cells(*pair, found.get(pair))
    unit = common_unit(significance.targets)
    caption = f"Row minus the other one in points of {unit}, on the same examples, over seeds and test examples."
    if family.apart:
        legend = f"Intervals and p are corrected for this family, column by column: {family.name}."
    else:
        legend = (
            "After deviations from the frozen plan, intervals and p are corrected for all pairs of "
            "rows, column by column."
        )
    body = []
    for line, (a, _) in zip(cells, family.pairs, strict=True):
        body.append(TableRow(tuple(line), block_of(a)))
    legends = (legend,) if family.pairs else ()
    return Table(key, title, caption, tuple(columns), tuple(body), legends)


def _difference_cells(a: ResultRow, b: ResultRow, d: Difference | None) -> list[Cell]:
    if d is None:
        return [absent_cell(a), EMPTY, EMPTY]
    e = d.estimate
    runs = tuple(r.id for r in (*a.finished, *b.finished))
    low = number_text(100 * e.low, 2, signed=True)
    high = number_text(100 * e.high, 2, signed=True)
    difference = Cell(
        number_text(100 * e.value, 2, signed=True),
        spread=f"[{low}, {high}]",
        value=100 * e.value,
        n=d.seeds[0],
        state="value",
        records=runs,
    )
    p = EMPTY
    if d.judged:
        if e.p < 0.001:
            text = "< 0.001"
        else:
            text = f"{e.p:.3f}"
        p = Cell(text, value=e.p, state="value", records=runs)
    return [difference, p, Cell(d.verdict, records=runs)]


def all_pairs(comparison: RecordedResults, significance: Significance) -> list[Table]:
    """A table for each block with three rows or more: row minus column by the first target."""
    target = significance.first
    if target is None:
        return []
    several = len(comparison.blocks) > 1
    blocks = {}
    for name, rows in comparison.blocks.items():
        blocks[name] = Ranking(rows, significance, target)
    large = {}
    for name, block in blocks.items():
        if len(block.rows) > 2 and len(block.judged) > 1:
            large[name] = block
    return [pairs_table(block, name if several else "") for name, block in large.items()]


def pairs_table(block: Ranking, name: str, most: int = MOST_COLUMNS) -> Table:
    """Row minus column of all pairs of rows, best rows first; columns of the `most` best rows."""
    shown = block.rows[:most]
    columns = [Column("place", "#", aside=True), HEAD[0], Column("mean", block.target.short)]
    columns.append(Column("rank", "Rank", block.rank_certainty, aside=True))
    for place in range(1, len(shown) + 1):
        columns.append(Column(f"to {place}", f"− #{place}"))
    body = []
    used = ""
    for i, row in enumerate(block.rows):
        ids = tuple(r.id for r in row.finished)
        pairs = [_pair_cell(block, i, j, ids) for j in range(len(shown))]
        used += "".join(cell.text for cell in pairs)
        cells = (
            Cell(str(i + 1), value=i + 1),
            replace(name_cell(row), text=block.name(row)),
            Cell(number_text(block.mean(row), 2), records=ids),
            rank_cell(block, row),
            *pairs,
        )
        body.append(TableRow(cells))
    key = "all-pairs"
    title = "Every row against every other"
    if name:
        key += f"-{name}"
        title += f" · {name}"
    caption = _describe_pairs(block)
    return Table(key, title, caption, tuple(columns), tuple(body), _explain_marks(block, used))


def _describe_pairs(block: Ranking) -> str:
    """Return the caption of the table of all pairs: groups, and what is known of the order."""
    caption = f"Row minus column in points, by {block.target.title}."
    if len(block.judged) > 1:
        groups = []
        for group in block.groups():
            groups.append(", ".join(str(place + 1) for place in group))
        caption += f" Rows that do not differ significantly: {'; '.join(groups)}."
    for more in (block.describe_order(), block.describe_left_out()):
        if more:
            caption += f" {more}"
    return caption


def _explain_marks(block: Ranking, used: str) -> tuple[str, ...]:
    """Return the legend of the table of all pairs. `used`: the text of all its cells."""
    marks = []
    if "*" in used:
        marks.append(f"* significant at 5 %, corrected for {block.family}.")
    if "?" in used:
        marks.append("? fewer than three seeds.")
    if block.detectable is not None:
        marks.append(f"{describe_detectable(*block.detectable).capitalize()}.")
    if not marks:
        return ()
    return (" ".join(marks),)


def _pair_cell(block: Ranking, i: int, j: int, records: tuple[str, ...]) -> Cell:
    """Row `i` minus row `j`, by their places."""
    if i == j:
        return Cell(state="empty")
    d = block.differences[min(i, j), max(i, j)]
    value = 100 * d.estimate.value
    if i > j:
        value = -value
    mark = ""
    if d.verdict != SAME:
        mark = "*" if d.judged else "?"
    text = number_text(value, 2, signed=True) + mark
    return Cell(text, value=value, state="value", records=records)


def rank_cell(block: Ranking, row: ResultRow) -> Cell:
    """Return the interval of a row's rank: 2 to 4."""
    found = block.rank_interval(row)
    if found is None:
        return EMPTY
    first, last = found
    if first == last:
        text = str(first)
    else:
        text = f"{first} to {last}"
    return Cell(text, value=first, state="value")


_GOING = ("leads", "open")
_ENDED = {
    "decided": "It ended when no decision was open that more seeds were likely to settle.",
    "seeds": "It ended with decisions open: the planned number of seeds was reached.",
}


def interim_analyses_table(comparison: RecordedResults, significance: Significance) -> Table | None:
    """A line for each interim analysis; None if the seeds were fixed beforehand."""
    analyses = comparison.analyses
    if analyses is None:
        return None
    columns = (
        Column("analysis", "Analysis"),
        Column("seeds", "Seeds", "of the rows in contention"),
        Column("runs", "Runs", "so far"),
        Column("going", "In contention after it", numeric=False),
        Column("decided", "Decided", "at this analysis", numeric=False),
    )
    lines = []
    before: dict[tuple[str, str], str] = {}
    for number, seeds in enumerate(analyses.seeds, 1):
        if number <= len(analyses.rows):
            rows = analyses.rows[number - 1]
        else:
            rows = ()
        going = _names_in_contention(rows)
        decided = _describe_decided(rows, before)
        runs = sum(first <= number for first in analyses.since.values())
        numbers = (Cell(str(n), value=n) for n in (number, seeds, runs))
        cells = (*numbers, Cell(going or "–"), Cell(decided or "–"))
        lines.append(TableRow(cells))
        before = {_key_of(row): row["state"] for row in rows}
    caption = "After every interim analysis, one more seed for the best row and for the rows that are open against it."
    legend = (
        f"All analyses with up to n seeds may use (n / {analyses.most})² of the 5 % together. "
        f"{_ENDED.get(analyses.ended, 'It has not ended: the same command goes on.')}"
    )
    return Table(
        "interim-analyses", "Seeds added until decided", caption, columns, tuple(lines), (legend,)
    )


AnalysedRow = Mapping[str, Any]
"""What an interim analysis found of a row: "row", "base_model", "state"."""


def _key_of(row: AnalysedRow) -> tuple[str, str]:
    return row["base_model"], row["row"]


def _names_in_contention(rows: Sequence[AnalysedRow]) -> str:
    """Return the rows that get another seed."""
    several = _has_several_bases(rows)
    open_bases = {row["base_model"] for row in rows if row["state"] == "open"}
    names = []
    for row in rows:
        if row["state"] in _GOING and row["base_model"] in open_bases:
            names.append(_name(row, several))
    return ", ".join(names)


def _describe_decided(rows: Sequence[AnalysedRow], before: Mapping[tuple[str, str], str]) -> str:
    """Return the rows that were decided since the analysis before, by how."""
    several = _has_several_bases(rows)
    decided: dict[str, list[str]] = {}
    for row in rows:
        state = row["state"]
        if state not in _GOING and before.get(_key_of(row)) != state:
            decided.setdefault(state, []).append(_name(row, several))
    texts = []
    for state, names in decided.items():
        texts.append(f"{state}: {', '.join(names)}")
    return "; ".join(texts)


def _has_several_bases(rows: Sequence[AnalysedRow]) -> bool:
    return len({row["base_model"] for row in rows}) > 1


def _name(row: AnalysedRow, several: bool) -> str:
    if several:
        return f"{row['row']} ({base_name(row['base_model'])})"
    return str(row["row"])


def spread_table(comparison: RecordedResults, significance: Significance) -> Table | None:
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
        if several:
            block = f"{base_name(d.row.base_model)} · {d.row.label}"
        else:
            block = d.row.label
        for source in d.sources:
            runs = len(source.scores)
            if runs:
                count = Cell(str(runs), value=runs)
            else:
                count = EMPTY
            cells = (
                name_cell(d.row),
                Cell(source.name),
                count,
                _deviation(source),
                _share(source, d),
            )
            body.append(TableRow(cells, block))
    return Table(
        "spread",
        "Where the spread comes from",
        f"By {target.title}: how far scores lie apart when one source of chance alone is redrawn.",
        columns,
        tuple(body),
        (
            f"Shares do not add up: what a stream does together with others is in each of them.{_lacking(found)}",
        ),
    )


def _deviation(source: SpreadSource) -> Cell:
    if source.silent:
        note = "all runs have the same score to the last digit: the method draws nothing from it"
        return Cell("0", value=0.0, state="value", records=source.records, notes=(note,))
    low, high = source.interval
    spread = f"[{number_text(low, 2)}, {number_text(high, 2)}]"
    return Cell(
        number_text(source.deviation, 2),
        spread,
        source.deviation,
        state="value",
        records=source.records,
        digits=2,
    )


def _share(source: SpreadSource, d: Decomposition) -> Cell:
    if d.whole is None or not source.streams:
        return EMPTY
    if source is d.whole:
        return Cell("100", value=100.0, state="value", records=source.records)
    share = share_of(source, d.whole)
    if share is None:
        return EMPTY
    records = (*source.records, *d.whole.records)
    text = f"{100 * share.value:,.0f}"
    low = f"{100 * share.low:,.0f}"
    high = f"{100 * share.high:,.0f}"
    if source.silent:
        spread = ""
    else:
        spread = f"[{low}, {high}]"
    return Cell(
        text,
        spread,
        100 * share.value,
        state="value",
        records=records,
        digits=0,
    )


def _lacking(found: Sequence[Decomposition]) -> str:
    """What a reader may miss."""
    unvaried = []
    for d in found:
        if d.unvaried:
            streams = ", ".join(NAMES[stream] for stream in d.unvaried)
            unvaried.append(f"{streams} of {d.row.label}")
    few = []
    for d in found:
        if d.whole is None or len(d.whole.scores) < FEWEST:
            few.append(d.row.label)
    if unvaried:
        said = f" Not varied alone: {'; '.join(unvaried)}."
    else:
        said = ""
    return said + (
        f" Fewer than {FEWEST} runs in which all streams vary, so no shares: {', '.join(few)}."
        if few
        else ""
    )
