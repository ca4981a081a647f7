"""Several processes on this machine, by the package pebble: a worker that dies affects its own job only."""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from concurrent.futures.process import BrokenProcessPool
from queue import Empty, SimpleQueue
from typing import Any

from harness.errors import InputError
from harness.executors.executor import TICK, Answer, Executor, limit_rate, use_threads
from harness.machine.child_process import end_with_parent


class Processes(Executor):
    """Workers that stay for the next job, so that loaded text and models are reused.

    Each worker takes the next GPU, so that no more of them share one than `gpus_per_cell` says.
    """

    name = "processes"

    def run(self, function: Callable[[Any], Any], queue: deque[Any], tick: Callable[[], None]) -> Iterator[Answer]:
        """As `Executor.run`."""
        try:
            from pebble import ProcessExpired, ProcessPool
        except ImportError:
            raise InputError('executor "processes" needs pebble: pip install "sentence-harness[processes]"') from None
        if not queue:
            return
        count = self.room(sys.maxsize)  # the caller may add jobs
        context = multiprocessing.get_context("spawn")  # a fork would share locks of torch's threads
        place = context.Value("i", 0)  # each new worker takes the next number
        initial = place, self._devices(), self.threads(count)

        def new_pool() -> Any:
            return ProcessPool(max_workers=count, initializer=_begin, initargs=initial, context=context)

        def start(job: Any, tries: int) -> None:
            future: Future[Any]
            try:
                future = pool.schedule(function, args=(job,))
            except RuntimeError:  # the pool has just broken
                future = Future()
                future.set_exception(BrokenProcessPool())
            waiting[future] = (job, tries)
            future.add_done_callback(done.put)

        pool, broken, ticks = new_pool(), 0, limit_rate(tick)
        waiting: dict[Future[Any], tuple[Any, int]] = {}
        done: SimpleQueue[Future[Any]] = SimpleQueue()  # `concurrent.futures.wait` would check all of them each time
        try:
            while queue or waiting:
                while queue:
                    start(queue.popleft(), 0)
                ticks()
                try:
                    future = done.get(timeout=TICK)
                    error = future.exception()
                except Empty:
                    if pool.active:
                        continue
                    # It broke before it had taken the jobs in: pebble ends none of their futures.
                    future, error = next(iter(waiting)), BrokenProcessPool()
                if future not in waiting:
                    continue  # of a pool that broke
                job, tries = waiting.pop(future)
                if isinstance(error, BrokenProcessPool):
                    # A worker died while none had a job, as at their start: pebble then ends the pool.
                    pool.stop()
                    pool.join()
                    pool, broken = new_pool(), broken + 1
                    again = [(job, tries), *waiting.values()]
                    waiting.clear()
                    for job, tries in again:
                        if broken <= self.settings.retries:
                            start(job, tries)
                        else:
                            yield Answer(job, lost=f"workers ended {broken} times before they started a job")
                    continue
                broken = 0
                if not isinstance(error, ProcessExpired):
                    yield Answer(job, None if error is not None else future.result(), error)
                elif tries < self.settings.retries:
                    start(job, tries + 1)
                else:
                    yield Answer(job, lost=_why(error.exitcode, tries + 1))
        finally:
            pool.stop()
            pool.join()

    def room(self, jobs: int) -> int:
        """`workers` of the settings, else as many as the GPUs, else the cores, allow."""
        share = self.settings.gpus_per_cell
        if not share:
            return self.workers(jobs)
        there, devices = len(_visible()), len(self._devices())
        if not devices:
            raise InputError(f"executor: gpus_per_cell = {share:g}, and this machine has {there or 'no GPU'}")
        return min(jobs, self.settings.workers or (devices if share > 1 else int(devices / share)))

    def _devices(self) -> list[str]:
        """For each worker its GPUs, as CUDA_VISIBLE_DEVICES names them; none where no GPU is requested."""
        names = _visible() if self.settings.gpus_per_cell else []
        whole = max(1, int(self.settings.gpus_per_cell))
        return [",".join(names[i : i + whole]) for i in range(0, len(names) - whole + 1, whole)]


def _visible() -> list[str]:
    """The GPUs that this process sees."""
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    if visible is not None:
        return [name for name in visible.split(",") if name]
    import torch

    return [str(index) for index in range(torch.cuda.device_count())]


def _begin(next_place: Any, devices: list[str], threads: int) -> None:
    """What a worker does before its first job."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the user's interrupt is the coordinator's, which ends the workers
    end_with_parent()
    with next_place.get_lock():
        place = next_place.value
        next_place.value += 1
    if devices:
        os.environ["CUDA_VISIBLE_DEVICES"] = devices[place % len(devices)]
    use_threads(threads)


def _why(exitcode: int, tries: int) -> str:
    """Why a worker ended during a job, as far as it is known."""
    how = f"signal {-exitcode}" if exitcode < 0 else f"exit code {exitcode}"
    memory = "; most often the memory does not suffice" if exitcode == -9 else ""
    return f"its worker ended {tries} time{'s' if tries > 1 else ''} during it (last by {how}{memory})"
