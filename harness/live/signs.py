"""Signs of life: what the cells in work are doing, each in a small file that its worker rewrites.

A file a cell, on the disk that worker and coordinator share: no engine has to carry it, and any machine can look. Where
they share none, the executor's post may (`harness.comparison.carried`).
"""

from __future__ import annotations

import json
import os
import socket
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from threading import Event, Thread
from types import TracebackType
from typing import Self

from harness.files.atomic import write_atomic

EVERY = 2.0  # seconds between two signs of a cell that moves
BEAT = 10.0  # seconds between two signs of one that is long at the same thing, as encoding
SILENT = 45.0  # a worker that has told nothing for so many seconds is lost, hangs, or does not see the disk
POINTS = 60  # of a dev curve


@dataclass(frozen=True)
class Seen:
    """A cell in work. Times are seconds since 1970.

    Attributes:
        step, steps: updates made, and of how many; 0 of 0 where it is at something else.
        text: what it is at.
        begun, time: when it was started, and when this was written.
        first_step, first_time: the update that was told first, and when: its speed is counted from there.
        dev: its scores on the dev set so far, as (update, score), some left out of many.
    """

    cell: str
    host: str = ""
    pid: int = 0
    step: int = 0
    steps: int = 0
    text: str = ""
    begun: float = 0.0
    time: float = 0.0
    first_step: int = 0
    first_time: float = 0.0
    step_time: float = 0.0
    dev: Sequence[tuple[int, float]] = ()

    @property
    def speed(self) -> float | None:
        """Updates a second, dev evaluations and checkpoints included; None where that cannot be told."""
        made, took = self.step - self.first_step, self.step_time - self.first_time
        return made / took if made > 0 and took > 0 else None

    @property
    def left(self) -> float | None:
        """Seconds until its training ends at its own speed; 0 once it is over, None where that cannot be told."""
        if self.first_time and not self.steps:
            return 0.0
        return (self.steps - self.step) / self.speed if self.speed and self.steps else None


class Sign:
    """Tells of one cell while the block lasts; a work directory that is not there is told nothing.

    A thread writes, so that no update waits for a disk. `show` is called with each step, too.
    """

    def __init__(self, workdir: Path, cell: str, *, show: Callable[[int, int, str], None] | None = None) -> None:
        self.show = show
        self.file = file_of(workdir, cell)
        now = time.time()
        curve = _earlier(workdir / "runs" / cell / "curves.jsonl")
        self.seen = Seen(cell, socket.gethostname(), os.getpid(), text="loading", begun=now, time=now, dev=curve)
        self.there = workdir.is_dir()
        self._over, self._news = Event(), Event()
        self._thread = Thread(target=self._tell, name="sign", daemon=True)

    def __enter__(self) -> Self:
        if self.there:
            with suppress(OSError):
                self._write()
            self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.there:
            self._over.set()
            self._news.set()
            self._thread.join()
            with suppress(OSError):
                self.file.unlink(missing_ok=True)

    def step(self, step: int, steps: int, text: str) -> None:
        """As `harness.machine.progress.Reporter.step`."""
        if self.show is not None:
            self.show(step, steps, text)
        seen, now = self.seen, time.time()
        if steps and not seen.first_time:
            seen = replace(seen, first_step=step, first_time=now)
            self._news.set()
        self.seen = replace(seen, step=step, steps=steps, text=text, step_time=now if steps else seen.step_time)

    def dev(self, step: int, score: float) -> None:
        """As `harness.method.FitContext.on_dev`. What an earlier worker told of later updates is made anew."""
        kept = [point for point in self.seen.dev if point[0] < step]
        self.seen = replace(self.seen, dev=_thinned([*kept, (step, score)]))

    def _tell(self) -> None:
        """What the thread does."""
        told = self.seen
        while not self._over.is_set():
            if self._news.wait(EVERY):
                self._news.clear()
                if self._over.is_set():
                    return
            if self.seen is not told or time.time() - self.seen.time >= BEAT:
                with suppress(OSError):  # of a disk that is away for a moment; the run itself will say it
                    told = self._write()

    def _write(self) -> Seen:
        told = self.seen
        write_atomic(self.file, json.dumps(asdict(replace(told, time=time.time()))), durable=False)
        return told


def _earlier(curve: Path) -> Sequence[tuple[int, float]]:
    """The dev scores that an earlier worker left of a run, which goes on from its checkpoint."""
    try:
        lines = [json.loads(line) for line in curve.read_text("utf-8").splitlines() if '"dev"' in line]
        return _thinned([(int(line["step"]), float(line["spearman"])) for line in lines if line["kind"] == "dev"])
    except (OSError, ValueError, TypeError, KeyError):
        return ()


def _thinned(points: list[tuple[int, float]]) -> list[tuple[int, float]]:
    """At most `POINTS`, the first and the last among them."""
    return points if len(points) <= POINTS else [*points[:-1:2], points[-1]]


def folder(workdir: Path) -> Path:
    """Where the signs of a work directory lie."""
    return workdir / "live" / "cells"


def file_of(workdir: Path, cell: str) -> Path:
    """The sign of a cell."""
    return folder(workdir) / f"{cell}.json"


def signs(workdir: Path) -> dict[str, Seen]:
    """What the cells in work last told, by id; a file that is being replaced is left out."""
    found = {}
    for file in sorted(folder(workdir).glob("*.json")):
        try:
            tree = json.loads(file.read_text("utf-8"))
            seen = Seen(**{**tree, "dev": [(int(step), float(score)) for step, score in tree.get("dev", ())]})
        except (OSError, ValueError, TypeError, AttributeError):
            continue
        found[seen.cell] = seen
    return found


def forget(workdir: Path, cell: str) -> None:
    """Remove the sign of a cell whose worker is gone."""
    file_of(workdir, cell).unlink(missing_ok=True)
