"""The progress of a comparison or a study: on the terminal, in `WORKDIR/progress.json` and in
`progress.html`.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import stat
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from statistics import fmean
from typing import Any, Self

import psutil

from harness.errors import InputError, RunError, StopRequested
from harness.executors.executor import Executor
from harness.files.atomic import write_atomic
from harness.files.locks import LOCK_FILE
from harness.files.printable import join_some
from harness.files.reading import read_json
from harness.machine.progress import Reporter, describe_duration, describe_remaining
from harness.results.store import RunFolder

_EVERY = 2.0  # seconds between two writings of the file
_ALIVE = 15.0  # seconds between two signs of life, whatever a run is doing
_SILENT = 120.0  # without a sign of life for so long, a process elsewhere may have ended
_SAME_START = 5.0  # seconds by which the start of one process may seem to differ
OPEN = ("waiting", "running")
HANGUP: signal.Signals | None = getattr(signal, "SIGHUP", None)  # Windows has none
_NOT_TIMED = (*OPEN, "reused", "n/a")
_LAST = 10  # runs that say how long the next ones take


@dataclass
class RunState:
    """A run, or a trial of a study, as readers of `progress.json` see it. `began` is in seconds
    since 1970.
    """

    label: str
    row: str = ""
    base_model: str = ""
    seed: str = ""
    id: str = ""
    state: str = "waiting"  # running, finished, reused, collapsed, diverged, pruned, failed, n/a
    text: str = ""
    step: int = 0
    steps: int = 0
    seconds: float = 0.0
    began: float = 0.0
    dev: list[tuple[int, float]] = field(default_factory=list)


@dataclass
class Progress:
    """Shows and stores how far a comparison or a study is; used as a context manager.

    The first SIGINT or SIGTERM requests a clean stop (`stopping`); the second interrupts at once. So
    does SIGHUP, that of a terminal that is closed, unless the caller ignores it (`nohup`); it may
    come twice.

    Attributes:
        executor: where runs are executed; default: this process.
        page: makes an HTML page of what is stored, and of the time.
    """

    workdir: Path
    name: str
    kind: str = "comparison"
    title: str = ""
    executor: Executor | None = None
    reporter: Reporter = field(default_factory=lambda: Reporter(quiet=True))
    page: Callable[[dict[str, Any], float], str] | None = None
    runs: dict[str, RunState] = field(default_factory=dict, init=False)  # by label
    stopping: bool = field(default=False, init=False)

    def __post_init__(self) -> None:
        parallel = self.executor is not None and self.executor.parallel
        if self.executor is not None and parallel:
            self.workers = self.executor.settings.workers or 1
        else:
            self.workers = 1
        self._about: dict[str, Any] = {
            "name": self.name,
            "title": self.title,
            "kind": self.kind,
            "workers": self.workers,
            "executor": self.executor.name if self.executor is not None else "serial",
            "host": socket.gethostname(),
            "pid": os.getpid(),
            "process_start": _start_of(os.getpid()),
            "started": time.time(),
        }
        self._written = self._cost = 0.0
        self._state: dict[str, Any] = {}  # as it was written last
        self._stop_requested = 0.0  # when, in seconds since 1970
        self._wake = threading.Event()  # have a sign of life written now
        self._ended = False
        self._took: list[float] = []  # seconds of the runs that were executed, as they ended
        self._heart: threading.Thread | None = None
        self._handlers: dict[signal.Signals, Any] = {}

    def __enter__(self) -> Self:
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGINT, signal.SIGTERM):
                self._handlers[number] = signal.signal(number, self._request_stop)
            if HANGUP is not None and signal.getsignal(HANGUP) is not signal.SIG_IGN:
                self._handlers[HANGUP] = signal.signal(HANGUP, self._stop_without_terminal)
        self._heart = threading.Thread(target=self._beat, name="progress", daemon=True)
        self._heart.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: Any,
    ) -> None:
        self._restore_handlers()
        self._ended = True
        self._wake.set()
        if self._heart is not None:
            self._heart.join()
        if kind is None:
            phase = "ended"
        elif kind in (StopRequested, KeyboardInterrupt):
            phase = "stopped"
        else:
            phase = "failed"
        for run in self.runs.values():
            # it goes on from its checkpoint
            if run.state == "running":
                run.state = "waiting"
        with suppress(OSError):
            reason = str(error or "").partition("\n")[0]
            self.write(phase, reason)
        if kind is StopRequested:
            open_runs = [run for run in self.runs.values() if run.state in OPEN]
            ended = len(self.runs) - len(open_runs)
            raise RunError(
                f"{self.name}: stopped on request; {ended} of {len(self.runs)} runs have ended, checkpoints of the "
                "others are saved; the same command resumes"
            ) from None

    def _note_stop(self) -> None:
        self.stopping = True
        self._stop_requested = time.time()
        self._wake.set()  # a handler must not wait for the lock of the file itself

    def _stop_without_terminal(self, number: int, frame: Any) -> None:
        """Stop as `_request_stop` does; what is printed from now on goes nowhere, as writing to a
        terminal that is closed fails.
        """
        self._note_stop()
        with suppress(OSError):  # the terminal may be there after all
            self.reporter.say("the terminal is closed: stopping at the next checkpoint")
        discard_terminal_output()
        self._restore_handlers()
        signal.signal(number, signal.SIG_IGN)  # the shell may send another

    def _request_stop(self, number: int, frame: Any) -> None:
        self._note_stop()
        how = "press Ctrl-C again to interrupt at once"
        if number == signal.SIGTERM:
            how = "`harness stop`, or the signal, once more ends it at once"
        self.reporter.say(f"stopping at the next checkpoint; {how}")
        self._restore_handlers()

    def _beat(self) -> None:
        """Write signs of life until the block ends: encoding or a slow disk may take minutes."""
        while not self._ended:
            self._wake.wait(_ALIVE)
            self._wake.clear()
            if self._state and not self._ended:
                with suppress(OSError, TimeoutError):
                    self._store()

    def _restore_handlers(self) -> None:
        for number, handler in self._handlers.items():
            signal.signal(number, handler)

    def expect(self, runs: Sequence[RunState]) -> None:
        """Runs that will come; those that are known stay as they are."""
        for run in runs:
            self.runs.setdefault(run.label, run)
        self.reporter.expect(len(self.runs))
        self.write()

    def start(self, label: str, run_id: str) -> None:
        """A run starts in this process."""
        run = self.runs.setdefault(label, RunState(label))
        if run.state == "waiting":  # and not the next seed of a trial
            run.state = "running"
            run.began = time.time()
            self.reporter.start(label)
        run.id = run_id
        self.write()

    def step(self, label: str, step: int, steps: int, text: str) -> None:
        """A run of this process is at `step` of `steps`; 0 of 0 while it does something else, and
        the step that it has reached remains.
        """
        run = self.runs[label]
        if steps:
            run.step = step
            run.steps = steps
        run.text = text
        self._show([run])

    def update(self, running: Sequence[tuple[str, str, int]]) -> None:
        """Read the progress of runs in other processes from their folders, given as (label, run id,
        planned steps).
        """
        for label, run_id, steps in running:
            run = self.runs.setdefault(label, RunState(label))
            folder = RunFolder(self.workdir, run_id)
            run.id = run_id
            run.steps = steps
            if (folder.path / LOCK_FILE).exists() and run.state in OPEN:
                run.state = "running"
                run.began = run.began or time.time()
                lines: list[dict[str, Any]] = []
                with suppress(InputError):  # a line that is being written
                    lines = folder.curves()
                if lines:
                    run.step = lines[-1]["step"]
                else:
                    run.step = 0
                run.dev = [
                    (line["step"], line["spearman"]) for line in lines if line["kind"] == "dev"
                ]
                if folder.model.exists():
                    run.text = "scoring"
                elif steps:
                    run.text = "training"
                else:
                    run.text = "working"
        running_now = [run for run in self.runs.values() if run.state == "running"]
        self._show(running_now)

    def _show(self, running: Sequence[RunState]) -> None:
        self.reporter.remaining = describe_remaining(self.remaining())
        states = [(run.label, run.step, run.steps, run.text) for run in running]
        self.reporter.running(states)
        self.write(seldom=True)

    def finish(
        self,
        label: str,
        state: str,
        line: str,
        *,
        reason: str = "",
        seconds: float = 0.0,
    ) -> None:
        """A run has ended; `line` is shown."""
        run = self.runs.setdefault(label, RunState(label))
        run.state = state
        run.text = reason
        run.seconds = seconds
        if state not in _NOT_TIMED:
            self._took.append(seconds)
        if self.reporter.label != label:
            self.reporter.start(label)
        self.reporter.finish_run(line)
        self.write(seldom=True)

    def remaining(self) -> float | None:
        """Seconds until all runs have ended, if each takes as long as the mean of the last that
        were executed: the machine may have been busy with other work before.
        """
        now = time.time()
        runs = self.runs.values()
        took = self._took[-_LAST:]
        took += [
            (now - r.began) * r.steps / r.step
            for r in runs
            if r.state == "running" and r.step and r.steps
        ]
        left = sum(
            1 - (run.step / run.steps if run.steps else 0) for run in runs if run.state in OPEN
        )
        if took:
            return fmean(took) * left / self.workers
        return None

    def write(self, phase: str = "running", reason: str = "", *, seldom: bool = False) -> None:
        """Store the progress; with `seldom` at most every two seconds."""
        now = time.time()
        least = max(_EVERY, 20 * self._cost)
        if seldom and now - self._written < least:
            return
        if phase == "running":
            left = self.remaining()
        else:
            left = None
        state = self._about | {
            "phase": phase,
            "reason": reason,
            "updated": now,
            "remaining_seconds": left,
        }
        state["runs"] = [asdict(run) for run in self.runs.values()]
        self._state = state
        self._store()
        if self.page is not None:
            with suppress(Exception):  # a page is not worth a comparison
                page = self.page(state, now)
                write_atomic(self.workdir / "progress.html", page, durable=False)
        self._written = time.time()
        self._cost = time.time() - now

    def _store(self) -> None:
        """Write the state, with a sign of life, beside those of other comparisons."""
        from filelock import FileLock

        signs = {"alive": time.time(), "stop_requested": self._stop_requested}
        with FileLock(self.workdir / ".progress.lock"):
            others = {one["name"]: one for one in _read_states(self.workdir)}
            known = others | {self.name: self._state | signs}
            text = json.dumps(known) + "\n"
            write_atomic(self.workdir / "progress.json", text, durable=False)


def discard_terminal_output() -> None:
    """Have standard output and error write nowhere, where they are terminals or other devices."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for number in (1, 2):
        with suppress(OSError):  # it is not open
            if stat.S_ISCHR(os.fstat(number).st_mode):
                os.dup2(nowhere, number)
    os.close(nowhere)


