"""The coordinator of a study: asks Optuna for trials, has their cells made by an executor, and tells it how they ended.

It alone writes the storage, MLflow and the progress. The truth of a run is its folder in the work directory, so a
coordinator that is killed loses nothing: the next one takes up the trials that were running.
"""

from __future__ import annotations

import shlex
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

from harness.comparison import watched
from harness.comparison.carried import deliver
from harness.comparison.cell import run_cell
from harness.comparison.jobs import CellJob, is_kept, made, stopped_at, with_kept
from harness.comparison.measured_files import measured_texts
from harness.comparison.placement import record_of_answer, settle_precision, token
from harness.comparison.plan import PlannedCell
from harness.errors import StopAsked, TrainingStopped
from harness.executors.executor import Answer, Executor, Job
from harness.live.signs import Sign, forget
from harness.live.state import FAILED, KEPT, Cell, RowScore
from harness.live.watch import Watch
from harness.machine.progress import Reporter
from harness.results.record import Record
from studies.definition.planned import planned_trials
from studies.definition.space import Space
from studies.definition.study import Study
from studies.run.attributes import PROPOSER, SLOT
from studies.run.desk import Desk
from studies.run.kept_models import drop_models
from studies.run.notes import note_reason, note_study
from studies.run.one_coordinator import one_coordinator
from studies.run.slots import forgive, next_trial, take_up
from studies.run.storage import create_or_go_on, open_storage
from studies.run.tracking import Tracking
from studies.run.trial import OpenTrial
from studies.run.trial_result import result_of
from studies.run.trials import best_trials, finished_trials, line_about
from studies.samplers import make_pruner, make_sampler, proposer

if TYPE_CHECKING:
    import optuna

    from harness.tracking.tracker import Tracker

SHOWN = 8  # of the best trials, while it runs


def conduct(
    study: Study,
    space: Space,
    desk: Desk,
    executor: Executor,
    *,
    url: str,
    where: str,
    tracker: Tracker | None,
    force_new: bool,
    quiet: bool,
) -> optuna.Study:
    """Bring a study to its planned number of finished trials.

    Raises:
        InputError: the storage cannot be used, holds another study of that name, or another process runs this one; the
            executor cannot be used.
        RunError: somebody asked it to stop.
    """
    from optuna.trial import TrialState

    storage = open_storage(url)
    with one_coordinator(storage, url, study.name, desk.workdir):
        stored = create_or_go_on(storage, study, desk.workdir, where, force_new=force_new)
        begun = sum(t.state != TrialState.WAITING for t in stored.get_trials(deepcopy=False))
        stored.sampler = make_sampler(study, begun)
        stored.pruner = make_pruner(study, study.steps or 1000)
        tracking = Tracking(desk.workdir, study, tracker)
        if force_new:
            tracking.sent.clear()
        forgive(stored)
        planned = planned_trials(study, space)
        note_study(stored, study, len(planned))
        going_on, left = take_up(stored, planned)
        try:
            if left:
                with Reporter(left, quiet=quiet) as reporter:
                    course = _Course(stored, space, desk, executor, tracking, reporter, len(planned))
                    try:
                        with course.watch, executor, course.told({**space.first_point(), **planned[0]}):
                            course.run(going_on)
                    except StopAsked:
                        raise course.watch.stopped() from None
            for trial in finished_trials(stored):  # those of a coordinator that was killed before it sent them
                tracking.log(trial)
        finally:
            tracking.close()
    return stored


