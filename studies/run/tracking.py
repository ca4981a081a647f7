"""Finished trials go to MLflow, each once, and beside the training: a run of the study, of each trial, of each seed."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from harness.files.atomic import write_atomic
from harness.results.run_folder import RunFolder
from studies.definition.planned import planned_trials
from studies.definition.space import Space
from studies.definition.study import Study
from studies.run.storage import folder_of
from studies.run.trial_result import has_result, result_of

if TYPE_CHECKING:
    from optuna.trial import FrozenTrial

    from harness.tracking.tracker import Tracker


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
        if self.tracker is None or known or not has_result(trial):
            return
        start = time.perf_counter()
        self.handed.add(trial.number)
        runs = [RunFolder(self.workdir, run).read() for run in result_of(trial).runs]
        records = [r for r in runs if r is not None]  # one that was removed meanwhile
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
    kept = json.loads(file.read_text()) if file.exists() else {}
    # A study of an earlier version has one number: what was waited.
    return {"waited": 0.0, "beside": 0.0} | (kept if isinstance(kept, dict) else {"waited": kept})


def tracker_of(study: Study, space: Space, workdir: Path, uri: str | None) -> Tracker:
    """The way to MLflow, where a run of the study itself stands above its trials."""
    from harness.tracking.tracker import Tracker

    about = {"study": study.name, "method": study.method, "sampler": study.sampler, "pruner": study.pruner,
             "trials": len(planned_trials(study, space)),
             **{f"space.{p.name}": p.describe() for p in space.parameters}}  # fmt: skip
    return Tracker(workdir, study.name, uri, root=about)
