"""Several processes of this machine that train one cell together, started by torch's launcher."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from threading import Thread
from typing import Any

from harness.errors import RunError
from harness.executors.executor import THREADS
from harness.executors.leaving import leave_by, leaving

_LOOK = 1.0  # seconds between two looks whether this worker is to leave
_LEAVE = "leave"  # a file beside what the processes are told


def launch(module: str, told: Mapping[str, Any], processes: int) -> None:
    """Run `python -m MODULE FILE` in so many processes, with `told` as JSON in the file.

    Raises:
        RunError: one of them ended badly; torch's launcher has ended the others.
    """
    with tempfile.TemporaryDirectory(prefix="harness-") as folder:
        file = Path(folder) / "told.json"
        file.write_text(json.dumps(told), "utf-8")
        launcher = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node"]
        ours, mine = os.pipe()  # at its end the processes know that this one has ended, however that came
        try:
            process = subprocess.Popen(
                [*launcher, str(processes), "-m", module, str(file)],
                stdin=ours, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, errors="replace",
                env=_environment(processes),
                start_new_session=True,  # a signal to this process's group would end the launcher, and no checkpoint be
            )  # fmt: skip
            os.close(ours)
            said = _said(process, file.with_name(_LEAVE))
        finally:
            os.close(mine)
    if process.returncode:
        raise RunError(f"one of its {processes} processes ended: {_reason(said)}")


def _said(process: subprocess.Popen[str], leave: Path) -> str:
    """What the processes have said, when they have ended."""
    while True:
        try:
            return process.communicate(timeout=_LOOK)[1]
        except subprocess.TimeoutExpired:
            if leaving():
                leave.touch()


def launched(file: Path) -> Any:
    """What one of the processes is told; it ends with the process that launched it, and leaves when that has to."""
    leave_by(file.with_name(_LEAVE))
    Thread(target=_end_with_launcher, daemon=True).start()
    return json.loads(file.read_text("utf-8"))


def _end_with_launcher() -> None:
    sys.stdin.read()
    os._exit(1)


def _environment(processes: int) -> dict[str, str]:
    """Where the threads of a worker are those of all these processes together, and modules found where it finds them:
    not in the folder that it happens to be started in."""
    shared = {name: os.environ.get(name, "") for name in THREADS}
    counts = {name: str(max(1, int(text) // processes)) for name, text in shared.items() if text.isdigit()}
    return {**os.environ, **counts, "PYTHONSAFEPATH": "1", "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}


_REASONS = (
    (re.compile(r"harness: (process \d+ of \d+ failed alone .*?)(?:; all processes end.*)?$"), "{}"),
    (re.compile(r"(?:\[rank\d+\]: ?)?((?!.*ChildFailedError)[\w.]*(?:Error|Exception): .+)$"), "{}"),
    (re.compile(r"\s*exitcode\s*: -(\d+) .*$"), "signal {}"),
    (re.compile(r"\s*exitcode\s*: (\d+) .*$"), "exit code {}"),
)


def _reason(said: str) -> str:
    """What ended the first of several processes, of all that they and torch's launcher have said."""
    lines = [line for line in reversed(said.splitlines()) if line.strip()] or ["without a word"]
    return next((words.format(m[1]) for how, words in _REASONS for line in lines if (m := how.match(line))), lines[0])
