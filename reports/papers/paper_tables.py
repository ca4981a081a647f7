"""A paper's tables: our rows in blocks by base model, then the published rows in the same columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from reports.document.table import Cell, Column, Table, TableRow, number, ranked
from reports.papers.candidates import trained
from reports.papers.definition import PaperColumn, PaperRow, PaperTable
from reports.papers.matching import MatchedNumber, Matching
from reports.papers.own_rows import OTHER, own_rows
from reports.papers.paper_cells import BLANK, doubts, published_cell, source_note
from reports.read.comparison_runs import ResultRow


@dataclass
class Filled:
    """A table as built, and what the page says about it."""

    table: Table | None
    rows: list[ResultRow] = field(default_factory=list)  # ours that stand in it
    measured: bool = False  # anything of ours does
    missing: list[tuple[str, str]] = field(default_factory=list)  # (row, base models that lack it)
    reason: str = ""  # why our runs have nothing of it, where they were to


_Printed = tuple[str, str, PaperRow, dict[int, MatchedNumber]]  # model, base model, row, its numbers by column


def _published_blocks(
    matching: Matching, table: PaperTable, columns: Sequence[PaperColumn]
) -> list[tuple[str, TableRow]]:
    """(base model, row) of the published rows, those of one base model together."""
    printed: list[_Printed] = []
    place: dict[tuple[str, str], dict[int, MatchedNumber]] = {}
    for j in matching.rows:
        if j.place is None or j.place.table is not table:
            continue
        key = (j.published["model"], j.published["base_model"])
        if key not in place:
            place[key] = {}
            printed.append((*key, j.place.row, place[key]))
        place[key].setdefault(next(i for i, c in enumerate(columns) if c is j.place.column), j)
    order = {id(row): i for i, row in enumerate(table.rows)}
    bases = list(matching.definition.bases)
    printed.sort(key=lambda f: (bases.index(f[1]) if f[1] in bases else -1, order[id(f[2])]))
    rows = []
    for model, base, spec, cells in printed:
        shared = [set(doubts(j.published)) for j in cells.values()]
        common = set.intersection(*shared) if len(shared) > 1 else set()
        marks = {j.published["source_mark"] for j in cells.values()}
        mark = [note for note in [source_note(next(iter(marks)))] if note and len(marks) == 1]
        head = Cell(model).noted(*mark, *sorted(common))
        line = [head, BLANK]
        for i, column in enumerate(columns):
            if i not in cells:
                line.append(_derived(matching, table, spec, column, columns, base, cells, printed))
                continue
            j = cells[i]
            notes = [note for note in doubts(j.published) if note not in common]
            notes += [n for n in [source_note(j.published["source_mark"])] if n and len(marks) > 1]
            line.append(published_cell(j.published, j.value, column, notes))
        name = base if base in bases else OTHER
        rows.append((name, TableRow(tuple(line), f"{name} · published", ranked=not spec.supervised)))
    return rows


def _derived(
    matching: Matching, table: PaperTable, spec: PaperRow, column: PaperColumn, columns: Sequence[PaperColumn],
    base: str, cells: dict[int, MatchedNumber], printed: Sequence[_Printed],
) -> Cell:  # fmt: skip
    """A difference that the paper does not print, from the two numbers that it does."""
    label = spec.reference or table.reference
    at = next((i for i, c in enumerate(columns) if column.delta and c.title == column.delta), None)
    if at is None or not label or spec.label == label or column.published:
        return BLANK
    reference = next((c for _, b, s, c in printed if s.label == label and b == base), {})
    own, other = cells.get(at), reference.get(at)
    if own is None or other is None or own.value is None or other.value is None:
        return BLANK
    value = column.sign * (own.value - other.value)
    return number(value, digits=column.digits, signed=True)


def paper_table(matching: Matching, table: PaperTable) -> Filled:
    """One table of the paper; None where neither the paper's file nor our runs have anything for it."""
    filled = Filled(None)
    specs = matching.columns(table)
    ours = own_rows(matching, table, specs)
    own, filled.rows, filled.measured = ours.lines, ours.rows, ours.measured
    printed = _published_blocks(matching, table, specs)
    filled.missing = _missing(matching, table, filled)
    filled.reason = "" if ours.measured or table.kind == "study" else _reason(matching, table, specs)
    body = [*own, *(row for _, row in printed)]
    if not body:
        return filled
    count = Column("seeds", "Runs" if table.kind == "study" else "Seeds", aside=True)
    columns = [Column("row", "Method", numeric=False), count]
    for i, c in enumerate(specs):
        key = c.published or c.title
        key += f" {i}" if any(column.key == key for column in columns) else ""
        columns.append(Column(key, c.title, c.sub, c.group, better="" if c.delta else c.better))
    columns, body, dropped = _kept(columns, body)
    rows = ranked(columns, body)
    legend = ["Measured: mean ± standard deviation over seeds. Published: as printed, without a spread."]
    if len({row.block for row in rows}) > 1:
        legend.append("Blocks of unlike base models are not comparable with one another.")
    if len({training[0] for row in filled.rows if (training := trained(row)) is not None}) > 1:
        legend.append("Rows measured here were not all trained on the same text: their cards say on which.")
    if dropped:
        legend.append(f"Columns without any number are left out: {', '.join(dropped).removesuffix('.')}.")
    result = Table(table.key, table.title, table.caption, tuple(columns), rows, (*legend, *table.notes))
    filled.table = _transposed(result) if table.transposed else result
    return filled


