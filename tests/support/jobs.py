"""What workers of executors do in tests."""

from __future__ import annotations

import io
import os
import signal
import time
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from tqdm import tqdm

from harness.errors import StopRequested
from harness.executors.executor import LEAVE, Executor, JobResult


@dataclass(frozen=True)
class Call:
    """A job that is a function with its arguments."""

    id: str
    function: Callable[..., Any]
    arguments: tuple[Any, ...] = ()
    runs_plugin: bool = False


def call(job: Call) -> Any:
    return job.function(*job.arguments)


def show_bar(steps: int) -> int:
    """Count as many libraries do."""
    return sum(1 for _ in tqdm(range(steps), file=io.StringIO()))


def double(number: int) -> int:
    return 2 * number


def refuse(word: str) -> None:
    raise ValueError(word)


def interrupt() -> None:
    raise KeyboardInterrupt


def die(file: str, times: int) -> str:
    """End the process without a word, the first so many times."""
    path = Path(file)
    tries = len(path.read_text()) if path.exists() else 0
    path.write_text("x" * (tries + 1))
    if tries < times:
        os._exit(7)
    return f"lived after {tries}"


def die_beside_child(file: str) -> None:
    """Leave a process that lives on and holds what this worker held open, and end."""
    child = os.fork()
    if not child:
        time.sleep(600)
    Path(file).write_text(str(child))
    os._exit(7)


def change_process() -> int:
    """Return the id of this process, which is of no use for further runs."""
    from harness.machine import shared_code

    shared_code._PROCESS.change = "a test changed it"
    return os.getpid()


def make_function() -> Callable[[], int]:
    """Return what cannot be pickled."""
    return lambda: 1


def threads() -> tuple[str, int]:
    import torch

    return os.environ["OMP_NUM_THREADS"], torch.get_num_threads()


def wait_with_pid(folder: str) -> None:
    """Write the id of this process, and stay for a minute, as a run whose os._exit is replaced."""
    from harness.machine.process_state import preserve_process_state

    with preserve_process_state():
        (Path(folder) / "pid").write_text(str(os.getpid()))
        time.sleep(60)


def leave_at_signal(number: int) -> None:
    """Send this process a signal, and leave where it requests that."""
    os.kill(os.getpid(), number)
    if LEAVE.is_set():
        raise StopRequested


def checkpoint_every_step() -> None:
    """Runs of this process write a checkpoint after each training step."""
    from harness.runs import execute

    execute.FitContext = partial(execute.FitContext, checkpoint_seconds=0.0)  # type: ignore[misc, assignment]


def run_observed(
    log: str, at: int, number: int, checkpoints: bool, function: Callable[[Any], Any], job: Any
) -> Any:
    """Run a function in whose process each training step adds a line to a file; after the step that
    makes `at` lines the process sends itself signal `number`.

    Args:
        checkpoints: one after each step; otherwise only where one is requested.
    """
    from torch.optim.optimizer import register_optimizer_step_post_hook

    if checkpoints:
        checkpoint_every_step()

    def count(*_: Any) -> None:
        with open(log, "ab") as file:
            file.write(b"%d\n" % os.getpid())
        if len(steps(log)) == at:
            os.kill(os.getpid(), number)

    hook = register_optimizer_step_post_hook(count)
    try:
        return function(job)
    finally:
        hook.remove()


def _run_observed_in_worker(*arguments: Any) -> Any:
    """Do as `run_observed`, in a worker, which cuts the scored pairs as the tests' process does."""
    import pytest

    from tests.support import short_runs

    short_runs.few_pairs(pytest.MonkeyPatch())
    return run_observed(*arguments)


def steps(log: str | Path) -> list[str]:
    """Return the process id of each training step."""
    return Path(log).read_text().splitlines() if Path(log).exists() else []


def observing(
    kind: type[Executor],
    log: Path,
    at: int = 0,
    number: int = signal.SIGKILL,
    checkpoints: bool = True,
) -> type[Executor]:
    """Return a class of executors whose jobs pass through `run_observed`."""

    class Observing(kind):  # type: ignore[valid-type, misc]
        def run(
            self, function: Callable[[Any], Any], queue: deque[Any], tick: Callable[[], None]
        ) -> Iterator[JobResult]:
            job = partial(_run_observed_in_worker, str(log), at, number, checkpoints, function)
            yield from super().run(job, queue, tick)

    return Observing
