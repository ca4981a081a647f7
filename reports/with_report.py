"""Frames, tables and figures from Python: what the results of comparisons and studies have in common."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from functools import cached_property
from html import escape
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from harness.config import nearest
from harness.errors import InputError
from harness.results import frames
from harness.results.record import Record
from reports.document.blocks import Document, Figure
from reports.document.table import WORSE, Cell, Table

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure as Plot
    from pandas.io.formats.style import Styler

B = TypeVar("B", Table, Figure)
_CSS = {1: "font-weight: bold", 2: "text-decoration: underline"}


class WithReport:
    """A result with records, and a report that is built from them when the first table or figure is requested.

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
        from reports.build import describe
        from reports.figures.style import changed_settings, with_settings

        own = changed_settings()
        if str(own) not in self._documents:
            with with_settings(own):
                self._documents[str(own)] = describe(self.name, self.workdir).document
        return self._documents[str(own)]

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
        """One row an example of the other scores; columns: `harness.results.outcomes.COLUMNS`, after the run's.

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

    def table(self, name: str) -> Styler:
        """A table of the report, as a pandas Styler: `.to_latex()` is as in the report, `.data` is what it shows.

        Args:
            name: its key (`tables`), or words of key and title: "sts", "seeds", "cost". The first that has them.

        Raises:
            InputError: no such table.
        """
        return styled(_find(self._document.tables(), name, "table"))

    def plot(self, name: str) -> Plot:
        """A figure of the report, as matplotlib has it, on white; `name` as in `table`: "alignment-uniformity", "cost".

        Settings of matplotlib that you have changed (`rcParams`, `plt.style.use`) go before those of the report. A
        notebook draws it without pyplot, too.

        Raises:
            InputError: no such figure.
        """
        plot: Plot = _find(self._document.figures(), name, "figure").plot
        if plot.get_facecolor()[-1] == 0:  # in the report the page shines through
            plot.set_facecolor("white")
        plot._repr_png_ = lambda: _png(plot)  # type: ignore[attr-defined]
        return plot


def _png(plot: Plot) -> bytes:
    drawn = BytesIO()
    plot.savefig(drawn, format="png", dpi=100)
    return drawn.getvalue()


def _find(blocks: Sequence[B], name: str, kind: str) -> B:
    """The block of that key, else the first one whose key and title have all words of `name`."""
    words = set(_words(name))
    found: list[B] = [block for block in blocks if block.key == name]
    found += [block for block in blocks if words and words <= set(_words(f"{block.key} {block.title}"))]
    if not found:
        known = [block.key for block in blocks]
        raise InputError(f'no {kind} "{name}"{nearest(name, known)}; there are: {", ".join(known) or "none"}')
    return found[0]


def _words(text: str) -> list[str]:
    return re.findall(r"\w+", text.lower())


def styled(table: Table) -> Styler:
    """A table as a pandas Styler: the cells as text in `.data`, best and second of a block bold and underlined, notes
    below. Text from data stays text; `.to_latex()` without arguments is the report's LaTeX."""
    import pandas as pd
    from pandas.io.formats.style import Styler

    from reports.write.latex import latex_table

    notes = table.footnotes()
    heads = _number_repeats([": ".join(filter(None, (column.group, column.title))) for column in table.columns])
    lines = [(block, row) for block, rows in table.blocks() for row in rows]
    blocks = [block for block, _ in lines] if len(table.blocks()) > 1 else []
    index = pd.Index(_number_repeats(blocks) if blocks else range(len(lines)))
    data = pd.DataFrame([[_text(cell, notes) for cell in row.cells] for _, row in lines], index=index, columns=heads)
    looks = [[_CSS.get(cell.rank, "") for cell in row.cells] for _, row in lines]
    marks = pd.DataFrame(looks, index=index, columns=heads)

    class TableStyler(Styler):
        def to_latex(self, *args: Any, **options: Any) -> Any:
            """The table as the report has it; with arguments of pandas, as pandas makes it."""
            return super().to_latex(*args, **options) if args or options else latex_table(table)

    styler: Styler = TableStyler(data)
    styler.apply(lambda _: marks, axis=None).format(escape="html").format_index(escape="html", axis=1)
    styler.relabel_index([escape(block) for block in blocks] or [""] * len(lines), axis=0)
    if not blocks:
        styler.hide(axis="index")
    said = [table.title, table.caption, *table.explanations(), *(f"{letter}: {note}" for note, letter in notes.items())]
    return styler.set_caption("<br>".join(escape(line) for line in said if line))


def _text(cell: Cell, notes: dict[str, str]) -> str:
    text = f"{WORSE if cell.worse else ''}{cell.text} {cell.spread}".strip()
    letters = ",".join(notes[note] for note in cell.notes)
    return f"{text} [{letters}]" if letters else text


def _number_repeats(names: list[str]) -> list[str]:
    """The names; those that occur before have a number: a Styler needs each once."""
    met: Counter[str] = Counter()
    numbered = []
    for name in names:
        met[name] += 1
        numbered.append(f"{name} ({met[name]})" if met[name] > 1 else name)
    return numbered
