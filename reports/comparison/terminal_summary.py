"""The scores of a comparison for a terminal."""

from __future__ import annotations

from pathlib import Path

from reports.document.table import number_text
from reports.read.comparison_runs import Comparison, base_name, read_comparison
from reports.stats.shown_rows import target_mean
from reports.stats.significance import untrained_base
from reports.stats.targets import SOURCES, targets
from reports.stats.training_gain import remark
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
    gains = _gains(comparison)
    if any(gains):
        columns.append("Gain by training")
        for line, gain in zip(rows, gains, strict=True):
            line.append(gain)
    if any(row.unfinished or remark(row) or row.added for row in comparison.rows) or not tables:
        columns.append("Status")
        for line, shown in zip(rows, comparison.rows, strict=True):
            ended = dict.fromkeys(r.status for r in shown.unfinished)
            said = [*(["added"] if shown.added else []), *ended, *([text] if (text := remark(shown)) else [])]
            line.append(", ".join(said) or "finished")
    return columns, rows


def _gains(comparison: Comparison) -> list[str]:
    """Of each row, what it scores above the untrained run that it starts from, by the first target."""
    target = next(iter(targets(comparison)), None)
    gains = []
    for row in comparison.rows:
        start, _ = untrained_base(row, comparison.rows)
        ends = [target_mean(r, target) if r is not None else None for r in (row, start)]
        known = [value for value in ends if value is not None]
        gains.append(number_text(known[0] - known[1], 2, signed=True) if len(known) == 2 else "")
    return gains
