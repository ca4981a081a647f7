"""The one loop of comparisons and studies: jobs that a proposer wants are reused, or executed,
until it wants none.
"""

from __future__ import annotations

import time
from collections import Counter, deque
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import AbstractContextManager, closing, nullcontext
from dataclasses import replace
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Protocol

from harness.errors import HarnessError, RunError, StopRequested, TrainingStopped
from harness.executors.executor import LEAVE, TICK, Executor, JobResult
from harness.files.atomic import write_atomic
from harness.files.exits import calling
from harness.files.links import real_path
from harness.files.reading import read_text
from harness.results.record import Record
from harness.results.store import RunFolder
from harness.runs.due import find_finished
from harness.runs.execute import execute, record_failure
from harness.runs.plan import Job
from harness.runs.progress import Progress

_MOST_STOPS = 50  # of a run: more are no other comparison's, but an executor that returns nothing


class Proposer(Protocol):
    """What wants runs: the grid of a comparison, more seeds, an Optuna study."""

    def propose(self, room: int) -> Sequence[Job]:
        """Jobs to start now, of which `room` more can run at once; called again whenever a job has
        ended.
        """

    def finish(self, job: Job, record: Record, *, reused: bool) -> None:
        """A job has its record; `reused` where an earlier call had made it."""

    def prune(self, job: Job, step: int, score: float) -> str:
        """Why a run is to be stopped after a dev score; empty to let it go on."""


