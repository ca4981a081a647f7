"""Our rows in a paper's table, as lines in blocks by base model."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from reports.document.table import Cell, TableRow, absent, number
from reports.load import RecordedRow, describe_prompts
from reports.papers.conditions import other_training, remark_on
from reports.papers.definition import PaperCell, PaperColumn, PaperRow, PaperTable
from reports.papers.measured import ENDED, Measured
from reports.papers.paper_results import PaperResults
from reports.papers.published_lines import BLANK, OTHER
from reports.results import base_name
from reports.stats.estimate import mean_sd
from reports.tables.score_cells import anchor, count_cell

_CHOICE = (
    "One of several configurations. It was not chosen by its scores: first the paper's text and settings, then "
    "the row of this name, most seeds, most tasks, most training data, the newest. Its card has all settings."
)


def measured_cell(measured: Measured, column: PaperColumn, row: RecordedRow | None = None) -> Cell:
    """Mean and standard deviation over seeds, or why there is none."""
    if not measured.by_seed:
        untrained = row is not None and row.records[0].supervision == "untrained"
        has_no_training = untrained and column.metric == "train_seconds"
        if measured.state == "empty" or has_no_training:
            return BLANK
        if measured.missing and measured.state not in ENDED:
            return absent(measured.state, _sentence(measured.missing))
        return absent(measured.state)
    mean, sd = mean_sd(measured.values)
    notes = []
    if measured.partly:
        notes.append(measured.partly)
    for text in measured.unlike:
        notes.append(f"Another protocol than the paper's: {text}.")
    return number(
        mean,
        digits=column.digits,
        sd=sd,
        n=len(measured.by_seed),
        records=measured.records,
        signed=bool(column.difference),
        notes=notes,
    )


def _sentence(clause: str) -> str:
    return f"{clause[:1].upper()}{clause[1:]}."


def own_lines(paper: PaperResults, table: PaperTable) -> tuple[list[TableRow], list[RecordedRow]]:
    """Our lines of a table, and our rows in them. A row of the paper without a run has a line with
    the reason.

    Where only other tables have runs, every row says that it has none.
    """
    shown: list[RecordedRow] = []
    if table.studies:
        lines = _study_lines(paper, table)
    else:
        lines = _run_lines(paper, table, shown)
    poolings = [str(row.where.get("pooling", "")) for row in table.rows]
    if any(pooling.startswith("layer:") for pooling in poolings):
        lines += _layer_lines(paper, table, shown)
    if not lines and _has_runs(paper):
        for row in table.rows:
            if paper.bases_of(table, row):
                lines.append(_line_without_run(paper, table, row, "", "not measured here"))
    by_key = {row.key: row for row in shown}
    return lines, list(by_key.values())


def _has_runs(paper: PaperResults) -> bool:
    """True if any row of any table has a run of ours."""
    for table in paper.definition.tables:
        for row in table.rows:
            if paper.candidates(row):
                return True
    return False


BlockKey = tuple[str, bool]
"""Of a block of our lines: base model (or `OTHER`), and whether it is of rehearsals."""
Lines = dict[str, list[tuple[RecordedRow, TableRow]]]
"""Label of a row of the paper -> our rows for it, each with its line."""


def _run_lines(paper: PaperResults, table: PaperTable, shown: list[RecordedRow]) -> list[TableRow]:
    """Our rows that have any of the table's numbers (or ended early), by base model in the
    definition's order.
    """
    # A block without any number is shown only for a rehearsal, whose cells say what was not
    # available.
    blocks: dict[BlockKey, Lines] = {}
    for (base, rehearsal), block in _lines_by_block(paper, table).items():
        if rehearsal or _has_number(block):
            blocks[base, rehearsal] = block
    if not blocks:
        return []
    bases = {base for base, _ in blocks}
    if OTHER not in bases:
        any_rehearsal = any(rehearsal for _, rehearsal in blocks)
        blocks[OTHER, any_rehearsal] = {}
    lines = []
    for key in _in_order(paper, blocks):
        lines += _lines_of_block(paper, table, key, blocks[key], shown)
    if bases == {OTHER}:  # no block of a base model has the rest
        for row in table.rows:
            if not row.weights and paper.bases_of(table, row):
                lines.append(_line_without_run(paper, table, row, "", "not measured here"))
    return lines


def _in_order(paper: PaperResults, keys: Iterable[BlockKey]) -> list[BlockKey]:
    """Return blocks in the order of the definition's base models, rehearsals after runs, others
    last.
    """
    known = []
    for names in paper.definition.bases.values():
        known.extend(names)
    order = {base: place for place, base in enumerate(known)}

    def place_of(key: BlockKey) -> tuple[bool, bool, int, str]:
        base, rehearsal = key
        return base == OTHER, rehearsal, order.get(base, len(order)), base

    return sorted(keys, key=place_of)


def _lines_of_block(
    paper: PaperResults,
    table: PaperTable,
    key: BlockKey,
    block: Lines,
    shown: list[RecordedRow],
) -> list[TableRow]:
    """Return the lines of a block, with one for each row of the paper that it lacks; our rows in it
    are added to `shown`.
    """
    base, rehearsal = key
    name = _block_name(base, rehearsal)
    lines = []
    for row in table.rows:
        own = block.get(row.label, [])
        for ours, line in own:
            shown.append(ours)
            lines.append(line)
        if not own and _is_expected(paper, table, row, base):
            lines.append(_line_without_run(paper, table, row, base, name))
    return lines


def _lines_by_block(paper: PaperResults, table: PaperTable) -> dict[BlockKey, Lines]:
    """Return our lines of a table by block: for each row of the paper and base model the nearest
    row of ours that has a number of the table, or else that ended early or is a rehearsal.
    """
    scores = [column for column in paper.columns(table) if not column.difference]
    blocks: dict[BlockKey, Lines] = {}
    for row in table.rows:
        places = [PaperCell(table, row, column) for column in scores]
        for base, members in paper.candidates(row).items():
            if not row.weights and not paper.is_about(table, base):
                continue
            best = _choose_row(paper, places, members)
            if best is None:
                continue
            key = (OTHER if row.weights else base, best.rehearsal)
            line = _run_line(paper, table, row, best, _block_name(*key))
            of_block = blocks.setdefault(key, {})
            of_block.setdefault(row.label, []).append((best, line))
    return blocks


def _choose_row(
    paper: PaperResults,
    places: Sequence[PaperCell],
    members: Sequence[RecordedRow],
) -> RecordedRow | None:
    """Return the nearest of our rows that has a number in one of the places, or else that ended
    early or is a rehearsal.
    """
    for row in members:
        if any(paper.value(place, row).by_seed for place in places):
            return row
    for row in members:
        if not row.finished or row.rehearsal:
            return row
    return None


def _has_number(block: Lines) -> bool:
    """True if any line of a block has a number."""
    for own in block.values():
        for _, line in own:
            if _has_value(line):
                return True
    return False


def _has_value(line: TableRow) -> bool:
    return any(cell.state == "value" for cell in line.cells)


def _block_name(base: str, rehearsal: bool) -> str:
    name = base if base == OTHER else base_name(base)
    if rehearsal:
        return f"{name} · rehearsal"
    return f"{name} · measured here"


def _run_line(
    paper: PaperResults,
    table: PaperTable,
    row: PaperRow,
    ours: RecordedRow,
    block: str,
) -> TableRow:
    label = row.label
    if row.weights:
        label += f" ({base_name(ours.base_model)})"
    head = Cell(
        label,
        link=anchor(ours),
        records=tuple(r.id for r in ours.records),
        notes=tuple(_notes_on(paper, table, row, ours)),
    )
    cells = [head, count_cell(ours)]
    for column in paper.columns(table):
        measured = paper.value(PaperCell(table, row, column), ours)
        cells.append(measured_cell(measured, column, ours))
    supervised = row.supervised or ours.supervision == "supervised"
    ranked = not supervised and not ours.rehearsal
    return TableRow(tuple(cells), block, ranked=ranked)


def _notes_on(
    paper: PaperResults,
    table: PaperTable,
    row: PaperRow,
    ours: RecordedRow,
) -> list[str]:
    """Return what a reader should know of a row of ours before comparing it with the paper's."""
    notes = []
    if text := describe_prompts(ours):
        notes.append(_sentence(text))
    candidates = paper.candidates(row).get(ours.base_model, [])
    if len(candidates) > 1:
        notes.append(_CHOICE)
    base = paper.definition.find_published_base(ours.base_model)
    if base and paper.bases_of(table, row) and not ours.rehearsal:
        notes += other_training(paper.definition, row, ours)
        notes += remark_on(paper.definition, base, row, ours)
    return notes


