"""The page of rows that several people sent: the ranking, any two rows, incomplete rows apart."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Any

from reports.document.blocks import Block as Part
from reports.document.blocks import Document, Section, Text
from reports.document.table import (
    EMPTY,
    Cell,
    Column,
    Table,
    TableRow,
    letters,
    number,
    number_text,
    rank_cells,
)
from reports.figures.intervals import overview
from reports.joined.joiner import Joined, JoinedRow, join
from reports.load import RecordedResults
from reports.stats.estimate import mean_sd
from reports.stats.simultaneous import EXPLORED
from reports.stats.verdicts import BETTER, WORSE, Ranking, kind_of
from reports.tables.certainty import rank_cell

_NAMED = 6
_SENT = (
    Column("conditions", "Made", numeric=False, aside=True),
    Column("submitter", "Submitter", numeric=False, aside=True),
    Column("date", "Date", numeric=False, aside=True),
    Column("link", "Link", numeric=False, aside=True),
)


@dataclass(frozen=True)
class JoinedReport:
    """The document, and the differences of all pairs for the page."""

    document: Document
    pairs: dict[str, Any]


def describe_joined(base: RecordedResults, sources: Sequence[Path]) -> JoinedReport:
    """Return the page of a comparison and what others sent.

    Raises:
        InputError: a source that cannot be shown, with its file.
    """
    joined = join(base, sources)
    block = joined.rank()
    by_label = {one.row.label: one for one in joined.rows}
    ranked = [by_label[row.label] for row in block.rows]
    apart = [one for one in joined.rows if one.lacks]
    senders = {one.sender.name for one in joined.rows} - {""}
    counts = [
        (len(ranked), "ranked row", "ranked rows"),
        (len(apart), "incomplete row", "incomplete rows"),
        (len(sources), "file that was sent", "files that were sent"),
        (len(senders), "submitter", "submitters"),
    ]
    facts = [(str(n), one if n == 1 else many) for n, one, many in counts if n]
    answer = _describe_best(block)
    parts: list[Part] = []
    figure = overview(block.significance.results, block.significance)
    if figure is not None:
        parts.append(figure)
    parts.append(_ranking_table(block, ranked))
    sections = [Section("scores", "Scores", parts)]
    if apart:
        table = _incomplete_table(apart, block.target.short)
        sections.append(Section("incomplete", "Incomplete rows", [table]))
    limits = Text(_limits(joined, block), bullets=True)
    sections.append(Section("limits", "Limits", [limits]))
    title = base.title or base.name
    document = Document(title, answer, facts, sections, base.description, answer=answer)
    return JoinedReport(document, describe_pairs(block))


def describe_pairs(block: Ranking) -> dict[str, Any]:
    """Return the difference of each two rows in points, with interval, p and verdict.

    A page shows the sentence of any two of them; the first of a pair is the one with the higher
    place. The last number of a pair is the place of its family in "families".
    """
    rows = [row.label for row in block.rows]
    found = []
    places: dict[str, int] = {}
    for i, j in combinations(range(len(rows)), 2):
        d = block.differences.get((i, j))
        if d is None:
            continue
        e = d.estimate
        points = [round(100 * value, 2) for value in (e.value, e.low, e.high)]
        p = round(e.p, 4) if d.judged else None
        place = places.setdefault(d.family, len(places))
        found.append([i, j, *points, p, kind_of(d), place])
    return {
        "rows": rows,
        "by": block.target.title,
        "families": [[block.letter_of(family), family] for family in places],
        "words": [BETTER, WORSE],
        "differences": found,
    }


def _describe_best(block: Ranking) -> str:
    """Return which rows may be the best, by what, in a sentence."""
    if not block.judged:
        return f"No row can be judged by {block.target.title}."
    best = block.judged[0]
    score = f"{block.mean(best):.2f} by {block.target.title}"
    if len(block.judged) == 1:
        return f"{best.label} has {score}; no other row can be judged."
    others = [row.label for row in block.candidates if row is not best]
    if not others:
        return f"{best.label} is the best of {len(block.judged)} rows: {score}."
    return (
        f"{best.label} has the highest score of {len(block.judged)} rows: {score}. "
        f"Others that may be the best (95 %): {_list_rows(others)}."
    )


def _list_rows(labels: Sequence[str]) -> str:
    """Return labels, which may have commas, in a row; the first of many."""
    shown = "; ".join(labels[:_NAMED])
    left = len(labels) - _NAMED
    if left > 0:
        return f"{shown} and {left} more"
    return shown


def _sender_cells(one: JoinedRow) -> tuple[Cell, ...]:
    sender = one.sender
    link = EMPTY
    if sender.link:
        shown = sender.link.split("://", 1)[1].rstrip("/")
        if len(shown) > 40:
            shown = f"{shown[:39]}…"
        link = Cell(shown, url=sender.link)
    texts = []
    for text in (sender.name, sender.date):
        texts.append(Cell(text) if text else EMPTY)
    return (Cell(one.conditions), *texts, link)


def _ranking_table(block: Ranking, ranked: Sequence[JoinedRow]) -> Table:
    """Return all ranked rows, best first."""
    columns = [
        Column("row", "Row", numeric=False),
        Column("score", block.target.short, "points, ± deviation", better="higher"),
        Column("interval", "Interval", "95 %", numeric=False, aside=True),
        Column("rank", "Rank", block.rank_certainty),
        Column("group", "Group", numeric=False),
        Column("runs", "Runs", aside=True),
        *_SENT,
    ]
    groups = block.groups()
    lines = []
    for place, one in enumerate(ranked):
        row = one.row
        runs = 100 * block.runs(row)
        mean, spread = mean_sd(runs)
        ids = tuple(run.id for run in row.finished)
        group = " ".join(letters(i) for i, members in enumerate(groups) if place in members)
        cells = (
            Cell(row.label, records=ids),
            number(mean, sd=spread, n=len(runs), records=ids),
            _interval_cell(block, one),
            rank_cell(block, one.row),
            Cell(group) if group else EMPTY,
            Cell(str(len(runs)), value=len(runs), state="value"),
            *_sender_cells(one),
        )
        lines.append(TableRow(cells))
    caption = (
        f"By {block.target.title}. Rows that share a letter do not differ significantly; a rank's "
        "interval follows from the same tests."
    )
    legend = f"Pairs are corrected for {block.family}."
    if len(block.contenders) >= EXPLORED:
        legend += (
            " So of the pairs that differ at most 5 % are wrong in expectation, and the range of a "
            "rank is no 95 % interval."
        )
    rows = tuple(rank_cells(columns, lines))
    return Table("joined", "All rows, best first", caption, tuple(columns), rows, (legend,))


def _interval_cell(block: Ranking, one: JoinedRow) -> Cell:
    if one.row not in block.judged:
        return EMPTY
    interval = block.significance.interval_of_mean(one.row, block.target)
    low = number_text(100 * interval.low, 1)
    high = number_text(100 * interval.high, 1)
    return Cell(f"{low} to {high}", value=100 * interval.low, state="value")


def _incomplete_table(apart: Sequence[JoinedRow], title: str) -> Table:
    """Return the rows that are not ranked, with the reason."""
    columns = (
        Column("row", "Row", numeric=False),
        Column("lacks", "What it lacks", numeric=False),
        Column("score", title),
        *_SENT,
    )
    lines = []
    for one in apart:
        if one.score is not None:
            score = number(one.score)
        else:
            score = EMPTY
        lines.append(TableRow((Cell(one.row.label), Cell(one.lacks), score, *_sender_cells(one))))
    caption = "These rows are not compared with any other."
    return Table("incomplete", "Incomplete rows", caption, columns, tuple(lines))


def _limits(joined: Joined, block: Ranking) -> tuple[str, ...]:
    """Return what a reader cannot conclude, a sentence each."""
    said = [
        f"The conclusions are about {block.target.title}: nothing follows for other tasks.",
        'Rows that were not made "as the comparison" may differ from it in data, size and training; '
        "of rows that were sent as scores this is not known, nor how their settings were chosen.",
    ]
    if joined.base_model:
        said.append(
            f"Recorded rows start from {joined.base_model} where their label names no other model."
        )
    if any("one run" in one.conditions for one in joined.rows):
        said.append(
            "A row with one run is judged by examples alone: it may differ with a new seed."
        )
    return (*said, *joined.notes)
