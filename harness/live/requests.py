"""Asking a comparison or a study to stop: a file in the work directory, at which its coordinator and workers look.

Whoever may write the work directory may ask, from any terminal or machine that sees it.
"""

from __future__ import annotations

import getpass
import json
import os
import socket
import time
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path

from harness.files.atomic import write_atomic

PAUSE, CANCEL = "pause", "cancel"
LOOK = 1.0  # seconds between two looks: a shared disk is asked once a second, whatever an update takes


@dataclass(frozen=True)
class Request:
    """Who asks for what; `time` is in seconds since 1970."""

    what: str
    by: str = ""
    time: float = 0.0


def file_of(workdir: Path, key: str) -> Path:
    """Where the request to what is known by `key` (see `harness.live.state.key_of`) lies."""
    return workdir / "live" / f"{key}.ask"


def ask(workdir: Path, key: str, what: str) -> None:
    """Ask for a stop."""
    try:
        user = getpass.getuser()
    except (KeyError, OSError):  # no name for this user's number, as in a container
        user = f"user {os.getuid()}"
    request = Request(what, f"{user} on {socket.gethostname()}", time.time())
    write_atomic(file_of(workdir, key), json.dumps(asdict(request)))


def asked(workdir: Path, key: str) -> Request | None:
    """What is asked for; a request that cannot be read is one to pause."""
    file = file_of(workdir, key)
    try:
        return Request(**json.loads(file.read_text("utf-8")))
    except FileNotFoundError:
        return None
    except (OSError, ValueError, TypeError):
        return Request(PAUSE) if file.exists() else None


def withdraw(workdir: Path, key: str) -> None:
    """Forget what was asked for."""
    with suppress(NotADirectoryError):  # then nobody can ask, either
        file_of(workdir, key).unlink(missing_ok=True)


class Stop:
    """Is there a request? Called after each update, it looks at the disk once a second; `key` "" never stops."""

    def __init__(self, workdir: Path, key: str) -> None:
        self.file = file_of(workdir, key) if key else None
        self._looked, self._found = 0.0, False

    def __call__(self) -> bool:
        """Was a stop asked for?"""
        if self.file is not None and not self._found and time.monotonic() - self._looked >= LOOK:
            self._looked = time.monotonic()
            self._found = self.file.exists()
        return self._found