def _kept(columns: list[Column], rows: list[TableRow]) -> tuple[list[Column], list[TableRow], list[str]]:
    """The columns that hold anything, and the titles of the others; seeds only where there are rows of ours."""
    keep = [j for j in range(len(columns)) if j == 0 or any(row.cells[j].state != "empty" for row in rows)]
    dropped = [column.title for j, column in enumerate(columns) if j > 1 and j not in keep]
    kept = [replace(row, cells=tuple(row.cells[j] for j in keep)) for row in rows]
    return [columns[j] for j in keep], kept, dropped


def _transposed(table: Table) -> Table:
    """Columns as lines: the group of a column is the block of its line, the block of a row the group of its column."""
    groups = [row.block for row in table.rows]
    columns = [Column("data", "Data set", numeric=False)]
    first = 2 if table.columns[1].key == "seeds" else 1
    for i, (row, group) in enumerate(zip(table.rows, groups, strict=True)):
        head = row.cells[0]
        seeds = row.cells[1].text if first == 2 and row.cells[1].state != "empty" else ""
        title, _, detail = head.text.partition(" (")
        parts = [detail.removesuffix(")"), f"{seeds} seed{'' if seeds == '1' else 's'}" if seeds else ""]
        columns.append(Column(f"{group}-{i}", title, " · ".join(p for p in parts if p), group, notes=head.notes))
    lines = []
    for j, column in enumerate(table.columns[first:], first):
        lines.append(TableRow((Cell(column.title), *(row.cells[j] for row in table.rows)), column.group))
    legend = tuple(text for text in table.legend)
    return replace(
        table, columns=tuple(columns), rows=tuple(lines), legend=("Best and second: of each block of columns.", *legend)
    )


def _missing(matching: Matching, table: PaperTable, filled: Filled) -> list[tuple[str, str]]:
    """Rows of the paper without a comparable number of ours -> why."""
    said = []
    for spec in table.rows:
        entries = [j for j in matching.rows if j.place and j.place.table is table and j.place.row is spec]
        if not spec.published or not entries:
            continue
        if any(j.verdict.kind in ("inside", "above", "below", "one seed") for j in entries):
            continue
        bases = ", ".join(dict.fromkeys(j.published["base_model"] for j in entries))
        if not spec.method or (spec.cannot and all(j.verdict.kind == "not measured" for j in entries)):
            said.append((spec.label, spec.cannot or "no method of this harness"))
        elif all(j.verdict.kind == "not measured" for j in entries):
            reasons = dict.fromkeys(j.verdict.reason or j.verdict.text for j in entries)
            said.append((spec.label, f"{bases}: {'; '.join(list(reasons)[:2])}"))
        else:
            said.append((spec.label, f"{bases}: measured with another base model, text, recipe or protocol only"))
    return said


def _reason(matching: Matching, table: PaperTable, columns: Sequence[PaperColumn]) -> str:
    """What the records with most scores say of one that was asked for and could not be made."""
    rows = [(spec, row) for spec in table.rows for rows in matching.candidates(spec).values() for row in rows]
    for spec, row in sorted(rows, key=lambda one: -len({s.task for r in one[1].finished for s in r.scores})):
        for column in columns:
            lacks = () if column.delta else matching.value(table, spec, row, column).lacks
            if reason := next((lack.text for lack in lacks if lack.asked), ""):
                return reason.partition("; ")[0]  # its first clause
    return ""
