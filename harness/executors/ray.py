"""Ray: tasks on this machine or on a cluster, each placed where its cores and GPUs are free."""

from __future__ import annotations

import os
import sys
from collections import deque
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from harness.errors import InputError
from harness.executors.executor import TICK, Executor, ExecutorSettings, JobResult, use_threads
from harness.machine.environment import usable_cores

_WAITING = (
    2000  # tasks: Ray checks all of them at each answer; to run more at a time, set `workers`
)


class Ray(Executor):
    """Ray core tasks. A node that is lost, or a worker that is killed, gives its job to another
    one.

    Without an address a cluster of this machine alone is started, which no other machine can reach,
    and ended with the last job; with one, Ray's own rules on who may connect hold (see
    docs/executors.md).
    """

    name = "ray"

    def __init__(self, settings: ExecutorSettings, workdir: Path) -> None:
        super().__init__(settings, workdir)
        self.local = not settings.address
        self.own = False

    def _connect(self) -> None:
        """Connect to Ray; an existing connection is reused."""
        # Without it Ray hides all devices from a task that requests none.
        os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
        address = self.settings.address
        # which reads it when it is imported, and never again
        if not address and "ray" not in sys.modules:
            os.environ.setdefault(
                "RAY_AUTH_MODE", "token"
            )  # nobody else's jobs; Ray makes a token where there is none
        try:
            import ray
        except ImportError:
            raise InputError(
                'executor "ray" needs Ray: pip install "sentence-harness[ray]"', key="executor"
            ) from None
        options = (
            {"address": address}
            if address
            else {"include_dashboard": False, "num_cpus": usable_cores()}
        )
        try:
            if not ray.is_initialized():
                ray.init(log_to_driver=False, logging_level="error", **options)
                self.own = True
        except (ConnectionError, RuntimeError, ValueError, OSError) as error:
            where = f"the cluster at {address}" if address else "a cluster on this machine"
            raise InputError(
                f"executor ray: {where} cannot be used: {str(error).partition(chr(10))[0]}",
                key="executor ray",
            ) from None

    def run(
        self,
        function: Callable[[Any], Any],
        queue: deque[Any],
        tick: Callable[[], None],
    ) -> Iterator[JobResult]:
        """As `Executor.run`."""
        self._connect()
        import ray

        threads = self._cpus()
        memory = self.settings.memory_per_run
        options = {
            "num_cpus": threads,
            "num_gpus": self.settings.gpus_per_run,
            "max_retries": self.settings.retries,  # of lost workers: what a job raises is its answer
        }
        if memory:
            options["memory"] = int(memory * 2**30)
        # A worker stays for the next job, on GPUs too: what it has loaded stays loaded. After code of
        # a plugin, which may have changed what later jobs use, it ends.
        staying = ray.remote(**options, max_calls=0)(_run_job)
        ending = ray.remote(**options, max_calls=1)(_run_job)
        most = self.settings.workers or _WAITING
        waiting: dict[Any, Any] = {}
        try:
            while queue or waiting:
                while queue and len(waiting) < most:
                    job = queue.popleft()
                    task = ending if getattr(job, "runs_plugin", False) else staying
                    reference = task.options(name=job.id).remote(threads, function, job)
                    waiting[reference] = job
                done, _ = ray.wait(list(waiting), timeout=TICK)
                for reference in done:
                    yield _answer(ray, reference, waiting.pop(reference))
                tick()
        finally:
            for reference in waiting:
                ray.cancel(reference, force=True)
            if self.own:
                ray.shutdown()

    def room(self) -> int:
        """`workers` of the settings, else as many as the cluster has cores and GPUs for now."""
        if self.settings.workers is not None:
            return self.settings.workers
        self._connect()
        import ray

        there = ray.cluster_resources()
        rooms = [there.get("CPU", 0) / self._cpus()]
        if self.settings.gpus_per_run:
            rooms.append(there.get("GPU", 0) / self.settings.gpus_per_run)
        return max(1, int(min(rooms)))

    def _cpus(self) -> int:
        """Cores of a job; on this machine alone the workers share them."""
        if self.settings.address:
            shared = 1
        else:
            shared = usable_cores() // (self.settings.workers or usable_cores())
        return self.settings.cpus_per_run or max(1, shared)


def _run_job(threads: int, function: Callable[[Any], Any], job: Any) -> Any:
    """A job in its worker."""
    use_threads(threads)
    return function(job)


def _answer(ray: Any, reference: Any, job: Any) -> JobResult:
    try:
        return JobResult(job, ray.get(reference))
    except ray.exceptions.RayTaskError as error:
        return JobResult(
            job, error=error.cause if isinstance(error.cause, BaseException) else error
        )
    except ray.exceptions.RayError as error:  # the worker, its node or its memory
        lines = [line for line in str(error).splitlines() if line.strip()]
        line = lines[0] if lines else ""
        lost = f"its worker was lost ({type(error).__name__}: {line})"
        return JobResult(job, lost=lost[:300])
