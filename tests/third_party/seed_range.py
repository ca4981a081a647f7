"""How far apart the seeds of a row lie: the best minus the worst of them, for each STS task."""

from reports.document.table import Cell, Column, Table, TableRow, number
from reports.tables.builder import TableBuilder
from reports.tables.score_cells import HEAD, block_of, head_cells


def seed_range(comparison, significance):
    """A column for each task; None where no row has two seeds."""
    rows = [row for row in comparison.rows if len(row.finished) > 1]
    if not rows:
        return None
    tasks = comparison.columns("sts") or comparison.columns("embedded")
    columns = [HEAD[0], HEAD[2], *(Column(task, task, better="lower") for task, _ in tasks)]
    lines = []
    for row in rows:
        name, _, seeds = head_cells(row)
        cells = []
        for task, source in tasks:
            runs = row.scores(task, source, "spearman", "all")
            values = [100 * score.value for _, score in runs]
            ids = [record.id for record, _ in runs]
            cells.append(
                number(max(values) - min(values), records=ids)
                if values
                else Cell("–", state="empty")
            )
        lines.append(TableRow((name, seeds, *cells), block_of(row)))
    caption = "The best seed minus the worst, in points of Spearman ×100."
    return Table("seed-range", "How far apart seeds lie", caption, tuple(columns), tuple(lines))


TABLE = TableBuilder("certainty", seed_range, order=150)
