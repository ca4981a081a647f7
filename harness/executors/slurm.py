"""SLURM, by the package submitit: one job a cell; one that is preempted or runs out of time is queued again."""

from __future__ import annotations

import os
import shutil
import signal
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from harness.errors import InputError, RunError, StopRequested
from harness.executors.executor import (
    TICK,
    Answer,
    Executor,
    leave_requested,
    limit_rate,
    request_leave,
    use_threads,
)

_RULE = "-" * 22  # what submitit sets a traceback between
_ARRAY = 1000  # jobs: more in one array SLURM refuses, unless its administrator has allowed it
MINUTES = 240  # of a job, where `slurm.time` says nothing
GRACE = 45  # seconds for a checkpoint; submitit has SLURM send the signal 90 seconds before the end


class Slurm(Executor):
    """Jobs of `sbatch`; `slurm` holds its options (partition, account, time, qos, ...).

    A preemption or the time limit arrives as a signal: the job is queued again, and its run goes on from its
    checkpoint. Jobs and answers are files of the work directory, on a disk that all nodes share.
    """

    name = "slurm"
    cluster = "slurm"
    local = False

    def run(self, function: Callable[[Any], Any], queue: deque[Any], tick: Callable[[], None]) -> Iterator[Answer]:
        """As `Executor.run`."""
        try:
            import submitit
        except ImportError:
            raise InputError('executor "slurm" needs submitit: pip install "sentence-harness[slurm]"') from None
        if not queue:
            return
        threads = self.settings.cpus_per_cell or 4
        root = self.workdir.resolve() / "slurm"
        try:
            executor = submitit.AutoExecutor(
                root / "%j",
                cluster=self.cluster,
                slurm_max_num_timeout=self.settings.retries,
            )
            executor.update_parameters(**self._parameters(threads))
        except (RuntimeError, ValueError, NameError, TypeError) as error:
            raise InputError(f"executor slurm: {str(error).splitlines()[0]}") from None
        waiting: dict[Any, tuple[Any, int]] = {}
        ticks = limit_rate(tick)
        well: dict[Path, bool] = {}  # the folder of each array: has all of it gone well?
        try:
            while queue or waiting:
                if queue and (count := self._next(len(queue), len(waiting))):
                    jobs = [queue.popleft() for _ in range(count)]
                    with executor.batch():  # one array of jobs
                        array = [executor.submit(Queued(threads, function, job)) for job in jobs]
                    waiting |= {submitted: (job, 0) for submitted, job in zip(array, jobs, strict=True)}
                done = [submitted for submitted in waiting if submitted.done()]
                for submitted in done:
                    job, tries = waiting.pop(submitted)
                    answer = _answer(submitit, submitted, job)
                    folder = submitted.paths.folder
                    well[folder] = well.get(folder, True) and not (answer.lost or answer.error)
                    if answer.lost and tries < self.settings.retries:
                        waiting[executor.submit(Queued(threads, function, job))] = (job, tries + 1)
                    else:
                        yield answer
                ticks()
                if not done:
                    time.sleep(TICK)
            _sweep([folder for folder, whole in well.items() if whole], root)
        finally:
            for submitted in waiting:
                submitted.cancel(check=False)

    def room(self, jobs: int) -> int:
        """`workers` of the settings; else all of them, and the cluster decides when."""
        return min(jobs, self.settings.workers or jobs)

    def _next(self, jobs: int, waiting: int) -> int:
        """How many of so many jobs are queued next: an array of them, then as many as others have ended."""
        workers = self.settings.workers
        return min(jobs, _ARRAY if not (workers and waiting) else max(0, workers - waiting))

    def _parameters(self, threads: int) -> dict[str, Any]:
        """Of `sbatch`, in submitit's words; what it has no word for goes there as it is."""
        own = dict(self.settings.slurm)
        minutes = _minutes(own.pop("time", "")) or MINUTES
        gpus = self.settings.gpus_per_cell
        if gpus != int(gpus):
            raise InputError(f"executor slurm: gpus_per_cell = {gpus:g}: SLURM gives whole GPUs")
        parameters: dict[str, Any] = {
            "name": "harness",
            "timeout_min": minutes,
            "cpus_per_task": threads,
            "tasks_per_node": 1,
            **({"gpus_per_node": int(gpus)} if gpus else {}),
            **({"mem_gb": self.settings.memory_per_cell} if self.settings.memory_per_cell else {}),
            **({"slurm_array_parallelism": self.settings.workers} if self.settings.workers else {}),
        }
        if partition := own.pop("partition", ""):
            parameters["slurm_partition"] = partition
        if own:
            parameters["slurm_additional_parameters"] = own
        return parameters


