"""The coordinator's side: it tells of a comparison or a study on the terminal, in a file and on a page.

A thread writes file and page every few seconds, and less often where that would cost more than half a percent of a
processor. Whatever it meets, the runs go on.
"""

from __future__ import annotations

import logging
import shlex
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from threading import Event, Lock, Thread
from types import TracebackType
from typing import Self

from harness.errors import RunError, StopAsked
from harness.files.atomic import write_atomic
from harness.files.printable import one_line
from harness.files.redaction import redacted
from harness.live.page import LivePage, index, live_page
from harness.live.remaining import Done, Going, Left, Waiting, remaining
from harness.live.requests import CANCEL, PAUSE, Request, Stop, asked, withdraw
from harness.live.signs import forget, signs
from harness.live.state import (
    CANCELLED,
    FAILED,
    OPEN,
    RUNNING,
    WAITING,
    Cell,
    InWork,
    RowScore,
    State,
    judged,
    lost_worker,
    me,
    states,
    with_signs,
    write,
)  # fmt: skip
from harness.machine.progress import Reporter
from harness.results.record import Record

log = logging.getLogger(__name__)

EVERY = 3.0  # seconds between two pages
SHARE = 0.005  # of a processor that telling may take
PATIENCE = 60.0  # seconds that workers have for a checkpoint, once a stop is asked for


