"""The interface of executors: every job gets an answer, whichever process ran it or died during it."""

from __future__ import annotations

import os
import sys
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from threading import Event
from typing import Any, ClassVar

from pydantic import field_validator

from harness import registry
from harness.config import Config, option
from harness.errors import InputError
from harness.files.exits import calling
from harness.files.model_names import OBJECT
from harness.machine.environment import usable_cores

# of the libraries that compute in a worker
THREADS = (
    "OMP_NUM_THREADS",
    "MKL_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
)
TICK = 1.0  # seconds for which an executor waits at most between two calls of `tick`

LEAVE = Event()  # this worker is about to be taken away: its job has to write a checkpoint and end


class ExecutorSettings(Config):
    """The table [executor] of an experiment file, and the options of the same names.

    >>> ExecutorSettings(name="slurm", gpus_per_run=1, slurm={"partition": "gpu"}).slurm
    {'partition': 'gpu'}
    """

    name: str = option("serial", "serial, processes, ray, slurm or one of another package")
    workers: int | None = option(
        None, "runs at a time; default: as many as cores or GPUs allow", ge=1
    )
    cpus_per_run: int | None = option(
        None, "cores of a run; default: this machine's, shared among the workers", ge=1
    )
    gpus_per_run: float = option(0.0, "1, or the part of a GPU that a run takes", ge=0, le=1)
    memory_per_run: float | None = option(
        None, "GiB of a run, for engines that place jobs by it", gt=0
    )
    retries: int = option(3, "how often a run whose worker died is given to another worker", ge=0)
    address: str = option(
        "", "ray: address of the cluster, such as auto or ray://HOST:10001; default: this machine"
    )
    slurm: dict[str, str] = option(
        {}, "slurm: options of sbatch, as {partition = 'gpu', time = '4:00:00'}"
    )

    @field_validator("slurm", mode="before")
    @classmethod
    def _texts(cls, value: Any) -> Any:
        if isinstance(value, dict):
            return {key: str(one) for key, one in value.items()}
        return value


@dataclass(frozen=True)
class JobResult:
    """How a job ended.

    Attributes:
        value: what the function returned.
        error: what it raised instead; one that is no `HarnessError` ends the comparison.
        lost: why no worker came to the end of it, after all retries; empty otherwise.
    """

    job: Any
    value: Any = None
    error: BaseException | None = None
    lost: str = ""


class Executor(ABC):
    """Runs jobs; a plugin of `harness.executors`.

    The work directory is on a disk that all workers see. `run` and `room` raise `InputError` where
    the engine is not installed, or the settings do not suit it.

    Attributes:
        parallel: do jobs run in other processes? A process runs one job at a time, as jobs share
            its random generators.
        local: do all jobs run on this machine?
    """

    name: ClassVar[str]
    parallel: ClassVar[bool] = True
    local: bool = True

    def __init__(self, settings: ExecutorSettings, workdir: Path) -> None:
        self.settings = settings
        self.workdir = workdir

    @abstractmethod
    def run(
        self,
        function: Callable[[Any], Any],
        queue: deque[Any],
        tick: Callable[[], None],
    ) -> Iterator[JobResult]:
        """Call `function(job)` for every job of the queue; an answer for each, as they end.

        Jobs have an id, are picklable, and start in the order of the queue, which is emptied. The
        caller may add jobs to it. `tick` is called at least once a second. When the iterator is
        closed, all jobs are ended.
        """

    def room(self) -> int:
        """How many jobs run at a time."""
        if self.settings.workers:
            return self.settings.workers
        cores = self.settings.cpus_per_run or 1
        return max(1, usable_cores() // cores)


class Serial(Executor):
    """The default: one job after the other in this process. What a job raises is raised."""

    name = "serial"
    parallel = False

    def run(
        self,
        function: Callable[[Any], Any],
        queue: deque[Any],
        tick: Callable[[], None],
    ) -> Iterator[JobResult]:
        """As `Executor.run`."""
        while queue:
            job = queue.popleft()
            yield JobResult(job, function(job))

    def room(self) -> int:
        """As `Executor.room`."""
        return 1


def open_executor(settings: ExecutorSettings, workdir: Path) -> Executor:
    """Return the executor that settings name.

    Raises:
        InputError: there is none of that name, or it cannot be used. RunError: it fails.
    """
    kind = registry.load(registry.EXECUTORS, settings.name)
    with calling(f'executor "{settings.name}"'):
        executor: Executor = kind(settings, workdir)
        if not hasattr(executor, "name") or not hasattr(executor, "settings"):
            raise TypeError("it lacks `name` or `settings`")
    return executor


def use_threads(count: int) -> None:
    """Have this process compute with so many threads. A worker calls it first: torch reads the
    environment when it is imported.
    """
    for name in THREADS:
        os.environ[name] = str(count)
    torch = sys.modules.get("torch")
    if torch is not None:
        torch.set_num_threads(count)


def check_known(settings: ExecutorSettings, methods: Iterable[str]) -> None:
    """Check that every process of the executor knows the methods.

    Raises:
        InputError: one of them is registered in this process only.
    """
    known = registry.names_of_process(registry.METHODS)
    own = ", ".join(sorted(known.intersection(methods)))
    parallel = registry.load(registry.EXECUTORS, settings.name).parallel
    if parallel and OBJECT in own:
        raise InputError(
            "an object of Python as a row is known to this process only",
            key=f'executor "{settings.name}"',
            remedy='give it as "module:function", or use the executor serial',
        )
    if parallel and own:
        raise InputError(
            f'executor "{settings.name}": install as a package the class of a script or notebook: {own}',
            key="executor",
        )


def executor_settings(
    given: str | Mapping[str, Any] | ExecutorSettings | None, experiment: ExecutorSettings
) -> ExecutorSettings:
    """The executor that the caller names, with the experiment's settings where the caller names
    none.

    Several workers without a name are processes of this machine.

    Raises:
        InputError: unknown key, value out of range.
    """
    if not isinstance(given, ExecutorSettings):
        if isinstance(given, str):
            keys = {"name": given}
        else:
            keys = dict(given or {})
        given = ExecutorSettings.parse(
            {**experiment.model_dump(exclude_unset=True), **keys}, "executor"
        )
    several = given.name == "serial" and (given.workers or 1) > 1
    if several:
        return given.model_copy(update={"name": "processes"})
    return given