def read_progress(workdir: Path) -> list[dict[str, Any]]:
    """Return the comparisons and studies of a work directory, the latest first.

    One whose process has ended is "interrupted". A process on another machine cannot be looked at:
    where it has given no sign of life for long, its phase is "unknown". What is damaged is left
    out: the file is for people who watch, and is written again.
    """
    states = _read_states(workdir)
    for state in states:
        if state["phase"] != "running":
            continue
        host = state["host"]
        last_sign = max(state["updated"], state.get("alive") or 0.0)
        silent = time.time() - last_sign
        if host == socket.gethostname():
            if not _is_running(state):
                state["phase"] = "interrupted"
                state["reason"] = "its process has ended; the same command resumes"
                for run in state["runs"]:
                    if run["state"] == "running":
                        run["state"] = "waiting"
        elif silent > _SILENT:
            state["phase"] = "unknown"
            duration = describe_duration(silent)
            state["reason"] = f"no sign of life from {host} for {duration}"
            state["reason"] += "; look there"
    return states


def _read_states(workdir: Path) -> list[dict[str, Any]]:
    """Return the states of the file as they were written, the latest first."""
    try:
        known = read_json(workdir / "progress.json").values()
    except InputError:
        return []
    states = [state for state in known if _is_sound(state)]
    states.sort(key=lambda state: -state["updated"])
    return states


