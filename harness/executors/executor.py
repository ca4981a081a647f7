"""What an executor promises: every job comes to an answer, whichever process it was done in, or lost in."""

from __future__ import annotations

import os
import time
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, ClassVar, Self

from pydantic import field_validator

from harness.config import Config, option
from harness.executors.post import Post

RETRIES = 3  # a job whose worker died is given to another one so many times
THREADS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")  # of the libraries that compute in a worker
TICK = 1.0  # seconds between two calls of `tick`


class ExecutorSettings(Config):
    """The table [executor] of an experiment file, and the options of the same names.

    >>> ExecutorSettings(name="slurm", gpus_per_cell=1, slurm={"partition": "gpu"}).slurm
    {'partition': 'gpu'}
    """

    name: str = option("serial", "serial, processes, ray, slurm or one of another package")
    workers: int | None = option(None, "how many jobs run at a time; empty: as many as cores or GPUs allow", ge=1)
    cpus_per_cell: int | None = option(None, "cores of a job; empty: this machine's, shared among the workers", ge=1)
    gpus_per_cell: float = option(0.0, "GPUs of a job, also a part of one; several train it together", ge=0)
    memory_per_cell: float | None = option(None, "GiB of a job, for engines that place jobs by it", gt=0)
    retries: int = option(RETRIES, "how often a job whose worker died is given to another", ge=0)
    address: str = option("", "ray: where the cluster is, as auto or ray://HOST:10001; empty: one on this machine")
    slurm: dict[str, str] = option({}, "slurm: what sbatch is given, as {partition = 'gpu', time = '4:00:00'}")

    @field_validator("slurm", mode="before")
    @classmethod
    def _texts(cls, value: Any) -> Any:
        return {key: str(one) for key, one in value.items()} if isinstance(value, dict) else value

    @field_validator("gpus_per_cell")
    @classmethod
    def _whole_above_one(cls, value: float) -> float:
        if value > 1 and value != int(value):
            raise ValueError("a part of a GPU, or a whole number of them")
        return value


@dataclass(frozen=True)
class Job:
    """A call that another process can make.

        >>> Job("first", max, (1, 2)).key
        'first'

    Attributes:
        key: names the job; no two of a list have the same.
        call: a function that can be imported, and what it is called with: all of it can be pickled.
    """

    key: str
    call: Callable[..., Any]
    arguments: tuple[Any, ...] = ()


@dataclass(frozen=True)
class Answer:
    """How a job ended.

        >>> Answer(Job("first", max, (1, 2)), value=2).error is None
        True

    Attributes:
        value: what the call returned.
        error: what it raised instead.
        lost: why no worker came to the end of it, after all tries; empty otherwise.
    """

    job: Job
    value: Any = None
    error: BaseException | None = None
    lost: str = ""


class Executor(ABC):
    """Runs jobs; a plugin of `harness.executors`.

        >>> from harness.executors.serial import Serial
        >>> with Serial(ExecutorSettings(), work) as executor:
        ...     [answer.value for answer in executor.run([Job("first", max, (1, 2))], tick=lambda: None)]
        [2]

    It is used as a context, in which its engine is there; it raises `InputError` where that is not installed, or the
    settings are none for it.
    """

    name: ClassVar[str]
    elsewhere: ClassVar[bool] = True
    """Do jobs run in other processes?"""
    post: Post | None = None
    """Carries small texts between jobs and coordinator, within the context; None: that takes a disk that all see."""

    def __init__(self, settings: ExecutorSettings, workdir: Path) -> None:
        """`workdir` is the work directory of what is run, for an engine that keeps files."""
        self.settings, self.workdir = settings, workdir

    def __enter__(self) -> Self:
        return self

    def __exit__(  # noqa: B027 - an engine that is started by nobody needs no end
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Let the engine go."""

    @property
    def here(self) -> bool:
        """Do all jobs run on this machine?"""
        return True

    @abstractmethod
    def run(self, jobs: Sequence[Job], tick: Callable[[], None]) -> Iterator[Answer]:
        """An answer for every job, as they end; started in the order of `jobs`.

        A `deque` is emptied as its jobs are started. Whoever takes the answers may put more jobs into it meanwhile.

        `tick` is called about once a second, also while answers come all the time. What `tick` or the caller raises
        ends all jobs: none runs on when the iterator is closed.
        """

    def room(self, jobs: int) -> int:
        """How many of so many jobs run at a time."""
        return self.workers(jobs)

    def workers(self, jobs: int) -> int:
        """How many jobs run at a time on this machine."""
        given = self.settings.workers
        if given is None and self.settings.cpus_per_cell:
            given = cores() // self.settings.cpus_per_cell
        return max(1, min(jobs, given or cores()))

    def threads(self, jobs: int) -> int:
        """Threads of one of these workers, so that all of them use no more than the cores there are."""
        return self.settings.cpus_per_cell or max(1, cores() // self.workers(jobs))


def queued(jobs: Sequence[Job]) -> deque[Job]:
    """Jobs as `Executor.run` takes them: the caller's own queue, or one of what it was given.

    >>> len(queued([Job("first", max, (1, 2))]))
    1
    """
    return jobs if isinstance(jobs, deque) else deque(jobs)


def seldom(tick: Callable[[], None]) -> Callable[[], None]:
    """`tick` for an executor that asks for it each time it looks: about once in `TICK` seconds.

    >>> often = seldom(lambda: print("tick"))
    >>> often()
    """
    last = time.monotonic()

    def ticks() -> None:
        nonlocal last
        if time.monotonic() - last > 0.9 * TICK:
            last = time.monotonic()
            tick()

    return ticks


def cores() -> int:
    """Processor cores that this process may use.

    >>> cores() >= 1
    True
    """
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def use_threads(count: int) -> None:
    """Have this process compute with so many threads. Called first thing in a worker, before torch is imported.

    >>> import torch
    >>> before = torch.get_num_threads()
    >>> use_threads(before)
    >>> torch.get_num_threads() == before
    True
    """
    for name in THREADS:
        os.environ[name] = str(count)
    import torch

    torch.set_num_threads(count)
