"""One trial: a configuration becomes the cells of a one-row comparison, and their dev scores its value."""

from __future__ import annotations

import math
import shlex
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from statistics import fmean, median
from typing import TYPE_CHECKING, Any

from harness.comparison.cell import Progress, run_held_cell
from harness.comparison.plan import LoadedData, Plan, PlannedCell, make_plan
from harness.comparison.rescoring import due
from harness.errors import InputError, TrainingStopped
from harness.files.locks import run_lock
from harness.results.record import Record
from harness.results.run_folder import RunFolder
from studies.definition.space import Space
from studies.definition.study import DEV, Study
from studies.run.attributes import FINAL, SLOT
from studies.run.trial_result import TrialResult, TrialSeconds, result_of

if TYPE_CHECKING:
    import optuna

RACE_AFTER = 4  # trials with as many seeds that a trial's further seeds are judged by


class Desk:
    """The data of a study, loaded once a process; makes the plan of any configuration."""

    def __init__(self, study: Study, workdir: Path) -> None:
        from harness.tasks.catalogue import resolve_tasks

        self.study, self.workdir = study, workdir
        self.tasks = resolve_tasks(study.suites, source=study.source) if study.suites else []
        self._data = LoadedData()

    def plan(self, values: Mapping[str, Any]) -> Plan:
        """The plan of a trial.

        Raises:
            InputError: a configuration, corpus, dev set or model that cannot work.
        """
        study, where = self.study, f'study "{self.study.name}"'
        plan = make_plan(
            study.experiment(values, label(values)), where, self.workdir, data=self._data, tasks=self.tasks
        )
        if DEV in study.objectives and plan.dev is None:
            raise InputError(
                f'{where}: objectives: method "{study.method}" is not scored on a dev set; '
                "name a task and its suite instead"
            )
        for objective in study.objectives:
            if objective != DEV and not split_objective(objective, [task.name for task in self.tasks]):
                raise InputError(
                    f'{where}: objectives: no task of "{objective}" in suites; '
                    f"there are: {', '.join(task.name for task in self.tasks)}"
                )
        return plan

    def known(self, cell: PlannedCell, plan: Plan) -> Record | None:
        """The record that answers a cell without any training, or None."""
        record = RunFolder(self.workdir, cell.id).read()
        if record is None or record.status == "failed":
            return None
        if record.status == "pruned":
            own = record.comparison == self.study.name  # another study's reasons to give it up are not this one's
            return record if own and self.study.pruner != "none" else None
        if record.status != "finished" or not self.tasks:
            return record  # a comparison may have evaluated it on more: all the better
        return record if not due(record, cell, plan) else None


@dataclass
class Clock:
    """Wall seconds of a trial by what they went into."""

    optuna: float = 0.0
    started: float = field(default_factory=time.perf_counter)

    @contextmanager
    def asking_optuna(self) -> Iterator[None]:
        start = time.perf_counter()
        try:
            yield
        finally:
            self.optuna += time.perf_counter() - start


def label(values: Mapping[str, Any]) -> str:
    """A configuration as the name of a row."""
    return ", ".join(f"{k}={v:.4g}" if isinstance(v, float) else f"{k}={v}" for k, v in values.items()) or "default"


def run_trial(
    trial: optuna.Trial,
    stored: optuna.Study,
    space: Space,
    desk: Desk,
    *,
    clock: Clock,
    progress: Progress | None = None,
    still_wanted: Callable[[], bool] = lambda: True,
) -> list[Record]:
    """Run the cells of a claimed trial and tell Optuna how it ended; returns their records."""
    import optuna
    from optuna.trial import TrialState

    study = desk.study
    with clock.asking_optuna():
        values = space.suggest(trial, first=trial.user_attrs.get(SLOT) == 0)
    records: list[Record] = []
    outcomes: list[list[float]] = []
    state, reason, answered = TrialState.COMPLETE, "", True
    try:
        plan = desk.plan(values)
        for cell in plan.cells:
            record = desk.known(cell, plan)
            if record is None:
                answered = False
                record = _run(cell, plan, desk, _watch(trial, study, clock, still_wanted, first=not records), progress)
            records.append(record)
            if record.status == "pruned":
                state, reason = TrialState.PRUNED, record.reason
                break
            outcomes.append(outcome(record, study, desk.workdir))
            if len(outcomes) < len(plan.cells) and not in_contention(stored, study, outcomes):
                reason = "out of contention: no further seed"
                break
    except InputError as error:  # a combination that the method refuses, or a score that is missing
        state, reason = TrialState.FAIL, str(error)
    if any(r.status == "failed" for r in records):
        state, reason = TrialState.FAIL, next(r.reason for r in records if r.status == "failed")
    with clock.asking_optuna():
        if state == TrialState.FAIL:
            trial.set_user_attr(FINAL, "failed")
    result = TrialResult(
        runs=[record.id for record in records],
        seeds=[record.seed for record in records],
        seed_values=outcomes,
        status=records[-1].status if records else "failed",
        reason=reason or (records[-1].reason if records else ""),
        answered=answered and bool(records),
        label=label(values),
        seconds=_seconds([] if answered else records, clock),
    )
    with clock.asking_optuna():
        result.write(trial)
        told = [fmean(column) for column in zip(*outcomes, strict=True)] if state == TrialState.COMPLETE else None
        # Where another worker took this one for dead, its slot has a new trial, which these records answer.
        with suppress(ValueError, optuna.exceptions.UpdateFinishedTrialError):
            stored.tell(trial, told, state=state)
    return records