class _Course:
    """The trials that are on their way, and the cells that they wait for."""

    def __init__(
        self,
        stored: optuna.Study,
        space: Space,
        desk: Desk,
        executor: Executor,
        tracking: Tracking,
        reporter: Reporter,
        slots: int,
    ) -> None:
        self.stored, self.space, self.desk, self.study = stored, space, desk, desk.study
        self.executor, self.tracking, self.slots = executor, tracking, slots
        self.waiting: dict[str, list[OpenTrial]] = {}  # cell -> the trials that wait for it: two may ask for one run
        self.queue: deque[Job] = deque()
        self.open = 0
        self.scores: list[RowScore] = []
        self.watch = Watch(
            desk.workdir,
            self.study.name,
            kind="study",
            title=self.study.title,
            executor=executor.name,
            workers=(executor.settings.workers or 1) if executor.elsewhere else 1,
            reporter=reporter,
            scores=lambda: self.scores,
        )

    @contextmanager
    def told(self, some: dict[str, object]) -> Iterator[None]:
        """What all workers have to know is settled while the block lasts; `some` are the values of any trial."""
        if not self.executor.elsewhere:
            yield
            return
        with token(self.desk.workdir, self.study.name) as shared:
            self.common = CellJob(
                "",
                f'study "{self.study.name}"',
                str(self.desk.workdir.resolve()),
                token=shared,
                processes=max(1, int(self.executor.settings.gpus_per_cell)),
                key=self.watch.key,
                watched=self.study.pruner != "none",
                post=self.executor.post,
            )
            plan = self.desk.plan(some)
            if any(cell.row.trained for cell in plan.cells):
                any_cell = replace(self.common, experiment=plan.experiment.model_dump_json(exclude_unset=True))
                settle_precision(plan, self.desk.workdir, replace(any_cell, watched=False), self.executor)
            self.common = replace(self.common, measured=measured_texts(self.desk.workdir))
            yield

    def run(self, going_on: list[optuna.Trial]) -> None:
        """Run `going_on` and then the waiting trials, as many at a time as there is room for.

        Raises:
            StopAsked: somebody asked for it; trials that have not ended stay as they are.
        """
        self.watch.expect([Cell(name, name, self.study.name) for name in self._unfinished()])
        room = self.executor.room(self.slots)
        self._fill(going_on, room)
        for answer in self.executor.run(self.queue, self._look):
            self._took(answer)
            self._fill(going_on, room)
        if self._unfinished():
            raise StopAsked

    def _unfinished(self) -> list[str]:
        """The trials that are still to end."""
        trials = [t for t in self.stored.get_trials(deepcopy=False) if not t.state.is_finished()]
        return [f"trial {t.number}" for t in trials if t.user_attrs.get(SLOT, self.slots) < self.slots]

    def _fill(self, going_on: list[optuna.Trial], room: int) -> None:
        while self.open < room and not self.watch.stop():
            trial = going_on.pop(0) if going_on else next_trial(self.stored, self.slots)
            if trial is None:
                return
            if self.study.sampler == "smac":
                trial.set_user_attr(PROPOSER, proposer(self.stored.sampler))
            self.open += 1
            self._advance(OpenTrial(trial, self.stored, self.space, self.desk))

    def _advance(self, trial: OpenTrial) -> None:
        """Ask for the next cell of a trial, or take leave of it."""
        cell = trial.next_cell()
        if cell is None:
            self._ended(trial)
            return
        same = self.waiting.setdefault(cell.id, [])
        same.append(trial)
        if len(same) == 1:
            self.queue.append(self._job(trial, cell))

    def _job(self, trial: OpenTrial, cell: PlannedCell) -> Job:
        self.watch.at(trial.name, cell.id)
        if not self.executor.elsewhere:
            return Job(cell.id, self._make, (trial, cell))
        assert trial.plan is not None
        watched.forget(self.desk.workdir, cell.id)
        job = replace(
            self.common,
            experiment=trial.plan.experiment.model_dump_json(exclude_unset=True),
            cell=cell.id,
            command=self._command,
            kept=None if is_kept(cell, self.desk.workdir) else b"",
        )
        return Job(cell.id, made, (job,))

    @property
    def _command(self) -> str:
        return shlex.join(["harness", "study", "run", self.study.name, "--workdir", "NEW_FOLDER"])

    def _make(self, trial: OpenTrial, cell: PlannedCell) -> Record:
        """A cell in this process."""
        assert trial.plan is not None
        if self.watch.stop():
            raise StopAsked
        self.watch.start(trial.name)
        with Sign(self.desk.workdir, cell.id) as sign:

            def progress(step: int, steps: int, text: str) -> None:
                self.watch.step(step, steps, text)
                sign.step(step, steps, text)

            def on_dev(step: int, score: float) -> None:
                sign.dev(step, score)
                if reason := trial.why_stop(step, score):
                    raise TrainingStopped("pruned", reason)

            return run_cell(
                cell,
                trial.plan,
                self.desk.workdir,
                command=self._command,
                progress=progress,
                on_dev=on_dev,
                stop=self.watch.stop,
            )

    def _took(self, answer: Answer) -> None:
        """Give a cell's record to the trials that wait for it."""
        workdir, key = self.desk.workdir, answer.job.key
        if self.executor.elsewhere and answer.value is not None:
            if answer.value.stopped:
                forget(workdir, key)
                stopped_at(answer.value, workdir, key)
                return  # the trial stays as it is; the next call takes it up
            if answer.value.lacks_kept:
                (job,) = answer.job.arguments
                self.queue.append(replace(answer.job, arguments=(with_kept(job, workdir),)))
                return
        trials = self.waiting.pop(key)
        record = self._record(answer, trials[0])
        for trial in trials:
            trial.took(record, made=trial is trials[0])
            self._advance(trial)

    def _record(self, answer: Answer, trial: OpenTrial) -> Record:
        if isinstance(answer.error, watched.CannotWatch):
            raise answer.error
        if not self.executor.elsewhere:
            if answer.error is not None:
                raise answer.error
            record: Record = answer.value
            return record
        assert trial.plan is not None
        cell = next(cell for cell in trial.plan.cells if cell.id == answer.job.key)
        record = record_of_answer(answer, cell, trial.plan, self.desk.workdir, self._command)
        forget(self.desk.workdir, cell.id)
        watched.forget(self.desk.workdir, cell.id)
        return record

    def _ended(self, trial: OpenTrial) -> None:
        self.open -= 1
        if self.study.keep_models == "best":
            drop_models(self.stored, self.study, self.desk.workdir)
        told = self.stored.get_trials(deepcopy=False)[trial.trial.number]
        result = result_of(told)
        note_reason(trial.trial, result.reason)
        self.scores = [
            RowScore(f"trial {t.number}: {result_of(t).label}", "", name, len(result_of(t).seeds), 100 * value)
            for t in best_trials(self.stored)[:SHOWN]
            for name, value in zip(self.study.objective_names, t.values, strict=True)
        ]
        ended = FAILED if told.state.name == "FAIL" else KEPT if result.answered else result.status
        seconds = None if result.answered else result.seconds.whole
        self.watch.done(
            trial.name, ended, line_about(told), reason=result.reason, seconds=seconds, training=result.seconds.training
        )
        self.tracking.log(told)

    def _look(self) -> None:
        """Show what the workers are at, and give up what the pruner has seen enough of."""
        deliver(self.executor.post, self.desk.workdir, self.waiting)
        self.watch.tick()
        for cell, trials in self.waiting.items() if self.study.pruner != "none" else ():
            for step, score in watched.scores(self.desk.workdir, cell):
                if reason := trials[0].why_stop(step, score):
                    watched.give_up(self.desk.workdir, cell, reason)
