"""A table of a report as a pandas Styler: what a notebook draws. Text from data stays text."""

from __future__ import annotations

from html import escape
from typing import Any

import pandas as pd
from pandas.io.formats.style import Styler

from reports.document.table import TIED, Cell, Table
from reports.write.latex import latex_table

_CSS = {1: "font-weight: bold", 2: "text-decoration: underline"}


class TableStyler(Styler):
    """A Styler whose LaTeX is that of the report: booktabs, with marks and footnotes."""

    table: Table

    def to_latex(self, *args: Any, **options: Any) -> Any:
        """The table as the report has it; with arguments of pandas, as pandas makes it."""
        return super().to_latex(*args, **options) if args or options else latex_table(self.table)


def styled(table: Table) -> TableStyler:
    """The cells as text in `.data`; best and second of a block are bold and underlined, notes stand below."""
    notes = table.footnotes()
    groups = [title for title, width in table.head_groups() for _ in range(width)]
    heads = _unlike([": ".join(filter(None, (group, column.title))) for group, column in
                     zip(groups or [""] * len(table.columns), table.columns, strict=True)])  # fmt: skip
    lines = [(block, row) for block, rows in table.blocks() for row in rows]
    several = len(table.blocks()) > 1
    index = pd.Index(_unlike([block if several else "" for block, _ in lines]) if several else range(len(lines)))
    data = pd.DataFrame([[_text(cell, notes) for cell in row.cells] for _, row in lines], index=index, columns=heads)
    marks = pd.DataFrame(
        [[_CSS.get(cell.rank, "") for cell in row.cells] for _, row in lines], index=index, columns=heads
    )
    styler = TableStyler(data)
    styler.table = table
    styler.apply(lambda _: marks, axis=None).format(escape="html").format_index(escape="html", axis=1)
    styler.relabel_index([escape(block) if several else "" for block, _ in lines], axis=0)
    if not several:
        styler.hide(axis="index")
    said = [table.title, table.caption, *table.explanations(), *(f"{letter}: {note}" for note, letter in notes.items())]
    styler.set_caption("<br>".join(escape(line) for line in said if line))
    return styler


def _text(cell: Cell, notes: dict[str, str]) -> str:
    text = f"{TIED if cell.tied else ''}{cell.text} {cell.spread}".strip()
    letters = ",".join(notes[note] for note in cell.notes)
    return f"{text} [{letters}]" if letters else text


def _unlike(names: list[str]) -> list[str]:
    """The names, those that come again with a number: a Styler needs each once."""
    met: dict[str, int] = {}
    unlike = []
    for name in names:
        met[name] = met.get(name, 0) + 1
        unlike.append(f"{name} ({met[name]})" if met[name] > 1 else name)
    return unlike
