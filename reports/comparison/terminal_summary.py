"""The scores of a comparison for a terminal: of every suite its average; a comparison on one suite whole."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from reports.document.table import ABSENT, Cell, Column, Table, number_text
from reports.read.comparison_runs import Comparison, base_name, prompted, read_comparison
from reports.stats.shown_rows import target_mean
from reports.stats.significance import untrained_base
from reports.stats.targets import targets
from reports.stats.training_gain import remark
from reports.tables.score_cells import HEAD, anchor, head_cells
from reports.tables.sts_scores import score_tables

_FEW = 2  # tasks of a suite without an average that have a column each
_NOT_SCORED = ("suite-geometry", "suite-layers", "suite-efficiency")


def summary_table(workdir: Path, name: str, part: str = "") -> tuple[list[str], list[list[str]], list[str]]:
    """Columns, rows and legend as text: scores as mean ± deviation, the best of each base model marked with "*".

    A suite is its averages, or its tasks where they are two at most; all its tasks where it is the only one.
    `part` is the name of a block of the comparison's file: its rows and tasks alone. Nothing is judged: it is quick.

    Raises:
        InputError: no such comparison, damaged record.
    """
    whole = read_comparison(workdir, name)
    comparison = next((one for one in whole.parts if one.name == part), whole)
    several = len(comparison.base_models) > 1
    columns = ["Method", *(["Base model"] if several else []), "Seeds"]
    rows = [
        [row.label, *([base_name(row.base_model)] if several else []), head_cells(row)[2].text]
        for row in comparison.rows
    ]
    shown: list[Cell] = []
    without: list[str] = []
    tables = list(_tables(comparison))
    main = [table for table in tables if table.key.startswith("scores-")]
    for table in tables:
        chosen = _columns(table, whole=len(tables) == 1)
        if not chosen and table.rows:
            without.append(f"{_title(table)} ({len(table.columns) - len(HEAD)} tasks)")
        by_row = {line.cells[0].link: line.cells for line in table.rows}
        for place, column in chosen:
            columns.append(
                _head(table, column, alone=table in main and sum(t.key.startswith("scores-sts-") for t in main) < 2)
            )
            for line, row in zip(rows, comparison.rows, strict=True):
                cell = by_row[anchor(row)][place] if anchor(row) in by_row else Cell()
                line.append(f"{cell.text}{'*' if cell.rank == 1 else ''} {cell.spread}".strip())
                shown.append(cell)
    gains = _gains(comparison)
    if any(gains):
        columns.append("Gain by training")
        for line, gain in zip(rows, gains, strict=True):
            line.append(gain)
    if any(row.unfinished or remark(row) or row.added for row in comparison.rows) or not shown:
        columns.append("Status")
        for line, row in zip(rows, comparison.rows, strict=True):
            ended = dict.fromkeys(r.status for r in row.unfinished)
            said = [*(["added"] if row.added else []), *ended, *([text] if (text := remark(row)) else [])]
            line.append(", ".join(said) or "finished")
    marked = [f"{row.label}: {said}" for row in comparison.rows if (said := prompted(row))]
    return columns, rows, [*_legend(shown, without, several=several), *marked, *_mixed(comparison)]


def _mixed(comparison: Comparison) -> Iterator[str]:
    """What to know of runs that were made on unlike devices, or in unlike precisions."""
    runs = [record for row in comparison.rows for record in row.finished]
    devices = Counter(str(record.environment.get("device_name") or "") for record in runs)
    precisions = Counter(str(record.training.get("precision") or "") for record in runs)
    for name, counts in (("device", devices), ("precision", precisions)):
        del counts[""]  # not recorded, or nothing was trained
        if len(counts) > 1:
            each = ", ".join(f"{one}: {count} run{'s' if count > 1 else ''}" for one, count in counts.most_common())
            yield f"Runs differ in their {name} ({each}): the same run rounds otherwise there; see the report."


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


def _tables(comparison: Comparison) -> Iterator[Table]:
    """Of all suites that score a model, in the order of the page."""
    from reports.tables.accuracies import SUITES, accuracy_tables
    from reports.tables.languages import multilingual_table
    from reports.tables.mteb_categories import category_table, embedded_table, suites_of
    from reports.tables.other_suites import suite_tables

    yield from score_tables(comparison, None)
    yield from accuracy_tables(comparison)
    found = [multilingual_table(comparison), *(category_table(comparison, suite) for suite in suites_of(comparison))]
    yield from (table for table in (*found, embedded_table(comparison)) if table is not None)
    known = {"sts", "embedded", *SUITES, "multilingual", "mteb", "embedded-mteb"}
    yield from (t for t in suite_tables(comparison, shown=known) if t.key not in _NOT_SCORED)


def _columns(table: Table, *, whole: bool) -> list[tuple[int, Column]]:
    """Place and column of what is shown of a suite."""
    scores = list(enumerate(table.columns))[len(HEAD) :]
    averages = [(i, column) for i, column in scores if column.key.partition(" ")[0] == "average"]
    return scores if whole or (not averages and len(scores) <= _FEW) else averages


def _title(table: Table) -> str:
    return table.title.partition(" · ")[0] if table.key.endswith("-categories") else table.title.removeprefix("Suite ")


def _head(table: Table, column: Column, *, alone: bool) -> str:
    if alone or table.key == "scores-embedded":
        return "STS average" if column.key == "average" and table.key.startswith("scores-sts-") else column.title
    if table.key.startswith("scores-sts-"):
        title = "STS average" if column.key == "average" else column.title
        return f"{title} ({table.title.rpartition(' · ')[2]})"
    return f"{_title(table)}, {' '.join(filter(None, (column.group, column.title)))}"


def _legend(cells: list[Cell], without: list[str], *, several: bool) -> list[str]:
    """What the marks in these cells mean, and what is not shown."""
    said = []
    if any(cell.rank == 1 for cell in cells):
        best = "best mean of its base model" if several else "best mean of its column"
        said.append(f"* {best}, which may be chance: the report and `harness verdict` test the differences")
    if any(cell.spread for cell in cells):
        said.append("± standard deviation over seeds")
    states = dict.fromkeys(cell.state for cell in cells if cell.state in ABSENT)
    said += [f"{ABSENT[state][0]} {ABSENT[state][1]}" for state in states]
    if without:
        said.append(f"in the report alone, since nothing is averaged there: {', '.join(without)}")
    return said
