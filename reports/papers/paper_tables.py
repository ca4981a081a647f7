"""A paper's tables: our rows in blocks by base model, then the published rows; the summary of all;
search spaces.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace

from harness.tasks.mteb.benchmarks import EN_V1
from reports.document.table import MINUS, Cell, Column, Table, TableRow, absent, number, rank_cells
from reports.load import RecordedRow, describe_prompts
from reports.papers.conditions import has_effect, other_training, remark_on
from reports.papers.definition import PaperCell, PaperColumn, PaperRow, PaperTable, Published
from reports.papers.measured import ENDED, Measured
from reports.papers.paper_results import Match, PaperResults, training_of
from reports.results import base_name
from reports.stats.estimate import mean_sd
from reports.tables.score_cells import anchor

SPACES = "search_spaces.csv"
SIGNS = {"club": "♣", "diamond": "♦", "heart": "♥", "spade": "♠"}
OTHER = "other models"
BLANK = Cell("–", state="empty")
_CHOICE = (
    "One of several configurations. It was not chosen by its scores: first the paper's text and settings, then "
    "the row of this name, most seeds, most tasks, most training data, the newest. Its card has all settings."
)


_MOST_COLUMNS = 20  # a table with more has its columns as lines
_MOST_LISTED = 8  # values of a search that are listed one by one
_DESCRIPTIONS = (  # parts of a published note that only describe the row
    "parameters ",
    "embedding dim ",
    "BoW",
    "supervised",
    "unsupervised",
    "semi-supervised",
    "mean pooling",
)


# --- published cells
# --------------------------------------------------------------------------------------------------


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


def _lines_of_published(paper: PaperResults, table: PaperTable) -> list[TableRow]:
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


# --- our rows
# ---------------------------------------------------------------------------------------------------------


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


def _own_lines(paper: PaperResults, table: PaperTable) -> tuple[list[TableRow], list[RecordedRow]]:
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
    count = len(ours.finished)
    whole = len(ours.records)
    if count == whole:
        text = str(count)
    else:
        text = f"{count} of {whole}"
    label = row.label
    if row.weights:
        label += f" ({base_name(ours.base_model)})"
    head = Cell(
        label,
        link=anchor(ours),
        records=tuple(r.id for r in ours.records),
        notes=tuple(_notes_on(paper, table, row, ours)),
    )
    cells = [head, Cell(text, value=count)]
    for column in paper.columns(table):
        measured = paper.value(PaperCell(table, row, column), ours)
        cells.append(measured_cell(measured, column, ours))
    supervised = row.supervised or ours.supervision == "supervised"
    return TableRow(tuple(cells), block, ranked=not supervised)


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


# --- tables
# -----------------------------------------------------------------------------------------------------------


def paper_table(paper: PaperResults, table: PaperTable) -> tuple[Table | None, list[RecordedRow]]:
    """One table of the paper, and our rows in it; None where neither the paper's file nor our runs
    have anything.
    """
    specs = paper.columns(table)
    own, shown = _own_lines(paper, table)
    rows = [*own, *_lines_of_published(paper, table)]
    if not rows:
        return None, shown
    columns = _make_columns(table, specs)
    keep = [0]
    dropped = []
    for j, column in enumerate(columns[1:], 1):
        if any(row.cells[j].state != "empty" for row in rows):
            keep.append(j)
        elif j > 1:  # not the number of seeds
            dropped.append(column.title)
    columns = [columns[j] for j in keep]
    lines = []
    for row in rows:
        cells = tuple(row.cells[j] for j in keep)
        lines.append(replace(row, cells=cells))
    body = rank_cells(columns, lines)
    result = Table(
        table.key,
        table.title,
        table.caption,
        tuple(columns),
        body,
        _legend(shown, body, dropped),
    )
    if len(specs) > _MOST_COLUMNS:
        result = _transpose(result)
    return result, shown


def _make_columns(table: PaperTable, specs: Sequence[PaperColumn]) -> list[Column]:
    columns = [
        Column("row", "Method", numeric=False),
        Column("seeds", "Runs" if table.studies else "Seeds", aside=True),
    ]
    for i, spec in enumerate(specs):
        title, _, sub = spec.title.partition(" · ")
        published, _, _ = spec.published.partition(" | ")
        key = published or title
        if any(column.key == key for column in columns):
            key += f" {i}"
        columns.append(Column(key, title, sub, spec.group, better=spec.better))
    return columns


def _legend(
    own: Iterable[RecordedRow],
    rows: Iterable[TableRow],
    dropped: Sequence[str],
) -> tuple[str, ...]:
    legend = [
        "Measured: mean ± standard deviation over seeds. Published: as printed, without a standard deviation."
    ]
    blocks = {row.block for row in rows}
    if len(blocks) > 1:
        legend.append("Blocks with different base models are not comparable with each other.")
    texts = set()
    for row in own:
        training = training_of(row)
        if training is not None:
            texts.add(training[0])
    if len(texts) > 1:
        legend.append("Rows measured here were trained on different texts, which their cards name.")
    if dropped:
        named = ", ".join(dropped).removesuffix(".")
        legend.append(f"Columns without any number are left out: {named}.")
    return tuple(legend)


def _transpose(table: Table) -> Table:
    """Columns as lines: the group of a column is the block of its line, the block of a row the
    group of its column.
    """
    columns = [Column("data", "Data set", numeric=False)]
    has_seeds = table.columns[1].key == "seeds"
    for i, row in enumerate(table.rows):
        head = row.cells[0]
        title, _, detail = head.text.partition(" (")
        parts = [detail.removesuffix(")")]
        seeds = row.cells[1]
        if has_seeds and seeds.state != "empty" and seeds.text:
            noun = "seed" if seeds.text == "1" else "seeds"
            parts.append(f"{seeds.text} {noun}")
        columns.append(
            Column(
                f"{row.block}-{i}",
                title,
                " · ".join(filter(None, parts)),
                row.block,
                notes=head.notes,
            )
        )
    lines = []
    first = 2 if has_seeds else 1
    for j, column in enumerate(table.columns[first:], first):
        cells = [Cell(column.title)]
        for row in table.rows:
            cells.append(row.cells[j])
        lines.append(TableRow(tuple(cells), column.group))
    legend = ("Best and second: of each block of columns.", *table.legend)
    return replace(
        table,
        columns=tuple(columns),
        rows=tuple(lines),
        legend=legend,
    )


def summary_table(paper: PaperResults) -> Table | None:
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
    for table in paper.definition.tables:
        for one in paper.numbers:
            place = one.place
            if place is None or place.table is not table:
                continue
            if place.column.head in table.headline:
                cells = _summary_cells(one, place.column)
                rows.append(TableRow(cells, table.title))
    if not rows:
        return None
    legend = (
        "Our interval: the 95 % prediction interval of a number like the paper's (Student's t, over seeds on the same "
        "test pairs), which is one more run, or the mean of as many runs as the paper made. A method without a seed "
        "agrees within 0.05. Whether two numbers can be compared is read from the records: base model, training text, "
        "settings and protocol.",
    )
    caption = "The main numbers of each table; tables/joined.csv and data.json hold every published number."
    return Table("joined", "Published and measured", caption, columns, tuple(rows), legend)


def _summary_cells(one: Match, column: PaperColumn) -> tuple[Cell, ...]:
    """Return the cells of a published number and ours."""
    published = one.published
    measured = one.measured
    seeds = len(measured.by_seed)
    link = ""
    ours = BLANK
    count = BLANK
    if seeds:
        ours = replace(measured_cell(measured, column), notes=())
        count = Cell(str(seeds), value=seeds)
        link = anchor(one.ours) if one.ours else ""
    gap = BLANK
    if one.difference is not None:
        gap = number(one.difference, digits=column.digits, signed=True)
    score = column.head
    if column.difference:
        score = column.title.replace(" · ", " ")
    return (
        Cell(published["model"], link=link, records=measured.records),
        Cell(published["base_model"]),
        Cell(score),
        ours,
        count,
        published_cell(one, column, published_notes(published)),
        gap,
        Cell(one.verdict.short).with_notes(*one.remarks),
    )


# --- search spaces
# ----------------------------------------------------------------------------------------------------


def search_spaces(paper: PaperResults, table: PaperTable) -> Table | None:
    """What the paper searched, and what our studies tried."""
    keys = ("model", "task", "metric", "value", "source_mark", "notes", "option")
    bases: dict[tuple[str, ...], list[str]] = {}  # equal on several base models: one line
    for p in paper.definition.published_rows(SPACES):
        if p["paper"].startswith(tuple(table.published)):
            line = tuple(p[key] for key in keys)
            bases.setdefault(line, []).append(p["base_model"])
    rows = []
    for (model, task, metric, value, mark, notes, option), names in bases.items():
        log = task.startswith("log10")
        text = value.replace(";", ", ")
        if log:
            text = text.replace("-", MINUS)
        cells = (
            Cell(task),
            Cell(metric),
            Cell(text).with_notes(*filter(None, (notes, source_note(mark)))),
            Cell(_list_tried(paper, model, option, log) or "–"),
            Cell(", ".join(names)),
        )
        rows.append(TableRow(cells, model))
    columns = (
        Column("parameter", "Hyperparameter", numeric=False),
        Column("kind", "What it is", numeric=False, aside=True),
        Column("published", "Published", numeric=False),
        Column("tried", "Tried here", "in studies", numeric=False),
        Column("base", "Base model", "of the paper", numeric=False, aside=True),
    )
    if rows:
        return Table(table.key, table.title, table.caption, columns, tuple(rows))
    return None


def _list_tried(paper: PaperResults, model: str, option: str, log: bool) -> str:
    """List the values of an option that our trials of a published model tried and that had an
    effect.
    """
    method = _method_of_model(paper, model)
    values = []
    for trial in paper.library.trials:
        record = trial.runs[0]
        is_set = record.config.get(option) is not None
        if record.method == method and is_set and has_effect(record, option, {}):
            values.append(record.config[option])
    numbers = sorted({v for v in values if isinstance(v, int | float)})
    if log:
        numbers = [math.log10(v) for v in numbers if v > 0]
    if not numbers:
        words = set(map(str, values))
        return ", ".join(sorted(words))
    shown = [f"{v:.4g}" for v in numbers]
    if len(shown) > _MOST_LISTED:
        return f"{len(shown)} values from {shown[0]} to {shown[-1]}"
    text = ", ".join(shown)
    if log:
        text = text.replace("-", MINUS)
    return text


def _method_of_model(paper: PaperResults, model: str) -> str:
    """Return the method of the first row of a paper whose label begins as `model` does, or the
    other way round; "" if there is none.
    """
    for table in paper.definition.tables:
        for row in table.rows:
            begins_alike = row.label.startswith(model)
            begins_alike |= model.startswith(row.label)
            if row.method and begins_alike:
                return row.method
    return ""
