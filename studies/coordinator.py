"""`harness study run`: makes or goes on with a study, keeps its workers alive, and is the one who writes to MLflow."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from harness.comparison.cell import precision_of
from harness.errors import RunError
from harness.files.atomic import write_atomic
from harness.machine.progress import Reporter
from harness.results.run_folder import RunFolder
from studies import slots
from studies.attributes import FORGIVEN, SLOT
from studies.definition import Study
from studies.run.storage import create_or_go_on, definition_of, open_storage
from studies.run.trial import Desk
from studies.show.findings import folder_of, line_about
from studies.space import Space
from studies.worker import POLL_SECONDS, STORAGE, work

if TYPE_CHECKING:
    import optuna
    from optuna.trial import FrozenTrial

    from harness.tracking.tracker import Tracker

SOON = 30.0  # a worker that ends within so many seconds of its start, without a trial finished meanwhile, ended early
EARLY_ENDS = 5  # so many of them in a row: something is wrong that starting workers does not mend


@dataclass
class Tracking:
    """Sends finished trials to MLflow, each once, and knows how long trials waited for that."""

    workdir: Path
    study: Study
    tracker: Tracker | None
    handed: set[int] = field(default_factory=set)  # trials that the tracker has or had in hand
    sent: set[int] = field(default_factory=set)  # trials that MLflow has
    own: float = 0.0  # seconds that went into reading records

    def __post_init__(self) -> None:
        if self._file.exists():
            self.sent = set(json.loads(self._file.read_text()))

    @property
    def _file(self) -> Path:
        return folder_of(self.workdir, self.study.name) / "tracked.json"

    def log(self, trial: FrozenTrial) -> None:
        """Have the runs of a trial sent: trial = a row below the study, seed = a run below the trial."""
        known = trial.number in self.sent or trial.number in self.handed
        if self.tracker is None or known or "about" not in trial.user_attrs:
            return
        start = time.perf_counter()
        self.handed.add(trial.number)
        runs = [RunFolder(self.workdir, run).read() for run in trial.user_attrs["about"]["runs"]]
        records = [r for r in runs if r is not None]  # a worker on another machine keeps its records there
        self.own += time.perf_counter() - start
        changes = {"row": f"trial {trial.number}", "comparison": self.study.name}
        for i, record in enumerate(records, 1):
            sent = partial(self._note, trial.number) if i == len(records) else None
            self.tracker.log(record.model_copy(update=changes), sent=sent)

    def _note(self, number: int) -> None:
        """Called by the tracker's thread alone."""
        self.sent.add(number)
        write_atomic(self._file, json.dumps(sorted(self.sent)) + "\n")

    def close(self) -> None:
        """Wait for what is in hand, and keep how long tracking took."""
        if self.tracker is None:
            return
        self.tracker.close()
        spent = tracking_seconds(self.workdir, self.study.name)
        spent["waited"] += self.own + self.tracker.waited
        spent["beside"] += self.tracker.worked
        write_atomic(_seconds_file(self.workdir, self.study.name), json.dumps(spent) + "\n")


def _seconds_file(workdir: Path, name: str) -> Path:
    return folder_of(workdir, name) / "tracking-seconds.json"


def tracking_seconds(workdir: Path, name: str) -> dict[str, float]:
    """Of all calls so far: seconds that trials waited for tracking, and of a processor that it took beside them."""
    file = _seconds_file(workdir, name)
    found = json.loads(file.read_text()) if file.exists() else {}
    # A study of an earlier version has one number: what was waited.
    return {"waited": 0.0, "beside": 0.0} | (found if isinstance(found, dict) else {"waited": found})


def tracker_of(study: Study, space: Space, workdir: Path, uri: str | None) -> Tracker:
    """The way to MLflow, where a run of the study itself stands above its trials."""
    from harness.tracking.tracker import Tracker

    about = {"study": study.name, "method": study.method, "sampler": study.sampler, "pruner": study.pruner,
             "trials": len(slots.plan(study, space)),
             **{f"space.{p.name}": p.describe() for p in space.parameters}}  # fmt: skip
    return Tracker(workdir, study.name, uri, root=about)


def conduct(
    study: Study,
    space: Space,
    desk: Desk,
    *,
    url: str,
    where: str,
    workers: int,
    tracker: Tracker | None,
    force_new: bool,
    quiet: bool,
) -> optuna.Study:
    """Bring a study to its planned number of finished trials.

    Raises:
        InputError: the storage cannot be used, or holds another study of that name.
        RunError: the workers end as soon as they are started.
    """
    workdir = desk.workdir
    found = create_or_go_on(open_storage(url), study, workdir, where, force_new=force_new)
    tracking = Tracking(workdir, study, tracker)
    if force_new:
        tracking.sent.clear()
    slots.forgive(found)
    planned = slots.plan(study, space)
    left = slots.repair(found, planned)
    try:
        if left:
            with Reporter(left, quiet=quiet) as reporter:
                if workers == 1:
                    _alone(found, desk, tracking, reporter)
                else:
                    precision_of(desk.plan({} if not planned else _first(space, planned)), workdir)
                    _with_workers(found, planned, workdir, url, workers, tracking, reporter)
        for trial in finished_trials(found):  # those of an earlier coordinator that was killed before it sent them
            tracking.log(trial)
    finally:
        tracking.close()
    return found


