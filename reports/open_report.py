"""A report that is looked at piece by piece: tables as pandas stylers, figures as matplotlib has them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from io import BytesIO
from typing import TYPE_CHECKING, TypeVar

from harness.config import nearest
from harness.errors import InputError
from reports.document.blocks import Document, Figure
from reports.document.table import Table

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Plot
    from pandas.io.formats.style import Styler

B = TypeVar("B", Table, Figure)


class OpenReport:
    """See `harness.results.report_builder.OpenReport`."""

    def __init__(self, document: Document) -> None:
        self._tables, self._figures = document.tables(), document.figures()

    @property
    def tables(self) -> dict[str, str]:
        """Key -> title of its tables."""
        return {table.key: table.title for table in self._tables}

    @property
    def plots(self) -> dict[str, str]:
        """Key -> title of its figures."""
        return {figure.key: figure.title for figure in self._figures}

    def table(self, name: str) -> Styler:
        """The table of that key, else the first one whose key and title have all words of `name`.

        Raises:
            InputError: there is none.
        """
        from reports.write.styled import styled

        return styled(_found(self._tables, name, "table"))

    def plot(self, name: str) -> Plot:
        """The figure of that name, as `table` finds it, on white; a notebook draws it without pyplot, too.

        Raises:
            InputError: there is none.
        """
        plot: Plot = _found(self._figures, name, "figure").plot
        plot.set_facecolor("white")
        plot._repr_png_ = lambda: _png(plot)  # type: ignore[attr-defined]
        return plot


def _png(plot: Plot) -> bytes:
    drawn = BytesIO()
    plot.savefig(drawn, format="png", dpi=100)
    return drawn.getvalue()


def _found(blocks: Sequence[B], name: str, kind: str) -> B:
    words = set(_words(name))
    for block in blocks:
        if block.key == name:
            return block
    for block in blocks:
        if words and words <= set(_words(f"{block.key} {block.title}")):
            return block
    known = [block.key for block in blocks]
    raise InputError(f'no {kind} "{name}"{nearest(name, known)}; there are: {", ".join(known) or "none"}')


def _words(text: str) -> list[str]:
    return re.findall(r"\w+", text.lower())