class Runner:
    """Executes jobs with an executor; `progress` shows them, and knows whether a stop was
    requested.
    """

    def __init__(self, workdir: Path, executor: Executor, progress: Progress) -> None:
        self.workdir = workdir
        self.executor = executor
        self.progress = progress
        self.queue: deque[Job] = deque()
        self.waiting: dict[
            str, list[Job]
        ] = {}  # run id -> jobs that wait for it: two rows may share a run
        self._pruned: set[str] = set()
        self._stops: Counter[str] = Counter()  # run id -> how often it came back without a record
        self._ticked = 0.0

    def run(self, proposer: Proposer) -> None:
        """Execute jobs until the proposer wants none.

        Raises:
            InputError: the executor cannot be used. OSError: the disk is full or fails.
            RunError: a stop was requested; runs have checkpoints.
        """
        self.proposer = proposer
        function: Callable[[Job], Record | None] = self._run_here
        if self.executor.parallel:
            function = partial(run_job, workdir=real_path(self.workdir))
        with self.progress:
            self._room = self._ask_room()
            self._fill()
            while self.queue:
                answers = 0
                with closing(self._answers(function)) as given:
                    for answer in given:
                        answers += 1
                        self._take(answer)
                        self._fill()
                if not answers and not self.progress.stopping:
                    raise self._executor_fault("gave no answer")
            if self.progress.stopping:
                raise StopRequested
            if self.waiting:
                raise self._executor_fault(f"gave no answer for {len(self.waiting)} runs")

    def _calling(self) -> AbstractContextManager[None]:
        """Name an executor of another package that fails; errors of ours are no fault of it."""
        if type(self.executor).__module__.startswith("harness."):
            return nullcontext()
        return calling(f'executor "{self.executor.name}"')

    def _executor_fault(self, what: str) -> RunError:
        return RunError(
            f'executor "{self.executor.name}" {what}; finished runs are saved: give the same command '
            "again, with another executor"
        )

    def _ask_room(self) -> int:
        with self._calling():
            room = self.executor.room()
        if not isinstance(room, int) or room < 1:
            raise self._executor_fault(f"has room for {room!r:.40} runs; expected a number from 1")
        return room

    def _answers(self, function: Callable[[Job], Record | None]) -> Generator[JobResult]:
        """Yield what the executor answers, if it is an answer to a job that waits."""
        with self._calling():
            answered = self.executor.run(function, self.queue, self._tick)
            answers = iter(answered)
        with closing(answers) if isinstance(answers, Generator) else nullcontext():
            while (answer := self._next_answer(answers)) is not None:
                yield answer

    def _next_answer(self, answers: Iterator[JobResult]) -> JobResult | None:
        with self._calling():
            answer = next(answers, None)
        if answer is None:
            return None
        job = getattr(answer, "job", None)
        is_waited_for = getattr(job, "id", None) in self.waiting
        if not isinstance(answer, JobResult) or not is_waited_for:
            raise self._executor_fault(
                f"answered {answer!r:.60}; expected a JobResult of one of its jobs"
            )
        if not isinstance(answer.value, Record | None):
            raise self._executor_fault(f"answered {answer.value!r:.60}; expected a record")
        return answer

    def _fill(self) -> None:
        """Queue what the proposer wants; runs that are finished already are reported at once."""
        while not self.progress.stopping:
            free = max(0, self._room - len(self.waiting))
            jobs = self.proposer.propose(free)
            if not jobs:
                return
            new: dict[str, list[Job]] = {}
            for job in jobs:
                same = self.waiting.get(job.id) or new.get(job.id)
                if same is not None:
                    same.append(job)
                elif (record := find_finished(job, self.workdir)) is not None:
                    RunFolder(self.workdir, job.id).tidy()
                    self.proposer.finish(job, record, reused=True)
                else:
                    RunFolder(self.workdir, job.id).refuse_links()
                    new[job.id] = [job]
            started = [_join(same) for same in new.values()]
            if self.executor.parallel:
                # The most sentences first, so that the longest run does not start when the others
                # end.
                started.sort(
                    key=lambda job: job.steps * job.spec.config.get("batch_size", 1), reverse=True
                )
                self._remove_stop_requests(started)
            for job in started:
                self.waiting[job.id] = new[job.id]
            self.queue.extend(started)

    def _remove_stop_requests(self, jobs: Sequence[Job]) -> None:
        """Remove the stop requests that earlier calls have left."""
        for job in jobs:
            RunFolder(self.workdir, job.id).stop_file.unlink(missing_ok=True)

    def _run_here(self, job: Job) -> Record | None:
        """A job in this process."""
        if self.progress.stopping:
            return None
        self.progress.start(job.label, job.id)

        def on_dev(step: int, score: float) -> None:
            run = self.progress.runs[job.label]
            run.dev.append((step, score))
            if reason := self.proposer.prune(job, step, score):
                raise TrainingStopped("pruned", reason)

        show = partial(self.progress.step, job.label)
        try:
            return execute(
                job,
                self.workdir,
                progress=show,
                on_dev=on_dev,
                stop=lambda: self.progress.stopping,
            )
        except StopRequested:
            return None

    def _tick(self) -> None:
        """About once a second while other processes work: progress, pruning, a request to stop."""
        if time.monotonic() - self._ticked < TICK:
            return
        self._ticked = time.monotonic()
        # jobs start in this order
        first = dict(islice(self.waiting.items(), 2 * self._room + 10))
        states = []
        for run, (job, *_) in first.items():
            states.append((job.label, run, job.steps))
        self.progress.update(states)
        if self.progress.stopping:
            self.queue.clear()
            for folder in (RunFolder(self.workdir, run) for run in self.waiting):
                if folder.path.exists():
                    folder.stop_file.touch()
            return
        for run, (job, *_) in first.items():
            for step, score in self.progress.runs[job.label].dev:
                if run in self._pruned:
                    break
                if reason := self.proposer.prune(job, step, score):
                    self._pruned.add(run)
                    # Whole at once: a worker takes an empty request for that of a stop.
                    write_atomic(RunFolder(self.workdir, run).stop_file, reason, durable=False)

    def _take(self, answer: JobResult) -> None:
        """Give the record of an answer to the jobs that wait for it."""
        job: Job = answer.job
        jobs = self.waiting.pop(job.id)
        if self.executor.parallel:
            RunFolder(self.workdir, job.id).stop_file.unlink(missing_ok=True)
        if answer.error is not None and not isinstance(answer.error, HarnessError):
            raise answer.error
        record: Record | None = answer.value
        if answer.error is not None or answer.lost:
            why = answer.lost or str(answer.error)
            record = record_failure(job, self.workdir, why)
        if record is None:  # stopped at a checkpoint
            if not self.progress.stopping:  # by another comparison of the work directory
                self._stops[job.id] += 1
                if self._stops[job.id] > _MOST_STOPS:
                    raise self._executor_fault(f"answered {_MOST_STOPS} times without a record")
                self._run_again(job, jobs)
            return
        unscored = []  # on all of their tasks: they came while the run was under way
        for one in jobs:
            if record.status == "finished" and not set(one.tasks) <= set(job.tasks):
                unscored.append(one)
            else:
                self.proposer.finish(one, record, reused=False)
        if unscored:
            self._run_again(_join(unscored), unscored)

    def _run_again(self, job: Job, jobs: list[Job]) -> None:
        """Queue a job that has ended, for the jobs that wait for a record of it."""
        self.waiting[job.id] = jobs
        self.queue.append(job)


def _join(jobs: Sequence[Job]) -> Job:
    """Return one job for rows that share a run, which are scored on different tasks in a file with
    blocks.
    """
    first, *others = jobs
    tasks = dict.fromkeys(first.tasks)
    files = {file.key: file for file in first.files}
    scoring = dict(first.scoring)
    for job in others:
        tasks |= dict.fromkeys(job.tasks)
        files |= {file.key: file for file in job.files}
        scoring |= job.scoring
    return replace(first, tasks=tuple(tasks), files=tuple(files.values()), scoring=scoring)


def run_job(job: Job, workdir: Path) -> Record | None:
    """Execute a job in a worker; None where the run was stopped at a checkpoint.

    The coordinator stops it with an empty file `runs/ID/stop`, and prunes it with a file that has
    the reason.

    Raises:
        StopRequested: the worker is about to be taken away; a checkpoint is written.
    """
    file = RunFolder(workdir, job.id).stop_file
    checked = 0.0

    def stop() -> bool:
        nonlocal checked
        if time.monotonic() - checked >= TICK:
            if file.exists():
                if reason := read_text(file):
                    raise TrainingStopped("pruned", reason)
                return True
            checked = time.monotonic()
        return LEAVE.is_set()

    try:
        return execute(job, workdir, stop=stop)
    except StopRequested:
        if LEAVE.is_set():  # nobody requested the comparison to stop
            raise
        return None
