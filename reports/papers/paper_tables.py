"""A paper's tables: our rows in blocks by base model, then the published rows; the summary of all;
search spaces.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
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
        return f"The paper's own result, marked {mark[mark.index('(') + 1 : -1]} there."
    if mark == "repo":
        return "From the authors' repository, not printed in the paper."
    if mark in ("", "own", "own evaluation", "summary", "paper"):
        return ""
    return mark


def published_notes(p: Published) -> tuple[str, ...]:
    """The notes on a published number, without the parts that only describe its row."""
    parts = (part.strip() for part in p["notes"].split(";"))
    text = "; ".join(
        part for part in parts if part and part not in EN_V1 and not part.startswith(_DESCRIPTIONS)
    )
    return (text,) if text else ()


def published_cell(one: Match, column: PaperColumn, notes: Sequence[str] = ()) -> Cell:
    """A printed number as it was printed."""
    if one.value is None:
        return Cell("illegible", state="empty").with_notes(*notes)
    text = one.published["value"].replace("-", MINUS)
    signed = column.difference and one.value > 0 and not text.startswith("+")
    return Cell(f"+{text}" if signed else text, value=one.value, state="value", notes=tuple(notes))


PublishedKey = tuple[str, str]
"""Of a published row: model and base model."""


PublishedRows = dict[PublishedKey, tuple[PaperRow, dict[int, Match]]]
"""The row of the definition, and its numbers by the place of their column."""


def _published_lines(paper: PaperResults, table: PaperTable) -> list[TableRow]:
    """The published rows, those of one base model together."""
    bases = list(paper.definition.bases)
    rows = _published_rows(paper, table)

    def place_of(key: PublishedKey) -> int:
        if key[1] in bases:
            return bases.index(key[1])
        return -1

    lines = []
    for key in sorted(rows, key=place_of):
        model, base = key
        row, numbers = rows[key]
        notes = [published_notes(one.published) for one in numbers.values()]
        marks = {one.published["source_mark"] for one in numbers.values()}
        if len(notes) > 1:
            common = set.intersection(*map(set, notes))
        else:
            common = set()
        about = [source_note(mark) for mark in marks if len(marks) == 1]
        cells = [Cell(model).with_notes(*filter(None, about), *common), BLANK]
        for i, column in enumerate(paper.columns(table)):
            printed = numbers.get(i)
            if printed is None:
                cells.append(_find_derived_cell(paper, table, rows, key, column))
            else:
                further = _own_notes(printed, common, several=len(marks) > 1)
                cells.append(published_cell(printed, column, further))
        block = f"{base if base in bases else OTHER} · published"
        lines.append(TableRow(tuple(cells), block, not row.supervised))
    return lines


def _published_rows(paper: PaperResults, table: PaperTable) -> PublishedRows:
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
    return next(i for i, column in enumerate(columns) if column is wanted)


def _own_notes(printed: Match, common: set[str], *, several: bool) -> list[str]:
    """Return the notes of a number that its row does not have, with its source where a row has
    several.
    """
    notes = [note for note in published_notes(printed.published) if note not in common]
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
    own_row, own = rows[key]
    if not column.published:
        reference = PaperCell(table, own_row, column).reference
    else:
        reference = None
    heads = [one.head for one in paper.columns(table)]
    if column.name in heads:
        at = heads.index(column.name)
    else:
        at = -1
    for other, (row, numbers) in rows.items():
        printed = numbers.get(at)
        if row is reference and other[1] == key[1] and printed is not None:
            return _derived_cell(column, own.get(at), printed)
    return BLANK


def _derived_cell(column: PaperColumn, own: Match | None, reference: Match | None) -> Cell:
    """A difference that the paper does not print, from the two numbers that it does."""
    if own is None or reference is None or own.value is None or reference.value is None:
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
        if measured.state == "empty" or (column.metric == "train_seconds" and untrained):
            return BLANK
        if measured.missing and measured.state not in ENDED:
            notes = [_sentence(measured.missing)]
        else:
            notes = []
        return absent(measured.state, *notes)
    mean, sd = mean_sd(measured.values)
    notes = [measured.partly] if measured.partly else []
    notes += [f"Another protocol than the paper's: {text}." for text in measured.unlike]
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
    if any(str(row.where.get("pooling", "")).startswith("layer:") for row in table.rows):
        lines += _layer_lines(paper, table, shown)
    every = (row for one in paper.definition.tables for row in one.rows)
    if not lines and any(paper.candidates(row) for row in every):
        rows = [row for row in table.rows if paper.bases_of(table, row)]
        lines = [_line_without_run(paper, table, row, "", "not measured here") for row in rows]
    return lines, list({row.key: row for row in shown}.values())


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
    found = _lines_by_block(paper, table)
    blocks = {key: block for key, block in found.items() if key[1] or _has_number(block)}
    only_others = all(base == OTHER for base, _ in blocks)
    if not any(base == OTHER for base, _ in blocks) and blocks:
        blocks[OTHER, any(rehearsal for _, rehearsal in blocks)] = {}
    lines = []
    for key in _in_order(paper, blocks):
        lines += _lines_of_block(paper, table, key, blocks[key], shown)
    if blocks and only_others:  # no block of a base model has the rest
        rest = [r for r in table.rows if not r.weights and paper.bases_of(table, r)]
        lines += [_line_without_run(paper, table, r, "", "not measured here") for r in rest]
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
    lines = []
    for row in table.rows:
        own = block.get(row.label, [])
        if own:
            shown += [ours for ours, _ in own]
            lines += [line for _, line in own]
        elif _is_expected(paper, table, row, key[0]):
            lines.append(_line_without_run(paper, table, row, key[0], _block_name(*key)))
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
            measured = (r for r in members if any(paper.value(p, r).by_seed for p in places))
            early = (r for r in members if not r.finished or r.rehearsal)
            best = next(measured, None) or next(early, None)
            if best is None:
                continue
            key = OTHER if row.weights else base, best.rehearsal
            line = _run_line(paper, table, row, best, _block_name(*key))
            blocks.setdefault(key, {}).setdefault(row.label, []).append((best, line))
    return blocks


def _has_number(block: Lines) -> bool:
    """True if any line of a block has a number."""
    lines = []
    for own in block.values():
        for _, line in own:
            lines.append(line)
    return any(cell.state == "value" for line in lines for cell in line.cells)


def _block_name(base: str, rehearsal: bool) -> str:
    return f"{base if base == OTHER else base_name(base)} · {'rehearsal' if rehearsal else 'measured here'}"


def _run_line(
    paper: PaperResults,
    table: PaperTable,
    row: PaperRow,
    ours: RecordedRow,
    block: str,
) -> TableRow:
    count = len(ours.finished)
    whole = len(ours.records)
    seeds = Cell(str(count) if count == whole else f"{count} of {whole}", value=count)
    if row.weights:
        label = f"{row.label} ({base_name(ours.base_model)})"
    else:
        label = row.label
    # What a reader should know of a row of ours before comparing it with the paper's.
    if text := describe_prompts(ours):
        notes = [_sentence(text)]
    else:
        notes = []
    if len(paper.candidates(row).get(ours.base_model, [])) > 1:
        notes.append(_CHOICE)
    base = paper.definition.find_published_base(ours.base_model)
    if base and paper.bases_of(table, row) and not ours.rehearsal:
        notes += [
            *other_training(paper.definition, row, ours),
            *remark_on(paper.definition, base, row, ours),
        ]
    head = Cell(
        label,
        link=anchor(ours),
        records=tuple(r.id for r in ours.records),
        notes=tuple(notes),
    )
    columns = paper.columns(table)
    cells = (measured_cell(paper.value(PaperCell(table, row, c), ours), c, ours) for c in columns)
    return TableRow(
        (head, seeds, *cells),
        block,
        ranked=not (row.supervised or ours.supervision == "supervised"),
    )


def _is_expected(paper: PaperResults, table: PaperTable, row: PaperRow, base: str) -> bool:
    """Whether a block lacks a row of the paper: one that the paper has on its base model, or on any
    other one.
    """
    bases = paper.bases_of(table, row)
    if not bases:
        return False
    elsewhere = bool(row.weights) or not any(one in paper.definition.bases for one in bases)
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
    if base in ("", OTHER):
        rows = [one for rows in found.values() for one in rows]
    else:
        rows = found.get(base, [])
    why = _why_no_run(table, row, is_run=bool(rows), elsewhere=bool(found))
    cells = []
    for column in paper.columns(table):
        if rows:
            recorded = paper.value(PaperCell(table, row, column), rows[0]).missing
        else:
            recorded = ""
        reason = recorded or ("" if column.score else column.cannot) or why
        cells.append(absent("missing", _sentence(reason)) if column.published else BLANK)
    return TableRow((Cell(row.label), BLANK, *cells), block, ranked=False)


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
    return f"no {what} of it{' on this base model' if elsewhere else ''}"


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
                cells = []
                for m, c in zip(numbers, columns, strict=True):
                    cells.append(replace(measured_cell(m, c), n=None))
                trials = Cell(f"{len(runs)} runs", value=len(runs))
                lines.append(TableRow((Cell(row.label, records=runs), trials, *cells), name))
            elif _is_expected(paper, table, row, setting.base_model):
                lines.append(_line_without_run(paper, table, row, setting.base_model, name))
        if any(cell.state == "value" for line in lines for cell in line.cells):
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
    untrained = [
        row for row in paper.library.rows if row.finished and row.supervision == "untrained"
    ]
    lines = []
    for row, ends in extremes(
        replace(paper.library, name=table.key, rows=tuple(untrained)),
        first.name,
        "senteval",
    ):
        seeds = Cell(str(len(row.finished)), value=len(row.finished))
        block = _block_name(row.base_model, row.rehearsal)
        for text, cell in ends:
            head = Cell(text, link=anchor(row), records=cell.records)
            lines.append(
                TableRow((head, seeds, cell, *(BLANK for _ in others)), block, ranked=False)
            )
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
    rows = [*own, *_published_lines(paper, table)]
    if not rows:
        return None, shown
    columns = _make_columns(table, specs)
    keep = [0]
    for j in range(1, len(columns)):
        if any(row.cells[j].state != "empty" for row in rows):
            keep.append(j)
    dropped = []
    for j, column in enumerate(columns):
        if j > 1 and j not in keep:
            dropped.append(column.title)
    columns = [columns[j] for j in keep]
    body = rank_cells(
        columns, [replace(row, cells=tuple(row.cells[j] for j in keep)) for row in rows]
    )
    result = Table(
        table.key,
        table.title,
        table.caption,
        tuple(columns),
        body,
        _legend(shown, body, dropped),
    )
    return (_transpose(result) if len(specs) > _MOST_COLUMNS else result), shown


def _make_columns(table: PaperTable, specs: Sequence[PaperColumn]) -> list[Column]:
    columns = [Column("row", "Method", numeric=False)]
    columns.append(Column("seeds", "Runs" if table.studies else "Seeds", aside=True))
    for i, spec in enumerate(specs):
        title, _, sub = spec.title.partition(" · ")
        key = spec.published.partition(" | ")[0] or title
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
    if len({row.block for row in rows}) > 1:
        legend.append("Blocks with different base models are not comparable with each other.")
    if len({training[0] for row in own if (training := training_of(row)) is not None}) > 1:
        legend.append("Rows measured here were trained on different texts, which their cards name.")
    if dropped:
        legend.append(
            f"Columns without any number are left out: {', '.join(dropped).removesuffix('.')}."
        )
    return tuple(legend)


def _transpose(table: Table) -> Table:
    """Columns as lines: the group of a column is the block of its line, the block of a row the
    group of its column.
    """
    columns = [Column("data", "Data set", numeric=False)]
    if table.columns[1].key == "seeds":
        first = 2
    else:
        first = 1
    for i, row in enumerate(table.rows):
        head = row.cells[0]
        if first == 2 and row.cells[1].state != "empty":
            seeds = row.cells[1].text
        else:
            seeds = ""
        title, _, detail = head.text.partition(" (")
        parts = [
            detail.removesuffix(")"),
            f"{seeds} seed{'' if seeds == '1' else 's'}" if seeds else "",
        ]
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
    for j, column in enumerate(table.columns[first:], first):
        lines.append(
            TableRow((Cell(column.title), *(row.cells[j] for row in table.rows)), column.group)
        )
    legend = ("Best and second: of each block of columns.", *table.legend)
    return replace(table, columns=tuple(columns), rows=tuple(lines), legend=legend)


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
            if place is None or place.table is not table or place.column.head not in table.headline:
                continue
            rows.append(TableRow(_summary_cells(one, place.column), table.title))
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
    gap = one.difference
    if one.ours and seeds:
        link = anchor(one.ours)
    else:
        link = ""
    return (
        Cell(published["model"], link=link, records=measured.records),
        Cell(published["base_model"]),
        Cell(column.title.replace(" · ", " ") if column.difference else column.head),
        replace(measured_cell(measured, column), notes=()) if seeds else BLANK,
        Cell(str(seeds), value=seeds) if seeds else BLANK,
        published_cell(one, column, published_notes(published)),
        BLANK if gap is None else number(gap, digits=column.digits, signed=True),
        Cell(one.verdict.short).with_notes(*one.remarks),
    )


# --- search spaces
# ----------------------------------------------------------------------------------------------------


def search_spaces(paper: PaperResults, table: PaperTable) -> Table | None:
    """What the paper searched, and what our studies tried."""
    bases: dict[tuple[str, ...], list[str]] = {}  # equal on several base models: one line
    for p in paper.definition.published_rows(SPACES):
        if p["paper"].startswith(tuple(table.published)):
            key = tuple(
                p[k] for k in ("model", "task", "metric", "value", "source_mark", "notes", "option")
            )
            bases.setdefault(key, []).append(p["base_model"])
    rows = []
    for (model, task, metric, value, mark, notes, option), names in bases.items():
        log = task.startswith("log10")
        text = value.replace(";", ", ")
        published = Cell(text.replace("-", MINUS) if log else text).with_notes(
            *filter(None, (notes, source_note(mark)))
        )
        tried = _tried_values(paper, model, option, log)
        rows.append(
            TableRow(
                (Cell(task), Cell(metric), published, Cell(tried or "–"), Cell(", ".join(names))),
                model,
            )
        )
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


def _tried_values(paper: PaperResults, model: str, option: str, log: bool) -> str:
    """The values of an option that our trials of a published model tried and that had an effect."""
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
    if len(numbers) > _MOST_LISTED:
        return f"{len(numbers)} values from {numbers[0]:.4g} to {numbers[-1]:.4g}"
    if numbers:
        return ", ".join(f"{v:.4g}" for v in numbers).replace("-", MINUS if log else "-")
    return ", ".join(sorted({*map(str, values)}))


def _method_of_model(paper: PaperResults, model: str) -> str:
    """Return the method of the first row of a paper whose label begins as `model` does, or the
    other way round; "" if there is none.
    """
    for table in paper.definition.tables:
        for row in table.rows:
            begins_alike = row.label.startswith(model) or model.startswith(row.label)
            if row.method and begins_alike:
                return row.method
    return ""
