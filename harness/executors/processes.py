"""Several processes on this machine: a worker that dies affects its own job only."""

from __future__ import annotations

import os
import signal
import traceback
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing import get_context, parent_process
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from threading import Thread
from typing import Any

from harness.errors import HarnessError, InputError, RunError
from harness.executors.executor import TICK, Answer, Executor, use_threads
from harness.machine.environment import usable_cores


@dataclass
class _Worker:
    """A process, the connection to it, its job, and how often workers have died during this job."""

    process: BaseProcess
    pipe: Connection
    job: Any = None
    deaths: int = 0


class Processes(Executor):
    """Workers that stay for the next job, so that loaded text and models are reused.

    Each worker takes the next GPU, so that no more of them share one than `gpus_per_run` says.
    """

    name = "processes"

    def run(self, function: Callable[[Any], Any], queue: deque[Any], tick: Callable[[], None]) -> Iterator[Answer]:
        """As `Executor.run`."""
        count = self.room()
        devices = _visible() if self.settings.gpus_per_run else []
        threads = self.settings.cpus_per_run or max(1, usable_cores() // count)  # together no more than the cores
        context = get_context("spawn")  # a fork would share locks of torch's threads

        def start(place: int) -> _Worker:
            ours, theirs = context.Pipe()
            gpus = devices[place % len(devices)] if devices else None
            process = context.Process(target=_work, args=(theirs, function, gpus, threads))
            process.start()
            theirs.close()
            return _Worker(process, ours)

        def send(worker: _Worker, job: Any, deaths: int = 0) -> None:
            worker.job, worker.deaths = job, deaths
            with suppress(OSError):  # it has died, which `recv` notices
                worker.pipe.send(job)

        workers: list[_Worker] = []
        try:
            while queue or any(worker.job is not None for worker in workers):
                while queue and len(workers) < count:
                    workers.append(start(len(workers)))
                    send(workers[-1], queue.popleft())
                for worker in workers:
                    if queue and worker.job is None:
                        send(worker, queue.popleft())
                busy = [worker for worker in workers if worker.job is not None]
                # The sentinel too: a child of a worker that died may still hold its pipe open.
                ready = wait([end for worker in busy for end in (worker.pipe, worker.process.sentinel)], timeout=TICK)
                for place, worker in enumerate(workers):
                    if worker.job is None or not {worker.pipe, worker.process.sentinel}.intersection(ready):
                        continue
                    job, worker.job = worker.job, None
                    try:
                        if not worker.pipe.poll():
                            raise EOFError
                        value, error = worker.pipe.recv()
                    except (EOFError, OSError):
                        worker.process.join()
                        deaths = worker.deaths + 1
                        workers[place] = start(place)
                        if deaths <= self.settings.retries:
                            send(workers[place], job, deaths)
                        else:
                            yield Answer(job, lost=_describe_death(worker.process.exitcode or 0, deaths))
                    else:
                        yield Answer(job, value, error)
                tick()
        finally:
            for worker in workers:
                worker.process.kill()
                worker.process.join()

    def room(self) -> int:
        """`workers` of the settings, else as many as the GPUs, else the cores, allow."""
        share = self.settings.gpus_per_run
        if not share:
            return super().room()
        gpus = len(_visible())
        if not gpus:
            raise InputError(f"executor: gpus_per_run = {share:g}, and this machine has no GPU")
        return self.settings.workers or int(gpus / share)


def _visible() -> list[str]:
    """The GPUs that this process sees."""
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    if visible is not None:
        return [name for name in visible.split(",") if name]
    import torch

    return [str(index) for index in range(torch.cuda.device_count())]


def _work(pipe: Connection, function: Callable[[Any], Any], gpus: str | None, threads: int) -> None:
    """A worker: answers each job with its value and its error, until the coordinator ends it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the coordinator handles the user's interrupt
    end_with_parent()
    if gpus is not None:
        os.environ["CUDA_VISIBLE_DEVICES"] = gpus
    use_threads(threads)
    error: Exception | None
    while True:
        job, value, error = pipe.recv(), None, None
        try:
            value = function(job)
        except (HarnessError, OSError) as raised:
            error = raised
        except KeyboardInterrupt:  # of the method: the user's does not arrive here
            error = RunError("KeyboardInterrupt")
        except Exception:  # of any library: perhaps it cannot be pickled
            error = RuntimeError(traceback.format_exc())
        pipe.send((value, error))


def _describe_death(exitcode: int, times: int) -> str:
    """Why a worker ended during a job, as far as known."""
    how = f"signal {-exitcode}" if exitcode < 0 else f"exit code {exitcode}"
    memory = "; most often there is too little memory" if exitcode == -signal.SIGKILL else ""
    return f"its worker ended {times} time{'s' if times > 1 else ''} during it (last by {how}{memory})"


def end_with_parent() -> None:
    """End this process, which `multiprocessing` started, as soon as its parent has ended.

    A parent that was killed cannot end it, and it may hold a GPU or most of the memory.
    """
    Thread(target=_wait_for_parent, daemon=True).start()


def _wait_for_parent() -> None:
    parent = parent_process()
    assert parent is not None
    parent.join()
    os._exit(1)