_LARGEST = 1e12  # of a number that is shown: seconds since 1970, steps
_TEXTS = ("name", "title", "kind", "phase", "reason", "host", "executor")
_NUMBERS = ("pid", "workers", "started", "updated")
_FURTHER = ("remaining_seconds", "alive", "stop_requested")  # absent where they are not known


def _is_sound(state: Any) -> bool:
    """True if a state has all that is shown of it."""
    if not isinstance(state, dict):
        return False
    if not isinstance(state.get("runs"), list):
        return False
    numbers = [state.get(key) for key in _NUMBERS]
    further = [state.get(key) for key in _FURTHER]
    numbers += [value for value in further if value is not None]
    if not all(_is_number(number) for number in numbers):
        return False
    texts = [state.get(key) for key in _TEXTS]
    if not all(isinstance(text, str) for text in texts):
        return False
    return all(_is_sound_run(run) for run in state["runs"])


def _is_sound_run(run: Any) -> bool:
    fields = RunState.__dataclass_fields__
    if not isinstance(run, dict) or run.keys() != fields.keys():
        return False
    texts = ("label", "row", "base_model", "seed", "id", "state", "text")
    numbers = ("step", "steps", "seconds", "began")
    if not all(isinstance(run[key], str) for key in texts):
        return False
    return all(_is_number(run[key]) for key in numbers)


