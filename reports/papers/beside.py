"""Published numbers in any comparison: the rows of papers under one's own, in grey, each number with
its verdict.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from harness.config import nearest
from harness.errors import InputError
from harness.files.printable import join_some
from reports.document.blocks import Block, Text
from reports.document.table import Cell, Column, Table, TableRow
from reports.load import RecordedResults, RecordedRow
from reports.papers.definition import Definition, PaperColumn, PaperTable, load, names
from reports.papers.own_lines import measured_cell
from reports.papers.paper_results import COMPARED, Match, PaperResults
from reports.papers.published_lines import BLANK, published_cell, published_notes, source_note
from reports.records.run_library import RunLibrary
from reports.stats.significance import Significance

_MARKS = (
    "Behind a published number: whether it is inside, above or below the interval in which one more "
    "number like it is expected from the runs here; n.c. = not comparable, with the reason."
)
_SHORT = {"not comparable": "n.c."}


def open_definition(name: str) -> Definition:
    """Return the definition of a paper's published numbers, by its name or file.

    Raises:
        InputError: there is none, or its numbers cannot be read.
    """
    definition = load(name)
    if definition is None:
        message = f'no paper "{name}"{nearest(name, names())}; known: {join_some(names(), 20)}'
        raise InputError(message, key='key "published"')
    definition.published_rows()
    return definition


def published_tables(comparison: RecordedResults, significance: Significance) -> Iterator[Block]:
    """Yield a table for each table of the papers that a comparison names, as far as their columns
    were measured here.
    """
    for name in comparison.file.experiment.get("published", ()):
        try:
            definition = open_definition(name)
        except InputError as error:
            yield Text((f"Published numbers of {name}: {error}.",))
            continue
        own = tuple(row for row in comparison.rows if not row.added and not row.source)
        paper = PaperResults(
            definition, RunLibrary(comparison.name, own, workdir=comparison.workdir)
        )
        tables = [_table(paper, table, comparison.rows) for table in definition.tables]
        shown = [table for table in tables if table is not None]
        yield from shown
        if not shown:
            text = f"Published numbers of {name}: nothing that its tables have was measured here."
            yield Text((text,))


def _table(paper: PaperResults, table: PaperTable, rows: Sequence[RecordedRow]) -> Table | None:
    """Return a table of our rows and the published ones; None without a number of both."""
    plain = [column for column in paper.columns(table) if column.score and not column.difference]
    columns = []
    for one in plain:
        if any(paper.measure(row, one).by_seed for row in rows):
            columns.append(one)
    published = _lines_of_published(paper, table, columns, rows)
    if not columns or not published:
        return None
    own = [_own_line(paper, row, columns) for row in rows]
    heads = []
    for place, column in enumerate(columns):
        heads.append(Column(f"c{place}", column.head, group=column.group))
    name = paper.definition.name
    return Table(
        f"published-{name}-{table.key}",
        f"{table.title} · published numbers of {name}",
        "Rows of this comparison (mean ± standard deviation over seeds), then the published rows.",
        (
            Column("row", "Method", numeric=False),
            Column("base", "Base model", numeric=False, aside=True),
            *heads,
        ),
        tuple(line for line in [*own, *published] if _has_number(line)),
        (_MARKS,),
    )


def _has_number(line: TableRow) -> bool:
    return any(cell.state == "value" for cell in line.cells)


def _own_line(paper: PaperResults, row: RecordedRow, columns: Sequence[PaperColumn]) -> TableRow:
    cells = [Cell(row.label), Cell(row.base_model.rpartition("/")[2])]
    cells += [measured_cell(paper.measure(row, column), column, row) for column in columns]
    return TableRow(tuple(cells), "this comparison", ranked=False)


def _lines_of_published(
    paper: PaperResults,
    table: PaperTable,
    columns: Sequence[PaperColumn],
    rows: Sequence[RecordedRow],
) -> list[TableRow]:
    """Return the published rows, on the base models of our rows where the paper has these."""
    found: dict[tuple[str, str], dict[int, Match]] = {}
    for row in table.rows:
        for one in paper.numbers_of(table, row):
            at = [place for place, column in enumerate(columns) if column.prints(one.published)]
            key = one.published["model"], one.published["base_model"]
            for place in at[:1]:
                found.setdefault(key, {}).setdefault(place, one)
    bases = {paper.definition.find_published_base(row.base_model) for row in rows} - {""}
    known = set(paper.definition.bases)
    lines = []
    for (model, base), numbers in found.items():
        if bases and base in known - bases:
            continue
        cells = [_label(model, numbers), Cell(base)]
        for place, column in enumerate(columns):
            cells.append(_cell(numbers[place], column) if place in numbers else BLANK)
        lines.append(TableRow(tuple(cells), "published", ranked=False, grey=True))
    return lines


def _label(model: str, numbers: dict[int, Match]) -> Cell:
    sources = {source_note(one.published["source_mark"]) for one in numbers.values()}
    cell = Cell(model)
    if len(sources) == 1 and "" not in sources:
        return cell.with_notes(*sources)
    return cell


def _cell(one: Match, column: PaperColumn) -> Cell:
    """Return a printed number with its verdict behind it."""
    kind = one.verdict.kind
    notes = [*published_notes(one.published)]
    if kind == "not comparable":
        notes.append(one.verdict.short)
    cell = published_cell(one, column, notes)
    marked = kind in COMPARED or kind in _SHORT
    if not marked:
        return cell
    return Cell(
        cell.text,
        _SHORT.get(kind, kind),
        cell.value,
        state=cell.state,
        notes=cell.notes,
        digits=column.digits,
    )
