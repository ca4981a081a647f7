"""Progress: bars on a terminal and in a notebook, plain lines on standard error elsewhere, nothing with --quiet."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from types import TracebackType
from typing import Any, Self

from harness.files.printable import one_line, tell_error
from harness.machine.progress_views import Notebook, in_notebook, view

NAMED = 4  # cells in work that a line of a log names
OFTEN, SELDOM = 10.0, 60.0  # seconds between two lines of a log that say how far a cell is: first, and later


class Reporter:
    """Shows the progress of a list of cells, and of the steps inside the current one; as a context, while it lasts.

        >>> with Reporter(2, quiet=True) as reporter:
        ...     reporter.start("SimCSE, seed 1")
        ...     reporter.step(3, 24, "loss 0.12")
        ...     reporter.done("finished")
        >>> reporter.number
        1

    `remaining` may be set at any time: a few words on how long it still takes, which are shown beside it.
    """

    def __init__(self, total: int = 1, *, quiet: bool = False) -> None:
        self.total, self.quiet = total, quiet
        self.number = 0
        self.label = ""
        self.remaining = ""
        self._begun = self._last = time.monotonic()
        self._view = None if quiet else view(total)

    @classmethod
    def of_caller(cls) -> Self:
        """What a call shows that names no reporter: bars in a notebook, nothing elsewhere."""
        return cls(quiet=not in_notebook())

    def __enter__(self) -> Self:
        if self._view is not None:
            self._view.begin()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._view is not None:
            self._view.end()

    def expect(self, total: int) -> None:
        """So many cells will come."""
        self.total = total
        if self._view is not None:
            self._view.whole(self._whole(), total=total)

    def start(self, label: str) -> None:
        """A new cell begins."""
        self.number += 1
        self.label = one_line(label)
        if self._view is not None:
            self._view.cell(self.label, 0, 1)

    def step(self, step: int, steps: int, text: str) -> None:
        """The current cell is at `step` of `steps` (0 of 0: no count is known)."""
        text = one_line(text)
        if self._view is not None:
            self._view.cell(f"{self.label}: {text}", step, max(steps, 1))
            self._view.whole(self._whole())
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
        if self._view is not None:
            rest = f" and {len(shown) - 1} more" if len(shown) > 1 else ""
            done, of = (sum(one) for one in zip(*((step, steps) for _, step, steps, _ in cells), strict=True))
            self._view.cell(shown[0][:100] + rest, done, max(of, 1))
            self._view.whole(self._whole())
        elif self._due():
            more = f"; and {len(shown) - NAMED} more" if len(shown) > NAMED else ""
            self._line(f"[{ended}/{self.total}] in work: {'; '.join(shown[:NAMED])}{more}", self.remaining)

    def done(self, text: str) -> None:
        """The current cell has ended."""
        text = one_line(text)
        if self._view is not None:
            self._view.whole(self._whole(), self.number)
            self._view.line(f"[{self.number}/{self.total}] {self.label}: {text}")
        elif not self.quiet:
            self._line(f"[{self.number}/{self.total}] {self.label}: {text}")

    def say(self, text: str) -> None:
        """A line about the whole."""
        if self._view is not None and in_notebook():
            self._view.line(one_line(text))
        elif not self.quiet:
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
    """A bar for one call of `encode`, advanced by calling what the block gets with a count; nothing unless `show`.

    >>> with encoding_bar(100, show=False) as advance:
    ...     advance(64)
    """
    if not show:
        yield lambda count: None
        return
    if in_notebook():
        drawn, done = Notebook(total), 0

        def advance(count: int) -> None:
            nonlocal done
            done += count
            drawn.whole("sentences encoded", done)

        drawn.begin()
        yield advance
        drawn.end()
        return
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("encoding", total=total)
        yield lambda count: bar.advance(task, count)
