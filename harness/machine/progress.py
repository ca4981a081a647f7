"""Progress on standard error: a live line on a terminal, plain lines elsewhere, nothing with --quiet."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from types import TracebackType
from typing import Any, Self

from harness.files.printable import one_line, tell_error

NAMED = 4  # cells in work that a line of a log names
OFTEN, SELDOM = 10.0, 60.0  # seconds between two lines of a log that say how far a cell is: first, and later


class Reporter:
    """Shows the progress of a list of cells, and of the steps inside the current one; as a context, while it lasts.

    `remaining` may be set at any time: a few words on how long it still takes, which are shown beside it.
    """

    def __init__(self, total: int = 1, *, quiet: bool = False) -> None:
        self.total, self.quiet = total, quiet
        self.live = sys.stderr.isatty() and not quiet
        self.number = 0
        self.label = ""
        self.remaining = ""
        self._begun = self._last = time.monotonic()
        self._bar = None
        if self.live:
            from rich.console import Console
            from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

            text = TextColumn("{task.description}", markup=False)
            columns = (text, BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
            self._bar = Progress(*columns, console=Console(stderr=True))
            self._overall = self._bar.add_task("all cells", total=total)
            self._cell = self._bar.add_task("", total=1)

    def __enter__(self) -> Self:
        if self._bar is not None:
            self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bar is not None:
            self._bar.stop()

    def expect(self, total: int) -> None:
        """So many cells will come."""
        self.total = total
        if self._bar is not None:
            self._bar.update(self._overall, total=total)

    def start(self, label: str) -> None:
        """A new cell begins."""
        self.number += 1
        self.label = one_line(label)
        if self._bar is not None:
            self._bar.update(self._cell, description=self.label, completed=0, total=1)

    def step(self, step: int, steps: int, text: str) -> None:
        """The current cell is at `step` of `steps` (0 of 0: no count is known)."""
        text = one_line(text)
        if self._bar is not None:
            self._bar.update(self._cell, description=f"{self.label}: {text}", completed=step, total=max(steps, 1))
            self._bar.update(self._overall, description=self._whole())
        elif self._due():
            count = f"step {step}/{steps}, " if steps else ""
            self._line(f"[{self.number}/{self.total}] {self.label}: {count}{text}", self.remaining)

    def running(self, cells: Sequence[tuple[str, int, int, str]], ended: int) -> None:
        """What several workers are at: label, step, steps and text of each; `ended` cells of them have come back."""
        if not cells:
            return
        shown = [
            f"{one_line(label)}: {f'{step}/{steps} ' if steps else ''}{one_line(text)}"
            for label, step, steps, text in cells
        ]
        if self._bar is not None:
            rest = f" and {len(shown) - 1} more" if len(shown) > 1 else ""
            done, of = (sum(one) for one in zip(*((step, steps) for _, step, steps, _ in cells), strict=True))
            self._bar.update(self._cell, description=shown[0][:100] + rest, completed=done, total=max(of, 1))
            self._bar.update(self._overall, description=self._whole())
        elif self._due():
            more = f"; and {len(shown) - NAMED} more" if len(shown) > NAMED else ""
            self._line(f"[{ended}/{self.total}] in work: {'; '.join(shown[:NAMED])}{more}", self.remaining)

    def done(self, text: str) -> None:
        """The current cell has ended."""
        text = one_line(text)
        if self._bar is not None:
            self._bar.update(self._overall, completed=self.number, description=self._whole())
            self._bar.console.print(f"[{self.number}/{self.total}] {self.label}: {text}", markup=False, highlight=False)
        elif not self.quiet:
            self._line(f"[{self.number}/{self.total}] {self.label}: {text}")

    def say(self, text: str) -> None:
        """A line about the whole."""
        if not self.quiet:
            tell_error(text)

    def _whole(self) -> str:
        return f"all cells, {self.remaining}" if self.remaining else "all cells"

    def _due(self) -> bool:
        """Is it time for another line of a log? Every ten seconds at first, once a minute after ten minutes."""
        now = time.monotonic()
        if self.quiet or now - self._last < min(max(OFTEN, (now - self._begun) / 10), SELDOM):
            return False
        self._last = now
        return True

    def _line(self, text: str, more: str = "") -> None:
        """A line of a log, with the time of day."""
        tell_error(f"{time.strftime('%H:%M:%S')} {text}{f' ({more})' if more else ''}")


@contextmanager
def encoding_bar(total: int, *, show: bool) -> Iterator[Any]:
    """A bar for one call of `encode`, advanced by calling what the block gets with a count; nothing unless `show`."""
    if not show:
        yield lambda count: None
        return
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("encoding", total=total)
        yield lambda count: bar.advance(task, count)