def _is_number(value: Any) -> bool:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return abs(value) < _LARGEST


def _is_running(state: dict[str, Any]) -> bool:
    """True if the process of a state is on this machine: the same one, not another of its number."""
    start = _start_of(int(state["pid"]))
    stated = state.get("process_start")
    if start is None or stated is None or not _is_number(stated):
        return False
    return abs(start - float(stated)) < _SAME_START


def _start_of(pid: int) -> float | None:
    """Return the seconds from the machine's start to that of a process; None if there is none.

    The clock may be set meanwhile, and a number may be another process's after a restart.
    """
    try:
        created = psutil.Process(pid).create_time()
        start: float = created - psutil.boot_time()
        return start
    except (psutil.Error, ValueError, OverflowError):
        return None


def request_stop(workdir: Path, name: str) -> str:
    """Have the process that runs a comparison or study stop at its next checkpoint; returns what
    was done.

    Raises:
        RunError: it does not run, or runs on another machine.
    """
    states = [state for state in read_progress(workdir) if state["name"] == name]
    state = states[0] if states else None
    if state is None or state["phase"] not in ("running", "unknown"):
        raise RunError(f"{workdir}: {name} is not running")
    if state["host"] != socket.gethostname():
        started = f"{name} was started on {state['host']}"
        raise RunError(f"{workdir}: {started}: give this command there")
    process = f"{name}: process {state['pid']}"
    try:
        os.kill(int(state["pid"]), signal.SIGTERM)
    except ProcessLookupError:
        raise RunError(f"{workdir}: {name} has just ended") from None
    except PermissionError:
        raise RunError(
            f"{workdir}: {process} is another user's; give this command as that user"
        ) from None
    resumes = "the command that started it resumes"
    if state.get("stop_requested"):
        return f"{process} was to stop already, and is ended at once; {resumes}"
    doing = []
    for run in state["runs"]:
        if run["state"] == "running":
            doing.append(f"{run['label']}: {run['text']}")
    if doing:
        now = f" (now {join_some(doing, 2)})"
    else:
        now = ""
    return f"{process} stops at its next checkpoint or batch{now}; again: at once; {resumes}"