def _is_expected(paper: PaperResults, table: PaperTable, row: PaperRow, base: str) -> bool:
    """Whether a block lacks a row of the paper: one that the paper has on its base model, or on any
    other one.
    """
    bases = paper.bases_of(table, row)
    if not bases:
        return False
    elsewhere = bool(row.weights) or bases.isdisjoint(paper.definition.bases)
    if elsewhere or base == OTHER:
        return elsewhere and base == OTHER
    published = paper.definition.find_published_base(base)
    return not published or published in bases


def _line_without_run(
    paper: PaperResults,
    table: PaperTable,
    row: PaperRow,
    base: str,
    block: str,
) -> TableRow:
    """The line of a row that has no run: n/a with the reason where the paper has a number."""
    if row.method and not table.studies:
        found = paper.candidates(row)
    else:
        found = {}
    rows = []
    for other, members in found.items():
        if base in ("", OTHER, other):
            rows += members
    why = _why_no_run(
        table,
        row,
        is_run=bool(rows),
        elsewhere=bool(found),
    )
    cells = [Cell(row.label), BLANK]
    for column in paper.columns(table):
        if not column.published:
            cells.append(BLANK)
            continue
        reason = ""
        if rows:
            place = PaperCell(table, row, column)
            reason = paper.value(place, rows[0]).missing
        if not reason and not column.score:
            reason = column.cannot
        cells.append(absent("missing", _sentence(reason or why)))
    return TableRow(tuple(cells), block, ranked=False)


