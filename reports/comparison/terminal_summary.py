"""The scores of a comparison for a terminal, at most 100 characters wide: of every suite its average."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from reports.document.table import ABSENT, Column, Table, number_text
from reports.read.comparison_runs import Comparison, ResultRow, prompted, read_comparison
from reports.stats.significance import untrained_base
from reports.stats.targets import targets
from reports.tables.mteb import mteb_tables
from reports.tables.score_cells import HEAD, anchor, head_cells, never_beat_the_start
from reports.tables.suites import RETRIEVAL, SCORES, other_tables, sts_tables, suite_tables

WIDTH = 100
_FEW = 2  # tasks of a suite without an average that have a column each
_NOT_SCORED = ("suite-geometry", "suite-layers", "suite-compression", "suite-efficiency")


def summary_table(workdir: Path, name: str, part: str = "") -> tuple[list[str], list[list[str]], list[str]]:
    """Columns, rows and notes as text: scores as mean ± deviation, the best of each block marked with "*".

    A suite is its averages, or its tasks where they are two at most; all its tasks where it is the only one. Columns
    that 100 characters have no room for are only in the report. `part` is the name of a block of the comparison's
    file: its rows and tasks alone. Nothing is judged: it is quick.

    Raises:
        InputError: no such comparison, damaged record.
    """
    whole = read_comparison(workdir, name)
    comparison = next((one for one in whole.parts if one.name == part), whole)
    several = len(comparison.blocks) > 1
    columns = [["Method", *(row.label for row in comparison.rows)]]
    if several:
        columns.append(["Block", *(row.block for row in comparison.rows)])
    columns.append(["Seeds", *(head_cells(row)[2].text for row in comparison.rows)])
    last = [column for column in (_gains(comparison), _status(comparison)) if any(column[1:])]
    scores, without = _scores(comparison)
    room = WIDTH - 1 - sum(map(_width, [*columns, *last]))
    for column in scores:
        room -= _width(column)
        if room >= 0:
            columns.append(column)
        else:
            without.append(column[0])
    lines = [list(line) for line in zip(*columns, *last, strict=True)]
    return lines[0], lines[1:], _notes(comparison, columns, without)


def _width(column: list[str]) -> int:
    return max(map(len, column)) + 3


def _scores(comparison: Comparison) -> tuple[list[list[str]], list[str]]:
    """Columns of scores with their heads, and the suites without one."""
    found, without = [], []
    tables = [table for table in _tables(comparison) if table.rows]
    for table in tables:
        chosen = _columns(table, whole=len(tables) == 1)
        if not chosen:
            without.append(_title(table))
        by_row = {line.cells[0].link: line.cells for line in table.rows}
        for place, column in chosen:
            cells = [by_row[anchor(row)][place] for row in comparison.rows]
            texts = (f"{cell.text}{'*' if cell.rank == 1 else ''} {cell.spread}".strip() for cell in cells)
            found.append([_head(table, column, alone=len(tables) == 1), *texts])
    return found, without


def _tables(comparison: Comparison) -> Iterator[Table]:
    """Of all suites that score a model, in the order of the page."""
    yield from sts_tables(comparison)
    yield from suite_tables(comparison, suites=(*SCORES, *RETRIEVAL))
    yield from (t for t in mteb_tables(comparison) if t.key.endswith("-categories") or t.key == "mteb-tasks")
    known = {"sts", "embedded", "mteb", *SCORES, *RETRIEVAL}
    yield from (t for t in other_tables(comparison, shown=known) if t.key not in _NOT_SCORED)


def _columns(table: Table, *, whole: bool) -> list[tuple[int, Column]]:
    """Place and column of what is shown of a suite."""
    scores = list(enumerate(table.columns))[len(HEAD) :]
    averages = [(i, column) for i, column in scores if column.key.partition(" ")[0] == "average"]
    return scores if whole or (not averages and len(scores) <= _FEW) else averages


def _title(table: Table) -> str:
    title = table.title.partition(" · ")[0].removeprefix("Suite ").removesuffix(" tasks")
    return "STS" if table.key.startswith("scores-sts-") else title


def _head(table: Table, column: Column, *, alone: bool) -> str:
    if column.key == "average":
        return f"{_title(table)} average"
    name = column.title.removeprefix("Embedded-")
    return name if alone or table.key == "scores-embedded" else f"{_title(table)}, {name}"


def _gains(comparison: Comparison) -> list[str]:
    """Of each row, what it scores above the untrained run that it starts from, by the first target."""
    target = next(iter(targets(comparison)), None)
    gains = ["Gain"]
    for row in comparison.rows:
        start, _ = untrained_base(row, comparison.rows)
        ends = [target.value(r) if target and r else None for r in (row, start)]
        known = [value for value in ends if value is not None]
        gains.append(number_text(known[0] - known[1], 2, signed=True) if len(known) == 2 else "")
    return gains


def _status(comparison: Comparison) -> list[str]:
    """What is to be known of how the runs ended."""
    said = (
        [
            *(["added"] if row.added else []),
            *dict.fromkeys(r.status for r in row.unfinished),
            *filter(None, [_no_gain(row)]),
        ]
        for row in comparison.rows
    )
    return ["Status", *(", ".join(words) for words in said)]


def _no_gain(row: ResultRow) -> str:
    never, known = never_beat_the_start(row)
    return f"dev gain: {known - never} of {known}" if never else ""


def _notes(comparison: Comparison, columns: list[list[str]], without: list[str]) -> list[str]:
    """At most five lines: what the marks mean, and what is not shown."""
    text = " ".join(cell for column in columns for cell in column[1:])
    marks = [
        *(["* highest mean, which may be chance"] if "*" in text else []),
        *(["± standard deviation over seeds"] if "±" in text else []),
        *(f"{mark} {why}" for mark, why in ABSENT.values() if mark in text.split()),
    ]
    notes = ["; ".join(marks)] if marks else []
    if marked := [row.label for row in comparison.rows if prompted(row)]:
        notes.append(f"scored with prompts, see the report: {', '.join(marked)}")
    for name in ("device", "precision"):
        values = {
            str(r.environment.get("device_name") if name == "device" else r.training.get("precision") or "")
            for row in comparison.rows
            for r in row.finished
        } - {"", "None"}
        if len(values) > 1:
            notes.append(f"runs differ in their {name}, and so in rounding: {', '.join(sorted(values))}")
    return [*notes, *([f"only in the report: {', '.join(without)}"] if without else [])]
