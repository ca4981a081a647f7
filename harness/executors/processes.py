"""Several processes on this machine, by the package pebble: a worker that dies takes its own job along and no other."""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from concurrent.futures.process import BrokenProcessPool
from queue import Empty, SimpleQueue
from typing import Any

from harness.errors import InputError
from harness.executors.executor import TICK, Answer, Executor, Job, queued, seldom, use_threads
from harness.machine.child_process import end_with_parent


class Processes(Executor):
    """Workers that stay for the next job: what one has loaded, its next job need not load again.

    A worker takes the GPU whose turn it is, so that no more of them share one than `gpus_per_cell` says.
    """

    name = "processes"

    def run(self, jobs: Sequence[Job], tick: Callable[[], None]) -> Iterator[Answer]:
        """As `Executor.run`."""
        try:
            from pebble import ProcessExpired, ProcessPool
        except ImportError:
            raise InputError('executor "processes" needs pebble: pip install "sentence-harness[processes]"') from None
        queue = queued(jobs)
        if not queue:
            return
        count = self.room(sys.maxsize if queue is jobs else len(queue))  # more may come into a queue of the caller's
        context = multiprocessing.get_context("spawn")  # a fork would share locks of torch's threads
        place = context.Value("i", 0)  # each new worker takes the next one
        told = place, self._devices(), self.threads(count)

        def new_pool() -> Any:
            return ProcessPool(max_workers=count, initializer=_begin, initargs=told, context=context)

        def start(job: Job, tries: int) -> None:
            future: Future[Any]
            try:
                future = pool.schedule(job.call, args=job.arguments)
            except RuntimeError:  # the pool has just been given up
                future = Future()
                future.set_exception(BrokenProcessPool())
            waiting[future] = (job, tries)
            future.add_done_callback(done.put)

        pool, broken, ticks = new_pool(), 0, seldom(tick)
        waiting: dict[Future[Any], tuple[Job, int]] = {}
        done: SimpleQueue[Future[Any]] = SimpleQueue()  # `concurrent.futures.wait` looks at all of them each time
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
                    # Given up before it had taken the jobs in: pebble ends none of their futures.
                    future, error = next(iter(waiting)), BrokenProcessPool()
                if future not in waiting:
                    continue  # of a pool that was given up
                job, tries = waiting.pop(future)
                if isinstance(error, BrokenProcessPool):
                    # A worker died while none had a job in hand, as at their start: pebble then gives the pool up.
                    pool.stop()
                    pool.join()
                    pool, broken = new_pool(), broken + 1
                    again = [(job, tries), *waiting.values()]
                    waiting.clear()
                    for job, tries in again:
                        if broken <= self.settings.retries:
                            start(job, tries)
                        else:
                            yield Answer(job, lost=f"workers ended {broken} times before they had begun a job")
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
        """As many as asked for, else as the GPUs have room for, else as there are cores."""
        share = self.settings.gpus_per_cell
        if not share:
            return self.workers(jobs)
        there, devices = len(_visible()), len(self._devices())
        if not devices:
            raise InputError(f"executor: gpus_per_cell = {share:g}, and this machine has {there or 'no GPU'}")
        return min(jobs, self.settings.workers or (devices if share > 1 else int(devices / share)))

    def _devices(self) -> list[str]:
        """For each place its GPUs, as CUDA_VISIBLE_DEVICES names them; none where no GPU is asked for."""
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
    """What is known of a worker that ended within a job."""
    how = f"signal {-exitcode}" if exitcode < 0 else f"exit code {exitcode}"
    memory = "; for want of memory more often than not" if exitcode == -9 else ""
    return f"its worker ended {tries} time{'s' if tries > 1 else ''} within it (last by {how}{memory})"
