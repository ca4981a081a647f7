"""A study as a proposer of runs: Optuna proposes configurations, and learns how their runs ended.

Exactly the planned trials are made: each is a slot, and each slot gets one finished trial, whoever
is killed. All slots are queued as waiting trials before the first one runs. One process runs a
study, so trials that are running when it starts were left by one that was killed, and resume: same
number, same values.
"""

from __future__ import annotations

import math
import shlex
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import ExitStack, closing, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import fmean
from typing import Any

import optuna
from optuna.trial import TrialState

from harness.errors import InputError, RunError
from harness.executors.executor import ExecutorSettings, open_executor
from harness.files.exits import ENDS, calling, refuse_exits
from harness.machine.progress import Reporter
from harness.results.record import Record
from harness.results.store import RunFolder
from harness.runs.grid import describe_record
from harness.runs.plan import Job, Plan, make_plan
from harness.runs.progress import Progress, RunState
from harness.runs.runner import Runner
from harness.tracking import Tracker, open_tracker
from studies import trials
from studies.definition.space import Space, plan_trials
from studies.definition.study import DEV, ENUMERATED, Study
from studies.samplers import make_pruner, make_sampler
from studies.storage import create_or_resume, lock_study, open_storage


def run_trials(
    study: Study,
    space: Space,
    workdir: Path,
    settings: ExecutorSettings,
    *,
    content: dict[str, Any],
    where: str,
    tracking_uri: str | None = "none",
    quiet: bool = True,
    page: Callable[[dict[str, Any], float], str] | None = None,
) -> optuna.Study:
    """Run a study until all planned trials have ended; returns it.

    Args:
        content: as `content_of` its first trial.
        where: the file or preset, for messages.
        tracking_uri, quiet: as `harness.study`.
        page: makes the live page, as in `Progress`; without it there is none.

    Raises:
        InputError: the work directory holds another study of that name, or another process runs
            this one; the executor cannot be used. RunError: a stop was requested.
    """
    executor = open_executor(settings, workdir)
    if (
        not executor.local
        and settings.workers is None
        and study.sampler not in (*ENUMERATED, "random", "qmc")
    ):
        raise InputError(
            f'sampler "{study.sampler}" learns from trials that have ended',
            key=f'executor "{settings.name}"',
            remedy="give the number of trials that run at a time with --workers N",
        )
    storage = open_storage(workdir)
    with ExitStack() as ending:
        ending.enter_context(refuse_exits())
        ending.enter_context(lock_study(workdir, study.name))
        stored = create_or_resume(storage, study, content, where)
        begun = sum(t.state != TrialState.WAITING for t in stored.get_trials(deepcopy=False))
        stored.sampler = make_sampler(study, begun)
        stored.pruner = make_pruner(study, study.steps or 1000)
        planned = plan_trials(study, space)
        tracker = open_tracker(workdir, study.name, tracking_uri)
        if tracker is not None:
            ending.enter_context(closing(tracker))
        resumed, left = trials.queue_slots(storage, stored, planned)
        if left or _is_start_missing(stored, study, workdir):
            reporter = ending.enter_context(Reporter(left, quiet=quiet))
            progress = Progress(workdir, study.name, "study", study.title, executor, reporter, page)
            proposer = OptunaTrials(
                stored, study, space, workdir, progress, resumed, len(planned), tracker
            )
            Runner(workdir, executor, progress).run(proposer)
    return stored


