"""A job in a worker process that sees the work directory."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

from harness.errors import StopRequested, TrainingStopped
from harness.executors.executor import leave_requested
from harness.results.record import Record
from harness.results.store import RunFolder
from harness.runs.execute import execute
from harness.runs.plan import Job

_INTERVAL = 1.0  # seconds between two checks for a request to stop


def run_job(job: Job, workdir: Path) -> Record | None:
    """Execute a job in a worker; None where the run was stopped at a checkpoint.

    Raises:
        StopRequested: the worker is about to be taken away; a checkpoint is written.
    """
    try:
        return execute(job, workdir, stop=watch_stop_file(job, workdir))
    except StopRequested:
        if leave_requested():  # nobody requested the comparison to stop
            raise
        return None


def watch_stop_file(job: Job, workdir: Path) -> Callable[[], bool]:
    """The `stop` of a fit in a worker: has the coordinator written `runs/ID/stop`?

    An empty file stops the run at a checkpoint; one with a reason prunes it.
    """
    file, last, found = RunFolder(workdir, job.id).stop_file, 0.0, False

    def stop() -> bool:
        nonlocal last, found
        if not found and time.monotonic() - last >= _INTERVAL:
            last, found = time.monotonic(), file.exists()
        if found and (reason := file.read_text("utf-8")):
            raise TrainingStopped("pruned", reason)
        return found or leave_requested()

    return stop
