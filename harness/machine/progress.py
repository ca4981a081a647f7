"""Progress: bars on a terminal and in a notebook, plain lines on standard error elsewhere, nothing
with --quiet.
"""

from __future__ import annotations

import sys
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from io import StringIO
from typing import Any, Self

from harness.files.printable import encodable, one_line, tell_error

NAMED = 4  # running runs that a line of a log names
# seconds between two lines of a log on running runs: first, and later
OFTEN = 10.0
SELDOM = 60.0
REDRAWN = 0.2  # seconds between two drawings in a notebook
LINES = 5  # ended runs that a notebook shows


class Reporter:
    """Shows the progress of a list of runs, and of the steps inside the current one; used as a
    context manager.

        >>> with Reporter(2, quiet=True) as reporter:
        ...     reporter.start("SimCSE, seed 1")
        ...     reporter.step(3, 24, "loss 0.12")
        ...     reporter.finish_run("finished")
        >>> reporter.number
        1

    Attributes:
        remaining: a few words on how long it still takes, which are shown with the progress.
    """

    def __init__(self, total: int = 1, *, quiet: bool = False) -> None:
        self.total = total
        self.quiet = quiet
        self.number = 0
        self.label = self.remaining = ""
        self._begun = self._last = time.monotonic()
        self._bars = (
            Bars(total, "all runs")
            if not quiet and (in_notebook() or sys.stderr.isatty())
            else None
        )

    @classmethod
    def of_caller(cls) -> Self:
        """What a call shows that names no reporter: bars in a notebook and on a terminal, nothing
        elsewhere.
        """
        return cls(quiet=not (in_notebook() or sys.stderr.isatty()))

    @property
    def draws(self) -> bool:
        """Are bars drawn: on a terminal or in a notebook, and not quiet?"""
        return self._bars is not None

    def __enter__(self) -> Self:
        if self._bars is not None:
            self._bars.__enter__()
        return self

    def __exit__(self, *error: object) -> None:
        if self._bars is not None:
            self._bars.show_whole("all runs")
            self._bars.__exit__(*error)

    def expect(self, total: int) -> None:
        """So many runs will come."""
        self.total = total
        if self._bars is not None:
            self._bars.show_whole(total=total)

    def start(self, label: str) -> None:
        """A new run starts."""
        self.number += 1
        self.label = one_line(label)
        if self._bars is not None:
            self._bars.show_run(self.label, 0, 1)

    def step(self, step: int, steps: int, text: str) -> None:
        """The current run is at `step` of `steps` (0 of 0: no count is known)."""
        self.running([(self.label, step, steps, text)])

    def running(self, runs: Sequence[tuple[str, int, int, str]]) -> None:
        """What all workers are doing: label, step, steps and text of each running run."""
        shown = []
        for label, step, steps, text in runs:
            if steps:
                at = f"step {step}/{steps}, "
            else:
                at = ""
            shown.append(f"{one_line(label)}: {at}{one_line(text)}")
        if self._bars is not None and runs:
            if len(runs) > 1:
                more = f" and {len(runs) - 1} more"
            else:
                more = ""
            self._bars.show_run(
                shown[0][:100] + more,
                sum(run[1] for run in runs),
                sum(run[2] for run in runs),
            )
            whole = "all runs"
            if self.remaining:
                whole = f"all runs, {self.remaining}"
            self._bars.show_whole(whole)
        elif runs and self._is_due():
            if len(shown) > NAMED:
                more = f"; and {len(shown) - NAMED} more"
            else:
                more = ""
            if self.remaining:
                left = f" ({self.remaining})"
            else:
                left = ""
            some = "; ".join(shown[:NAMED])
            self._print(f"[{self.number}/{self.total}] {some}{more}{left}")

    def finish_run(self, text: str) -> None:
        """The current run has ended."""
        if self._bars is not None:
            self._bars.show_whole(done=self.number)
        place = f"[{self.number}/{self.total}]"
        self._print(f"{place} {self.label}: {one_line(text)}")

    def say(self, text: str) -> None:
        """Show a line about the whole."""
        if self._bars is not None:
            self._bars.print(one_line(text))
        elif not self.quiet:
            tell_error(text)

    def _is_due(self) -> bool:
        """Is it time for another line of a log? Every ten seconds at first, once a minute after ten
        minutes.
        """
        now = time.monotonic()
        elapsed = (now - self._begun) / 10
        if now - self._last < min(max(OFTEN, elapsed), SELDOM):
            return False
        self._last = now
        return True

    def _print(self, text: str) -> None:
        """Print a line: above the bars, or with the time of day in a log."""
        if self._bars is None:
            text = f"{time.strftime('%H:%M:%S')} {text}"
        self.say(text)


