"""A paper's tables: our rows in blocks by base model, then the published rows; the summary of all; search spaces."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from harness.tasks.mteb.benchmarks import EN_V1
from reports.document.table import MINUS, Cell, Column, Table, TableRow, number, ranked
from reports.papers.conditions import has_effect
from reports.papers.definition import PaperColumn, PaperRow, PaperTable, Published
from reports.papers.matching import Matching, Number, trained
from reports.papers.own_rows import BLANK, OTHER, OwnRows, measured_cell, own_rows
from reports.read.comparison_runs import ResultRow
from reports.tables.score_cells import anchor

SPACES = "search_spaces.csv"
SIGNS = {"club": "♣", "diamond": "♦", "heart": "♥", "spade": "♠"}
_MOST_COLUMNS = 20  # a table with more has its columns as lines
_MOST_LISTED = 8  # values of a search that are listed one by one
_DESCRIPTIONS = (  # parts of a published note that only describe the row
    "parameters ", "embedding dim ", "BoW", "supervised", "unsupervised", "semi-supervised", "mean pooling",
)  # fmt: skip


@dataclass
class Filled:
    """A table as built, our rows in it, and how many rows of the paper have no comparable number of ours."""

    table: Table | None
    rows: list[ResultRow]
    missing: int
    printed: int


# --- published cells --------------------------------------------------------------------------------------------------


def source_note(mark: str) -> str:
    """What a source mark of the published file means; empty for a paper's own numbers."""
    sign, colon, source = mark.partition(": ")
    if colon and sign in SIGNS:
        return f"{SIGNS[sign]} {source}"
    if mark.startswith(("own (", "own evaluation (")):
        return f"The paper's own result, marked {mark[mark.index('(') + 1 : -1]} there."
    if mark == "repo":
        return "From the authors' repository, not printed in the paper."
    return "" if mark in ("", "own", "own evaluation", "summary", "paper") else mark


def published_notes(p: Published) -> tuple[str, ...]:
    """The notes on a published number, without the parts that only describe its row."""
    parts = (part.strip() for part in p["notes"].split(";"))
    text = "; ".join(part for part in parts if part and part not in EN_V1 and not part.startswith(_DESCRIPTIONS))
    return (text,) if text else ()


def published_cell(one: Number, column: PaperColumn, notes: Sequence[str] = ()) -> Cell:
    """A printed number as it was printed."""
    if one.value is None:
        return Cell("illegible", state="empty").noted(*notes)
    text = one.published["value"].replace("-", MINUS)
    signed = column.difference and one.value > 0 and not text.startswith("+")
    return Cell(f"+{text}" if signed else text, value=one.value, state="value", notes=tuple(notes))


_Line = tuple[str, str, PaperRow, dict[int, Number]]  # published model, its base model, its row, numbers by column


def _published_rows(matching: Matching, table: PaperTable) -> list[TableRow]:
    """The published rows, those of one base model together."""
    columns = matching.columns(table)
    by_model: dict[tuple[str, str], _Line] = {}
    for one in matching.numbers:
        if one.place is not None and one.place.table is table:
            model, base, place = one.published["model"], one.published["base_model"], one.place
            line = by_model.setdefault((model, base), (model, base, place.row, {}))
            line[3].setdefault(next(i for i, c in enumerate(columns) if c is place.column), one)
    order, bases = [id(row) for row in table.rows], list(matching.definition.bases)
    lines = sorted(by_model.values(), key=lambda x: (bases.index(x[1]) if x[1] in bases else -1, order.index(id(x[2]))))
    rows = []
    for model, base, row, numbers in lines:
        notes = [set(published_notes(one.published)) for one in numbers.values()]
        common = set.intersection(*notes) if len(notes) > 1 else set()
        marks = {note for one in numbers.values() if (note := source_note(one.published["source_mark"]))}
        one_mark = len({one.published["source_mark"] for one in numbers.values()}) == 1
        cells = [Cell(model).noted(*(marks if one_mark else ()), *sorted(common)), BLANK]
        for i, column in enumerate(columns):
            if i not in numbers:
                cells.append(_derived_cell(table, column, columns, (model, base, row, numbers), lines))
                continue
            p = numbers[i].published
            own = [note for note in published_notes(p) if note not in common]
            own += [note for note in [source_note(p["source_mark"])] if note and not one_mark]
            cells.append(published_cell(numbers[i], column, own))
        block = f"{base if base in bases else OTHER} · published"
        rows.append(TableRow(tuple(cells), block, ranked=not row.supervised))
    return rows


