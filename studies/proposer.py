"""A study as a proposer of runs: Optuna proposes configurations, their runs are executed, and it learns how they ended.

Exactly the planned trials are made: each is a slot, and each slot gets one finished trial, whoever is killed. All slots
are queued as waiting trials before the first one runs. One process runs a study, so trials that are running when it
starts were left by one that was killed, and resume: same number, same values.
"""

from __future__ import annotations

import math
import shlex
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import fmean, median
from typing import TYPE_CHECKING, Any, TypeVar

from harness import registry
from harness.errors import InputError, StopRequested
from harness.executors.executor import Executor, ExecutorSettings
from harness.machine.progress import Reporter
from harness.results.record import Record
from harness.results.store import RunFolder, comparison_files, read_comparison_file, remove
from harness.runs.execute import find_due
from harness.runs.plan import Job, Plan, make_plan
from harness.runs.progress import Progress, RunState
from harness.runs.runner import Runner
from studies.definition.planned import planned_trials
from studies.definition.space import Space
from studies.definition.study import DEV, ENUMERATED, Study
from studies.samplers import make_pruner, make_sampler, proposer
from studies.storage import create_or_resume, lock_study, open_storage
from studies.trials import (
    FINAL,
    PROPOSER,
    SLOT,
    TrialResult,
    TrialSeconds,
    best_trials,
    finished_trials,
    has_result,
    line_about,
    next_trial,
    queue_slots,
    result_of,
)

if TYPE_CHECKING:
    import optuna
    from optuna.trial import FrozenTrial, TrialState

    from harness.tracking import Tracker

_RACE_AFTER = 4  # trials with as many seeds, by which a trial's further seeds are judged
_SHOWN = 8  # of the best trials, on the page of a running study
_INDEPENDENT = (*ENUMERATED, "random", "qmc")  # samplers that learn nothing from ended trials
T = TypeVar("T")


def run_trials(
    study: Study,
    space: Space,
    workdir: Path,
    settings: ExecutorSettings,
    *,
    url: str,
    where: str,
    tracked: bool,
    tracking_uri: str | None,
    force_new: bool = False,
    quiet: bool,
) -> optuna.Study:
    """Run a study until all planned trials have ended; returns it.

    Args:
        url: of its storage. where: the file or preset, for messages.
        tracked, tracking_uri, force_new, quiet: as `harness.study`.

    Raises:
        InputError: the storage cannot be used, holds another study of that name, or another process runs this one; the
            executor cannot be used. RunError: a stop was requested.
    """
    from optuna.trial import TrialState

    from reports.live import page

    executor, storage = executor_for(study, settings, workdir), open_storage(url)
    with ExitStack() as ending:
        ending.enter_context(lock_study(storage, url, study.name, workdir))
        stored = create_or_resume(storage, study, workdir, where, force_new=force_new)
        begun = sum(t.state != TrialState.WAITING for t in stored.get_trials(deepcopy=False))
        stored.sampler = make_sampler(study, begun)
        stored.pruner = make_pruner(study, study.steps or 1000)
        planned = planned_trials(study, space)
        tracker = tracker_of(study, space, workdir, tracking_uri) if tracked else None
        if tracker is not None:
            ending.callback(tracker.close)
        resumed, left = queue_slots(stored, planned)
        if left:
            reporter = ending.enter_context(Reporter(left, quiet=quiet))
            workers = (executor.settings.workers or 1) if executor.parallel else 1
            progress = Progress(workdir, study.name, kind="study", title=study.title, executor=executor.name,
                                workers=workers, reporter=reporter, page=page)  # fmt: skip
            trials = OptunaTrials(stored, study, space, workdir, progress, resumed, len(planned), tracker)
            progress.scores = trials.scores
            try:
                with progress:
                    Runner(workdir, executor, progress).run(trials)
            except StopRequested:
                raise progress.stopped() from None
        for trial in finished_trials(stored):  # those of a process that was killed before it sent them
            log_trial(tracker, trial, study, workdir)
    return stored


