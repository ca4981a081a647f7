"""A paper's tables: our rows in blocks by base model, then the published rows; the summary of all; search spaces."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from harness.tasks.mteb.benchmarks import EN_V1
from reports.document.table import MINUS, Cell, Column, Table, TableRow, absent, number, ranked
from reports.papers.conditions import has_effect
from reports.papers.definition import PaperColumn, PaperRow, PaperTable, Published
from reports.papers.matching import Matching, Number, Place, trained
from reports.papers.measured import ENDED, Measured
from reports.read.comparison_runs import ResultRow, base_name, prompted
from reports.stats.estimate import mean_sd
from reports.tables.score_cells import anchor

SPACES = "search_spaces.csv"
SIGNS = {"club": "♣", "diamond": "♦", "heart": "♥", "spade": "♠"}
OTHER = "other models"
BLANK = Cell("–", state="empty")
_CHOICE = (
    "One of several configurations. It was not chosen by its scores: first the paper's text and settings, then most "
    "seeds, most tasks, most training data, the newest. Its card has all settings."
)


_MOST_COLUMNS = 20  # a table with more has its columns as lines
_MOST_LISTED = 8  # values of a search that are listed one by one
_DESCRIPTIONS = (  # parts of a published note that only describe the row
    "parameters ", "embedding dim ", "BoW", "supervised", "unsupervised", "semi-supervised", "mean pooling",
)  # fmt: skip


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


# --- our rows ---------------------------------------------------------------------------------------------------------


def measured_cell(measured: Measured, column: PaperColumn, row: ResultRow | None = None) -> Cell:
    """Mean and standard deviation over seeds, or why there is none."""
    if not measured.by_seed:
        untrained = row is not None and row.records[0].supervision == "untrained"
        if measured.state == "empty" or (column.metric == "train_seconds" and untrained):
            return BLANK
        notes = [f"{measured.missing}."] if measured.missing and measured.state not in ENDED else []
        return absent(measured.state, *(_sentence(note) for note in notes))
    mean, sd = mean_sd(measured.values)
    notes = [measured.partly] if measured.partly else []
    notes += [f"Another protocol than the paper's: {text}." for text in measured.unlike]
    return number(
        mean, digits=column.digits, sd=sd, n=len(measured.by_seed), records=measured.records,
        signed=bool(column.difference), notes=notes,
    )  # fmt: skip


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:]


@dataclass
class OwnRows:
    """Our lines of a table, and our rows in them. A row of the paper without a run has a line with the reason.

    Where only other tables have runs, every row says that it has none.
    """

    matching: Matching
    table: PaperTable
    lines: list[TableRow] = field(default_factory=list)
    rows: list[ResultRow] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.columns = self.matching.columns(self.table)
        if self.table.studies:
            self._add_studies()
        else:
            self._add_runs()
        if any(str(row.where.get("pooling", "")).startswith("layer:") for row in self.table.rows):
            self._add_layers()
        every = (row for one in self.matching.definition.tables for row in one.rows)
        if not self.lines and any(self.matching.candidates(row) for row in every):
            rows = [row for row in self.table.rows if self.matching.bases_of(self.table, row)]
            self.lines = [self._line_without_run(row, "", "not measured here") for row in rows]

    def _value(self, row: PaperRow, ours: ResultRow, column: PaperColumn) -> Measured:
        return self.matching.value(Place(self.table, row, column), ours)

    def _add(self, row: ResultRow) -> None:
        if all(row is not other for other in self.rows):
            self.rows.append(row)

    def _add_runs(self) -> None:
        """Our rows that have any of the table's numbers (or ended early), by base model in the definition's order."""
        blocks: dict[tuple[str, bool], dict[int, list[tuple[ResultRow, list[Cell]]]]] = {}
        scores = [column for column in self.columns if not column.difference]
        for row in self.table.rows:
            for base, members in self.matching.candidates(row).items():
                best = next((r for r in members if any(self._value(row, r, c).by_seed for c in scores)), None)
                best = best or next((r for r in members if not r.finished or r.rehearsal), None)
                if best is not None:
                    cells = [measured_cell(self._value(row, best, c), c, best) for c in self.columns]
                    block = blocks.setdefault((OTHER if row.weights else base, best.rehearsal), {})
                    block.setdefault(id(row), []).append((best, cells))
        # A block without any number is shown only for a rehearsal, whose cells say what was not available.
        blocks = {
            key: block
            for key, block in blocks.items()
            if key[1] or any(c.state == "value" for lines in block.values() for _, cells in lines for c in cells)
        }
        if blocks and all(base != OTHER for base, _ in blocks):
            blocks[OTHER, any(rehearsal for _, rehearsal in blocks)] = {}
        known = [ours for names in self.matching.definition.bases.values() for ours in names]

        def order(key: tuple[str, bool]) -> tuple[bool, bool, int, str]:
            base, rehearsal = key
            return base == OTHER, rehearsal, known.index(base) if base in known else len(known), base

        for base, rehearsal in sorted(blocks, key=order):
            name = base if base == OTHER else base_name(base)
            title = f"{name} · {'rehearsal' if rehearsal else 'measured here'}"
            for row in self.table.rows:
                lines = blocks[base, rehearsal].get(id(row), [])
                for ours, cells in lines:
                    self.lines.append(self._line(row, ours, cells, title))
                    self._add(ours)
                if not lines and self._is_expected(row, base):
                    self.lines.append(self._line_without_run(row, base, title))

    def _line(self, row: PaperRow, ours: ResultRow, cells: list[Cell], block: str) -> TableRow:
        count, whole = len(ours.finished), len(ours.records)
        seeds = Cell(str(count) if count == whole else f"{count} of {whole}", value=count)
        label = f"{row.label} ({base_name(ours.base_model)})" if row.weights else row.label
        head = Cell(label, link=anchor(ours), records=tuple(r.id for r in ours.records), notes=self._notes(row, ours))
        return TableRow((head, seeds, *cells), block, ranked=not (row.supervised or ours.supervision == "supervised"))

    def _notes(self, row: PaperRow, ours: ResultRow) -> tuple[str, ...]:
        """What a reader should know of a row of ours before comparing it with the paper's."""
        notes = [f"{_sentence(text)}."] if (text := prompted(ours)) else []
        if len(self.matching.candidates(row).get(ours.base_model, [])) > 1:
            notes.append(_CHOICE)
        conditions = self.matching.conditions
        base = conditions.published_base(ours.base_model)
        if base and self.matching.bases_of(self.table, row) and not ours.rehearsal:
            notes += [*conditions.other_training(row, ours), *conditions.remarks(base, row, ours)]
        return tuple(notes)

    def _is_expected(self, row: PaperRow, base: str) -> bool:
        """Whether a block lacks a row of the paper: one that the paper has on its base model, or on any other one."""
        bases = self.matching.bases_of(self.table, row)
        if not bases:
            return False
        elsewhere = bool(row.weights) or not any(one in self.matching.definition.bases for one in bases)
        if elsewhere or base == OTHER:
            return elsewhere and base == OTHER
        published = self.matching.conditions.published_base(base)
        return not published or published in bases

    def _line_without_run(self, row: PaperRow, base: str, block: str) -> TableRow:
        """The line of a row that has no run: n/a with the reason where the paper has a number."""
        found = self.matching.candidates(row) if row.method and not self.table.studies else {}
        rows = found.get(base, []) if base not in ("", OTHER) else [one for rows in found.values() for one in rows]
        if row.cannot or not row.method:
            why = row.cannot or "no method of this harness"
        elif rows:
            why = "its runs have no score of this table"
        else:
            why = f"no {'study' if self.table.studies else 'run'} of it" + (" on this base model" if found else "")
        cells = []
        for column in self.columns:
            recorded = self._value(row, rows[0], column).missing if rows else ""
            cannot = "" if column.score else column.cannot
            text = _sentence(f"{recorded or cannot or why}.")
            cells.append(absent("missing", text) if column.published else BLANK)
        return TableRow((Cell(row.label), BLANK, *cells), block, ranked=False)

    def _add_studies(self) -> None:
        """A block for each setting that studies scored trials in."""
        library = self.matching.library
        for setting in library.settings:
            name = f"{base_name(setting.base_model)} · {library.setting_names[setting]} · measured here"
            lines = []
            for row in self.table.rows:
                numbers = [self.matching.value_of_study(row, setting, c) for c in self.columns]
                if any(one.by_seed for one in numbers):
                    runs = numbers[0].records
                    cells = [replace(measured_cell(m, c), n=None) for m, c in zip(numbers, self.columns, strict=True)]
                    trials = Cell(f"{len(runs)} runs", value=len(runs))
                    lines.append(TableRow((Cell(row.label, records=runs), trials, *cells), name))
                elif self._is_expected(row, setting.base_model):
                    lines.append(self._line_without_run(row, setting.base_model, name))
            if any(cell.state == "value" for line in lines for cell in line.cells):
                self.lines += lines

    def _add_layers(self) -> None:
        """The best and the worst layer of each untrained model that has the suite layers; in the first column."""
        from reports.tables.space import extremes

        library = self.matching.library
        untrained = [row for row in library.rows if row.finished and row.records[0].supervision == "untrained"]
        comparison = library.as_comparison(self.table.key, untrained)
        for row, lines in extremes(comparison, self.columns[0].name, "senteval") if self.columns else []:
            block = f"{base_name(row.base_model)} · {'rehearsal' if row.rehearsal else 'measured here'}"
            for text, cell in lines:
                head = Cell(text, link=anchor(row), records=cell.records)
                seeds = Cell(str(len(row.finished)), value=len(row.finished))
                blanks = [BLANK] * (len(self.columns) - 1)
                self.lines.append(TableRow((head, seeds, cell, *blanks), block, ranked=False))
            self._add(row)


# --- tables -----------------------------------------------------------------------------------------------------------


def paper_table(matching: Matching, table: PaperTable) -> tuple[Table | None, list[ResultRow]]:
    """One table of the paper, and our rows in it; None where neither the paper's file nor our runs have anything."""
    specs = matching.columns(table)
    own = OwnRows(matching, table)
    rows = [*own.lines, *_published_rows(matching, table)]
    if not rows:
        return None, own.rows
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
    return (_transposed(result) if len(specs) > _MOST_COLUMNS else result), own.rows


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