def _derived_cell(
    table: PaperTable, column: PaperColumn, columns: Sequence[PaperColumn], line: _Line, lines: Sequence[_Line]
) -> Cell:
    """A difference that the paper does not print, from the two numbers that it does."""
    _, base, row, numbers = line
    found = table.reference_of(row)
    if not column.difference or column.published or found is None or found[0] is row:
        return BLANK
    at = next(i for i, c in enumerate(columns) if c.head == column.name)
    other = next((n[at] for _, b, r, n in lines if r is found[0] and b == base and at in n), None)
    if at not in numbers or other is None:
        return BLANK
    own, reference = numbers[at].value, other.value
    if own is None or reference is None:
        return BLANK
    return number(column.difference * (own - reference), digits=column.digits, signed=True)


# --- tables -----------------------------------------------------------------------------------------------------------


def paper_table(matching: Matching, table: PaperTable) -> Filled:
    """One table of the paper; None where neither the paper's file nor our runs have anything for it."""
    specs = matching.columns(table)
    own = own_rows(matching, table)
    numbers = [own_numbers for row in table.rows if (own_numbers := matching.numbers_of(table, row))]
    missing = sum(all(one.difference is None for one in own_numbers) for own_numbers in numbers)
    filled = Filled(None, own.rows, missing, len(numbers))
    rows = [*own.lines, *_published_rows(matching, table)]
    if not rows:
        return filled
    columns = [Column("row", "Method", numeric=False)]
    columns.append(Column("seeds", "Runs" if table.studies else "Seeds", aside=True))
    for i, c in enumerate(specs):
        title, _, sub = c.title.partition(" · ")
        key = c.published.partition(" | ")[0] or title
        key += f" {i}" if any(column.key == key for column in columns) else ""
        columns.append(Column(key, title, sub, c.group, better=c.better))
    keep = [j for j in range(len(columns)) if j == 0 or any(row.cells[j].state != "empty" for row in rows)]
    dropped = [column.title for j, column in enumerate(columns) if j > 1 and j not in keep]
    columns = [columns[j] for j in keep]
    body = ranked(columns, [replace(row, cells=tuple(row.cells[j] for j in keep)) for row in rows])
    result = Table(table.key, table.title, table.caption, tuple(columns), body, _legend(own, body, dropped))
    filled.table = _transposed(result) if len(specs) > _MOST_COLUMNS else result
    return filled


def _legend(own: OwnRows, rows: Iterable[TableRow], dropped: Sequence[str]) -> tuple[str, ...]:
    legend = ["Measured: mean ± standard deviation over seeds. Published: as printed, without a standard deviation."]
    if len({row.block for row in rows}) > 1:
        legend.append("Blocks with different base models are not comparable with each other.")
    if len({training[0] for row in own.rows if (training := trained(row)) is not None}) > 1:
        legend.append("Rows measured here were trained on different texts, which their cards name.")
    if dropped:
        legend.append(f"Columns without any number are left out: {', '.join(dropped).removesuffix('.')}.")
    return tuple(legend)


def _transposed(table: Table) -> Table:
    """Columns as lines: the group of a column is the block of its line, the block of a row the group of its column."""
    columns = [Column("data", "Data set", numeric=False)]
    first = 2 if table.columns[1].key == "seeds" else 1
    for i, row in enumerate(table.rows):
        head = row.cells[0]
        seeds = row.cells[1].text if first == 2 and row.cells[1].state != "empty" else ""
        title, _, detail = head.text.partition(" (")
        parts = [detail.removesuffix(")"), f"{seeds} seed{'' if seeds == '1' else 's'}" if seeds else ""]
        columns.append(Column(f"{row.block}-{i}", title, " · ".join(filter(None, parts)), row.block, notes=head.notes))
    lines = [
        TableRow((Cell(column.title), *(row.cells[j] for row in table.rows)), column.group)
        for j, column in enumerate(table.columns[first:], first)
    ]
    legend = ("Best and second: of each block of columns.", *table.legend)
    return replace(table, columns=tuple(columns), rows=tuple(lines), legend=legend)


