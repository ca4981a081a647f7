"""The scores of a comparison for a terminal, at most 100 characters wide: of every suite its
average.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from harness.files.printable import width_of
from reports.document.table import ABSENT, Table, number_text
from reports.load import RecordedResults, RecordedRow, describe_prompts, read_comparison
from reports.results import find_start
from reports.suite_targets import known_targets
from reports.tables.mteb import mteb_tables
from reports.tables.score_cells import HEAD, anchor, head_cells, never_beat_the_start
from reports.tables.suites import NOT_SCORED, other_tables, sts_tables

WIDTH = 100
_NO_GAIN = "no dev gain"
_SHORTEST_NAME = 24  # characters: a longer name is cut before a score is left out


def summary_table(
    workdir: Path,
    name: str,
    part: str = "",
) -> tuple[list[str], list[list[str]], list[str]]:
    """Columns, rows and notes as text: scores as mean ± deviation, the best of each block marked
    with "*".

    A suite is its averages, or its tasks where it has none; the only suite is both. What 100
    characters have no room for is only in the report. `part` is the name of a block of the
    comparison's
    file: its rows and tasks alone. Nothing is judged: it is quick.

    Raises:
        InputError: no such comparison, damaged record.
    """
    whole = read_comparison(workdir, name)
    comparison = next((one for one in whole.parts if one.name == part), whole)
    names = ["Method"]
    blocks = ["Block"]
    seeds = ["Seeds"]
    for row in comparison.rows:
        names.append(row.label)
        blocks.append(row.block)
        *_, count = head_cells(row)
        seeds.append(count.text)
    columns = [names, seeds]
    if len(comparison.blocks) > 1:
        columns = [names, blocks, seeds]
    last = []
    for column in (_gains(comparison), _status(comparison)):
        _, *texts = column
        if any(texts):
            last.append(column)
    taken = sum(map(_width, [*columns[1:], *last]))
    name_width = min(_width(names), _SHORTEST_NAME + 3)
    room = WIDTH - 1 - taken - name_width
    without = []
    for title, together in _scores(comparison):
        width = sum(map(_width, together))
        if width <= room:
            columns += together
            room -= width
        else:
            without.append(title)
    without += _descriptive_suites(comparison)
    most = name_width - 3 + max(room, 0)
    columns[0] = [_shorten(name, most) for name in names]
    head, *lines = map(list, zip(*columns, *last, strict=True))
    return head, lines, _notes(comparison, columns, without)


def _descriptive_suites(comparison: RecordedResults) -> list[str]:
    """Return the suites of the file that describe models rather than score them; the geometry of
    every model is described.
    """
    met = {kind.suite for kind in comparison.score_kinds} - {"geometry"}
    return [suite for suite in NOT_SCORED if suite in met]


def _shorten(name: str, most: int) -> str:
    """Return a name that takes at most so many columns: the middle of a longer one is left out."""
    if width_of(name) <= most:
        return name
    most = most * len(name) // width_of(name)  # as characters
    end = most // 3
    start = most - end - 1
    return f"{name[:start]}…{name[-end:]}"


def _width(column: list[str]) -> int:
    return max(map(width_of, column)) + 3


def _scores(comparison: RecordedResults) -> list[tuple[str, list[list[str]]]]:
    """Columns of scores with their heads, those that are shown together under one title."""
    tables = [
        *sts_tables(comparison),
        *other_tables(comparison, shown={"sts", "embedded", "mteb", *NOT_SCORED}),
    ]
    for table in mteb_tables(comparison):
        if table.key.endswith(("-categories", "mteb-tasks")):
            tables.append(table)
    tables = [table for table in tables if table.rows]
    found = []
    for table in tables:
        columns = _columns_of(table, comparison.rows, alone=len(tables) == 1)
        if len(tables) > 1 and not _averages_of(table):
            found.append((_title_of(table), columns))
            continue
        for column in columns:
            found.append((column[0], [column]))
    return found


def _title_of(table: Table) -> str:
    if table.key.startswith("scores-sts-"):
        title = "STS"
    else:
        title = table.title.partition(" · ")[0]
    return title.removeprefix("Suite ").removesuffix(" tasks")


def _averages_of(table: Table) -> list[int]:
    """Return the places of the columns that are averages."""
    places = []
    for place in range(len(HEAD), len(table.columns)):
        column = table.columns[place]
        if column.key.startswith("average"):
            places.append(place)
    return places


def _columns_of(table: Table, rows: Sequence[RecordedRow], *, alone: bool) -> list[list[str]]:
    """Return the averages of a table, with their heads; and its tasks, where it is shown alone or
    has no average.
    """
    places = _averages_of(table)
    if alone or not places:
        every = range(len(HEAD), len(table.columns))
        places = list(dict.fromkeys([*places, *every]))
    has_own_names = table.key == "scores-embedded" or table.key.startswith("suite-own-")
    own_names = alone or has_own_names
    by_row = {line.cells[0].link: line.cells for line in table.rows}
    columns = []
    for place in places:
        column = table.columns[place]
        name = column.title.removeprefix("Embedded-")
        if column.key == "average":
            name = f"{_title_of(table)} average"
        elif not own_names:
            name = f"{_title_of(table)}, {name}"
        texts = [name]
        for row in rows:
            cell = by_row[anchor(row)][place]
            mark = "*" if cell.rank == 1 else ""
            texts.append(f"{cell.text}{mark} {cell.spread}".strip())
        columns.append(texts)
    return columns


def _gains(comparison: RecordedResults) -> list[str]:
    """Of each row, what it scores above the untrained run that it starts from, by the first target."""
    _, target = next(known_targets(comparison), (None, None))
    gains = ["Gain"]
    for row in comparison.rows:
        start, _ = find_start(row, comparison.rows)
        known = []
        for r in (row, start):
            if target is not None and r is not None:
                value = target.value(r)
                if value is not None:
                    known.append(value)
        text = ""
        if len(known) == 2:
            after, before = known
            text = number_text(after - before, 2, signed=True)
        gains.append(text)
    return gains


def _status(comparison: RecordedResults) -> list[str]:
    """What is to be known of how the runs ended."""
    texts = []
    for row in comparison.rows:
        words = []
        if row.added:
            words.append("added")
        words += dict.fromkeys(record.status for record in row.unfinished)
        never, known = never_beat_the_start(row)
        if never:
            words.append(f"{_NO_GAIN}: {never} of {known}")
        texts.append(", ".join(words))
    return ["Status", *texts]


def _notes(comparison: RecordedResults, columns: list[list[str]], without: list[str]) -> list[str]:
    """At most six lines: what the marks mean, and what is not shown."""
    notes = []
    marks = _describe_marks(columns)
    if marks:
        notes.append(marks)
    prompted = []
    gained_nothing = 0
    for row in comparison.rows:
        never, _ = never_beat_the_start(row)
        gained_nothing += never
        if describe_prompts(row):
            prompted.append(row.label)
    if gained_nothing:
        notes.append(f"{_NO_GAIN}: runs in which no dev score is above that of the untrained model")
    if prompted:
        notes.append(f"scored with prompts, see the report: {', '.join(prompted)}")
    notes += _describe_rounding(comparison)
    if without:
        notes.append(f"only in the report: {', '.join(without)}")
    return notes


def _describe_marks(columns: list[list[str]]) -> str:
    cells = []
    for column in columns:
        cells += column[1:]
    text = " ".join(cells)
    marks = []
    if "*" in text:
        marks.append("* highest mean, which may be chance")
    if "±" in text:
        marks.append("± standard deviation over seeds")
    for mark, why in ABSENT.values():
        if mark in text.split():
            marks.append(f"{mark} {why}")
    return "; ".join(marks)


def _describe_rounding(comparison: RecordedResults) -> list[str]:
    """Say in what runs differ that makes their numbers differ in rounding."""
    devices = set()
    precisions = set()
    for row in comparison.rows:
        for record in row.finished:
            device = record.environment.get("device_name")
            precision = record.training.get("precision")
            devices.add(str(device))
            precisions.add(str(precision or ""))
    notes = []
    for name, values in (("device", devices), ("precision", precisions)):
        known = sorted(values - {"", "None"})
        if len(known) > 1:
            notes.append(f"runs differ in their {name}, and so in rounding: {', '.join(known)}")
    return notes