def _first(space: Space, planned: list[dict[str, object]]) -> dict[str, object]:
    """Some configuration of the space: for what all trials share."""
    return {**first_point(space), **planned[0]}


def first_point(space: Space) -> dict[str, object]:
    """The lowest or first value of every parameter whose condition holds."""
    values: dict[str, object] = {}
    for p in space.parameters:
        if p.active({**space.fixed, **values}):
            values[p.name] = p.choices[0] if p.choices else int(p.low) if p.integer else p.low
    return values


def finished_trials(found: optuna.Study) -> list[FrozenTrial]:
    """The trial that counts for each slot, in the order of the slots; those cut short and surplus ones are left out."""
    forgiven = set(found.user_attrs.get(FORGIVEN, ()))
    by_slot: dict[int, FrozenTrial] = {}
    for trial in found.get_trials(deepcopy=False):
        slot = trial.user_attrs.get(SLOT)
        if slot is not None and trial.state.is_finished() and not slots.is_dead(trial, forgiven):
            by_slot.setdefault(slot, trial)
    return [by_slot[slot] for slot in sorted(by_slot)]


def _alone(found: optuna.Study, desk: Desk, tracking: Tracking, reporter: Reporter) -> None:
    """Run all trials in this process."""

    def ended(number: int, _: object) -> None:
        trial = found.get_trials(deepcopy=False)[number]
        reporter.done(line_about(trial))
        tracking.log(trial)

    work(
        found,
        desk.workdir,
        desk=desk,
        started=lambda number: reporter.start(f"trial {number}"),
        progress=reporter.step,
        ended=ended,
    )


def _with_workers(
    found: optuna.Study,
    planned: list[dict[str, object]],
    workdir: Path,
    url: str,
    workers: int,
    tracking: Tracking,
    reporter: Reporter,
) -> None:
    """Keep worker processes running until every slot is finished; one that was killed is started again."""
    name = definition_of(found).name
    running: dict[int, tuple[subprocess.Popen[bytes], float, int]] = {}  # -> process, start, finished trials then
    shown = {trial.number for trial in finished_trials(found)}
    early = 0
    try:
        while slots.repair(found, planned):
            done = finished_trials(found)
            for trial in done:
                if trial.number not in shown:
                    shown.add(trial.number)
                    reporter.start(f"trial {trial.number}")
                    reporter.done(line_about(trial))
                    tracking.log(trial)
            for number in range(min(workers, len(planned))):
                if number in running and running[number][0].poll() is not None:
                    process, begun, finished_then = running.pop(number)
                    soon = time.monotonic() - begun < SOON and len(done) == finished_then
                    early = early + 1 if soon else 0
                    if process.returncode == 2 or early >= EARLY_ENDS:
                        raise RunError(_why(workdir, name, number))
                if number not in running:
                    process = _start(name, workdir, url, number, workers)
                    running[number] = process, time.monotonic(), len(done)
            time.sleep(POLL_SECONDS)
        for trial in finished_trials(found):
            if trial.number not in shown:
                reporter.start(f"trial {trial.number}")
                reporter.done(line_about(trial))
                tracking.log(trial)
    finally:
        for process, _, _ in running.values():
            process.terminate()
        for process, _, _ in running.values():
            process.wait()


def _log(workdir: Path, name: str, number: int) -> Path:
    return folder_of(workdir, name) / f"worker-{number}.log"


def _start(name: str, workdir: Path, url: str, number: int, workers: int) -> subprocess.Popen[bytes]:
    environment = {**os.environ, STORAGE: url}
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    environment.setdefault("OMP_NUM_THREADS", str(max(1, cores // workers)))
    environment["TOKENIZERS_PARALLELISM"] = "false"
    log = _log(workdir, name, number)
    log.parent.mkdir(parents=True, exist_ok=True)
    command = [sys.executable, "-m", "studies.worker", name, str(workdir), str(number), str(os.getpid())]
    with log.open("ab") as stream:
        return subprocess.Popen(command, env=environment, stdout=stream, stderr=stream)


def _why(workdir: Path, name: str, number: int) -> str:
    log = _log(workdir, name, number)
    lines: Sequence[str] = [line for line in log.read_text(errors="replace").splitlines() if line.strip()] or ["?"]
    last = lines[-1].removeprefix("harness: ")
    return f"worker {number} ended at once: {last} (log: {log}; finished trials are kept)"
