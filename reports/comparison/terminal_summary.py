"""The scores of a comparison for a terminal."""

from __future__ import annotations

from pathlib import Path

from reports.read.comparison_runs import base_name, read_comparison
from reports.stats.targets import SOURCES
from reports.tables.score_cells import HEAD, head_cells
from reports.tables.sts_scores import score_tables


def summary_table(workdir: Path, name: str, part: str = "") -> tuple[list[str], list[list[str]]]:
    """Columns and rows of text for a terminal: every score as mean ± deviation, best marked with "*".

    `part` is the name of a block of the comparison's file: its rows and tasks alone. No bootstrap: it answers at once.
    Where several sources or suites were run, their columns follow one another.

    Raises:
        InputError: no such comparison, damaged record.
    """
    whole = read_comparison(workdir, name)
    comparison = next((one for one in whole.parts if one.name == part), whole)
    tables = score_tables(comparison, None)
    several = len(comparison.base_models) > 1
    columns = ["Method", *(["Base model"] if several else []), "Seeds"]
    rows = [
        [row.label, *([base_name(row.base_model)] if several else []), head_cells(row)[2].text]
        for row in comparison.rows
    ]
    sources = {table.key: table.key.removeprefix("scores-sts-") for table in tables}
    for table in tables:
        source = sources[table.key]
        suffix = f" ({SOURCES.get(source, source)})" if "scores-embedded" not in table.key and len(tables) > 1 else ""
        columns += [f"{column.title}{suffix}" for column in table.columns[len(HEAD) :]]
        for line, row in zip(rows, table.rows, strict=True):
            for cell in row.cells[len(HEAD) :]:
                line.append(f"{cell.text}{'*' if cell.rank == 1 else ''} {cell.spread}".strip())
    if any(row.unfinished for row in comparison.rows) or not tables:
        columns.append("Status")
        for line, shown in zip(rows, comparison.rows, strict=True):
            ended = dict.fromkeys(r.status for r in shown.unfinished)
            line.append(", ".join(ended) or "finished")
    return columns, rows
