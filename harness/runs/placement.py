"""How many runs share a machine or a GPU, where the experiment does not say: by the memory that a
first training step takes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from harness.errors import HarnessError, RunError
from harness.executors.executor import ExecutorSettings
from harness.files.hashing import content_id
from harness.machine.environment import (
    device_name,
    peak_memory_bytes,
    reset_peak_memory,
    usable_cores,
)
from harness.machine.memory import ADVICE, free_bytes, is_out_of_memory, runs_beside
from harness.machine.new_process import start_process
from harness.results.measurements import measure_once
from harness.runs.inputs import load_text
from harness.runs.plan import Job, Plan
from harness.runs.rows import Row
from harness.runs.typical_costs import read_shape

_GIB = 2**30
_LIBRARIES = 2 * _GIB  # a process with torch, its libraries and a small model takes about one
_ROUGH = 4  # times the size of a run by the arithmetic of `_size` is more than it takes


@dataclass(frozen=True)
class Placement:
    """The executor of a plan, with the number of runs at a time, and a line that says why."""

    executor: ExecutorSettings
    line: str = ""


def place_runs(plan: Plan, workdir: Path) -> Placement:
    """Find how many runs the memory holds, where neither `workers` nor `gpus_per_run` is given.

    Where runs on all cores surely fit, nothing is measured. Else the largest row takes its first
    steps in a process of its own; its peak is stored in the work directory. The script of a row of
    `command` is not run for that.
    """
    settings = plan.experiment.executor
    jobs = [job for job in plan.jobs if not job.spec.missing and job.spec.method != "command"]
    is_open = not settings.workers and not settings.gpus_per_run
    if settings.name != "processes" or not is_open or len(jobs) < 2:
        return Placement(settings)
    largest = max(jobs, key=lambda job: _size(plan, job))
    if plan.device == "cpu" and _fits_easily(_size(plan, largest)):
        return Placement(settings)
    row = plan.row_of(largest)
    steps = max(job.steps for job in jobs)
    about = {
        "row": row.key,
        "text": (largest.spec.corpus or {}).get("sha256"),
        "precision": plan.experiment.precision,
        "device": device_name(plan.device),
    }
    try:
        found = measure_once(
            workdir, "memory", content_id(about), lambda: measure_memory(row, steps, plan)
        )
    except MemoryError as error:
        one = settings.model_copy(update={"workers": 1})
        return Placement(one, f"one run at a time: {error}")
    except HarnessError:  # what fails here fails as a run too, with its reason
        return Placement(settings)
    return choose(settings, plan.device, found["peak"])


def choose(settings: ExecutorSettings, device: str, peak: float) -> Placement:
    """Return settings under which as many runs share the memory as it holds.

    >>> choose(ExecutorSettings(name="processes"), "cpu", 2.0**60).executor.workers
    1
    """
    free = free_bytes(device)
    count = runs_beside(peak, free)
    what = f"a run takes about {peak / _GIB:.1f} of {free / _GIB:.1f} GiB of memory"
    if device.startswith("cuda"):
        share = 1 / count
        placed = settings.model_copy(update={"gpus_per_run": share})
        return Placement(placed, f"{what}: {count} runs at a time on each GPU")
    workers = min(count, usable_cores() // (settings.cpus_per_run or 1))
    workers = max(1, workers)
    placed = settings.model_copy(update={"workers": workers})
    return Placement(placed, f"{what}: {workers} at a time")


def _fits_easily(size: float) -> bool:
    most = _LIBRARIES + _ROUGH * size
    return most * usable_cores() < free_bytes("cpu")


def _size(plan: Plan, job: Job) -> float:
    """What the memory of a run grows with: weights and moments of its model, and its batch."""
    row = plan.row_of(job)
    shape = read_shape(row.start_model)
    if shape is None:
        return 0.0
    if job.steps:
        batch = getattr(row.config, "batch_size", 1)
    else:
        batch = 1
    length = min(getattr(row.config, "train_length", 0) or shape.positions, shape.positions)
    return 4.0 * shape.parameters + 34.0 * batch * length * shape.width * shape.depth


def measure_memory(row: Row, steps: int, plan: Plan) -> dict[str, float]:
    """Return the most bytes that the first training steps of a row take, in a process of its own.

    Raises:
        MemoryError: it has too little.
        RunError: it cannot be trained.
    """
    arguments = (row, steps, plan.device, plan.experiment.precision)
    return {"peak": run_apart(_send_peak, *arguments)}


def run_apart(target: Callable[..., None], *arguments: Any) -> float:
    """Return the number that `target(connection, *arguments)` sends from a process of its own.

    Raises:
        MemoryError: the process ended.
        RunError: it sent a text instead, which says what failed.
    """
    process, connection = start_process(target, *arguments)
    try:
        answer = connection.recv()
    except (EOFError, OSError):
        message = f"the process of its first steps ended, most often for want of memory; {ADVICE}"
        raise MemoryError(message) from None
    finally:
        process.kill()
        process.join()
        connection.close()
    if isinstance(answer, str):
        raise RunError(answer)
    return float(answer)


def _send_peak(connection: Connection, row: Row, steps: int, device: str, precision: str) -> None:
    from harness.runs.measure import time_row

    if row.corpus is None:
        corpus = None
    else:
        corpus = load_text(row.corpus)
    reset_peak_memory(device)
    try:
        time_row(row, corpus, steps, device, precision=precision)
    except Exception as error:  # of any library
        if not is_out_of_memory(error):  # else it ends without an answer, as if it were killed
            connection.send(str(error))
        return
    connection.send(float(peak_memory_bytes(device)))
