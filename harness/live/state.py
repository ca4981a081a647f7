"""What is told of a comparison or a study, while it runs and after: `WORKDIR/live/KEY.json`, one writer each."""

from __future__ import annotations

import hashlib
import json
import os
import socket
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from harness.files.atomic import write_atomic
from harness.files.names import name_fault
from harness.live.remaining import Left
from harness.live.signs import SILENT, Seen

VERSION = 1
GRACE = 60.0  # seconds without a word from the coordinator of another machine, after which it is taken for dead

WAITING, RUNNING, FINISHED, KEPT, FAILED, CANCELLED = "waiting", "running", "finished", "kept", "failed", "cancelled"
STATES = (RUNNING, FINISHED, KEPT, "collapsed", "diverged", "pruned", FAILED, "n/a", WAITING, CANCELLED)
OPEN = (RUNNING, WAITING, CANCELLED)  # what the same command goes on with
PHASES = ("running", "dead", "paused", "cancelled", "interrupted", "failed", "ended")


@dataclass
class Cell:
    """One run of a comparison, or one trial of a study.

    Attributes:
        id: of its run, by which its worker signs.
        label: names it to a reader; no two cells have the same.
        row: with `base_model` what its seeds have in common.
        state: one of `STATES`.
        reason: why it has no scores, or waits again.
        seconds, training: how long it took, and its training alone; None until it has ended.
        work: how long it takes, in a unit of no meaning; 0 where unknown.
    """

    id: str
    label: str
    row: str
    base_model: str = ""
    seed: str = ""
    state: str = WAITING
    reason: str = ""
    seconds: float | None = None
    training: float = 0.0
    work: float = 0.0


@dataclass(frozen=True)
class InWork:
    """What a worker is at, and how many seconds its training still takes."""

    label: str
    row: str
    seed: str
    seen: Seen
    left: float | None = None


@dataclass(frozen=True)
class RowScore:
    """A row's score so far, in points: mean over n seeds, with their deviation or an interval of 95 %."""

    row: str
    base_model: str
    column: str
    n: int
    mean: float
    deviation: float | None = None
    low: float | None = None
    high: float | None = None


@dataclass
class State:
    """What a coordinator knows. Times are seconds since 1970.

    Attributes:
        phase: one of `PHASES`; "dead" is never written, others find it out.
        reason: why it is not running any more.
        command: what goes on with it; empty where it was not started by a command.
        host, pid, started: of the coordinator, and when its process began.
        begun, time, every: when it began, when this was written, and after how many seconds it is written again.
        worked: seconds of a processor that telling has taken.
    """

    name: str
    kind: str = "comparison"
    title: str = ""
    phase: str = "running"
    reason: str = ""
    executor: str = ""
    command: str = ""
    host: str = ""
    pid: int = 0
    started: float = 0.0
    begun: float = 0.0
    time: float = 0.0
    every: float = 0.0
    worked: float = 0.0
    cells: list[Cell] = field(default_factory=list)
    in_work: list[InWork] = field(default_factory=list)
    left: Left | None = None
    scores: list[RowScore] = field(default_factory=list)

    @property
    def key(self) -> str:
        return key_of(self.kind, self.name)

    @property
    def counts(self) -> dict[str, int]:
        """How many cells are in each state, of those that some are in."""
        counted = Counter(cell.state for cell in self.cells)
        return {state: counted[state] for state in STATES if counted[state]}

    @property
    def ended(self) -> int:
        """How many cells need no more work; one that failed is tried again by the next call."""
        return sum(cell.state not in OPEN for cell in self.cells)


def key_of(kind: str, name: str) -> str:
    """How the files of a comparison ("comparison") or a study ("study") are called; its name may be any text."""
    safe = name if name_fault(name) is None else hashlib.sha256(name.encode()).hexdigest()[:16]
    return f"{kind}-{safe}"


