"""A worker: takes the next trial of a study, runs it, and goes on until every planned trial is finished."""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from harness.comparison.cell import Progress
from harness.errors import HarnessError
from harness.files.printable import tell_error
from studies import slots
from studies.definition.planned import planned_trials
from studies.definition.space import make_space
from studies.run.attributes import BEAT, PROPOSER
from studies.run.kept_models import drop_models
from studies.run.storage import definition_of, load, open_storage
from studies.run.trial import Clock, Desk, run_trial
from studies.samplers import make_pruner, make_sampler, proposer

if TYPE_CHECKING:
    import optuna

    from harness.results.record import Record

STORAGE = "HARNESS_STUDY_STORAGE"  # the storage's URL for worker processes: not an argument, it may hold a password
POLL_SECONDS = 0.5

Ended = Callable[[int, "list[Record]"], None]  # trial number, its records


def work(
    stored: optuna.Study,
    workdir: Path,
    *,
    number: int = 0,
    desk: Desk | None = None,
    parent: int | None = None,
    started: Callable[[int], None] | None = None,
    progress: Progress | None = None,
    ended: Ended | None = None,
) -> None:
    """Run trials until every slot of the study has a finished one; waits for those that other workers run.

    Args:
        number: of this worker among its study's, which gives its sampler a stream of its own.
        parent: a process without which this one has nothing to do.
    """
    from optuna.trial import TrialState

    study = definition_of(stored)
    space = make_space(study, f'study "{study.name}"')
    desk = desk or Desk(study, workdir)
    planned = planned_trials(study, space)
    begun = sum(t.state != TrialState.WAITING for t in stored.get_trials(deepcopy=False))
    stored.sampler = make_sampler(study, number, begun)
    stored.pruner = make_pruner(study, study.steps or 1000)

    def still_wanted() -> bool:
        return parent is None or os.getppid() == parent

    owner = slots.me()
    while slots.repair(stored, planned) and still_wanted():
        clock = Clock()
        with clock.asking_optuna():
            trial = slots.claim(stored, owner)
        if trial is None:
            time.sleep(POLL_SECONDS)
            continue
        if study.sampler == "smac":
            trial.set_user_attr(PROPOSER, proposer(stored.sampler))
        if started:
            started(trial.number)
        try:
            with _signs_of_life(trial):
                records = run_trial(
                    trial, stored, space, desk, clock=clock, progress=progress, still_wanted=still_wanted
                )
        except BaseException:
            if stored.get_trials(deepcopy=False)[trial.number].state == TrialState.RUNNING:
                stored.tell(trial, state=TrialState.FAIL)  # its slot is free again at once
            raise
        if study.keep_models == "best":
            drop_models(stored, study, workdir)
        if ended:
            ended(trial.number, records)


@contextmanager
def _signs_of_life(trial: optuna.Trial) -> Iterator[None]:
    """Tell the storage now and then that this trial's worker is alive."""
    over = threading.Event()

    def beat() -> None:
        while not over.wait(slots.BEAT_SECONDS):
            try:
                trial.set_user_attr(BEAT, time.time())
            except Exception:  # a storage that is away for a moment is the main thread's business
                time.sleep(0)

    thread = threading.Thread(target=beat, daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def main(argv: list[str]) -> int:
    """`python -m studies.worker NAME WORKDIR NUMBER PARENT`, started by `harness study run --workers N`."""
    from harness.machine.environment import disable_telemetry

    disable_telemetry()
    name, workdir, number, parent = argv
    url = os.environ[STORAGE]
    try:
        stored = load(open_storage(url, create=False), name, url)
        work(stored, Path(workdir), number=int(number), parent=int(parent))
    except HarnessError as error:
        tell_error(f"harness: {error}")
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
