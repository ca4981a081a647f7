"""One process a work directory: two writers of the same records and checkpoints would destroy each other's work."""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from harness.errors import InputError

LOCK_FILE = ".lock"
HOLDER_FILE = ".lock-holder.json"


@contextmanager
def work_lock(workdir: Path) -> Iterator[None]:
    """Hold `workdir` (created when missing) for this process until the block ends.

    The operating system keeps the lock, so it is gone with the process however that ends; the holder's id lies in a
    file beside it for the message only.

    Raises:
        InputError: another process holds the directory (its id is named), or the directory cannot be written.
    """
    from filelock import FileLock, Timeout

    holder_file = workdir / HOLDER_FILE
    lock = FileLock(workdir / LOCK_FILE, timeout=0)
    try:
        workdir.mkdir(parents=True, exist_ok=True)
        lock.acquire()
        holder_file.write_text(json.dumps({"pid": os.getpid(), "host": socket.gethostname()}))
    except Timeout:
        raise InputError(
            f"work directory {workdir} is in use by {_holder(holder_file)}; "
            "wait for it to end, or name another directory with --workdir"
        ) from None
    except OSError as error:
        lock.release()
        raise InputError(
            f"work directory {workdir} cannot be used: {error.strerror or error}; "
            "make room there, or name another directory with --workdir"
        ) from None
    try:
        yield
    finally:
        holder_file.unlink(missing_ok=True)
        lock.release()


def _holder(file: Path) -> str:
    try:
        holder = json.loads(file.read_text())
        where = "" if holder["host"] == socket.gethostname() else f" on {holder['host']}"
        return f"process {holder['pid']}{where}"
    except (OSError, ValueError, KeyError, TypeError):
        return "another process"  # it has just taken the lock and not yet signed
