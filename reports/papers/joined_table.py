"""Headline numbers of every table of a paper, published beside measured."""

from __future__ import annotations

from dataclasses import replace

from reports.document.table import Cell, Column, Table, TableRow, number
from reports.papers.matching import Matching
from reports.papers.paper_cells import BLANK, doubts, measured_cell, published_cell
from reports.tables.score_cells import anchor


def joined_table(matching: Matching) -> Table | None:
    """Headline numbers of every table, published beside measured."""
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
    order = {table.key: i for i, table in enumerate(matching.definition.tables)}
    placed = [(j, j.place) for j in matching.rows if j.place is not None]
    for j, place in sorted(placed, key=lambda item: order[item[1].table.key]):
        if place.column.title not in place.table.headline:
            continue
        p, column = j.published, place.column
        ours = measured_cell(j.ours, column) if j.ours.by_seed else BLANK
        gap = j.difference
        rows.append(
            TableRow(
                (
                    Cell(p["model"], link=anchor(j.row) if j.row and j.ours.by_seed else "", records=j.ours.records),
                    Cell(p["base_model"]),
                    Cell(f"{column.title} {column.sub}" if column.delta else column.title),
                    replace(ours, notes=()),
                    Cell(str(len(j.ours.by_seed)), value=len(j.ours.by_seed)) if j.ours.by_seed else BLANK,
                    published_cell(p, j.value, column, doubts(p)),
                    BLANK if gap is None else number(gap, digits=column.digits, signed=True),
                    Cell(j.verdict.short).noted(*j.remarks),
                ),
                place.table.title,
            )
        )  # fmt: skip
    if not rows:
        return None
    legend = (
        "Interval: where a number made as the paper's is expected from our runs (95 %, Student's t, over seeds on the "
        "same test pairs): one more run, or the mean or the best of as many runs as the paper made, which the verdict "
        "then says. A method without a seed agrees within 0.05. Whether two numbers may be compared is read from the "
        "records: base model, training text, recipe and protocol.",
    )
    caption = "The main numbers of each table; tables/joined.csv and data.json hold every published number."
    return Table("joined", "Published beside measured", caption, columns, tuple(rows), legend)
