"""How the tuned rows of a comparison were found: the same trials, training steps and seeds for each."""

from __future__ import annotations

from typing import Any

from harness.results.store import read_comparison_file
from reports.document.table import Cell, Column, Table, TableRow, number
from reports.read.comparison_runs import Comparison
from reports.tables.score_cells import anchor

COLUMNS = (
    Column("row", "Row", numeric=False),
    Column("trials", "Trials"),
    Column("runs", "Runs", "different ones"),
    Column("seconds", "Search", "s"),
    Column("best", "Best configuration", numeric=False),
    Column("study", "Study", numeric=False, aside=True),
)


def tuning_table(comparison: Comparison) -> Table | None:
    """One line for each row that `harness compare --tune` considered, searched or not; None without a search."""
    tuned = (read_comparison_file(comparison.workdir, comparison.name) or {}).get("tuned")
    if not tuned:
        return None
    links = {row.label: anchor(row) for row in comparison.rows}
    seeds = ", ".join(map(str, tuned["seeds"]))
    caption = (
        f"Every row that can be searched had {tuned['trials']} trials of up to {tuned['steps']} training steps with "
        f"{'seed' if len(tuned['seeds']) == 1 else 'seeds'} {seeds}, none of which is in any other table; the best "
        'score on the dev set chose the configuration of the row called "tuned".'
    )
    legend = (
        "Runs: a configuration that was proposed twice was trained once. Search: seconds of training and dev "
        "evaluations of these runs, on the machine that made them.",
    )
    return Table("tuning", "Tuning", caption, COLUMNS, tuple(_line(row, links) for row in tuned["rows"]), legend)


def _line(row: dict[str, Any], links: dict[str, str]) -> TableRow:
    head = Cell(row["row"], link=links.get(row["label"], ""))
    if not row["study"]:
        return TableRow((head, *[Cell("", state="empty")] * 3, Cell(row["reason"]), Cell("", state="empty")))
    values = ", ".join(f"{k} {v:.3g}" if isinstance(v, float) else f"{k} {v}" for k, v in row["values"].items())
    return TableRow(
        (
            head,
            Cell(str(row["trials"]), value=row["trials"], state="value"),
            Cell(str(row["runs"]), value=row["runs"], state="value"),
            number(row["seconds"], digits=1),
            Cell(values or row["reason"]),
            Cell(row["study"], code=True),
        )
    )
