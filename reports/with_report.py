"""Frames, tables and figures from Python: what the results of comparisons and studies have in
common.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cached_property
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from harness.config import nearest
from harness.errors import InputError
from harness.results import frames
from harness.results.record import Record
from reports.document.blocks import Document, Figure
from reports.document.table import WORSE, Cell, Table

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure as Plot

B = TypeVar("B", Table, Figure)


class WithReport:
    """A result with records, and a report that is built from them when the first table or figure is
    requested.

    Attributes:
        name: what the report is called. workdir: where its records are.
        records: one per run, in the order of the table or of the trials.
    """

    name: str
    workdir: Path
    records: list[Record]

    @cached_property
    def _documents(self) -> dict[str, Document]:
        """The caller's settings of matplotlib -> the report with them."""
        return {}

    @property
    def _document(self) -> Document:
        from reports.figures.style import changed_settings, with_settings

        own = changed_settings()
        if str(own) not in self._documents:
            with with_settings(own):
                self._documents[str(own)] = self._describe()
        return self._documents[str(own)]

    def _describe(self) -> Document:
        """Return the report, read from the work directory."""
        from reports.build import describe

        return describe(self.name, self.workdir).document

    @property
    def tables(self) -> dict[str, str]:
        """Key -> title of the tables of the report."""
        return {table.key: table.title for table in self._document.tables()}

    @property
    def plots(self) -> dict[str, str]:
        """Key -> title of the figures of the report."""
        return {figure.key: figure.title for figure in self._document.figures()}

    def scores(self) -> pd.DataFrame:
        """One row a score of a run; the columns are those of `harness.results.frames.SCORES`.

        >>> found.scores().groupby("row", observed=True)["value"].count().index.tolist()
        ['cls', 'mean']
        """
        return frames.scores(self.records)

    def pairs(self) -> pd.DataFrame:
        """One row a scored pair of sentences of a run; columns: `harness.results.frames.PAIRS`.

        >>> found.pairs()[["gold", "score"]].shape
        (480, 2)
        """
        return frames.pairs(self.workdir, self.records)

    def outcomes(self) -> pd.DataFrame:
        """One row an example of the other scores; columns: `harness.results.outcomes.COLUMNS`,
        after the run's.

        >>> len(found.outcomes())  # correlations alone
        0
        """
        return frames.outcomes(self.workdir, self.records)

    def curves(self) -> pd.DataFrame:
        """One row a number of the training log of a run; columns: `harness.results.frames.CURVES`.

        >>> len(found.curves())  # nothing was trained
        0
        """
        return frames.curves(self.workdir, self.records)

    def costs(self) -> pd.DataFrame:
        """One row a run with what it took; columns: `harness.results.frames.COSTS`.

        >>> found.costs()[["row", "status"]].values.tolist()
        [['cls', 'finished'], ['mean', 'finished']]
        """
        return frames.costs(self.records)

    def table(self, name: str) -> pd.DataFrame:
        """A table of the report as texts; "*" is the best of a column. `.attrs` has its title,
        caption and legend.

        The report has the same tables for LaTeX (booktabs), `reports/NAME/tables/KEY.tex`, and as
        numbers, `KEY.csv`.

        Args:
            name: its key (`tables`), or words of key and title: "sts", "seeds", "cost". The first
                that has them.

        Raises:
            InputError: no such table.
        """
        return _frame(_find(self._document.tables(), name, "table"))

    def plot(self, name: str) -> Plot:
        """A figure of the report, as matplotlib has it, on white; `name` as in `table`:
        "alignment-uniformity", "cost".

        Settings of matplotlib that you have changed (`rcParams`, `plt.style.use`) replace those of
        the report; of `figure.figsize` the width, as the height follows from the number of rows.
        Save it with `.savefig("a.pdf")`.

        Raises:
            InputError: no such figure.
        """
        plot: Plot = _find(self._document.figures(), name, "figure").plot
        if plot.get_facecolor()[-1] == 0:  # in the report the page shines through
            plot.set_facecolor("white")

        def png() -> bytes:
            drawn = BytesIO()
            plot.savefig(drawn, format="png", dpi=100)
            return drawn.getvalue()

        plot._repr_png_ = png  # type: ignore[attr-defined]
        return plot


def _find(blocks: Sequence[B], name: str, kind: str) -> B:
    """The block of that key, else the first one whose key and title have all words of `name`."""
    for block in blocks:
        if block.key == name:
            return block
    wanted = _words_of(name)
    for block in blocks:
        if wanted and wanted <= _words_of(f"{block.key} {block.title}"):
            return block
    known = [block.key for block in blocks]
    listed = ", ".join(known) or "none"
    raise InputError(f'no {kind} "{name}"{nearest(name, known)}; there are: {listed}', key=name)


def _words_of(text: str) -> set[str]:
    return set(re.findall(r"\w+", text.lower()))


def _frame(table: Table) -> pd.DataFrame:
    import pandas as pd

    notes = table.footnotes()
    lines = []
    names = []
    for block, rows in table.blocks():
        for row in rows:
            names.append(block)
            lines.append([_text(cell, notes) for cell in row.cells])
    heads = []
    for column in table.columns:
        heads.append(": ".join(filter(None, (column.group, column.title))))
    index = None
    if len(table.blocks()) > 1:
        index = names
    frame = pd.DataFrame(lines, index=index, columns=heads)
    legend = table.explanations("*: best.")
    for note, letter in notes.items():
        legend.append(f"{letter}: {note}")
    frame.attrs = {"title": table.title, "caption": table.caption, "legend": legend}
    return frame


def _text(cell: Cell, notes: dict[str, str]) -> str:
    text = cell.text
    if cell.worse:
        text = f"{WORSE}{text}"
    if cell.rank == 1:
        text += "*"
    text = f"{text} {cell.spread}".strip()
    letters = ",".join(notes[note] for note in cell.notes)
    if letters:
        return f"{text} [{letters}]"
    return text