@dataclass
class OptunaTrials:
    """The proposer of a study.

    Attributes:
        resumed: trials that an earlier process left running.
        slots: number of planned trials.
    """

    stored: optuna.Study
    study: Study
    space: Space
    workdir: Path
    progress: Progress
    resumed: list[optuna.Trial]
    slots: int
    tracker: Tracker | None

    def __post_init__(self) -> None:
        self.open: dict[int, OpenTrial] = {}
        self._executed: set[str] = set()
        self._ready: list[Job] = []
        self._start_is_proposed = False
        self._sampler = f'sampler "{self.study.sampler}"'

        expected = []
        for trial in self.stored.get_trials(deepcopy=False):
            planned = trial.user_attrs.get(trials.SLOT, self.slots) < self.slots
            if planned and not trial.state.is_finished():
                expected.append(RunState(f"trial {trial.number}", self.study.name))
        self.progress.expect(expected)

    def propose(self, room: int) -> list[Job]:
        """As `Proposer.propose`: further seeds of open trials, then new trials."""
        jobs = self._ready
        self._ready = []
        while len(jobs) < room:
            trial: optuna.Trial | None
            if self.resumed:
                trial = self.resumed.pop(0)
            else:
                with calling(self._sampler):
                    trial = trials.next_trial(self.stored, self.slots)
            if trial is None:
                break
            config = self._draw(trial)
            self.open[trial.number] = OpenTrial(
                trial, self.stored, self.study, config, self.workdir
            )
            jobs += self._advance(self.open[trial.number])
        if not jobs and not self.open and not self._start_is_proposed:
            self._start_is_proposed = True
            jobs = self._propose_start()
        return jobs

    def _propose_start(self) -> list[Job]:
        """Return the run that scores the model without training, once all trials have ended; none
        where trials are judged by dev scores, which tell it themselves.
        """
        job = _find_start(self.stored, self.study, self.workdir)
        if job is None:
            return []
        self.stored.set_user_attr(trials.START, job.id)
        self.progress.expect([RunState(job.label, self.study.name)])
        return [replace(job, command=_command(self.study))]

    def _draw(self, trial: optuna.Trial) -> dict[str, Any]:
        """Draw the values of a trial; where the sampler fails, others are drawn next time."""
        try:
            with calling(self._sampler):
                return self.space.suggest(trial, first=trial.user_attrs.get(trials.SLOT) == 0)
        except RunError:
            with suppress(*ENDS):  # tells the sampler, too
                trial.set_user_attr(trials.UNUSABLE, True)
                self.stored.tell(trial, state=TrialState.FAIL)
            raise

    def prune(self, job: Job, step: int, score: float) -> str:
        """As `Proposer.prune`."""
        if job.trial not in self.open:
            return ""
        return self.open[job.trial].prune(step, score)

    def finish(self, job: Job, record: Record, *, reused: bool) -> None:
        """As `Proposer.finish`."""
        if job.trial is None:  # the model without training
            state = "reused" if reused else record.status
            self.progress.finish(job.label, state, describe_record(record), reason=record.reason)
            return
        trial = self.open[job.trial]
        # Of several trials that share a run, one has executed it.
        trial.add(record, executed=not reused and record.id not in self._executed)
        self._executed.add(record.id)
        if self.tracker is not None:
            self.tracker.log(record.as_row(record.row, self.study.name))
        self._ready += self._advance(trial)

    def _advance(self, trial: OpenTrial) -> list[Job]:
        """Return the next job of a trial; none where it has ended, which is reported."""
        number = trial.trial.number
        if not trial.has_ended:
            job = trial.jobs[len(trial.records)]
            return [replace(job, command=_command(self.study), trial=number)]

        del self.open[number]
        ended = self.stored.get_trials(deepcopy=False)[number]
        result = trials.result_of(ended)
        if ended.state == TrialState.FAIL:
            state = "failed"
        elif result.reused:
            state = "reused"
        else:
            state = result.status
        self.progress.finish(
            f"trial {number}",
            state,
            trials.describe_trial(ended),
            reason=result.reason,
            seconds=result.seconds,
        )
        return []


def _command(study: Study) -> str:
    """Return the command that makes the runs of a study again."""
    return shlex.join(["harness", "study", "run", study.name, "--workdir", "NEW_FOLDER"])


def _find_start(stored: optuna.Study, study: Study, workdir: Path) -> Job | None:
    """Return the run that scores the model which the best trial started from, untrained; None
    where there is none, or the trials are judged by dev scores.
    """
    leading = trials.best_trials(stored)
    if study.objective == DEV or not leading:
        return None
    runs = trials.result_of(leading[0]).runs
    if runs:
        record = RunFolder(workdir, runs[0]).read_if_sound()
    else:
        record = None
    if record is None:
        return None
    where = f'study "{study.name}"'
    plan = make_plan(study.experiment(record.config, record.row), where)
    starts = set(plan.starts.values())
    return next((job for job in plan.jobs if job.id in starts), None)


