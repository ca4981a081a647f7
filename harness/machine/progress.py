"""Progress on standard error: a live line on a terminal, plain lines elsewhere, nothing with --quiet."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from types import TracebackType
from typing import Any, Self

from harness.files.printable import one_line, tell_error


class Reporter:
    """Shows the progress of a list of cells, and of the steps inside the current one; as a context, while it lasts."""

    def __init__(self, total: int = 1, *, quiet: bool = False) -> None:
        self.total, self.quiet = total, quiet
        self.live = sys.stderr.isatty() and not quiet
        self.number = 0
        self.label = ""
        self._last = 0.0
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
        self._last = time.monotonic()
        if self._bar is not None:
            self._bar.update(self._cell, description=self.label, completed=0, total=1)

    def step(self, step: int, steps: int, text: str) -> None:
        """The current cell is at `step` of `steps` (0 of 0: no count is known)."""
        text = one_line(text)
        if self._bar is not None:
            self._bar.update(self._cell, description=f"{self.label}: {text}", completed=step, total=max(steps, 1))
        elif not self.quiet and time.monotonic() - self._last > 10:
            self._last = time.monotonic()
            count = f"step {step}/{steps}, " if steps else ""
            tell_error(f"[{self.number}/{self.total}] {self.label}: {count}{text}")

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
        elif not self.quiet and time.monotonic() - self._last > 10:
            self._last = time.monotonic()
            tell_error(f"[{self.number}/{self.total}] in work: {'; '.join(shown)}")

    def done(self, text: str) -> None:
        """The current cell has ended."""
        text = one_line(text)
        if self._bar is not None:
            self._bar.update(self._overall, completed=self.number)
            self._bar.console.print(f"[{self.number}/{self.total}] {self.label}: {text}", markup=False, highlight=False)
        elif not self.quiet:
            tell_error(f"[{self.number}/{self.total}] {self.label}: {text}")

    def say(self, text: str) -> None:
        """A line about the whole."""
        if not self.quiet:
            tell_error(text)


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
