"""One job after the other, in this process."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from harness.executors.executor import Answer, Executor, Job, queued


class Serial(Executor):
    """The default: nothing is started, and what a job raises goes straight up."""

    name = "serial"
    elsewhere = False

    def run(self, jobs: Sequence[Job], tick: Callable[[], None]) -> Iterator[Answer]:
        """As `Executor.run`."""
        queue = queued(jobs)
        while queue:
            job = queue.popleft()
            yield Answer(job, job.call(*job.arguments))

    def room(self, jobs: int) -> int:
        """As `Executor.room`."""
        return 1
