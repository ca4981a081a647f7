"""`harness study run`: makes or goes on with a study, keeps its workers alive, has its trials tracked."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from harness.comparison.measured_precision import precision_of
from harness.errors import RunError
from harness.machine.progress import Reporter
from studies import slots
from studies.definition.planned import planned_trials
from studies.definition.space import Space
from studies.definition.study import Study
from studies.run.storage import create_or_go_on, definition_of, folder_of, open_storage
from studies.run.tracking import Tracking
from studies.run.trial import Desk
from studies.run.trials import finished_trials, line_about
from studies.worker import POLL_SECONDS, STORAGE, work

if TYPE_CHECKING:
    import optuna

    from harness.tracking.tracker import Tracker

SOON = 30.0  # a worker that ends within so many seconds of its start, without a trial finished meanwhile, ended early
EARLY_ENDS = 5  # so many of them in a row: something is wrong that starting workers does not mend


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
    stored = create_or_go_on(open_storage(url), study, workdir, where, force_new=force_new)
    tracking = Tracking(workdir, study, tracker)
    if force_new:
        tracking.sent.clear()
    slots.forgive(stored)
    planned = planned_trials(study, space)
    left = slots.repair(stored, planned)
    try:
        if left:
            with Reporter(left, quiet=quiet) as reporter:
                if workers == 1:
                    _alone(stored, desk, tracking, reporter)
                else:
                    precision_of(desk.plan({} if not planned else _first(space, planned)), workdir)
                    _with_workers(stored, planned, workdir, url, workers, tracking, reporter)
        for trial in finished_trials(stored):  # those of an earlier coordinator that was killed before it sent them
            tracking.log(trial)
    finally:
        tracking.close()
    return stored


def _first(space: Space, planned: list[dict[str, object]]) -> dict[str, object]:
    """Some configuration of the space: for what all trials share."""
    return {**space.first_point(), **planned[0]}


def _alone(stored: optuna.Study, desk: Desk, tracking: Tracking, reporter: Reporter) -> None:
    """Run all trials in this process."""

    def ended(number: int, _: object) -> None:
        trial = stored.get_trials(deepcopy=False)[number]
        reporter.done(line_about(trial))
        tracking.log(trial)

    work(
        stored,
        desk.workdir,
        desk=desk,
        started=lambda number: reporter.start(f"trial {number}"),
        progress=reporter.step,
        ended=ended,
    )


def _with_workers(
    stored: optuna.Study,
    planned: list[dict[str, object]],
    workdir: Path,
    url: str,
    workers: int,
    tracking: Tracking,
    reporter: Reporter,
) -> None:
    """Keep worker processes running until every slot is finished; one that was killed is started again."""
    name = definition_of(stored).name
    running: dict[int, tuple[subprocess.Popen[bytes], float, int]] = {}  # -> process, start, finished trials then
    shown = {trial.number for trial in finished_trials(stored)}
    early = 0
    try:
        while slots.repair(stored, planned):
            done = finished_trials(stored)
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
        for trial in finished_trials(stored):
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
    # -P: a folder that one stands in may have a `studies` of its own.
    command = [sys.executable, "-P", "-m", "studies.worker", name, str(workdir), str(number), str(os.getpid())]
    with log.open("ab") as stream:
        return subprocess.Popen(command, env=environment, stdout=stream, stderr=stream)


def _why(workdir: Path, name: str, number: int) -> str:
    log = _log(workdir, name, number)
    lines: Sequence[str] = [line for line in log.read_text(errors="replace").splitlines() if line.strip()] or ["?"]
    last = lines[-1].removeprefix("harness: ")
    return f"worker {number} ended at once: {last} (log: {log}; finished trials are kept)"
