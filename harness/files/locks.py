"""Who may write where: two writers of the same records and checkpoints would destroy each other's
work.

A comparison has one coordinator, by its name; a run has one maker. Several comparisons may so share
a work directory and each other's runs. The operating system keeps the locks: they are gone with
their process, however that ends.
"""

from __future__ import annotations

import json
import logging
import os
import socket
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from harness.errors import InputError
from harness.files.atomic import write_atomic, write_fault

if TYPE_CHECKING:
    from filelock import FileLock

log = logging.getLogger(__name__)

LOCK_FILE = ".lock"
HOLDER_FILE = ".lock-holder"


def comparison_lock(workdir: Path, name: str) -> AbstractContextManager[None]:
    """Be the one process that runs the comparison of this name in `workdir`, until the block ends.

    Raises:
        InputError: another process does already (its id is named), or the directory cannot be
            written.
    """
    return work_lock(
        workdir / "comparisons",
        f".{name}",
        f'comparison "{name}" in work directory {workdir}',
    )


@contextmanager
def run_lock(folder: Path) -> Iterator[None]:
    """Be the one process that works in the folder of a run, until the block ends; waits for another
    that does.
    """
    from filelock import FileLock

    with try_run_lock(folder) as held:
        if held:
            yield
            return
    log.warning("%s: another process is at this run; waiting for it", folder)
    with FileLock(folder / LOCK_FILE):
        yield


@contextmanager
def try_run_lock(folder: Path) -> Iterator[bool]:
    """As `run_lock`, without waiting: is the lock held until the block ends?"""
    from filelock import FileLock, Timeout

    folder.mkdir(parents=True, exist_ok=True)
    lock = FileLock(folder / LOCK_FILE)
    with suppress(Timeout):
        lock.acquire(timeout=0)
    try:
        yield lock.is_locked
    finally:
        lock.release()


@contextmanager
def work_lock(
    workdir: Path, prefix: str = "", what: str = "", seconds: float = 0
) -> Iterator[None]:
    """Hold `workdir` (created when missing) for this process until the block ends.

    The operating system keeps the lock, so it is gone with the process however that ends; the
    holder's id is in a file next to it for the message only. `prefix` and `what` are the names of
    these files and of what is held, where that is not the whole directory. For so many `seconds`
    another holder is waited for.

    Raises:
        InputError: another process holds the directory (its id is named), or the directory cannot
            be written.
    """
    from filelock import FileLock, Timeout

    holder_file = workdir / f"{prefix}{HOLDER_FILE}"
    lock = FileLock(workdir / f"{prefix}{LOCK_FILE}", timeout=seconds)
    try:
        workdir.mkdir(parents=True, exist_ok=True)
        _acquire(lock)
        owner = {"pid": os.getpid(), "host": socket.gethostname()}
        holder = json.dumps(owner)
        write_atomic(holder_file, holder, durable=False)  # a link there is replaced, not followed
    except Timeout:
        if not Path(lock.lock_file).exists():  # none can be made there, as in /proc
            raise InputError(
                f"work directory {workdir} cannot be used: it cannot be written",
                remedy="name another directory with --workdir",
            ) from None
        raise InputError(
            f"{what or f'work directory {workdir}'} is in use by {_holder(holder_file)}",
            remedy="wait for it to end, or name another directory with --workdir",
        ) from None
    except OSError as error:
        lock.release()
        raise write_fault(
            error,
            f"work directory {workdir} cannot be used: {error.filename or workdir}: "
            f"{error.strerror or error}",
            file=workdir,
            remedy="make room there, or name another directory with --workdir",
        ) from None
    try:
        yield
    finally:
        holder_file.unlink(missing_ok=True)
        lock.release()


def _acquire(lock: FileLock) -> None:
    """Wait for another process that has the lock, but not where no lock can be made."""
    from filelock import Timeout

    try:
        lock.acquire(timeout=0)
    except Timeout:
        if not Path(lock.lock_file).exists():
            raise
        lock.acquire()


def _holder(file: Path) -> str:
    try:
        holder = json.loads(file.read_text())
        if holder["host"] == socket.gethostname():
            where = ""
        else:
            where = f" on {holder['host']}"
        return f"process {holder['pid']}{where}"
    except (OSError, ValueError, KeyError, TypeError):
        return "another process"  # it has just taken the lock and not yet signed