class OptunaTrials:
    """The proposer of a study.

    Args:
        resumed: trials that an earlier process left running.
        slots: number of planned trials.
    """

    def __init__(
        self,
        stored: optuna.Study,
        study: Study,
        space: Space,
        workdir: Path,
        progress: Progress,
        resumed: list[optuna.Trial],
        slots: int,
        tracker: Tracker | None,
    ) -> None:
        self.stored, self.study, self.space, self.workdir = stored, study, space, workdir
        self.progress, self.resumed, self.slots, self.tracker = progress, resumed, slots, tracker
        self.open: dict[int, OpenTrial] = {}
        self._executed: set[str] = set()
        self._ready: list[Job] = []
        trials = [t for t in stored.get_trials(deepcopy=False) if not t.state.is_finished()]
        names = [f"trial {t.number}" for t in trials if t.user_attrs.get(SLOT, slots) < slots]
        progress.expect([RunState(name, study.name) for name in names])

    def propose(self, room: int) -> list[Job]:
        """As `Proposer.propose`: further seeds of open trials, then new trials."""
        jobs, self._ready = self._ready, []
        while len(jobs) < room:
            trial = self.resumed.pop(0) if self.resumed else next_trial(self.stored, self.slots)
            if trial is None:
                break
            if self.study.sampler == "smac":
                trial.set_user_attr(PROPOSER, proposer(self.stored.sampler))
            opened = OpenTrial(trial, self.stored, self.study, self.space, self.workdir)
            self.open[trial.number] = opened
            jobs += self._advance(opened)
        return jobs

    def label(self, job: Job) -> str:
        """As `Proposer.label`."""
        return f"trial {job.trial}"

    def prune(self, job: Job, step: int, score: float) -> str:
        """As `Proposer.prune`."""
        trial = self.open.get(job.trial) if job.trial is not None else None
        return trial.prune(step, score) if trial is not None else ""

    def finish(self, job: Job, record: Record, *, reused: bool) -> None:
        """As `Proposer.finish`."""
        assert job.trial is not None
        trial = self.open[job.trial]
        trial.add(record, executed=not reused and record.id not in self._executed)  # of trials that share a run, one
        self._executed.add(record.id)
        self._ready += self._advance(trial)

    def scores(self) -> list[dict[str, Any]]:
        """The best trials so far, for the page of a running study."""
        return [
            {"row": f"trial {t.number}: {result_of(t).label}", "task": name, "mean": 100 * value,
             "n": len(result_of(t).seeds)}
            for t in best_trials(self.stored)[:_SHOWN]
            for name, value in zip(self.study.objective_names, t.values, strict=True)
        ]  # fmt: skip

    def _advance(self, trial: OpenTrial) -> list[Job]:
        """The next job of a trial; none where it has ended, which is reported."""
        job = trial.next_job()
        if job is not None:
            command = shlex.join(["harness", "study", "run", self.study.name, "--workdir", "NEW_FOLDER"])
            return [replace(job, command=command, trial=trial.trial.number)]
        del self.open[trial.trial.number]
        if self.study.keep_models == "best":
            drop_models(self.stored, self.study, self.workdir, list(self.open.values()))
        ended = self.stored.get_trials(deepcopy=False)[trial.trial.number]
        result = result_of(ended)
        state = "failed" if ended.state.name == "FAIL" else "reused" if result.reused else result.status
        name, line = f"trial {ended.number}", line_about(ended)
        self.progress.finish(name, state, line, reason=result.reason, seconds=result.seconds.whole)
        log_trial(self.tracker, ended, self.study, self.workdir)
        return []