def _why_no_run(table: PaperTable, row: PaperRow, *, is_run: bool, elsewhere: bool) -> str:
    """Return why a row of the paper has no number of ours: a clause.

    Args:
        is_run: there are runs of it.
        elsewhere: there are runs of it on some base model.
    """
    if row.cannot or not row.method:
        return row.cannot or "no method of this harness"
    if is_run:
        return "its runs have no score of this table"
    what = "study" if table.studies else "run"
    if elsewhere:
        return f"no {what} of it on this base model"
    return f"no {what} of it"


def _study_lines(paper: PaperResults, table: PaperTable) -> list[TableRow]:
    """A block for each setting that studies scored trials in."""
    columns = paper.columns(table)
    every = list[TableRow]()
    for setting, setting_name in paper.library.setting_names.items():
        name = f"{base_name(setting.base_model)} · {setting_name} · measured here"
        lines = []
        for row in table.rows:
            numbers = [paper.value_of_study(row, setting, c) for c in columns]
            if any(one.by_seed for one in numbers):
                runs = numbers[0].records
                count = len(runs)
                cells = [
                    Cell(row.label, records=runs),
                    Cell(f"{count} runs", value=count),
                ]
                for measured, column in zip(numbers, columns, strict=True):
                    cell = measured_cell(measured, column)
                    cells.append(replace(cell, n=None))
                lines.append(TableRow(tuple(cells), name))
            elif _is_expected(paper, table, row, setting.base_model):
                lines.append(_line_without_run(paper, table, row, setting.base_model, name))
        if any(map(_has_value, lines)):
            every += lines
    return every


def _layer_lines(
    paper: PaperResults, table: PaperTable, shown: list[RecordedRow]
) -> list[TableRow]:
    """The best and the worst layer of each untrained model that has the suite layers; in the first
    column.
    """
    from reports.tables.space import extremes

    first, *others = paper.columns(table)
    rest = [BLANK] * len(others)
    untrained = []
    for row in paper.library.rows:
        if row.finished and row.supervision == "untrained":
            untrained.append(row)
    models = replace(paper.library, name=table.key, rows=tuple(untrained))
    lines = []
    for row, ends in extremes(models, first.name, "senteval"):
        count = len(row.finished)
        seeds = Cell(str(count), value=count)
        block = _block_name(row.base_model, row.rehearsal)
        for text, cell in ends:
            head = Cell(text, link=anchor(row), records=cell.records)
            cells = (head, seeds, cell, *rest)
            lines.append(TableRow(cells, block, ranked=False))
        shown.append(row)
    return lines
