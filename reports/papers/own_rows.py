"""Our rows of a paper's table, in blocks by base model; a row of the paper that has no run is there with its reason."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from reports.document.table import Cell, TableRow, absent
from reports.papers.definition import PaperColumn, PaperRow, PaperTable
from reports.papers.matching import Matching
from reports.papers.paper_cells import BLANK, lacking, measured_cell
from reports.read.comparison_runs import ResultRow, base_name
from reports.read.prompted import prompted
from reports.tables.score_cells import anchor

OTHER = "other models"
_Shown = tuple[PaperRow, ResultRow, list[Cell]]


@dataclass
class OwnRows:
    """Lines of the table, our rows that stand in them, and whether any of them has a number."""

    lines: list[TableRow] = field(default_factory=list)
    rows: list[ResultRow] = field(default_factory=list)
    measured: bool = False


def own_rows(matching: Matching, table: PaperTable, columns: Sequence[PaperColumn]) -> OwnRows:
    """Our lines of a table. Where runs of other tables are all there is, its rows say that they have none."""
    ours = OwnRows()
    if table.kind == "study":
        _studies(matching, table, columns, ours)
    else:
        _runs(matching, table, columns, ours)
    if table.kind == "layers":
        _layers(matching, table, columns, ours)
    if not ours.lines and _anything(matching):
        lines = [_without(matching, table, spec, columns, "") for spec in table.rows if spec.published]
        ours.lines = [replace(line, block="not measured here") for line in lines]
    return ours


def _anything(matching: Matching) -> bool:
    """Whether the work directory has any run of the paper's rows."""
    specs = (spec for table in matching.definition.tables for spec in table.rows)
    return any(matching.candidates(spec) for spec in specs)


def _runs(matching: Matching, table: PaperTable, columns: Sequence[PaperColumn], ours: OwnRows) -> None:
    """Our rows that have any of the table's numbers (or ended early), by base model in the order of the definition."""
    by_block: dict[tuple[str, bool], list[_Shown]] = {}
    for spec in table.rows:
        for base, members in matching.candidates(spec).items():
            best = next((r for r in members if _has_any(matching, table, spec, r, columns)), None)
            best = best or next((r for r in members if not r.finished or r.rehearsal), None)
            if best is not None:
                cells = [measured_cell(matching.value(table, spec, best, c), c, best) for c in columns]
                block = OTHER if spec.same_weights else base
                by_block.setdefault((block, best.rehearsal), []).append((spec, best, cells))
    kept = {  # not of runs alone that ended early, of some other kind of task; a rehearsal shows what it could not have
        key: shown for key, shown in by_block.items() if key[1] or _has_value(cells for _, _, cells in shown)
    }
    ours.measured = _has_value(cells for shown in kept.values() for _, _, cells in shown)
    if kept and all(base != OTHER for base, _ in kept):
        kept[OTHER, any(rehearsal for _, rehearsal in kept)] = []
    for base, rehearsal in _ordered(matching, list(kept)):
        shown = kept[base, rehearsal]
        name = base if base == OTHER else base_name(base)
        block = f"{name} · {'rehearsal' if rehearsal else 'measured here'}"
        for spec in table.rows:
            own = [one for one in shown if one[0] is spec]
            for _, row, cells in own:
                ours.lines.append(_line(matching, table, spec, row, cells, base, block))
                ours.rows += [row] if all(row is not other for other in ours.rows) else []
            if not own and _belongs(matching, table, spec, base):
                ours.lines.append(replace(_without(matching, table, spec, columns, base), block=block))


def _has_value(lines: Iterable[Sequence[Cell]]) -> bool:
    return any(cell.state == "value" for cells in lines for cell in cells)


def _has_any(
    matching: Matching, table: PaperTable, spec: PaperRow, row: ResultRow, columns: Sequence[PaperColumn]
) -> bool:
    return any(matching.value(table, spec, row, c).by_seed for c in columns if not c.delta)


def _ordered(matching: Matching, blocks: list[tuple[str, bool]]) -> list[tuple[str, bool]]:
    known = [ours for names in matching.definition.bases.values() for ours in names]

    def place(block: tuple[str, bool]) -> tuple[bool, bool, int, str]:
        base, rehearsal = block
        return base == OTHER, rehearsal, known.index(base) if base in known else len(known), base

    return sorted(blocks, key=place)


def _line(
    matching: Matching, table: PaperTable, spec: PaperRow, row: ResultRow, cells: list[Cell], base: str, block: str
) -> TableRow:
    count, whole = len(row.finished), len(row.records)
    seeds = Cell(str(count) if count == whole else f"{count} of {whole}", value=count)
    label = spec.label if base != OTHER else f"{spec.label} ({base_name(row.base_model).removeprefix('package:')})"
    notes = _notes(matching, spec, row)
    head = Cell(label, link=anchor(row), records=tuple(r.id for r in row.records), notes=tuple(notes))
    supervised = spec.supervised or row.supervision == "supervised"
    return TableRow((head, seeds, *cells), block, ranked=not supervised)