class Queued:
    """A job as submitit keeps it, and queues it again when its time is up or another job takes its place.

    At submitit's signal the job is requested to leave, and has a while to write its checkpoint.
    """

    def __init__(self, threads: int, function: Callable[[Any], Any], job: Any) -> None:
        self.threads, self.function, self.job = threads, function, job

    def __call__(self) -> Any:
        use_threads(self.threads)
        request_leave(False)
        number = getattr(signal, f"SIG{os.environ.get('SUBMITIT_PREEMPT_SIGNAL', 'USR2')}")
        queue_again = signal.getsignal(number)
        if not callable(queue_again):  # submitit has not started this process
            return self.function(self.job)

        def leave(*_: Any) -> None:
            if not leave_requested():
                signal.signal(signal.SIGALRM, queue_again)
                signal.alarm(GRACE)
            request_leave()

        signal.signal(number, leave)
        try:
            return self.function(self.job)
        except StopRequested:
            if leave_requested():
                queue_again(number, None)  # and end this process
            raise
        finally:
            signal.alarm(0)
            signal.signal(number, queue_again)

    def checkpoint(self, *_: Any) -> Any:
        """What submitit queues again: the same, which goes on where this one stops."""
        from submitit.helpers import DelayedSubmission

        return DelayedSubmission(self)

    __submitit_checkpoint__ = checkpoint  # the name that older versions look for


def _sweep(folders: Iterable[Path], root: Path) -> None:
    """Remove what SLURM and submitit keep of jobs that have all gone well: some files of each."""
    for folder in folders:
        shutil.rmtree(folder, ignore_errors=True)
    for empty in (root / "%j", root):
        with suppress(OSError):  # others have left something there
            empty.rmdir()


def _answer(submitit: Any, submitted: Any, job: Any) -> Answer:
    try:
        return Answer(job, submitted.result())
    except submitit.core.utils.FailedJobError as error:  # what it raised, as text: the process is gone
        _, _, trace = str(error).partition(_RULE)
        lines = [line for line in trace.partition(_RULE)[0].splitlines() if line.strip()] or ["failed"]
        return Answer(job, error=RunError(lines[-1]))
    except submitit.core.utils.UncompletedJobError as error:
        lines = [line for line in str(error).splitlines() if line.strip()]
        return Answer(job, lost=f"its job ended without an answer ({lines[0] if lines else submitted.state})"[:300])


def _minutes(text: str) -> int:
    """Minutes of sbatch's spellings: M, M:S, H:M:S, D-H, D-H:M, D-H:M:S; 0 for none.

    Raises:
        InputError: it is none of them.
    """
    if not text:
        return 0
    days, dash, rest = text.rpartition("-")
    try:
        parts = [int(part) for part in rest.split(":")]
        if dash or len(parts) == 3:
            hours, minutes, seconds = [*parts, 0, 0][: max(3, len(parts))]
        else:
            hours, (minutes, seconds) = 0, [*parts, 0][: max(2, len(parts))]
        total = (int(days if dash else 0) * 24 + hours) * 60 + minutes + (seconds > 0)
    except ValueError:
        total = 0
    if total < 1:
        raise InputError(f'executor slurm: time = "{text}": expected M, M:S, H:M:S, D-H, D-H:M or D-H:M:S')
    return total
