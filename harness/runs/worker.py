"""A job in a worker: one process, or several processes of a machine that train one run together."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from threading import Thread

from pydantic import TypeAdapter

from harness.errors import RunError, StopRequested, TrainingStopped
from harness.executors.executor import THREADS, leave_requested, request_leave
from harness.machine.distributed import join
from harness.results.record import Record
from harness.results.store import RunFolder
from harness.runs.execute import execute, take_part
from harness.runs.plan import Job

_JOB = TypeAdapter(Job)
_INTERVAL = 1.0  # seconds between two checks for a request to stop


def run_job(job: Job, workdir: Path, processes: int = 1) -> Record | None:
    """Execute a job in a worker that sees the work directory; None where the run was stopped at a checkpoint.

    Args:
        processes: how many train the run together, each on a GPU.

    Raises:
        StopRequested: the worker is about to be taken away; a checkpoint is written. RunError: a process ended.
    """
    try:
        if processes == 1:
            return execute(job, workdir, stop=watch_stop_file(job, workdir))
        RunFolder(workdir, job.id).path.mkdir(parents=True, exist_ok=True)
        _launch(job, workdir, processes)
    except StopRequested:
        if leave_requested():  # nobody requested the comparison to stop
            raise
        return None
    if leave_requested():
        raise StopRequested
    if RunFolder(workdir, job.id).stop_file.exists():
        return None
    return RunFolder(workdir, job.id).read_if_sound()


def watch_stop_file(job: Job, workdir: Path) -> Callable[[], bool]:
    """The `stop` of a fit in a worker: has the coordinator written `runs/ID/stop`?

    An empty file stops the run at a checkpoint; one with a reason prunes it.
    """
    file, last, found = RunFolder(workdir, job.id).stop_file, 0.0, False

    def stop() -> bool:
        nonlocal last, found
        if not found and time.monotonic() - last >= _INTERVAL:
            last, found = time.monotonic(), file.exists()
        if found and (reason := file.read_text("utf-8")):
            raise TrainingStopped("pruned", reason)
        return found or leave_requested()

    return stop


def _launch(job: Job, workdir: Path, processes: int) -> None:
    """Run `_main` in so many processes, by torch's launcher.

    Raises:
        RunError: one of them failed; the launcher has ended the others.
    """
    with tempfile.TemporaryDirectory(prefix="harness-") as folder:
        file = Path(folder) / "job.json"
        file.write_bytes(_JOB.dump_json(job))
        launcher = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node"]
        ours, theirs = os.pipe()  # it closes when this process has ended, which the others notice
        try:
            process = subprocess.Popen(
                [*launcher, str(processes), "-m", __name__, str(file), str(workdir)],
                stdin=ours, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, errors="replace",
                env=_environment(processes),
                start_new_session=True,  # a signal to this process's group would end the launcher without a checkpoint
            )  # fmt: skip
            os.close(ours)
            while True:
                try:
                    errors = process.communicate(timeout=_INTERVAL)[1]
                    break
                except subprocess.TimeoutExpired:
                    if leave_requested():
                        file.with_name("leave").touch()
        finally:
            os.close(theirs)
    if process.returncode:
        raise RunError(f"run {job.id}: one of its {processes} processes ended: {_reason(errors)}")


def _main(file: Path, workdir: Path) -> None:
    """One of the processes that train a run together; it ends with the process that launched it."""
    Thread(target=lambda: (sys.stdin.read(), os._exit(1)), daemon=True).start()
    job = _JOB.validate_json(file.read_bytes())
    team = join(job.device)
    watched = watch_stop_file(job, workdir)

    def stop() -> bool:
        request_leave(file.with_name("leave").exists())
        return watched()

    with suppress(StopRequested):  # in all of them, at the same step
        if team.main:
            execute(job, workdir, stop=stop, team=team)
            team.from_main("")  # no more training: the other processes end
        else:
            take_part(workdir, team)


def _environment(processes: int) -> dict[str, str]:
    """The threads of a worker are shared by its processes, which find modules where the worker does."""
    shared = {name: os.environ.get(name, "") for name in THREADS}
    counts = {name: str(max(1, int(text) // processes)) for name, text in shared.items() if text.isdigit()}
    return {**os.environ, **counts, "PYTHONSAFEPATH": "1", "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}


_ALONE = re.compile(r"process \d+ of \d+ failed alone \(.*?\)")
_ERROR = re.compile(r"^(?:\[rank\d+\]: ?)?(?!.*ChildFailedError)([\w.]*(?:Error|Exception): .+)$", re.MULTILINE)
_EXIT = re.compile(r"exitcode\s*: -?\d+")


def _reason(errors: str) -> str:
    """What ended the first of several processes, from all that they and torch's launcher printed."""
    found = [*_ALONE.findall(errors), *_ERROR.findall(errors)[-1:], *_EXIT.findall(errors)]
    return str((found or errors.splitlines()[-1:] or ["without a message"])[0])


if __name__ == "__main__":
    _main(Path(sys.argv[1]), Path(sys.argv[2]))
