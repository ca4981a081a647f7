"""Signs of life: what the cells in work are doing, each in a small file that its worker rewrites.

A file a cell, on the disk that worker and coordinator share: no engine has to carry it, and any machine can look.
"""

from __future__ import annotations

import json
import os
import socket
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

from harness.files.atomic import write_atomic

EVERY = 2.0  # seconds between two signs of a cell


@dataclass(frozen=True)
class Seen:
    """A cell in work.

    Attributes:
        step, steps: updates made, and of how many; 0 of 0 where it is at something else.
        text: what it is at.
        begun, time: when it was started, and when this was written; seconds since 1970.
    """

    cell: str
    host: str = ""
    pid: int = 0
    step: int = 0
    steps: int = 0
    text: str = ""
    begun: float = 0.0
    time: float = 0.0

    @property
    def left(self) -> float | None:
        """Seconds until its training ends at its own speed; None where that cannot be told."""
        return (self.time - self.begun) / self.step * (self.steps - self.step) if self.step and self.steps else None


class Sign:
    """Tells of one cell while the block lasts; a work directory that is not there is told nothing."""

    def __init__(self, workdir: Path, cell: str) -> None:
        self.file = folder(workdir) / f"{cell}.json"
        self.seen = Seen(cell, socket.gethostname(), os.getpid(), begun=time.time())
        self.there = workdir.is_dir()

    def __enter__(self) -> Self:
        self._write("loading")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.there:
            self.file.unlink(missing_ok=True)

    def step(self, step: int, steps: int, text: str) -> None:
        """As `harness.machine.progress.Reporter.step`."""
        if time.time() - self.seen.time >= EVERY or (steps and not self.seen.steps):
            self._write(text, step, steps)

    def _write(self, text: str, step: int = 0, steps: int = 0) -> None:
        self.seen = Seen(**{**asdict(self.seen), "text": text, "step": step, "steps": steps, "time": time.time()})
        if self.there:
            self.file.parent.mkdir(parents=True, exist_ok=True)
            write_atomic(self.file, json.dumps(asdict(self.seen)))


def folder(workdir: Path) -> Path:
    """Where the signs of a work directory lie."""
    return workdir / "live" / "cells"


def signs(workdir: Path) -> dict[str, Seen]:
    """What the cells in work last told, by id; a file that is being replaced is left out."""
    found = {}
    for file in sorted(folder(workdir).glob("*.json")):
        try:
            seen = Seen(**json.loads(file.read_text("utf-8")))
        except (OSError, ValueError, TypeError):
            continue
        found[seen.cell] = seen
    return found


def forget(workdir: Path, cell: str) -> None:
    """Remove the sign of a cell whose worker is gone."""
    (folder(workdir) / f"{cell}.json").unlink(missing_ok=True)
