"""One small table model: groups of rows, cells with mean, spread, marks and notes. `reports.write`
has the formats.
"""

from __future__ import annotations

import string
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby
from typing import Any, Literal

State = Literal["value", "text", "missing", "collapsed", "diverged", "failed", "empty"]

# What an absent number shows in every format, and what that means; the reason itself is a footnote.
ABSENT: dict[str, tuple[str, str]] = {
    "missing": ("n/a", "not evaluated"),
    "collapsed": ("coll.", "every seed collapsed in training"),
    "diverged": ("div.", "every seed diverged in training"),
    "failed": ("fail.", "every seed failed"),
}
WORSE = "†"
MINUS = "\u2212"


@dataclass(frozen=True)
class Cell:
    """One cell. `text` is what is read; `value`, `sd` and `n` are what it was made of, for sorting
    and data files.
    """

    text: str = ""
    spread: str = ""  # in small type beside the text: "± 0.31", "[0.2, 1.4]"
    value: float | None = None
    sd: float | None = None
    n: int | None = None  # number of seeds behind a mean
    state: State = "text"
    rank: int = 0  # 1 best and 2 second of its column and block; 0 otherwise
    worse: bool = False  # significantly worse than the best of its column and block
    notes: tuple[str, ...] = ()  # footnotes
    records: tuple[str, ...] = ()  # ids of the runs behind it
    link: str = ""  # anchor on the page
    url: str = ""  # another page, http:// or https://
    code: bool = False  # text is an identifier or a path
    digits: int | None = None  # decimals that `text` shows of the value; None: all that it has

    @property
    def shown(self) -> float | None:
        """The value as its text shows it: what cells are ranked by."""
        if self.value is None or self.digits is None:
            return self.value
        return round(self.value, self.digits)

    def with_notes(self, *notes: str) -> Cell:
        """The same cell with more footnotes, each once."""
        return replace(self, notes=tuple(dict.fromkeys((*self.notes, *notes))))


EMPTY = Cell("–", state="empty")  # where there is nothing to say


def number_text(value: float, digits: int, *, signed: bool = False) -> str:
    """A number with a true minus sign, never "-0.00"."""
    if signed:
        text = f"{value:+.{digits}f}"
    else:
        text = f"{value:.{digits}f}"
    if float(text) == 0:
        text = text.lstrip("+-")
    return text.replace("-", MINUS)


def number(
    value: float,
    *,
    digits: int = 2,
    sd: float | None = None,
    n: int | None = None,
    records: Iterable[str] = (),
    signed: bool = False,
    notes: Iterable[str] = (),
) -> Cell:
    """A cell for a value or a mean with its standard deviation over n seeds."""
    if sd is None:
        spread = ""
    else:
        spread = f"± {number_text(sd, digits)}"
    text = number_text(value, digits, signed=signed)
    return Cell(
        text,
        spread,
        value,
        sd,
        n,
        "value",
        notes=tuple(notes),
        records=tuple(records),
        digits=digits,
    )


def absent(state: State, *notes: str) -> Cell:
    """A cell for a missing value, with the reason."""
    return Cell(ABSENT[state][0], state=state, notes=notes)


Better = Literal["higher", "lower", ""]
"""Which values of a column are the better ones; "" where it is not said."""


@dataclass(frozen=True)
class Column:
    key: str
    title: str
    sub: str = ""  # second line of the head in small type: the number of pairs, a unit
    group: str = ""  # columns with the same group stand under one spanning head
    numeric: bool = True
    better: Better = ""
    aside: bool = False  # left out on a phone, where the numbers come first
    notes: tuple[str, ...] = ()

    @property
    def full_title(self) -> str:
        """The title with that of its group."""
        if self.group:
            return f"{self.group}: {self.title}"
        return self.title


@dataclass(frozen=True)
class TableRow:
    """The first cell is the row's head. Rows of one block are together, with a rule before the next
    block.
    """

    cells: tuple[Cell, ...]
    block: str = ""
    ranked: bool = True  # takes part in best and second
    grey: bool = False  # of others, shown beside one's own


