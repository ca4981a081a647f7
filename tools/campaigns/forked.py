"""Runs commands of `harness` in processes forked from one that has imported everything, so that
they start at once.
"""

from __future__ import annotations

import contextlib
import importlib
import io
import json
import os
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

# A process with threads cannot be forked.
os.environ |= {"OMP_NUM_THREADS": "1", "TOKENIZERS_PARALLELISM": "false"}

# Exit codes of what must not happen.
TRACEBACK = 99
TIMEOUT = 124


class Ended(NamedTuple):
    """End of a command: its exit code (negative: the signal that killed it), and what it printed."""

    code: int
    out: str
    err: str

    def fault(self, allowed: Sequence[int] = (0, 1, 2)) -> str:
        """Return what the command did that none may do; empty where it did nothing of the kind."""
        if self.code == TRACEBACK or "Traceback" in self.out + self.err:
            return f"a traceback: {(self.err.strip().splitlines() or [''])[-1][:200]}"
        if self.code == TIMEOUT:
            return "did not end"
        return "" if self.code in allowed else f"exit code {self.code}: {self.err.strip()[-200:]}"


class Started:
    """A command under way in a forked process."""

    def __init__(self, argv: Sequence[str], *, before: Callable[[], None] | None = None) -> None:
        """`before` is called in the process first: to patch something."""
        self._said = [tempfile.TemporaryFile("w+", errors="replace") for _ in range(2)]  # noqa: SIM115 - read at the end
        sys.stdout.flush()
        sys.stderr.flush()
        self.pid = os.fork()
        if self.pid == 0:
            code = TRACEBACK
            try:
                for stream, number in zip(self._said, (1, 2), strict=True):
                    os.dup2(stream.fileno(), number)
                if before is not None:
                    before()
                code = _run(argv)
            finally:
                os._exit(code)

    def kill(self) -> None:
        os.kill(self.pid, signal.SIGKILL)

    def poll(self) -> bool:
        """True if it is still under way."""
        return os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None

    def wait(self, seconds: float = 600.0) -> Ended:
        """Wait for its end, and kill it after `seconds`."""
        late = time.monotonic() + seconds
        while self.poll() and time.monotonic() < late:
            time.sleep(0.005)
        timed_out = self.poll()
        if timed_out:
            self.kill()
        code = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
        for stream in self._said:
            stream.seek(0)
        out = self._said[0].read()
        err = self._said[1].read()
        for stream in self._said:
            stream.close()
        return Ended(TIMEOUT if timed_out else code, out, err)


def _run(argv: Sequence[str]) -> int:
    from harness.cli import main

    try:
        code = main(argv)
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else 1
    except BaseException:
        traceback.print_exc()
        code = TRACEBACK
    with contextlib.suppress(Exception):
        sys.stdout.flush()
        sys.stderr.flush()
    return code


def run(
    argv: Sequence[str], *, seconds: float = 600.0, before: Callable[[], None] | None = None
) -> Ended:
    """Run a command to its end."""
    return Started(argv, before=before).wait(seconds)


def import_what_is_used_by(*commands: Sequence[str]) -> list[Ended]:
    """Run commands, each in a process of its own, and import here what they imported: later ones
    start at once.
    """
    endings = []
    for argv in commands:
        with tempfile.NamedTemporaryFile("w+") as names:

            def tell(file: str = names.name) -> None:
                real = os._exit

                def telling(code: int) -> None:
                    Path(file).write_text(json.dumps(list(sys.modules)))
                    real(code)

                os._exit = telling  # type: ignore[assignment]

            endings.append(run(argv, before=tell))
            for name in json.loads(names.read() or "[]"):
                if name != "__main__":
                    with contextlib.suppress(Exception):
                        importlib.import_module(name)
    return endings


@contextlib.contextmanager
def every_update_a_checkpoint() -> Iterator[None]:
    """Write a checkpoint at every update instead of every 30 seconds."""
    from harness.method import FitContext

    defaults = FitContext.__init__.__defaults__ or ()
    FitContext.__init__.__defaults__ = tuple(0.0 if d == 30.0 else d for d in defaults)
    try:
        yield
    finally:
        FitContext.__init__.__defaults__ = defaults


@contextlib.contextmanager
def nothing_drawn() -> Iterator[None]:
    """Compose figures without rendering them, which is nine tenths of a small report's time."""
    from matplotlib.figure import Figure

    def save_stub(self: Figure, file: Any, *, format: str, **_: Any) -> None:
        file.write("<svg ></svg>" if isinstance(file, io.TextIOBase) else format.encode())

    savefig = Figure.savefig
    Figure.savefig = save_stub  # type: ignore[method-assign,assignment]
    try:
        yield
    finally:
        Figure.savefig = savefig  # type: ignore[method-assign]
