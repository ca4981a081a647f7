"""The published numbers of a paper's table as cells and lines."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from harness.tasks.mteb.benchmarks import EN_V1
from reports.document.table import MINUS, Cell, TableRow, number
from reports.papers.definition import PaperCell, PaperColumn, PaperRow, PaperTable, Published
from reports.papers.paper_results import Match, PaperResults

SIGNS = {"club": "♣", "diamond": "♦", "heart": "♥", "spade": "♠"}
OTHER = "other models"
"""The block of rows that are on no base model of the paper."""
BLANK = Cell("–", state="empty")
_DESCRIPTIONS = (  # parts of a published note that only describe the row
    "parameters ",
    "embedding dim ",
    "BoW",
    "supervised",
    "unsupervised",
    "semi-supervised",
    "mean pooling",
)


def source_note(mark: str) -> str:
    """What a source mark of the published file means; empty for a paper's own numbers."""
    sign, colon, source = mark.partition(": ")
    if colon and sign in SIGNS:
        return f"{SIGNS[sign]} {source}"
    if mark.startswith(("own (", "own evaluation (")):
        _, _, inside = mark.partition("(")
        return f"The paper's own result, marked {inside[:-1]} there."
    if mark == "repo":
        return "From the authors' repository, not printed in the paper."
    if mark == "paper copy":
        return "Read from a secondary copy of the paper's text."
    if mark in ("", "own", "own evaluation", "summary", "paper"):
        return ""
    return mark


def published_notes(p: Published) -> tuple[str, ...]:
    """The notes on a published number, without the parts that only describe its row."""
    parts = []
    for part in p["notes"].split(";"):
        text = part.strip()
        describes_row = text in EN_V1 or text.startswith(_DESCRIPTIONS)
        if text and not describes_row:
            parts.append(text)
    if not parts:
        return ()
    return ("; ".join(parts),)


def published_cell(one: Match, column: PaperColumn, notes: Sequence[str] = ()) -> Cell:
    """A printed number as it was printed."""
    if one.value is None:
        return Cell("illegible", state="empty").with_notes(*notes)
    text = one.published["value"].replace("-", MINUS)
    is_gain = column.difference and one.value > 0
    if is_gain and not text.startswith("+"):
        text = f"+{text}"
    return Cell(text, value=one.value, state="value", notes=tuple(notes))


PublishedKey = tuple[str, str]
"""Of a published row: model and base model."""


PublishedRows = dict[PublishedKey, tuple[PaperRow, dict[int, Match]]]
"""The row of the definition, and its numbers by the place of their column."""


def lines_of_published(paper: PaperResults, table: PaperTable) -> list[TableRow]:
    """The published rows, those of one base model together."""
    bases = list(paper.definition.bases)
    rows = _find_published_rows(paper, table)

    def place_of(key: PublishedKey) -> int:
        _, base = key
        known = paper.definition.find_published_base(base)
        if known:
            return bases.index(known)
        return -1

    lines = []
    for key in sorted(rows, key=place_of):
        model, base = key
        row, numbers = rows[key]
        about, common = _find_shared_notes(numbers.values())
        cells = [Cell(model).with_notes(*about, *common), BLANK]
        for i, column in enumerate(paper.columns(table)):
            printed = numbers.get(i)
            if printed is None:
                cells.append(_find_derived_cell(paper, table, rows, key, column))
            else:
                further = _own_notes(printed, common, several=not about)
                cells.append(published_cell(printed, column, further))
        name = paper.definition.find_published_base(base) or OTHER
        block = f"{name} · published"
        lines.append(TableRow(tuple(cells), block, not row.supervised))
    return lines


def _find_shared_notes(numbers: Collection[Match]) -> tuple[list[str], set[str]]:
    """Return what the source of all numbers of a row means, and the notes that several have in
    common.
    """
    marks = {one.published["source_mark"] for one in numbers}
    about = []
    if len(marks) == 1:
        about = list(filter(None, map(source_note, marks)))
    notes = [set(published_notes(one.published)) for one in numbers]
    if len(notes) < 2:
        return about, set()
    return about, set.intersection(*notes)


def _find_published_rows(paper: PaperResults, table: PaperTable) -> PublishedRows:
    """Return the rows that the paper publishes in a table."""
    columns = paper.columns(table)
    rows: PublishedRows = {}
    for row in table.rows:
        for one in paper.numbers_of(table, row):
            assert one.place is not None
            at = _place_of_column(columns, one.place.column)
            key = one.published["model"], one.published["base_model"]
            _, numbers = rows.setdefault(key, (row, {}))
            numbers.setdefault(at, one)
    return rows


def _place_of_column(columns: Sequence[PaperColumn], wanted: PaperColumn) -> int:
    for i, column in enumerate(columns):
        if column is wanted:
            return i
    raise ValueError(f"no column {wanted.head}")


def _own_notes(printed: Match, common: set[str], *, several: bool) -> list[str]:
    """Return the notes of a number that its row does not have, with its source where a row has
    several.
    """
    every = published_notes(printed.published)
    notes = [note for note in every if note not in common]
    if several:
        notes.append(source_note(printed.published["source_mark"]))
    return list(filter(None, notes))


def _find_derived_cell(
    paper: PaperResults,
    table: PaperTable,
    rows: PublishedRows,
    key: PublishedKey,
    column: PaperColumn,
) -> Cell:
    """A number that the paper does not print: a difference of two that it does, or nothing."""
    heads = [one.head for one in paper.columns(table)]
    if column.published or column.name not in heads:
        return BLANK
    at = heads.index(column.name)
    _, base = key
    own_row, own = rows[key]
    reference = PaperCell(table, own_row, column).reference
    for (_, other_base), (row, numbers) in rows.items():
        printed = numbers.get(at)
        if row is reference and other_base == base and printed is not None:
            return _derive_cell(column, own.get(at), printed)
    return BLANK


def _derive_cell(column: PaperColumn, own: Match | None, reference: Match | None) -> Cell:
    """A difference that the paper does not print, from the two numbers that it does."""
    if own is None or own.value is None:
        return BLANK
    if reference is None or reference.value is None:
        return BLANK
    return number(
        column.difference * (own.value - reference.value),
        digits=column.digits,
        signed=True,
    )
