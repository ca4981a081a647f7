"""Several processes on this machine: a worker that dies affects its own job only."""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import traceback
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from os import _exit  # while a run is under way, os._exit is replaced
from threading import RLock, Thread
from typing import Any

from tqdm import tqdm

from harness.errors import HarnessError, InputError, RunError
from harness.executors.executor import TICK, Executor, JobResult, use_threads
from harness.machine.environment import usable_cores
from harness.machine.shared_code import is_changed


class Processes(Executor):
    """Workers that stay for the next job, so that loaded text and models are reused.

    Each worker takes the next GPU, so that no more of them share one than `gpus_per_run` says.
    """

    name = "processes"

    def run(
        self, function: Callable[[Any], Any], queue: deque[Any], tick: Callable[[], None]
    ) -> Iterator[JobResult]:
        """As `Executor.run`."""
        pools: dict[
            int, ProcessPoolExecutor
        ] = {}  # of one worker each: one that dies breaks its whole pool
        running: dict[
            Future[Any], tuple[int, Any, int]
        ] = {}  # -> its pool, the job, and how many workers it has lost

        def submit(place: int, job: Any, deaths: int = 0) -> None:
            if place not in pools:
                pools[place] = self._start_worker(place)
            main = vars(sys.modules["__main__"])
            script = {"__file__": main.pop("__file__")} if "__file__" in main else {}
            try:  # a worker that starts here would run the user's script again if it knew its file
                running[pools[place].submit(_call, function, job)] = (place, job, deaths)
            finally:
                main.update(script)

        try:
            while queue or running:
                busy = {place for place, _, _ in running.values()}
                for place in sorted({*range(self.room())} - busy)[: len(queue)]:
                    submit(place, queue.popleft())
                for future in wait(running, timeout=TICK, return_when=FIRST_COMPLETED).done:
                    place, job, deaths = running.pop(future)
                    try:
                        value, error, reusable = future.result()
                        answer = JobResult(job, value, error)
                        if not reusable:
                            _end(pools.pop(place))
                    except BrokenProcessPool:
                        del pools[place]
                        if deaths < self.settings.retries:
                            submit(place, job, deaths + 1)
                            continue
                        why = "most often there is too little memory"
                        answer = JobResult(
                            job, lost=f"its worker ended {deaths + 1} times during it; {why}"
                        )
                    yield answer
                tick()
        finally:
            for pool in pools.values():
                _end(pool)

    def _start_worker(self, place: int) -> ProcessPoolExecutor:
        devices = _visible() if self.settings.gpus_per_run else []
        gpus = devices[place % len(devices)] if devices else None
        threads = self.settings.cpus_per_run or max(
            1, usable_cores() // self.room()
        )  # together no more than the cores
        # A fork would share locks of torch's threads.
        return ProcessPoolExecutor(
            1, multiprocessing.get_context("spawn"), _prepare, (gpus, threads)
        )

    def room(self) -> int:
        """`workers` of the settings, else as many as the GPUs, else the cores, allow."""
        share = self.settings.gpus_per_run
        if not share:
            return super().room()
        gpus = len(_visible())
        if not gpus:
            raise InputError(f"executor: gpus_per_run = {share:g}, and this machine has no GPU")
        return self.settings.workers or int(gpus / share)


def _end(pool: ProcessPoolExecutor) -> None:
    for worker in pool._processes.values():
        worker.kill()
    pool.shutdown()


def _visible() -> list[str]:
    """The GPUs that this process sees."""
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    if visible is not None:
        return [name for name in visible.split(",") if name]
    import torch

    return [str(index) for index in range(torch.cuda.device_count())]


def _prepare(gpus: str | None, threads: int) -> None:
    """Begin a worker."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the coordinator handles the user's interrupt
    tqdm.set_lock(RLock())  # by default one of the system's, which a killed worker leaves behind
    Thread(target=_end_with_parent, daemon=True).start()
    if gpus is not None:
        os.environ["CUDA_VISIBLE_DEVICES"] = gpus
    use_threads(threads)


def _call(function: Callable[[Any], Any], job: Any) -> tuple[Any, Exception | None, bool]:
    """Value and error of a job in its worker, and whether the worker can run another one."""
    value: Any = None
    error: Exception | None = None
    try:
        value = function(job)
    except (HarnessError, OSError) as raised:
        error = raised
    except KeyboardInterrupt:  # of the method: the user's does not arrive here
        error = RunError("KeyboardInterrupt")
    except Exception:  # of any library: perhaps it cannot be pickled
        error = RuntimeError(traceback.format_exc())
    return value, error, not is_changed()


def _end_with_parent() -> None:
    """End this process as soon as its parent has: it may hold a GPU or most of the memory."""
    parent = multiprocessing.parent_process()
    assert parent is not None
    parent.join()
    _exit(1)