@dataclass
class OpenTrial:
    """A trial whose runs are proposed one after the other; Optuna learns how it ended."""

    trial: optuna.Trial
    stored: optuna.Study
    study: Study
    space: Space
    workdir: Path
    plan: Plan | None = None
    records: list[Record] = field(default_factory=list)
    executed: list[Record] = field(default_factory=list)  # for this trial, and not reused
    ended: bool = False

    def __post_init__(self) -> None:
        self.started, self.optuna_seconds = time.perf_counter(), 0.0
        self._values: list[list[float]] = []
        self._reported = set(self.stored.get_trials(deepcopy=False)[self.trial.number].intermediate_values)
        first = self.trial.user_attrs.get(SLOT) == 0
        self.values = self._timed(lambda: self.space.suggest(self.trial, first=first))
        try:
            self.plan = plan_trial(self.study, self.values, self.workdir)
        except InputError as error:  # a combination that the method refuses
            self._fail(str(error))

    def next_job(self) -> Job | None:
        """The next job; None where the trial has ended. Runs that have a usable record need none."""
        while not self.ended:
            assert self.plan is not None
            job = self.plan.jobs[len(self.records)]
            record = find_known(self.study, job, self.workdir)
            if record is None:
                return job
            self.add(record, executed=False)
        return None

    def add(self, record: Record, *, executed: bool) -> None:
        """The record of the next run."""
        from optuna.trial import TrialState

        assert self.plan is not None
        first = not self.records
        self.records.append(record)
        if executed:
            self.executed.append(record)
        for step, score in dev_scores(record, self.workdir) if first and self._judges_dev else ():
            self._report(step, score)  # also of a reused run, so that a pruner sees the same after a kill
        if record.status == "pruned":
            self._end(TrialState.PRUNED, record.reason)
        elif record.status == "failed":
            self._fail(record.reason)
        else:
            try:
                self._values.append(objective_values(record, self.study, self.workdir))
            except InputError as error:
                self._fail(str(error))
                return
            if len(self.records) == len(self.plan.jobs):
                self._end(TrialState.COMPLETE)
            elif not in_contention(self.stored, self.study, self._values):
                self._end(TrialState.COMPLETE, "out of contention: no further seed")

    def prune(self, step: int, score: float) -> str:
        """Report a dev score of the running job to Optuna; why to stop the run, empty to let it go on."""
        if self.records or not self._judges_dev or not self._report(step, score):
            return ""
        stop = self._timed(self.trial.should_prune)
        return f"dev {100 * score:.2f} at step {step} ({self.study.pruner} pruner)" if stop else ""

    @property
    def _judges_dev(self) -> bool:
        return self.study.objectives == [DEV]

    def _report(self, step: int, score: float) -> bool:
        """Report an intermediate value; False if it was reported before."""
        if step == 0 or not math.isfinite(score) or step in self._reported:
            return False
        self._reported.add(step)
        self._timed(lambda: self.trial.report(score, step))
        return True

    def _timed(self, call: Callable[[], T]) -> T:
        start = time.perf_counter()
        try:
            return call()
        finally:
            self.optuna_seconds += time.perf_counter() - start

    def _fail(self, reason: str) -> None:
        from optuna.trial import TrialState

        self.trial.set_user_attr(FINAL, "failed")
        self._end(TrialState.FAIL, reason)

    def _end(self, state: TrialState, reason: str = "") -> None:
        from optuna.trial import TrialState

        records, costs = self.records, [record.cost for record in self.executed]
        evaluation = ("dev_seconds", "encode_seconds", "evaluate_seconds")
        result = TrialResult(
            runs=[record.id for record in records],
            seeds=[record.seed for record in records],
            seed_values=self._values,
            status=records[-1].status if records else "failed",
            reason=reason or (records[-1].reason if records else ""),
            reused=bool(records) and not self.executed,
            label=describe_values(self.values),
            seconds=TrialSeconds(
                training=sum(c.get("train_seconds", 0.0) for c in costs),
                evaluation=sum(c.get(key, 0.0) for c in costs for key in evaluation),
                optuna=self.optuna_seconds,
                whole=time.perf_counter() - self.started,
            ),
        )
        values = [fmean(column) for column in zip(*self._values, strict=True)]
        self._timed(lambda: result.write(self.trial))
        self._timed(lambda: self.stored.tell(self.trial, values if state == TrialState.COMPLETE else None, state=state))
        self.ended = True


def plan_trial(study: Study, values: Mapping[str, Any], workdir: Path) -> Plan:
    """The plan of a trial with these values.

    Raises:
        InputError: a configuration, text, dev set, model or objective that cannot work.
    """
    where = f'study "{study.name}"'
    plan = make_plan(study.experiment(values, describe_values(values)), where, workdir, starts=False)
    if DEV in study.objectives and plan.dev is None:
        raise InputError(
            f'{where}: objectives: method "{study.method}" has no dev score; name a task and its suite instead'
        )
    names = [task.name for task in plan.tasks]
    for objective in study.objectives:
        if objective != DEV and not split_objective(objective, names):
            raise InputError(f'{where}: objectives: no task of "{objective}" in suites; there are: {", ".join(names)}')
    return plan


def find_known(study: Study, job: Job, workdir: Path) -> Record | None:
    """The record that a trial can use without running anything, or None."""
    record = RunFolder(workdir, job.id).read_if_sound()
    if record is None or record.status in ("trained", "failed"):
        return None
    if record.status == "pruned":
        own = record.comparison == study.name  # other studies prune for their own reasons
        return record if own and study.pruner != "none" else None
    return None if find_due(record, job) and record.status == "finished" else record


def describe_values(values: Mapping[str, Any]) -> str:
    """A configuration as the name of a row."""
    return ", ".join(f"{k}={v:.4g}" if isinstance(v, float) else f"{k}={v}" for k, v in values.items()) or "default"