class Bars:
    """Two bars of rich, of the whole and of the current run, under lines on ended runs.

    In a notebook they are drawn into one output, which needs no widgets and stays readable in a
    saved notebook.

        >>> with Bars(2, "all runs") as bars:
        ...     bars.advance(1)
    """

    def __init__(self, total: int, text: str) -> None:
        from rich.console import Console
        from rich.progress import (
            BarColumn,
            MofNCompleteColumn,
            Progress,
            TextColumn,
            TimeElapsedColumn,
        )

        self._notebook = in_notebook()
        drawn = Console(file=StringIO(), record=True, width=120, force_jupyter=False)
        if self._notebook:
            self._console = drawn
        else:
            self._console = Console(stderr=True)
        columns = (
            TextColumn("{task.description}", markup=False),
            BarColumn(),
            MofNCompleteColumn(),
        )
        self._progress = Progress(*columns, TimeElapsedColumn(), console=self._console)
        self._whole = self._progress.add_task(text, total=total)
        self._run = self._progress.add_task("", total=1, visible=False)
        self._lines: deque[str] = deque(maxlen=LINES)
        self._output: Any = None
        self._last = 0.0

    def __enter__(self) -> Self:
        if self._notebook:
            from IPython.display import display

            self._output = display(self, display_id=True)
        else:
            self._progress.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._progress.update(self._run, visible=False)
        if self._output is not None:
            self._output.update(self)
        self._progress.stop()

    def show_whole(
        self,
        text: str | None = None,
        done: int | None = None,
        total: int | None = None,
    ) -> None:
        """Change the bar of the whole; what is left out does not change."""
        self._progress.update(self._whole, description=text, completed=done, total=total)
        self._draw()

    def show_run(self, text: str, done: int, total: int) -> None:
        """Change the bar of the current run."""
        self._progress.update(
            self._run,
            description=text,
            completed=done,
            total=max(total, 1),
            visible=True,
        )
        self._draw()

    def advance(self, count: int) -> None:
        """The whole has advanced by `count`."""
        self._progress.advance(self._whole, count)
        self._draw()

    def print(self, line: str) -> None:
        """Print a line above the bars."""
        if not self._notebook:
            shown = encodable(line, self._console.file)
            self._console.print(shown, markup=False, highlight=False)
        self._lines.append(line)
        self._draw()

    def _draw(self) -> None:
        is_due = time.monotonic() - self._last >= REDRAWN
        if self._output is not None and is_due:
            self._last = time.monotonic()
            self._output.update(self)

    def _repr_html_(self) -> str:
        """The last lines and the bars."""
        for line in self._lines:
            self._console.print(line, markup=False, highlight=False)
        self._console.print(self._progress.get_renderable())
        return self._console.export_html(inline_styles=True, code_format="<pre>{code}</pre>")


@contextmanager
def encoding_bar(total: int, *, show: bool) -> Iterator[Callable[[int], None]]:
    """A bar for one call of `encode`, advanced by calling what the block gets with a count; no bar
    unless `show`. What `watch_encoding` was given is called too.

    >>> with encoding_bar(100, show=False) as advance:
    ...     advance(64)
    """
    watch = _watcher.get()
    done = 0

    def advance(count: int) -> None:
        nonlocal done
        done += count
        if watch is not None:
            watch(done, total)

    if not show:
        yield advance
        return
    with Bars(total, "sentences encoded") as bars:

        def draw(count: int) -> None:
            bars.advance(count)
            advance(count)

        yield draw


Watcher = Callable[[int, int], None]
_watcher: ContextVar[Watcher | None] = ContextVar("watcher", default=None)


@contextmanager
def watch_encoding(watch: Watcher) -> Iterator[None]:
    """Have `watch(done, total)` called after each batch of sentences that is encoded, until the
    block ends; what it raises ends the encoding.

        >>> seen = []
        >>> with watch_encoding(lambda done, total: seen.append((done, total))):
        ...     vectors = harness.load_model("embedded:mini-bert").encode(["A dog runs.", "It rains."])
        >>> seen
        [(2, 2)]
    """
    token = _watcher.set(watch)
    try:
        yield
    finally:
        _watcher.reset(token)


def describe_duration(seconds: float) -> str:
    """ "40 s", "12 min", "3 h 05 min", "2 d 4 h".

    >>> describe_duration(700), describe_duration(11_100)
    ('12 min', '3 h 05 min')
    """
    if seconds < 90:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    if minutes < 90:
        return f"{minutes} min"
    hours, minutes = divmod(minutes, 60)
    if hours < 48:
        return f"{hours} h {minutes:02} min"
    return f"{hours // 24} d {hours % 24} h"


def describe_remaining(seconds: float | None) -> str:
    """ "about 12 min left", or nothing where it is not known.

    >>> describe_remaining(700), describe_remaining(None)
    ('about 12 min left', '')
    """
    if seconds is None:
        return ""
    return f"about {describe_duration(seconds)} left"


def in_notebook() -> bool:
    """Does this process run the cells of a notebook?

    >>> in_notebook()
    False
    """
    module = sys.modules.get("IPython")
    get_shell = getattr(module, "get_ipython", None)
    return get_shell is not None and hasattr(get_shell(), "kernel")