def _is_start_missing(stored: optuna.Study, study: Study, workdir: Path) -> bool:
    """True of a study whose trials have ended, and whose untrained model was not scored."""
    known = stored.user_attrs.get(trials.START, "")
    if known and RunFolder(workdir, known).read_if_sound() is not None:
        return False
    return _find_start(stored, study, workdir) is not None


class OpenTrial:
    """A trial whose runs are proposed one after the other; Optuna learns how it ended.

    Attributes:
        jobs: a run for each seed.
        records: of the runs that have ended.
        executed: True if one of them was made for this trial.
        values: the objective by each seed.
        has_ended: True once Optuna was told the result.
    """

    def __init__(
        self,
        trial: optuna.Trial,
        stored: optuna.Study,
        study: Study,
        config: dict[str, Any],
        workdir: Path,
    ) -> None:
        self.trial = trial
        self.stored = stored
        self.study = study
        self.workdir = workdir
        self.started = time.perf_counter()
        self.jobs: list[Job] = []
        self.records: list[Record] = []
        self.executed = False
        self.values: list[float] = []
        self.has_ended = False
        self.judges_dev = study.objective == DEV
        self.reported = set(stored.get_trials(deepcopy=False)[trial.number].intermediate_values)
        self.config = config
        try:
            self.jobs = list(plan_trial(study, self.config).jobs)
        except InputError as error:  # a combination that the method refuses
            self._end(TrialState.FAIL, str(error))

    def add(self, record: Record, *, executed: bool) -> None:
        """Add the record of the next run."""
        if self.judges_dev and not self.records:
            # Also of a reused run, so that a pruner sees the same after a kill.
            for step, score in dev_scores(record, self.workdir):
                self._report(step, score)
        self.records.append(record)
        self.executed |= executed
        if record.status in ("pruned", "failed"):
            self._end(TrialState.PRUNED if record.status == "pruned" else TrialState.FAIL)
            return
        try:
            self.values.append(objective_value(record, self.study, self.workdir))
        except InputError as error:
            self._end(TrialState.FAIL, str(error))
        else:
            if len(self.records) == len(self.jobs):
                self._end(TrialState.COMPLETE)

    def prune(self, step: int, score: float) -> str:
        """Report a dev score of the running job to Optuna.

        Returns:
            Why to stop the run; empty to let it go on.
        """
        if self.records or not self.judges_dev or not self._report(step, score):
            return ""
        if not self.trial.should_prune():
            return ""
        return f"dev {100 * score:.2f} at step {step} ({self.study.pruner} pruner)"

    def _report(self, step: int, score: float) -> bool:
        """Report an intermediate value; False if it was reported before."""
        if step == 0 or not math.isfinite(score) or step in self.reported:
            return False
        self.reported.add(step)
        self.trial.report(score, step)
        return True

    def _end(self, state: TrialState, reason: str = "") -> None:
        """Store how the trial ended; the reason is by default that of its first run without a usable
        model, else of its last.
        """
        result = trials.TrialResult(
            runs=[record.id for record in self.records],
            seeds=[record.seed for record in self.records],
            seed_values=self.values,
            reason=reason,
            reused=bool(self.records) and not self.executed,
            label=describe_values(self.config),
            seconds=time.perf_counter() - self.started,
        )
        if self.records:
            unfinished = [record for record in self.records if record.status != "finished"]
            telling = [*unfinished, self.records[-1]][0]
            result.status = telling.status
            result.reason = reason or telling.reason
        result.write(self.trial)

        if state == TrialState.COMPLETE:
            value = fmean(self.values)
        else:
            value = None
        with calling(f'sampler "{self.study.sampler}"'):  # learns how its trial ended
            self.stored.tell(self.trial, value, state=state)
        self.has_ended = True


def plan_first_trial(study: Study, space: Space) -> Plan:
    """Return the plan of the first trial.

    Raises:
        InputError: as `plan_trial`: the study cannot begin.
    """
    first = {**space.first_point(), **plan_trials(study, space)[0]}
    return plan_trial(study, first)