def _notes(matching: Matching, spec: PaperRow, row: ResultRow) -> list[str]:
    """What a reader should know of a row of ours before comparing it with the paper's."""
    notes = [said] if (said := prompted(row)) else []
    if len(matching.candidates(spec).get(row.base_model, [])) > 1:
        notes.append(
            "one of several configurations here, not chosen by its scores: that nearest to the paper's text and "
            "recipe, then that with most seeds, then most tasks, then most training data, then the newest (where "
            "differences are shown, of those trained alike); its card says which"
        )
    published = matching.conditions.published_base(row.base_model)
    if published and spec.published and not row.rehearsal:
        notes += [f"{obstacle}" for obstacle in matching.conditions.of_training(spec, row)]
        notes += matching.conditions.remarks(published, spec, row)
    return notes


def _belongs(matching: Matching, table: PaperTable, spec: PaperRow, base: str) -> bool:
    """Whether a row of the paper without a run is missed in a block: where the paper has it, or on any other base."""
    if not spec.published:
        return False
    bases = [
        p["base_model"] for p in matching.published if p["table"] in table.published and p["model"] in spec.published
    ]
    elsewhere = bool(spec.same_weights) or not any(one in matching.definition.bases for one in bases)
    if elsewhere or base == OTHER:
        return elsewhere and base == OTHER
    published = matching.conditions.published_base(base)
    return not published or published in bases


def _without(
    matching: Matching, table: PaperTable, spec: PaperRow, columns: Sequence[PaperColumn], base: str
) -> TableRow:
    """The line of a row that has no run: n/a with the reason where a number of ours could stand beside the paper's."""
    found = matching.candidates(spec) if spec.method and table.kind != "study" else {}
    rows = found.get(base, []) if base not in ("", OTHER) else [row for rows in found.values() for row in rows]
    if spec.cannot or not spec.method:
        why = spec.cannot or "no method of this harness"
    elif rows:
        why = "its runs have no score of this table"
    else:
        what = "study" if table.kind == "study" else "run"
        why = f"no {what} of it" + (" on this base model" if found else "")

    def reason(column: PaperColumn) -> str:
        lacks = matching.value(table, spec, rows[0], column).lacks if rows else ()
        asked = [lack for lack in lacks if lack.asked]  # what the records say of a score that was asked for
        return lacking(asked, column) or column.cannot or why

    cells = [absent("missing", reason(c)) if c.published else BLANK for c in columns]
    return TableRow((Cell(spec.label), BLANK, *cells), ranked=False)


def _studies(matching: Matching, table: PaperTable, columns: Sequence[PaperColumn], ours: OwnRows) -> None:
    for setting in matching.library.settings:
        name = f"{base_name(setting.base_model)} · {matching.library.setting_names[setting]} · measured here"
        lines = []
        for spec in table.rows:
            numbers = [matching.of_study(spec, setting, c) for c in columns]
            if any(f.by_seed for f in numbers):
                trials = Cell(f"{len(numbers[0].records)} runs", value=len(numbers[0].records))
                cells = [replace(measured_cell(f, c), n=None) for f, c in zip(numbers, columns, strict=True)]
                head = Cell(spec.label, records=numbers[0].records)
                lines.append(TableRow((head, trials, *cells), name))
            elif _belongs(matching, table, spec, setting.base_model):
                lines.append(replace(_without(matching, table, spec, columns, setting.base_model), block=name))
        if _has_value(line.cells for line in lines):
            ours.lines += lines
            ours.measured = True


def _layers(matching: Matching, table: PaperTable, columns: Sequence[PaperColumn], ours: OwnRows) -> None:
    """The best and the worst layer of each untrained model that has the suite layers; its first column alone."""
    from reports.tables.layer_table import extremes

    untrained = [row for row in matching.library.rows if row.finished and row.records[0].supervision == "untrained"]
    comparison = matching.library.as_comparison(table.key, untrained)
    for row, lines in extremes(comparison, columns[0].task, columns[0].source) if columns else []:
        for text, cell in lines:
            head = Cell(text, link=anchor(row), records=cell.records)
            cells = (head, Cell(str(len(row.finished)), value=len(row.finished)), cell, *[BLANK] * (len(columns) - 1))
            how = "rehearsal" if row.rehearsal else "measured here"
            ours.lines.append(TableRow(cells, f"{base_name(row.base_model)} · {how}", ranked=False))
        ours.rows += [row] if all(row is not other for other in ours.rows) else []
        ours.measured = True
