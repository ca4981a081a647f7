"""Several processes on this machine: a worker that dies affects its own job only."""

from __future__ import annotations

import os
import traceback
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from typing import Any

from harness.errors import HarnessError, InputError, RunError
from harness.executors.executor import TICK, Executor, JobResult, use_threads
from harness.machine.environment import usable_cores
from harness.machine.memory import ADVICE
from harness.machine.new_process import start_process
from harness.machine.shared_code import is_changed


class Processes(Executor):
    """Workers that stay for the next job, so that loaded text and models are reused.

    Each worker takes the next GPU, so that no more of them share one than `gpus_per_run` says.
    """

    name = "processes"

    def run(
        self,
        function: Callable[[Any], Any],
        queue: deque[Any],
        tick: Callable[[], None],
    ) -> Iterator[JobResult]:
        """As `Executor.run`."""
        workers: dict[int, _Worker] = {}
        deaths: dict[int, int] = {}  # place of a worker -> how many workers its job has lost
        room = self.room()
        try:
            while queue or any(worker.busy for worker in workers.values()):
                for place in range(room):
                    if queue and not (place in workers and workers[place].busy):
                        if place not in workers:
                            workers[place] = self._start_worker(place)
                        deaths[place] = 0
                        workers[place].start_job(function, queue.popleft())
                for place in _places_with_answers(workers):
                    worker = workers[place]
                    job = worker.job
                    answer = worker.take_answer()
                    if answer is None or answer.changed:
                        worker.end()
                        del workers[place]
                    if answer is not None:
                        yield JobResult(job, answer.value, answer.error)
                    elif deaths[place] < self.settings.retries:
                        deaths[place] += 1
                        workers[place] = self._start_worker(place)
                        workers[place].start_job(function, job)
                    else:
                        times = deaths[place] + 1
                        why = f"most often there is too little memory: {ADVICE}"
                        lost = f"its worker ended {times} times during it; {why}"
                        yield JobResult(job, lost=lost)
                tick()
        finally:
            for worker in workers.values():
                worker.end()

    def _start_worker(self, place: int) -> _Worker:
        devices = _visible() if self.settings.gpus_per_run else []
        if devices:
            gpu = devices[place % len(devices)]
        else:
            gpu = None
        threads = self.settings.cpus_per_run
        if not threads:  # together no more than the cores
            threads = max(1, usable_cores() // self.room())
        return _Worker(gpu, threads)

    def room(self) -> int:
        """`workers` of the settings, else as many as the GPUs, else the cores, allow."""
        share = self.settings.gpus_per_run
        if not share:
            return super().room()
        gpus = len(_visible())
        if not gpus:
            raise InputError(
                f"executor: gpus_per_run = {share:g}, and this machine has no GPU",
                key="gpus_per_run",
            )
        return self.settings.workers or int(gpus / share)


@dataclass(frozen=True)
class _Answer:
    """What a worker sends when a job has ended.

    Attributes:
        value: what the function returned.
        error: what it raised instead.
        changed: has the job changed code that later jobs share, so that the worker has to go?
    """

    value: Any
    error: Exception | None
    changed: bool


class _Worker:
    """A process that runs one job at a time.

    Attributes:
        job: the one that it runs, or ran last.
        busy: has it not answered yet?
    """

    def __init__(self, gpu: str | None, threads: int) -> None:
        self._process, self._connection = start_process(_serve, gpu, threads)
        self.job: Any = None
        self.busy = False

    @property
    def connection(self) -> Connection:
        """It can be read when the worker has answered, or has ended."""
        return self._connection

    def start_job(self, function: Callable[[Any], Any], job: Any) -> None:
        """Send a job; a worker that has ended meanwhile gives no answer to it."""
        self.job = job
        self.busy = True
        try:
            self._connection.send((function, job))
        except OSError:  # its end closed the connection: taking the answer says so
            return

    def has_ended(self) -> bool:
        """Has the process ended? Processes that it started can hold the connection open."""
        return not self._process.is_alive()

    def take_answer(self) -> _Answer | None:
        """Return the answer to its job; None if the worker has ended without one."""
        self.busy = False
        try:
            if self._connection.poll():
                answer = self._connection.recv()
            else:
                answer = None
        except (EOFError, OSError):
            return None
        assert answer is None or isinstance(answer, _Answer)
        return answer

    def end(self) -> None:
        """End the process, whatever it does."""
        self._process.kill()
        self._process.join()
        self._connection.close()


def _places_with_answers(workers: dict[int, _Worker]) -> list[int]:
    """Wait a second at most; return the places whose worker has answered or has ended."""
    busy = {place: worker for place, worker in workers.items() if worker.busy}
    connections = [worker.connection for worker in busy.values()]
    readable = wait(connections, timeout=TICK)
    return [
        place
        for place, worker in busy.items()
        if worker.connection in readable or worker.has_ended()
    ]


def _visible() -> list[str]:
    """The GPUs that this process sees."""
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    if visible is not None:
        return [name for name in visible.split(",") if name]
    import torch

    count = torch.cuda.device_count()
    return [str(index) for index in range(count)]


def _serve(connection: Connection, gpu: str | None, threads: int) -> None:
    """Run the jobs that arrive, until the coordinator closes the connection or ends."""
    if gpu is not None:
        os.environ["CUDA_VISIBLE_DEVICES"] = gpu
    use_threads(threads)
    while True:
        try:
            function, job = connection.recv()
        except EOFError:
            return
        except Exception:  # of any plugin: its module cannot be imported here
            error = RuntimeError(traceback.format_exc())
            connection.send(_Answer(None, error, changed=False))
            continue
        answer = _run_job(function, job)
        try:
            connection.send(answer)
        except Exception:  # of any method or library: the value or the error cannot be pickled
            error = RuntimeError(traceback.format_exc())
            connection.send(_Answer(None, error, answer.changed))


def _run_job(function: Callable[[Any], Any], job: Any) -> _Answer:
    """Call the function; what it raises is a part of the answer."""
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
    return _Answer(value, error, is_changed())
