"""Where progress is drawn live: on a terminal, or in the output of a notebook's cell."""

from __future__ import annotations

import sys
import time
from html import escape
from typing import Any, Protocol

REDRAWN = 0.2  # seconds between two drawings in a notebook
KEPT = 5  # ended cells that a notebook still names


class View(Protocol):
    """Two bars, of the whole and of the cell in work, under lines on what has ended."""

    def begin(self) -> None:
        """Draw from now on."""

    def end(self) -> None:
        """Draw no more; what was drawn last stays."""

    def whole(self, text: str, done: int | None = None, total: int | None = None) -> None:
        """The bar of the whole; what is left out stays as it is."""

    def cell(self, text: str, done: int, total: int) -> None:
        """The bar of the cell in work."""

    def line(self, text: str) -> None:
        """Something that has ended."""


def view(total: int) -> View | None:
    """That of this process; None: it has a log at most."""
    if in_notebook():
        return Notebook(total)
    return Terminal(total) if sys.stderr.isatty() else None


def in_notebook() -> bool:
    """Does this process run the cells of a notebook?"""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    return hasattr(shell, "kernel")


class Terminal:
    """Bars of rich on standard error."""

    def __init__(self, total: int) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

        text = TextColumn("{task.description}", markup=False)
        columns = (text, BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
        self._bar = Progress(*columns, console=Console(stderr=True))
        self._whole = self._bar.add_task("all cells", total=total)
        self._cell = self._bar.add_task("", total=1)

    def begin(self) -> None:
        """See `View`."""
        self._bar.start()

    def end(self) -> None:
        """See `View`."""
        self._bar.stop()

    def whole(self, text: str, done: int | None = None, total: int | None = None) -> None:
        """See `View`."""
        self._bar.update(self._whole, description=text, completed=done, total=total)

    def cell(self, text: str, done: int, total: int) -> None:
        """See `View`."""
        self._bar.update(self._cell, description=text, completed=done, total=total)

    def line(self, text: str) -> None:
        """See `View`."""
        self._bar.console.print(text, markup=False, highlight=False)


class Notebook:
    """One output that is drawn anew; it needs no widgets, and stays readable in a saved notebook."""

    def __init__(self, total: int) -> None:
        self._bars: list[tuple[str, int, int]] = [("all cells", 0, total)]
        self._lines: list[str] = []
        self._shown: Any = None
        self._last = 0.0

    def begin(self) -> None:
        """See `View`."""
        from IPython.display import display

        self._shown = display(self, display_id=True)  # type: ignore[no-untyped-call]

    def end(self) -> None:
        """See `View`; the bar of the last cell goes."""
        self._bars = self._bars[:1]
        self._draw(at_once=True)

    def whole(self, text: str, done: int | None = None, total: int | None = None) -> None:
        """See `View`."""
        _, before, of = self._bars[0]
        self._bars[0] = (text, before if done is None else done, of if total is None else total)
        self._draw()

    def cell(self, text: str, done: int, total: int) -> None:
        """See `View`."""
        self._bars[1:] = [(text, done, total)]
        self._draw()

    def line(self, text: str) -> None:
        """See `View`."""
        self._lines.append(text)
        self._draw()

    def _repr_html_(self) -> str:
        """What is drawn: the last lines, then the bars."""
        earlier = len(self._lines) - KEPT
        more = [f"{earlier} more before"] if earlier > 0 else []
        lines = "".join(f"<div>{escape(line)}</div>" for line in [*more, *self._lines[-KEPT:]])
        bars = "".join(
            f'<div><progress value="{done}" max="{max(total, 1)}"></progress> {done} of {total} {escape(text)}</div>'
            for text, done, total in self._bars
            if text
        )
        return f'<div style="font: 12px monospace">{lines}{bars}</div>'

    def _draw(self, *, at_once: bool = False) -> None:
        now = time.monotonic()
        if self._shown is not None and (at_once or now - self._last >= REDRAWN):
            self._shown.update(self)
            self._last = now
