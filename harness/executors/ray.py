"""Ray: tasks on this machine or on a cluster, each placed where its cores and GPUs are free."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import TracebackType
from typing import Any, Self

from harness.errors import InputError
from harness.executors.executor import TICK, Answer, Executor, Job, cores, queued, seldom, use_threads
from harness.executors.post import Box

_ANSWERED = 5.0  # seconds within which the post answers; else it is tried again later
_WAITING = 2000  # tasks: more that run at a time need `workers`; Ray looks at all of them at each answer


class Ray(Executor):
    """Ray core tasks. A node that is lost, or a worker that is killed, gives its job to another one.

    Without an address a cluster of this machine alone is started, which no other machine can reach, and ended with the
    last job; with one, Ray's own rules on who may connect hold (see docs/executors.md).
    """

    name = "ray"

    @property
    def here(self) -> bool:
        """As `Executor.here`."""
        return not self.settings.address

    def __enter__(self) -> Self:
        """Be connected; a cluster that the caller is connected to already is used as it is."""
        # Without it Ray hides all devices from a task that asks for none, and what it measures there is a CPU.
        os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
        address = self.settings.address
        if not address and "ray" not in sys.modules:  # which reads it when it is imported, and never again
            os.environ.setdefault("RAY_AUTH_MODE", "token")  # nobody else's jobs; Ray makes a token where there is none
        try:
            import ray
        except ImportError:
            raise InputError('executor "ray" needs Ray: pip install "sentence-harness[ray]"') from None
        self.own = not ray.is_initialized()
        if self.own:
            self._connect(ray)
        if not self.here:  # machines that may share no disk
            self.post = _ByActor(ray.remote(num_cpus=0, max_restarts=-1)(Box).remote())
        return self

    def _connect(self, ray: Any) -> None:
        address = self.settings.address
        options = {"address": address} if address else {"include_dashboard": False, "num_cpus": cores()}
        try:
            ray.init(log_to_driver=False, logging_level="error", **options)
        except (ConnectionError, RuntimeError, ValueError, OSError) as error:
            said = str(error).splitlines()[0] if str(error) else type(error).__name__
            where = f"the cluster at {address}" if address else "a cluster on this machine"
            raise InputError(f"executor ray: {where} cannot be used: {said}") from None

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End the connection, and the cluster that was started for it."""
        import ray

        self.post = None
        if self.own:
            ray.shutdown()

    def run(self, jobs: Sequence[Job], tick: Callable[[], None]) -> Iterator[Answer]:
        """As `Executor.run`."""
        import ray

        queue = queued(jobs)
        if not queue:
            return
        threads = self._cpus(len(queue))
        memory = self.settings.memory_per_cell
        task = ray.remote(
            num_cpus=threads,
            num_gpus=self.settings.gpus_per_cell,
            max_retries=self.settings.retries,  # of lost workers and nodes alone: what a job raises is its answer
            max_calls=0,  # a worker stays for the next job, on GPUs too: what it has loaded stays loaded
            **({"memory": int(memory * 2**30)} if memory else {}),
        )(_called)
        most = self.settings.workers or _WAITING
        waiting: dict[Any, Job] = {}
        ticks = seldom(tick)
        try:
            while queue or waiting:
                while queue and len(waiting) < most:
                    job = queue.popleft()
                    waiting[task.options(name=job.key).remote(threads, job.call, job.arguments)] = job
                done, _ = ray.wait(list(waiting), timeout=TICK)
                if done:  # and all others that have ended
                    done, _ = ray.wait(list(waiting), num_returns=len(waiting), timeout=0)
                for reference in done:
                    yield _answer(ray, reference, waiting.pop(reference))
                ticks()
        finally:
            for reference in waiting:
                ray.cancel(reference, force=True)

    def room(self, jobs: int) -> int:
        """As many as asked for, else as the cluster has cores and GPUs for now."""
        import ray

        if self.settings.workers is not None:
            return min(jobs, self.settings.workers)
        there = ray.cluster_resources()
        rooms = [there.get("CPU", 0) / self._cpus(jobs)]
        if self.settings.gpus_per_cell:
            rooms.append(there.get("GPU", 0) / self.settings.gpus_per_cell)
        return max(1, min(jobs, int(min(rooms))))

    def _cpus(self, jobs: int) -> int:
        """Cores of a job."""
        return self.settings.cpus_per_cell or (1 if self.settings.address else self.threads(jobs))


class _ByActor:
    """A `Box` in a process of the cluster, which any job reaches; Ray starts another one where it is lost."""

    def __init__(self, box: Any) -> None:
        self._box = box

    def exchange(self, job: str, told: Mapping[str, str], wanted: Sequence[str]) -> Mapping[str, str]:
        """As `Post.exchange`."""
        return dict(self._answer(self._box.exchange.remote(job, told, wanted)))

    def turn(self, left: Mapping[str, str]) -> Mapping[str, Mapping[str, str]]:
        """As `Post.turn`."""
        return dict(self._answer(self._box.turn.remote(left)))

    def _answer(self, reference: Any) -> Any:
        import ray

        try:
            return ray.get(reference, timeout=_ANSWERED)
        except ray.exceptions.RayError as error:
            raise ConnectionError(str(error)) from None


def _called(threads: int, call: Callable[..., Any], arguments: tuple[Any, ...]) -> Any:
    """A job in its worker."""
    use_threads(threads)
    return call(*arguments)


def _answer(ray: Any, reference: Any, job: Job) -> Answer:
    try:
        return Answer(job, ray.get(reference))
    except ray.exceptions.RayTaskError as error:
        return Answer(job, error=error.cause if isinstance(error.cause, BaseException) else error)
    except ray.exceptions.RayError as error:  # the worker, its node or its memory
        said = next((line for line in str(error).splitlines() if line.strip()), "")
        return Answer(job, lost=f"its worker was lost ({type(error).__name__}: {said})"[:300])
