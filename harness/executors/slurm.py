"""SLURM, by the package submitit: one job a cell; one that is preempted or runs out of time is
queued again.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import time
from collections import deque
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from harness.config import drop_unset
from harness.errors import InputError, RunError, StopRequested
from harness.executors.executor import LEAVE, TICK, Executor, JobResult, use_threads
from harness.files.links import real_path

_RULE = "-" * 22  # above and below a traceback in an error of submitit
_SECONDS = 60  # for which `sbatch --test-only` is waited for
_ARRAY = 1000  # jobs of an array: SLURM refuses more, unless its administrator has allowed it


class Slurm(Executor):
    """Jobs of `sbatch`; `slurm` holds its options (partition, account, time, qos, ...).

    A preemption or the time limit arrives as a signal: the job is queued again, and its run resumes
    from its checkpoint. Jobs and answers are files of the work directory, on a disk that all nodes
    share.
    """

    name = "slurm"
    cluster = "slurm"
    local = False

    def run(
        self,
        function: Callable[[Any], Any],
        queue: deque[Any],
        tick: Callable[[], None],
    ) -> Iterator[JobResult]:
        """As `Executor.run`."""
        submitit = _import_submitit()
        threads = self._threads
        workers = self.settings.workers
        executor = self._submitter(submitit, threads)
        # Job of submitit -> ours, and how often it was tried.
        waiting: dict[Any, tuple[Any, int]] = {}
        try:
            while queue or waiting:
                if workers and waiting:
                    room = workers - len(waiting)
                else:
                    room = _ARRAY
                count = min(len(queue), room)
                jobs = [queue.popleft() for _ in range(count)]
                waiting |= _submit(executor, [Queued(threads, function, job) for job in jobs])
                done = [submitted for submitted in waiting if submitted.done()]
                for submitted in done:
                    job, tries = waiting.pop(submitted)
                    answer = _answer(submitit, submitted, job)
                    if answer.lost and tries < self.settings.retries:
                        again = executor.submit(Queued(threads, function, job))
                        waiting[again] = (job, tries + 1)
                    else:
                        yield answer
                tick()
                if not done:
                    time.sleep(TICK)
        finally:
            for submitted in waiting:
                submitted.cancel(check=False)

    @property
    def _folder(self) -> Path:
        """Where submitit stores what jobs read and print."""
        return Path(real_path(self.workdir)) / "slurm" / "%j"

    def make_script(self, count: int) -> str:
        """Return the script of an array of so many jobs, as submitit gives it to `sbatch`; nothing is
        submitted, and neither SLURM nor a work directory is needed.

        Raises:
            InputError: submitit is not installed, or an option is wrong.
        """
        with TemporaryDirectory() as name:
            folder = Path(name)
            caught = folder / "script"
            for command in ("sbatch", "srun"):
                stand_in = folder / command
                copies = f"#!/bin/sh\ncp \"$1\" '{caught}'\necho Submitted batch job 1\n"
                stand_in.write_text(copies)
                stand_in.chmod(0o700)
            path = os.environ.get("PATH", "")
            os.environ["PATH"] = f"{folder}{os.pathsep}{path}"
            try:
                executor = self._submitter(_import_submitit(), self._threads, folder / "%j")
                _submit(executor, [Queued(self._threads, print, None) for _ in range(count)])
            finally:
                os.environ["PATH"] = path
            return caught.read_text("utf-8").replace(str(folder / "%j"), str(self._folder))

    def check_script(self, script: str) -> str:
        """Have `sbatch --test-only` check a script; returns what it says, nothing where there is no
        `sbatch`.

        Raises:
            InputError: it refuses the script.
        """
        sbatch = shutil.which("sbatch")
        if sbatch is None:
            return ""
        with TemporaryDirectory() as name:
            file = Path(name) / "script.sh"
            file.write_text(script, "utf-8")
            try:
                done = subprocess.run(
                    [sbatch, "--test-only", str(file)],
                    capture_output=True,
                    text=True,
                    errors="replace",
                    check=False,
                    timeout=_SECONDS,
                )
            except subprocess.TimeoutExpired:
                return f"sbatch --test-only did not answer within {_SECONDS} seconds"
        said = " ".join((done.stderr or done.stdout).split())
        if done.returncode:
            raise InputError(
                f"sbatch --test-only refuses the script: {said:.300}", key="executor slurm"
            )
        return said

    @property
    def _threads(self) -> int:
        return self.settings.cpus_per_run or 4

    def _submitter(self, submitit: Any, threads: int, folder: Path | None = None) -> Any:
        """Return the object of submitit that submits jobs with the options of the settings.

        Raises:
            InputError: SLURM is not here, or an option is wrong.
        """
        try:
            executor = submitit.AutoExecutor(
                folder or self._folder,
                cluster=self.settings.slurm.get("cluster", self.cluster),
                slurm_max_num_timeout=self.settings.retries,
            )
            executor.update_parameters(**self._parameters(threads))
        except (RuntimeError, ValueError, NameError, TypeError) as error:
            message = f"executor slurm: {str(error).splitlines()[0]}"
            raise InputError(message, key="executor slurm") from None
        return executor

    def room(self) -> int:
        """`workers` of the settings; else all of them, and the cluster decides when."""
        return self.settings.workers or 1_000_000

    def _parameters(self, threads: int) -> dict[str, Any]:
        """Return the options of `sbatch` in submitit's words; others are passed on unchanged.

        Raises:
            InputError: a part of a GPU, or a line break: each option is a line of a shell script.
        """
        own = dict(self.settings.slurm)
        own.pop("cluster", None)  # of submitit: "local" runs the jobs on this machine
        gpus = self.settings.gpus_per_run
        for key, value in own.items():
            if _has_line_break(str(key)) or _has_line_break(str(value)):
                raise InputError(
                    "a line break cannot be part of an option of sbatch",
                    key=f"[executor.slurm] {key!r}",
                    remedy="write it in one line",
                )
        if gpus != int(gpus):
            raise InputError(
                f"executor slurm: gpus_per_run = {gpus:g}: SLURM gives whole GPUs",
                key="gpus_per_run",
            )
        parameters = {
            "name": "harness",
            "timeout_min": _minutes(own.pop("time", "4:00:00")),
            "cpus_per_task": threads,
            "tasks_per_node": 1,
            "gpus_per_node": int(gpus) or None,
            "mem_gb": self.settings.memory_per_run,
            "slurm_array_parallelism": self.settings.workers,
            "slurm_partition": own.pop("partition", None),
            "slurm_additional_parameters": own or None,
        }
        return drop_unset(parameters)


class Queued:
    """A job as submitit stores it, and queues it again when its time is up or it is preempted.

    At submitit's signal, 90 seconds before the end, the run is requested to write a checkpoint. A
    job that does not leave in time is lost, and submitted again like one of a node that failed.
    """

    def __init__(self, threads: int, function: Callable[[Any], Any], job: Any) -> None:
        self.threads = threads
        self.function = function
        self.job = job

    def __call__(self) -> Any:
        use_threads(self.threads)
        preempts = os.environ.get("SUBMITIT_PREEMPT_SIGNAL", "USR2")
        number = getattr(signal, f"SIG{preempts}")
        queue_again: Any = signal.signal(number, lambda *_: LEAVE.set())
        try:
            return self.function(self.job)
        except StopRequested:
            queue_again(number, None)  # and end this process
            raise
        finally:
            signal.signal(number, queue_again)

    def checkpoint(self, *_: Any) -> Any:
        """What submitit queues again: the same job, which resumes from its checkpoint."""
        from submitit.helpers import DelayedSubmission

        return DelayedSubmission(self)


def _import_submitit() -> Any:
    """Return the package submitit.

    Raises:
        InputError: it is not installed.
    """
    try:
        import submitit
    except ImportError:
        raise InputError(
            'executor "slurm" needs submitit: pip install "sentence-harness[slurm]"',
            key="executor",
        ) from None
    return submitit


def _answer(submitit: Any, submitted: Any, job: Any) -> JobResult:
    try:
        return JobResult(job, submitted.result())
    except (
        submitit.core.utils.FailedJobError
    ) as error:  # what it raised, as text: the process is gone
        _, _, trace = str(error).partition(_RULE)
        lines = [line for line in trace.partition(_RULE)[0].splitlines() if line.strip()] or [
            "failed"
        ]
        return JobResult(job, error=RunError(lines[-1]))
    except submitit.core.utils.UncompletedJobError as error:
        line = str(error).strip().partition("\n")[0]
        lost = f"its job ended without an answer ({line or submitted.state})"
        return JobResult(job, lost=lost[:300])


def _submit(executor: Any, jobs: list[Queued]) -> dict[Any, tuple[Any, int]]:
    """Submit jobs as one array; return submitit's job -> ours, and how often it was tried."""
    if not jobs:
        return {}
    with executor.batch():
        submitted = [executor.submit(job) for job in jobs]
    return {one: (job.job, 0) for one, job in zip(submitted, jobs, strict=True)}


def _has_line_break(text: str) -> bool:
    """True also for a text that ends with one."""
    return len(f"{text}.".splitlines()) > 1


def _minutes(text: str) -> int:
    """Minutes of "H:MM:SS" or "D-H:MM:SS".

    Raises:
        InputError: it is neither.
    """
    match = re.fullmatch(r"(?:(\d+)-)?(\d+):(\d\d):\d\d", text)
    if match:
        days, hours, minutes = (int(part or 0) for part in match.groups())
    else:
        days = 0
        hours = 0
        minutes = 0
    total = (24 * days + hours) * 60 + minutes
    if not total:
        raise InputError(
            f'executor slurm: time = "{text}": expected H:MM:SS or D-H:MM:SS', key="time"
        )
    return total
