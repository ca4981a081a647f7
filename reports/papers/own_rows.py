"""Our rows of a paper's table, in blocks by base model; a row of the paper without a run shows the reason."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from reports.document.table import Cell, TableRow, absent, number
from reports.papers.definition import PaperColumn, PaperRow, PaperTable
from reports.papers.matching import Matching, Place
from reports.papers.measured import ENDED, Measured
from reports.read.comparison_runs import ResultRow, base_name
from reports.read.prompted import prompted
from reports.stats.estimate import mean_sd
from reports.tables.score_cells import anchor

OTHER = "other models"
BLANK = Cell("–", state="empty")
_CHOICE = (
    "One of several configurations. It was not chosen by its scores: first the paper's text and settings, then most "
    "seeds, most tasks, most training data, the newest (of differences: rows that were trained alike). Its card has "
    "all settings."
)


@dataclass
class OwnRows:
    """Lines of the table, and our rows in them."""

    lines: list[TableRow] = field(default_factory=list)
    rows: list[ResultRow] = field(default_factory=list)

    def add(self, row: ResultRow) -> None:
        if all(row is not other for other in self.rows):
            self.rows.append(row)


def own_rows(matching: Matching, table: PaperTable) -> OwnRows:
    """Our lines of a table. Where only other tables have runs, its rows say that they have none."""
    filler = _Filler(matching, table)
    if table.studies:
        filler.add_studies()
    else:
        filler.add_runs()
    if any(str(row.where.get("pooling", "")).startswith("layer:") for row in table.rows):
        filler.add_layers()
    rows = (row for one in matching.definition.tables for row in one.rows)
    if not filler.own.lines and any(matching.candidates(row) for row in rows):
        lines = [filler.line_without_run(row, "") for row in table.rows if matching.bases_of(table, row)]
        filler.own.lines = [replace(line, block="not measured here") for line in lines]
    return filler.own


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


def _has_value(lines: Iterable[Sequence[Cell]]) -> bool:
    return any(cell.state == "value" for cells in lines for cell in cells)


class _Filler:
    """Our lines of one table."""

    def __init__(self, matching: Matching, table: PaperTable) -> None:
        self.matching, self.table, self.columns = matching, table, matching.columns(table)
        self.own = OwnRows()

    def _value(self, row: PaperRow, ours: ResultRow, column: PaperColumn) -> Measured:
        return self.matching.value(Place(self.table, row, column), ours)

    def add_runs(self) -> None:
        """Our rows that have any of the table's numbers (or ended early), by base model in the definition's order."""
        blocks: dict[tuple[str, bool], list[tuple[PaperRow, ResultRow, list[Cell]]]] = {}
        scores = [column for column in self.columns if not column.difference]
        for row in self.table.rows:
            for base, members in self.matching.candidates(row).items():
                best = next((r for r in members if any(self._value(row, r, c).by_seed for c in scores)), None)
                best = best or next((r for r in members if not r.finished or r.rehearsal), None)
                if best is not None:
                    cells = [measured_cell(self._value(row, best, c), c, best) for c in self.columns]
                    blocks.setdefault((OTHER if row.weights else base, best.rehearsal), []).append((row, best, cells))
        # A block without any number is shown only for a rehearsal, which tells what was not available.
        blocks = {
            (base, rehearsal): shown
            for (base, rehearsal), shown in blocks.items()
            if rehearsal or _has_value(cells for _, _, cells in shown)
        }
        if blocks and all(base != OTHER for base, _ in blocks):
            blocks[OTHER, any(rehearsal for _, rehearsal in blocks)] = []
        known = [ours for names in self.matching.definition.bases.values() for ours in names]
        order = {base: (base == OTHER, known.index(base) if base in known else len(known), base) for base, _ in blocks}
        for (base, rehearsal), shown in sorted(
            blocks.items(), key=lambda item: (*order[item[0][0]][:1], item[0][1], order[item[0][0]])
        ):
            name = base if base == OTHER else base_name(base)
            block = f"{name} · {'rehearsal' if rehearsal else 'measured here'}"
            for row in self.table.rows:
                lines = [(ours, cells) for one, ours, cells in shown if one is row]
                for ours, cells in lines:
                    self.own.lines.append(self._line(row, ours, cells, block))
                    self.own.add(ours)
                if not lines and self._is_expected(row, base):
                    self.own.lines.append(replace(self.line_without_run(row, base), block=block))

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

    def line_without_run(self, row: PaperRow, base: str) -> TableRow:
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
        return TableRow((Cell(row.label), BLANK, *cells), ranked=False)

    def add_studies(self) -> None:
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
                    lines.append(replace(self.line_without_run(row, setting.base_model), block=name))
            if _has_value(line.cells for line in lines):
                self.own.lines += lines

    def add_layers(self) -> None:
        """The best and the worst layer of each untrained model that has the suite layers; in the first column."""
        from reports.tables.layer_table import extremes

        library = self.matching.library
        untrained = [row for row in library.rows if row.finished and row.records[0].supervision == "untrained"]
        comparison = library.as_comparison(self.table.key, untrained)
        for row, lines in extremes(comparison, self.columns[0].name, "senteval") if self.columns else []:
            block = f"{base_name(row.base_model)} · {'rehearsal' if row.rehearsal else 'measured here'}"
            for text, cell in lines:
                head = Cell(text, link=anchor(row), records=cell.records)
                seeds = Cell(str(len(row.finished)), value=len(row.finished))
                blanks = [BLANK] * (len(self.columns) - 1)
                self.own.lines.append(TableRow((head, seeds, cell, *blanks), block, ranked=False))
            self.own.add(row)