@dataclass(frozen=True)
class Table:
    key: str
    title: str
    caption: str
    columns: tuple[Column, ...]
    rows: tuple[TableRow, ...]
    legend: tuple[str, ...] = field(default=())  # one line under the table, after that of the marks

    def blocks(self) -> list[tuple[str, list[TableRow]]]:
        """Rows by block, in the order met."""
        by_block: dict[str, list[TableRow]] = {}
        for row in self.rows:
            by_block.setdefault(row.block, []).append(row)
        return list(by_block.items())

    def row_names(self) -> list[str]:
        """A name for each row, unlike all others: its label, with its block or a number where that
        is not enough.
        """
        labels = [row.cells[0].text for row in self.rows]
        twice = {label for label in labels if labels.count(label) > 1}
        names: list[str] = []
        for label, row in zip(labels, self.rows, strict=True):
            if label in twice and row.block:
                name = f"{label} ({row.block})"
            else:
                name = label
            count = sum(name == other.partition(" #")[0] for other in names)
            names.append(f"{name} #{count + 1}" if count else name)
        return names

    def head_groups(self) -> list[tuple[str, int]]:
        """(title, number of columns) of each run of equal column groups; empty when no column has
        one.
        """
        if not any(column.group for column in self.columns):
            return []
        found = []
        for group, columns in groupby(self.columns, lambda column: column.group):
            found.append((group, len(list(columns))))
        return found

    def footnotes(self) -> dict[str, str]:
        """Note text -> its letter, in reading order."""
        notes: dict[str, None] = {}
        for column in self.columns:
            notes |= dict.fromkeys(column.notes)
        for _, rows in self.blocks():
            for row in rows:
                for cell in row.cells:
                    notes |= dict.fromkeys(cell.notes)
        return {note: letters(i) for i, note in enumerate(notes)}

    def explanations(self, best: str = "Bold: best; underlined: second.") -> list[str]:
        """At most two lines: what the marks in this very table mean, and its legend. `best`: how
        ranks are marked.
        """
        cells: list[Cell] = []
        for row in self.rows:
            cells.extend(row.cells)
        states = {cell.state for cell in cells}
        marks = []
        if any(cell.rank == 1 for cell in cells):
            marks.append(best)
        if any(cell.worse for cell in cells):
            marks.append(f"{WORSE} significantly worse than the best (5 %).")
        for state, (text, why) in ABSENT.items():
            if state in states:
                marks.append(f"{text} = {why}.")
        lines = (" ".join(marks), " ".join(self.legend))
        return [line for line in lines if line]

    def as_dict(self) -> dict[str, Any]:
        """The table as plain data, for JSON."""
        heads = ("key", "title", "sub", "group", "better", "notes")
        columns = []
        for column in self.columns:
            columns.append({head: getattr(column, head) for head in heads})
        rows = []
        for name, row in zip(self.row_names(), self.rows, strict=True):
            cells = {}
            for column, cell in zip(self.columns, row.cells, strict=True):
                cells[column.key] = _plain(cell)
            rows.append({"name": name, "block": row.block, "cells": cells})
        return {
            "title": self.title,
            "caption": self.caption,
            "columns": columns,
            "rows": rows,
            "explanations": self.explanations(),
        }


def _plain(cell: Cell) -> dict[str, Any]:
    parts = ("text", "spread", "value", "sd", "n", "state", "rank", "worse", "notes", "records")
    data = {part: getattr(cell, part) for part in parts}
    found = {}
    for key, x in data.items():
        if x or (key in ("text", "value", "sd") and x is not None):
            found[key] = x
    return found


def letters(index: int) -> str:
    """0, 1, ... 25, 26 -> a, b, ... z, aa."""
    first, last = divmod(index, 26)
    letter = string.ascii_lowercase[last]
    if first:
        return letters(first - 1) + letter
    return letter


def best_and_second(cells: Sequence[Cell], *, lower: bool = False) -> list[int]:
    """1 of each best cell, 2 of each second, 0 of all others, by the numbers as shown.

    Equal shown numbers share a place; two bests leave no second. A single number gets none.
    """
    sign = -1 if lower else 1
    values = []
    for cell in cells:
        shown = cell.shown if cell.state == "value" else None
        values.append(None if shown is None else sign * shown)
    numbers = [value for value in values if value is not None]
    places = []
    for value in values:
        place = 0
        if value is not None and len(numbers) > 1:
            place = 1 + sum(other > value for other in numbers)
        places.append(place if place <= 2 else 0)
    return places


def rank_cells(columns: Sequence[Column], rows: Sequence[TableRow]) -> tuple[TableRow, ...]:
    """Mark best and second of every column that says what is better, block by block
    (`best_and_second`).
    """
    result = [list(row.cells) for row in rows]
    for j, column in enumerate(columns):
        if not column.better:
            continue
        for block in dict.fromkeys(row.block for row in rows):
            lines = []
            for i, row in enumerate(rows):
                if row.block == block and row.ranked:
                    lines.append(i)
            cells = [rows[i].cells[j] for i in lines]
            places = best_and_second(cells, lower=column.better == "lower")
            for i, place in zip(lines, places, strict=True):
                result[i][j] = replace(result[i][j], rank=place)
    ranked = []
    for row, cells in zip(rows, result, strict=True):
        ranked.append(replace(row, cells=tuple(cells)))
    return tuple(ranked)