def write(workdir: Path, state: State) -> None:
    """Replace what was told before."""
    shallow = vars(state) | {
        "version": VERSION,
        "cells": [vars(cell) for cell in state.cells],
        "in_work": [asdict(one) for one in state.in_work],
        "left": asdict(state.left) if state.left else None,
        "scores": [asdict(one) for one in state.scores],
    }
    write_atomic(workdir / "live" / f"{state.key}.json", json.dumps(shallow), durable=False)


def read(file: Path) -> State | None:
    """What a file tells; None of one that is damaged, being replaced, or of a later version."""
    try:
        tree = json.loads(file.read_text("utf-8"))
        if tree.pop("version") != VERSION:
            return None
        return State(**{
            **tree,
            "cells": [Cell(**cell) for cell in tree["cells"]],
            "in_work": [InWork(**{**one, "seen": Seen(**one["seen"])}) for one in tree["in_work"]],
            "left": Left(**tree["left"]) if tree["left"] else None,
            "scores": [RowScore(**one) for one in tree["scores"]],
        })  # fmt: skip
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        return None


def states(workdir: Path) -> list[State]:
    """All that a work directory tells of, the latest first."""
    found = [state for file in sorted((workdir / "live").glob("*.json")) if (state := read(file)) is not None]
    return sorted(found, key=lambda state: -state.time)


def judged(state: State, now: float | None = None) -> State:
    """The state with the phase "dead" where its coordinator is gone: certain on this host, else by its silence."""
    if state.phase != "running":
        return state
    now = time.time() if now is None else now
    silent = now - state.time
    if state.host == socket.gethostname():
        gone = not _lives(state.pid, state.started)
        why = f"its process {state.pid} is gone"
    else:
        gone = silent > max(GRACE, 5 * state.every)
        why = f"nothing from process {state.pid} on {state.host} for {silent:.0f} s"
    if not gone:
        return state
    cells = [replace(cell, state=WAITING) if cell.state == RUNNING else cell for cell in state.cells]
    return replace(state, phase="dead", reason=why, cells=cells, in_work=[], left=None)


def with_signs(state: State, signs: Mapping[str, Seen], now: float | None = None) -> State:
    """The state with what workers tell: the cells that they are at run, and those of lost workers wait."""
    now = time.time() if now is None else now
    cells, in_work = [], []
    for cell in state.cells:
        if cell.state not in (RUNNING, WAITING):
            cells.append(cell)
            continue
        seen = signs.get(cell.id)
        if seen is None:
            cells.append(cell)
        elif (lost := lost_worker(seen, now)) != "":
            cells.append(replace(cell, state=WAITING, reason=lost))
        else:
            cells.append(replace(cell, state=RUNNING, reason=""))
            in_work.append(InWork(cell.label, cell.row, cell.seed, seen, seen.left))
    return replace(state, cells=cells, in_work=in_work)


def lost_worker(seen: Seen, now: float) -> str:
    """Why a worker is taken for lost; empty where it is not."""
    if seen.host == socket.gethostname() and not _lives(seen.pid):
        return f"its worker (process {seen.pid}) is gone"
    if (silent := now - seen.time) > SILENT:
        return f"nothing from its worker ({seen.host}, process {seen.pid}) for {silent:.0f} s"
    return ""


def me() -> dict[str, Any]:
    """Host, process and when that began: what a coordinator signs with."""
    return {"host": socket.gethostname(), "pid": os.getpid(), "started": began(os.getpid())}


def began(pid: int) -> float:
    """When a process of this machine began; 0 where there is none (any more)."""
    import psutil

    try:
        process = psutil.Process(pid)
        return 0.0 if process.status() == psutil.STATUS_ZOMBIE else float(process.create_time())
    except psutil.Error:
        return 0.0


def _lives(pid: int, started: float = 0.0) -> bool:
    """Does a process of this machine live that began then? Numbers of processes are used again."""
    there = began(pid)
    return there > 0 and (not started or abs(there - started) < 2.0)


def groups(cells: Sequence[Cell]) -> dict[tuple[str, str], list[Cell]]:
    """Row and base model -> its cells."""
    found: dict[tuple[str, str], list[Cell]] = {}
    for cell in cells:
        found.setdefault((cell.row, cell.base_model), []).append(cell)
    return found
