"""All differences between the rows of a base model, and which of them are more than chance."""

from __future__ import annotations

from reports.document.blocks import Figure
from reports.document.table import Cell, Column, Table, TableRow, number_text
from reports.read.comparison_runs import Comparison, base_name
from reports.stats.significance import Significance
from reports.stats.verdicts import Block, kind_of, seen_text
from reports.tables.score_cells import HEAD, head_cells

MOST_ROWS = 12  # columns that a page has room for


def all_pairs(comparison: Comparison, significance: Significance) -> list[Table | Figure | None]:
    """A table and a figure for each base model with three rows or more: row minus column by the first target."""
    from reports.figures.pair_matrix import pair_matrix

    target = significance.first
    if target is None:
        return []
    made: list[Table | Figure | None] = []
    for base in comparison.base_models:
        rows = [r for r in comparison.rows if r.base_model == base and r.supervision != "supervised"]
        block = Block(rows, significance, target)
        if len(block.rows) > 2 and len(block.judged) > 1:
            where = base_name(base) if len(comparison.base_models) > 1 else ""
            made += [_table(block, where), pair_matrix(comparison, block, where)]
    return made


def _table(block: Block, base: str) -> Table:
    shown = block.rows[:MOST_ROWS]
    differences = block.differences()
    columns = [Column("place", "#", aside=True), HEAD[0], Column("mean", block.target.short)]
    columns += [Column(f"to {place}", f"− #{place}") for place in range(1, len(shown) + 1)]
    body = []
    for i, row in enumerate(block.rows):
        ids = tuple(r.id for r in row.finished)
        cells = [Cell(str(i + 1), value=i + 1), head_cells(row)[0], Cell(number_text(block.mean(row), 2), records=ids)]
        for j in range(len(shown)):
            if i == j:
                cells.append(Cell("", state="empty"))
                continue
            d = differences[min(i, j), max(i, j)]
            value = 100 * d.estimate.value * (1 if i < j else -1)
            mark = {"better": "*", "worse": "*", "not separable": ""}.get(d.verdict, "?")
            cells.append(Cell(number_text(value, 2, signed=True) + mark, value=value, state="value", records=ids))
        body.append(TableRow(tuple(cells)))
    alike = sum(kind_of(d) == "no difference that matters" for d in differences.values())
    legend = [
        "Row minus column in points. *: more than chance at 0.05, corrected for all pairs of the table's rows; without "
        "a mark: not separable, it may be chance; ?: one seed, not judged.",
        *filter(None, [seen_text(block)]),
        f"Groups of rows that do not differ significantly: {'; '.join(block.describe_groups())}.",
    ]
    if alike:
        legend.append(f"{alike} of {len(differences)} differences are less than 0.5 points with their whole interval.")
    if len(shown) < len(block.rows):
        legend.append(f"Differences to the first {MOST_ROWS} rows; `harness verdict` prints all.")
    where = f" · {base}" if base else ""
    return Table(
        f"all-pairs{f'-{base}' if base else ''}",
        f"Every row against every other{where}",
        f"By {block.target.title}.",
        tuple(columns),
        tuple(body),
        tuple(legend),
    )