def summary_table(matching: Matching) -> Table | None:
    """The headline numbers of every table, published and measured."""
    columns = (
        Column("model", "Published model", numeric=False),
        Column("base", "Base model", numeric=False, aside=True),
        Column("task", "Score", numeric=False),
        Column("ours", "Ours", "mean ± sd"),
        Column("n", "Seeds", aside=True),
        Column("published", "Published"),
        Column("difference", "Difference", "ours − published"),
        Column("verdict", "Verdict", "on the published number", numeric=False),
    )
    rows = []
    placed = [(one, one.place) for table in matching.definition.tables for one in matching.numbers
              if one.place is not None and one.place.table is table]  # fmt: skip
    for one, place in placed:
        p, column, measured = one.published, place.column, one.measured
        if column.head not in place.table.headline:
            continue
        seeds, gap = len(measured.by_seed), one.difference
        cells = (
            Cell(p["model"], link=anchor(one.ours) if one.ours and seeds else "", records=measured.records),
            Cell(p["base_model"]),
            Cell(column.title.replace(" · ", " ") if column.difference else column.head),
            replace(measured_cell(measured, column), notes=()) if seeds else BLANK,
            Cell(str(seeds), value=seeds) if seeds else BLANK,
            published_cell(one, column, published_notes(p)),
            BLANK if gap is None else number(gap, digits=column.digits, signed=True),
            Cell(one.verdict.short).noted(*one.remarks),
        )
        rows.append(TableRow(cells, place.table.title))
    if not rows:
        return None
    legend = (
        "Our interval: where our runs let expect a number like the paper's (95 %, Student's t, over seeds on the same "
        "test pairs), which is one more run, or the mean of as many runs as the paper made. A method without a seed "
        "agrees within 0.05. Whether two numbers can be compared is read from the records: base model, training text, "
        "settings and protocol.",
    )
    caption = "The main numbers of each table; tables/joined.csv and data.json hold every published number."
    return Table("joined", "Published and measured", caption, columns, tuple(rows), legend)


# --- search spaces ----------------------------------------------------------------------------------------------------


def search_spaces(matching: Matching, table: PaperTable) -> Table | None:
    """What the paper searched, and what our studies tried."""
    bases: dict[tuple[str, ...], list[str]] = {}  # equal on several base models: one line
    for p in matching.definition.published_rows(SPACES):
        if p["paper"].startswith(tuple(table.published)):
            key = (p["model"], p["task"], p["metric"], p["value"], p["source_mark"], p["notes"])
            bases.setdefault(key, []).append(p["base_model"])
    rows = []
    for (model, task, metric, value, mark, notes), names in bases.items():
        log = task.startswith("log10")
        text = value.replace(";", ", ")
        published = Cell(text.replace("-", MINUS) if log else text).noted(*filter(None, (notes, source_note(mark))))
        tried = _tried_values(matching, model, table.options.get(task, ""), log)
        rows.append(TableRow((Cell(task), Cell(metric), published, Cell(tried or "–"), Cell(", ".join(names))), model))
    columns = (
        Column("parameter", "Hyperparameter", numeric=False),
        Column("kind", "What it is", numeric=False, aside=True),
        Column("published", "Published", numeric=False),
        Column("tried", "Tried here", "in studies", numeric=False),
        Column("base", "Base model", "of the paper", numeric=False, aside=True),
    )
    return Table(table.key, table.title, table.caption, columns, tuple(rows)) if rows else None


def _tried_values(matching: Matching, model: str, option: str, log: bool) -> str:
    """The values of an option that our trials of a published model tried and that had an effect."""
    rows = (row for table in matching.definition.tables for row in table.rows if row.method)
    method = next((row.method for row in rows if row.label.startswith(model) or model.startswith(row.label)), "")
    records = (trial.runs[0] for trial in matching.library.trials)
    values = {
        json.dumps(record.config[option]): record.config[option]
        for record in records
        if record.method == method and record.config.get(option) is not None and has_effect(record, option, {})
    }
    numbers = sorted(v for v in values.values() if isinstance(v, int | float))
    numbers = [math.log10(v) for v in numbers if v > 0] if log else numbers
    if len(numbers) > _MOST_LISTED:
        return f"{len(numbers)} values from {numbers[0]:.4g} to {numbers[-1]:.4g}"
    if numbers:
        return ", ".join(f"{v:.4g}" for v in numbers).replace("-", MINUS if log else "-")
    return ", ".join(sorted(map(str, values.values())))
