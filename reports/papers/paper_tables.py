"""A paper's tables: our rows in blocks by base model, then the published rows; the summary of all."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from reports.document.table import Cell, Column, Table, TableRow, number, rank_cells
from reports.load import RecordedRow
from reports.papers.definition import PaperColumn, PaperTable
from reports.papers.own_lines import measured_cell, own_lines
from reports.papers.paper_results import Match, PaperResults, training_of
from reports.papers.published_lines import (
    BLANK,
    lines_of_published,
    published_cell,
    published_notes,
)
from reports.tables.score_cells import anchor

_MOST_COLUMNS = 20  # a table with more has its columns as lines


def paper_table(paper: PaperResults, table: PaperTable) -> tuple[Table | None, list[RecordedRow]]:
    """One table of the paper, and our rows in it; None where neither the paper's file nor our runs
    have anything.
    """
    specs = paper.columns(table)
    own, shown = own_lines(paper, table)
    rows = [*own, *lines_of_published(paper, table)]
    if not rows:
        return None, shown
    columns = _make_columns(table, specs)
    keep = [0]
    dropped = []
    for j, column in enumerate(columns[1:], 1):
        if any(row.cells[j].state != "empty" for row in rows):
            keep.append(j)
        elif j > 1:  # not the number of seeds
            dropped.append(column.title)
    columns = [columns[j] for j in keep]
    lines = []
    for row in rows:
        cells = tuple(row.cells[j] for j in keep)
        lines.append(replace(row, cells=cells))
    body = rank_cells(columns, lines)
    result = Table(
        table.key,
        table.title,
        table.caption,
        tuple(columns),
        body,
        _legend(shown, body, dropped),
    )
    if len(specs) > _MOST_COLUMNS:
        result = _transpose(result)
    return result, shown


def _make_columns(table: PaperTable, specs: Sequence[PaperColumn]) -> list[Column]:
    columns = [
        Column("row", "Method", numeric=False),
        Column("seeds", "Runs" if table.studies else "Seeds", aside=True),
    ]
    for i, spec in enumerate(specs):
        title, _, sub = spec.title.partition(" · ")
        published, _, _ = spec.published.partition(" | ")
        key = published or title
        if any(column.key == key for column in columns):
            key += f" {i}"
        columns.append(Column(key, title, sub, spec.group, better=spec.better))
    return columns


def _legend(
    own: Iterable[RecordedRow],
    rows: Iterable[TableRow],
    dropped: Sequence[str],
) -> tuple[str, ...]:
    legend = [
        "Measured: mean ± standard deviation over seeds. Published: as printed, without a standard deviation."
    ]
    blocks = {row.block for row in rows}
    if len(blocks) > 1:
        legend.append("Blocks with different base models are not comparable with each other.")
    texts = set()
    for row in own:
        training = training_of(row)
        if training is not None:
            texts.add(training[0])
    if len(texts) > 1:
        legend.append("Rows measured here were trained on different texts, which their cards name.")
    if dropped:
        named = ", ".join(dropped).removesuffix(".")
        legend.append(f"Columns without any number are left out: {named}.")
    return tuple(legend)


def _transpose(table: Table) -> Table:
    """Columns as lines: the group of a column is the block of its line, the block of a row the
    group of its column.
    """
    columns = [Column("data", "Data set", numeric=False)]
    has_seeds = table.columns[1].key == "seeds"
    for i, row in enumerate(table.rows):
        head = row.cells[0]
        title, _, detail = head.text.partition(" (")
        parts = [detail.removesuffix(")")]
        seeds = row.cells[1]
        if has_seeds and seeds.state != "empty" and seeds.text:
            noun = "seed" if seeds.text == "1" else "seeds"
            parts.append(f"{seeds.text} {noun}")
        columns.append(
            Column(
                f"{row.block}-{i}",
                title,
                " · ".join(filter(None, parts)),
                row.block,
                notes=head.notes,
            )
        )
    lines = []
    first = 2 if has_seeds else 1
    for j, column in enumerate(table.columns[first:], first):
        cells = [Cell(column.title)]
        for row in table.rows:
            cells.append(row.cells[j])
        lines.append(TableRow(tuple(cells), column.group))
    legend = ("Best and second: of each block of columns.", *table.legend)
    return replace(
        table,
        columns=tuple(columns),
        rows=tuple(lines),
        legend=legend,
    )


def summary_table(paper: PaperResults) -> Table | None:
    """The headline numbers of every table, published and measured."""
    columns = (
        Column("model", "Published model", numeric=False),
        Column("base", "Base model", numeric=False, aside=True),
        Column("task", "Score", numeric=False),
        Column("ours", "Ours", "mean ± sd"),
        Column("n", "Seeds", aside=True),
        Column("published", "Published"),
        Column("difference", "Difference", "ours − published"),
        Column("verdict", "Verdict", "on the published number", numeric=False),
    )
    rows = []
    for table in paper.definition.tables:
        for one in paper.numbers:
            place = one.place
            if place is None or place.table is not table:
                continue
            if place.column.head in table.headline:
                cells = _summary_cells(one, place.column)
                rows.append(TableRow(cells, table.title))
    if not rows:
        return None
    legend = (
        "Our interval: the 95 % prediction interval of a number like the paper's (Student's t, over seeds on the same "
        "test pairs), which is one more run, or the mean of as many runs as the paper made. A method without a seed "
        "agrees within 0.05. Whether two numbers can be compared is read from the records: base model, training text, "
        "settings and protocol.",
    )
    caption = "The main numbers of each table; tables/joined.csv and data.json hold every published number."
    return Table("joined", "Published and measured", caption, columns, tuple(rows), legend)


def _summary_cells(one: Match, column: PaperColumn) -> tuple[Cell, ...]:
    """Return the cells of a published number and ours."""
    published = one.published
    measured = one.measured
    seeds = len(measured.by_seed)
    link = ""
    ours = BLANK
    count = BLANK
    if seeds:
        ours = replace(measured_cell(measured, column), notes=())
        count = Cell(str(seeds), value=seeds)
        link = anchor(one.ours) if one.ours else ""
    gap = BLANK
    if one.difference is not None:
        gap = number(one.difference, digits=column.digits, signed=True)
    score = column.head
    if column.difference:
        score = column.title.replace(" · ", " ")
    return (
        Cell(published["model"], link=link, records=measured.records),
        Cell(published["base_model"]),
        Cell(score),
        ours,
        count,
        published_cell(one, column, published_notes(published)),
        gap,
        Cell(one.verdict.short).with_notes(*one.remarks),
    )