def _run(
    cell: PlannedCell, plan: Plan, desk: Desk, on_dev: Callable[[int, float], None], progress: Progress | None
) -> Record:
    """Train and evaluate a cell; where another worker does so just now, wait for its record."""
    with run_lock(RunFolder(desk.workdir, cell.id).path):
        done = desk.known(cell, plan)
        if done is not None:
            return done
        study = desk.study
        command = shlex.join(["harness", "study", "run", study.name, "--workdir", "NEW_FOLDER"])
        return run_held_cell(cell, plan, desk.workdir, command=command, progress=progress, on_dev=on_dev)


def _watch(
    trial: optuna.Trial, study: Study, clock: Clock, still_wanted: Callable[[], bool], *, first: bool
) -> Callable[[int, float], None]:
    """What is done after each evaluation on the dev set: report the first seed's score, perhaps give the run up."""
    reported: set[int] = set()

    def on_dev(step: int, score: float) -> None:
        if not still_wanted():
            raise SystemExit("the study's coordinator has ended")
        if step == 0 or not first or study.objectives != [DEV] or not math.isfinite(score) or step in reported:
            return
        with clock.asking_optuna():
            reported.add(step)
            trial.report(score, step)
            stop = trial.should_prune()
        if stop:
            raise TrainingStopped("pruned", f"dev {100 * score:.2f} at step {step} ({study.pruner} pruner)")

    return on_dev


def split_objective(objective: str, tasks: Iterable[str]) -> tuple[str, str, str] | None:
    """Task (whose name may hold ":"), metric and aggregation of an objective; None where it names none of the tasks."""
    named = [task for task in tasks if f"{objective}:".startswith(f"{task}:")]
    if not named:
        return None
    task = max(named, key=len)
    given = objective.removeprefix(task).split(":")[1:]
    metric, aggregation = [*given, *("spearman", "all")[len(given) :]][:2]
    return task, metric, aggregation


def outcome(record: Record, study: Study, workdir: Path) -> list[float]:
    """The values of the objectives for one run. A run that collapsed or diverged has the dev score that it fell to.

    Raises:
        InputError: the record lacks a score that is an objective.
    """
    if record.status == "failed":
        return [0.0] * len(study.objectives)
    values = []
    for objective in study.objectives:
        value: float | None
        if objective == DEV and record.status == "finished":
            value = record.training.get("best_dev")
        elif objective == DEV:
            scores = [line["spearman"] for line in RunFolder(workdir, record.id).curves() if line["kind"] == "dev"]
            value = scores[-1] if scores and math.isfinite(scores[-1]) else 0.0
        else:
            parts = split_objective(objective, [*(score.task for score in record.scores), *record.missing])
            value = record.score(*parts) if parts else None
        if value is None or not math.isfinite(value):
            raise InputError(f'objectives: the run has no score "{objective}" ({record.status} {record.reason})')
        values.append(float(value))
    return values


def in_contention(stored: optuna.Study, study: Study, outcomes: list[list[float]]) -> bool:
    """Is a trial worth another seed: no worse than the median trial with as many seeds (always at the beginning)?"""
    from optuna.trial import TrialState

    done = len(outcomes)
    others = [
        [fmean(column) for column in zip(*values[:done], strict=True)]
        for t in stored.get_trials(deepcopy=False, states=(TrialState.COMPLETE,))
        if len(values := result_of(t).seed_values) >= done
    ]
    if len(others) < RACE_AFTER:
        return True
    mine = [fmean(column) for column in zip(*outcomes, strict=True)]
    return any(
        (value >= bar) if sign == "maximize" else (value <= bar)
        for value, bar, sign in zip(mine, map(median, zip(*others, strict=True)), study.signs, strict=True)
    )


def _seconds(records: list[Record], clock: Clock) -> TrialSeconds:
    """Training, evaluation and Optuna of a trial, and the whole; what is left over is loading and saving."""
    cost = [record.cost for record in records]
    evaluation = ("dev_seconds", "encode_seconds", "evaluate_seconds")
    return TrialSeconds(
        training=sum(c.get("train_seconds", 0.0) for c in cost),
        evaluation=sum(c.get(key, 0.0) for c in cost for key in evaluation),
        optuna=clock.optuna,
        whole=time.perf_counter() - clock.started,
    )