def content_of(plan: Plan) -> dict[str, Any]:
    """Return what decides the scores of a study's trials and is not in its definition: the content
    of what that names, and the versions of the code.
    """
    job = plan.jobs[0]
    spec = job.spec
    content: dict[str, Any] = {
        f"the code of {spec.method}": spec.version,
        "the numerical code": spec.numerics,
        "the base model": spec.model,
        "the training text": (spec.corpus or {}).get("sha256"),
        "the dev set": (spec.dev or {}).get("sha256"),
    }
    for name, digest in spec.inputs.items():
        content[name] = digest
    for file in job.files:
        content[file.key] = file.sha256
    for task, code in job.scoring.items():
        content[f"the code of {task}"] = code.version
    return content


def plan_trial(study: Study, values: Mapping[str, Any]) -> Plan:
    """Return the plan of a trial with these values.

    Raises:
        InputError: a configuration, text, dev set, model or objective that cannot work.
    """
    where = f'study "{study.name}"'
    plan = make_plan(study.experiment(values, describe_values(values)), where, starts=False)
    names = [task.name for task in plan.tasks]
    if study.objective == DEV and plan.dev is None:
        raise InputError(
            f'method "{study.method}" has no dev score',
            file=where,
            key="objective",
            remedy="name a task and its suite",
        )
    if study.objective != DEV and not split_objective(study.objective, names):
        message = f'no task of "{study.objective}" in suites; there are: {", ".join(names)}'
        raise InputError(message, file=where, key="objective")
    return plan


def describe_values(values: Mapping[str, Any]) -> str:
    """Return a configuration as the name of a row."""
    parts = []
    for key, value in values.items():
        if isinstance(value, float):
            text = f"{value:.4g}"
        else:
            text = str(value)
        parts.append(f"{key}={text}")
    return ", ".join(parts) or "default"


def split_objective(objective: str, tasks: Iterable[str]) -> tuple[str, str, str] | None:
    """Return task, metric and aggregation of an objective; None where it names none of the tasks.

    The name of a task may hold ":" itself.
    """
    matches = [task for task in tasks if f"{objective}:".startswith(f"{task}:")]
    if not matches:
        return None
    task = max(matches, key=len)
    rest = objective.removeprefix(task).split(":")[1:]
    metric = rest[0] if rest else "spearman"
    if len(rest) > 1:
        aggregation = rest[1]
    else:
        aggregation = "all"
    return task, metric, aggregation


def dev_scores(record: Record, workdir: Path) -> list[tuple[int, float]]:
    """Return step and score of each evaluation on the dev set."""
    lines = RunFolder(workdir, record.id).curves()
    return [(line["step"], line["spearman"]) for line in lines if line["kind"] == "dev"]


def objective_value(record: Record, study: Study, workdir: Path) -> float:
    """Return the objective of one run. A dev score is the best one of a finished run, of a
    collapsed one what it fell to, and 0 of a diverged one, which has no model to score.

    Raises:
        InputError: the record lacks the score that is the objective.
    """
    value: float | None
    if study.objective == DEV and record.status == "finished":
        value = record.training.get("best_dev")
    elif study.objective == DEV:
        value = _fallen_dev(record)
    else:
        tasks = [*(score.task for score in record.scores), *record.missing]
        parts = split_objective(study.objective, tasks)
        if parts:
            value = _find_score(record, study.objective, *parts)
        else:
            value = None

    if value is None or not math.isfinite(value):
        message = f'the run has no score "{study.objective}" ({record.status} {record.reason})'
        raise InputError(message, key="objective")
    return float(value)


def _fallen_dev(record: Record) -> float:
    """Return the dev score that ended a collapsed run; 0 of a diverged one."""
    if record.status == "collapsed":
        score = (record.training.get("final") or {}).get("spearman")
        if score is not None and math.isfinite(score):
            return float(score)
    return 0.0


def _find_score(
    record: Record,
    objective: str,
    task: str,
    metric: str,
    aggregation: str,
) -> float | None:
    """Return a score of a task; where the objective leaves out the metric, or its aggregation, and
    the usual one is none of the task's, its first score that fits.
    """
    value = record.score(task, metric, aggregation)
    stated = objective.removeprefix(task).count(":")
    if value is not None or stated == 2:
        return value
    for score in record.scores:
        fits = stated == 0 or score.metric == metric
        if (score.task, score.split) == (task, "test") and fits:
            return score.value
    return None