def split_objective(objective: str, tasks: Iterable[str]) -> tuple[str, str, str] | None:
    """Task (whose name may hold ":"), metric and aggregation of an objective; None where it names none of the tasks."""
    named = [task for task in tasks if f"{objective}:".startswith(f"{task}:")]
    if not named:
        return None
    task = max(named, key=len)
    given = objective.removeprefix(task).split(":")[1:]
    metric, aggregation = [*given, *("spearman", "all")[len(given) :]][:2]
    return task, metric, aggregation


def dev_scores(record: Record, workdir: Path) -> list[tuple[int, float]]:
    """Step and score of each evaluation on the dev set after the first training step."""
    lines = RunFolder(workdir, record.id).curves()
    return [(line["step"], line["spearman"]) for line in lines if line["kind"] == "dev" and line["step"] > 0]


def objective_values(record: Record, study: Study, workdir: Path) -> list[float]:
    """The values of the objectives for one run; of a collapsed or diverged one the dev score that it fell to.

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


def in_contention(stored: optuna.Study, study: Study, values: list[list[float]]) -> bool:
    """Is a trial worth another seed: no worse than the median of the trials with as many seeds?"""
    from optuna.trial import TrialState

    done = len(values)
    others = [
        [fmean(column) for column in zip(*own[:done], strict=True)]
        for t in stored.get_trials(deepcopy=False, states=(TrialState.COMPLETE,))
        if len(own := result_of(t).seed_values) >= done
    ]
    if len(others) < _RACE_AFTER:
        return True
    mine = [fmean(column) for column in zip(*values, strict=True)]
    return any(
        (value >= bar) if sign == "maximize" else (value <= bar)
        for value, bar, sign in zip(mine, map(median, zip(*others, strict=True)), study.signs, strict=True)
    )


def drop_models(stored: optuna.Study, study: Study, workdir: Path, open_trials: Sequence[OpenTrial]) -> None:
    """Delete the weights of trials that are not the best, unless a comparison or another study made or lists them."""
    from optuna.trial import TrialState

    best = best_trials(stored)
    keep = {run for t in (best if len(stored.directions) > 1 else best[:1]) for run in result_of(t).runs}
    keep |= {job.id for trial in open_trials if trial.plan is not None for job in trial.plan.jobs}
    done = stored.get_trials(deepcopy=False, states=(TrialState.COMPLETE,))
    runs = sorted({run for t in done for run in result_of(t).runs} - keep)
    folders = [folder for run in runs if (folder := RunFolder(workdir, run)).model.exists()]
    if not folders:
        return
    trees = [read_comparison_file(workdir, name) or {"runs": []} for name in comparison_files(workdir)]
    listed = {run["id"] for tree in trees for run in tree["runs"]}
    for folder in folders:
        record = folder.read_if_sound()
        if record is not None and record.comparison == study.name and record.id not in listed:
            remove(folder.model)


def log_trial(tracker: Tracker | None, trial: FrozenTrial, study: Study, workdir: Path) -> None:
    """Send the runs of a trial to the tracker: configuration = a row below the study, seed = a run below it."""
    if tracker is None or not has_result(trial):
        return
    for run in result_of(trial).runs:
        if (record := RunFolder(workdir, run).read_if_sound()) is not None:
            tracker.log(record.labelled(record.row, study.name))


def tracker_of(study: Study, space: Space, workdir: Path, uri: str | None) -> Tracker:
    """The tracker of a study, with a run of the study itself above its trials."""
    from harness.tracking import Tracker

    about = {"study": study.name, "method": study.method, "sampler": study.sampler, "pruner": study.pruner,
             "trials": len(planned_trials(study, space)),
             **{f"space.{p.name}": p.describe() for p in space.parameters}}  # fmt: skip
    return Tracker(workdir, study.name, uri, root=about)


def executor_for(study: Study, settings: ExecutorSettings, workdir: Path) -> Executor:
    """The executor of a study; several workers without a name are processes of this machine.

    Raises:
        InputError: an unknown executor, or one that does not say how many trials run at a time.
    """
    if settings.name == "serial" and (settings.workers or 1) > 1:
        settings = settings.model_copy(update={"name": "processes"})
    kind: type[Executor] = registry.load(registry.EXECUTORS, settings.name)
    executor = kind(settings, workdir)
    if executor.parallel and not executor.local and settings.workers is None and study.sampler not in _INDEPENDENT:
        raise InputError(
            f'executor "{settings.name}": sampler "{study.sampler}" learns from ended trials: give the number of '
            "trials that run at a time with --workers N"
        )
    return executor