class Watch:
    """Tells how far a comparison or a study is, while the block lasts, and how it ended.

    Its coordinator says which cells there are (`expect`), when one is begun here (`start`, `step`) and how each ends
    (`done`). What workers are at it sees by their signs (`harness.live.signs`); `tick` is for `Executor.run`, and
    `stop` for `FitContext.stop`. What needs neither signs nor cells can go on using a `Reporter` alone.
    """

    def __init__(
        self,
        workdir: Path,
        name: str,
        *,
        kind: str = "comparison",
        title: str = "",
        executor: str = "serial",
        workers: int = 1,
        reporter: Reporter | None = None,
        scores: Callable[[], list[RowScore]] | None = None,
    ) -> None:
        """`workers`: how many cells are made at a time, as far as that is known. `scores`: what stands for scores where
        they are not those of the finished runs' records, as a study's objectives."""
        now = time.time()
        self.workdir, self.reporter = workdir, reporter or Reporter(quiet=True)
        self.state = State(
            name, kind, title, executor=executor, command=_command(), begun=now, time=now, every=EVERY, **me()
        )
        self.stop = Stop(workdir, self.state.key)
        self.worked = 0.0  # seconds of a processor that telling has taken
        self._scores = scores
        self._page: LivePage | None = None
        self._cells: dict[str, Cell] = {}
        self._records: dict[str, Record] = {}
        self._scored = 0  # records that the scores are of
        self._workers = workers  # or the most that were seen at work together
        self._shown: list[InWork] = []
        self._asked_at = 0.0
        self._told = self._failed = False
        self._lock, self._writing, self._over = Lock(), Lock(), Event()
        self._thread = Thread(target=self._tell, name="live", daemon=True)

    @property
    def key(self) -> str:
        """What a worker looks for a request by."""
        return self.state.key

    def __enter__(self) -> Self:
        withdraw(self.workdir, self.key)
        try:
            self._page = live_page()
        except Exception as error:  # another package's page is no reason to train nothing
            log.warning("no live page: %s", error)
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._over.set()
        self._thread.join()
        self.state.phase, self.state.reason = self._ending(error)
        if self.state.phase == "cancelled":
            for cell in self._cells.values():
                cell.state = CANCELLED if cell.state in OPEN else cell.state
        self._refresh()
        with suppress(OSError):
            withdraw(self.workdir, self.key)

    def expect(self, cells: Sequence[Cell], total: int | None = None) -> None:
        """These cells will come; those that are known already stay as they are. `total`: with those that follow."""
        with self._lock:
            for cell in cells:
                self._cells.setdefault(cell.label, cell)
        self.reporter.expect(max(total or 0, len(self._cells)))
        now, left = time.time(), signs(self.workdir)
        for cell in cells:  # what a killed worker left
            if cell.id in left and lost_worker(left[cell.id], now):
                forget(self.workdir, cell.id)
        if not self._told and self._page is not None and total != 0:
            self._told = True
            self.reporter.say(f"live page: {index(self.workdir)}")

    def weigh(self, works: Mapping[str, float]) -> None:
        """Label -> how long cells take, in a unit of no meaning."""
        for label, work in works.items():
            self._cells[label].work = work

    def at(self, label: str, run: str) -> None:
        """A cell that has several runs, as a trial has, is now at the one of this id."""
        self._cells[label].id = run

    def start(self, label: str) -> None:
        """This process begins a cell."""
        self.reporter.start(label)
        self._cells[label].state = RUNNING

    def step(self, step: int, steps: int, text: str) -> None:
        """As `Reporter.step`, of the cell that was started last."""
        self.reporter.step(step, steps, text)

    def done(
        self,
        label: str,
        state: str,
        text: str,
        *,
        reason: str = "",
        seconds: float | None = None,
        training: float = 0.0,
        record: Record | None = None,
    ) -> None:
        """A cell has ended in one of `harness.live.state.STATES`; `text` is a line about it."""
        with self._lock:
            if self.reporter.label != one_line(label):
                self.reporter.start(label)
            self._cells[label] = replace(
                self._cells[label], state=state, reason=reason, seconds=seconds, training=training
            )
            if record is not None and record.status == "finished":
                self._records[label] = record
        self.reporter.done(text)

    def say(self, text: str) -> None:
        """A line about the whole."""
        self.reporter.say(text)

    def tick(self) -> None:
        """Show what workers are at, and end them where that is asked for: once all have stopped, or a minute later.

        Raises:
            StopAsked: it is asked for.
        """
        lines = [(one.label, one.seen.step, one.seen.steps, one.seen.text) for one in self._shown]
        self.reporter.running(lines, sum(cell.state not in OPEN for cell in self._cells.values()))
        if self.stop():
            now = time.time()
            self._asked_at = self._asked_at or now
            going = with_signs(replace(self.state, cells=list(self._cells.values())), signs(self.workdir)).in_work
            if not going or now - self._asked_at > PATIENCE:
                raise StopAsked

    def stopped(self) -> RunError:
        """What is said after a stop."""
        state, ended = self.state, sum(cell.state not in OPEN for cell in self._cells.values())
        going = "the same command goes on" + (f": {state.command}" if state.command else "")
        why = f" ({state.reason})" if state.reason else ""
        count = f"{ended} of {len(self._cells)} runs have ended"
        return RunError(f'{state.kind} "{state.name}" {state.phase}{why}: {count}; nothing is lost, {going}')

    def _ending(self, error: BaseException | None) -> tuple[str, str]:
        """Phase and reason."""
        if error is None:
            return "ended", ""
        if isinstance(error, StopAsked):
            request = asked(self.workdir, self.key) or Request(PAUSE)
            by = f"asked for by {request.by}" if request.by else ""
            return "cancelled" if request.what == CANCEL else "paused", by
        if isinstance(error, KeyboardInterrupt):
            return "interrupted", "by hand, where it was started"
        said = redacted(str(error)).splitlines() or [""]
        return "failed", f"{type(error).__name__}: {said[0]}"

    def _tell(self) -> None:
        """What the thread does."""
        costs = [0.0]
        while True:
            before = self.worked
            self._refresh()
            costs = [costs[-1], self.worked - before]  # the first page is dearer: what it needs is imported for it
            self.state.every = max(EVERY, min(costs) / SHARE)
            if self._over.wait(self.state.every):
                return

    def _refresh(self) -> None:
        """Tell how it stands now; a disk that refuses, or a fault of the page's, is told once."""
        began = time.thread_time()
        with self._writing:
            try:
                state = self._now()
                write(self.workdir, state)
                if self._page is not None:
                    others = [judged(one) for one in states(self.workdir) if one.key != state.key]
                    write_atomic(index(self.workdir), self._page.page([state, *others], state.time), durable=False)
            except Exception as error:
                if not self._failed:
                    log.warning("what is told of the runs in %s cannot be written: %s", self.workdir / "live", error)
                self._failed = True
        self.worked += time.thread_time() - began

    def _now(self) -> State:
        """The state as the next page has it."""
        with self._lock:
            state = replace(self.state, cells=list(self._cells.values()))
            records = list(self._records.values())
        now = time.time()
        ended = state.phase != "running"
        if not ended and self.stop():
            state.reason = "a stop is asked for: runs in work write their checkpoints"
        state = replace(state, time=now) if ended else with_signs(replace(state, time=now), signs(self.workdir), now)
        self._shown = state.in_work
        self._workers = max(self._workers, len(state.in_work))
        if self._scores is not None:
            self.state.scores = self._scores()
        elif self._page is not None and len(records) > self._scored:
            self.state.scores, self._scored = self._page.scores(records), len(records)
        left = None if ended else self._left(state)
        self.reporter.remaining = left.told(now) if left is not None and state.cells else ""
        if ended:
            for cell in state.cells:
                cell.state = WAITING if cell.state == RUNNING else cell.state
        return replace(state, scores=self.state.scores, left=left, worked=round(self.worked, 3))

    def _left(self, state: State) -> Left | None:
        cells = {cell.id: cell for cell in reversed(state.cells)}  # two rows may have one run
        group = {cell.id: f"{cell.row}\n{cell.base_model}" for cell in cells.values()}
        ended = [c for c in cells.values() if c.seconds is not None and c.state not in (*OPEN, FAILED)]
        done = [Done(group[c.id], c.seconds or 0.0, c.training, c.work) for c in ended]
        seen = {one.seen.cell: one.seen for one in state.in_work}
        going = [
            Going(group[run], s.time - s.begun, s.left, cells[run].work, s.time - s.step_time if s.left == 0 else 0.0)
            for run, s in seen.items()
        ]
        unseen = (c for c in cells.values() if c.state == RUNNING and c.id not in seen)  # begun this moment
        going += [Going(group[c.id], 0.0, None, c.work) for c in unseen]
        waiting = [Waiting(group[c.id], c.work) for c in cells.values() if c.state == WAITING]
        if state.executor != "serial":
            waiting.sort(key=lambda run: -run.work)
        return remaining(done, going, waiting, self._workers)


def _command() -> str:
    """The command that this process was started by; empty where it is no command of ours."""
    if Path(sys.argv[0]).stem not in ("harness", "__main__"):
        return ""
    return redacted(shlex.join(["harness", *sys.argv[1:]]))
