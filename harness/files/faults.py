"""Errors of the file system itself, as opposed to those of methods and data.

A method that fails has a record that says so; a disk that fails is no fact about the method: the program stops with
what is stored, and the same command resumes.
"""

from __future__ import annotations

import errno
import os
from pathlib import Path

WHOLE_DISK = {  # code -> what is wrong, what to do
    errno.ENOSPC: ("the disk is full", "make room"),
    errno.EDQUOT: ("the disk quota is used up", "make room"),
    errno.EIO: ("the disk fails to read or write", "look after the disk"),
    errno.ESTALE: ("the network file system has gone away", "mount it again"),
    errno.EROFS: ("the file system can only be read", "mount it for writing"),
}
ONE_PLACE = dict.fromkeys((errno.EACCES, errno.EPERM), ("no permission", "set its permissions right"))


def storage_fault(error: BaseException, folder: Path | None = None) -> OSError | None:
    """The refusal of the file system that `error` is, comes from or reports; None for any other error.

    A lack of permission counts below `folder` alone: elsewhere it is the fault of whoever named the file.
    """
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, OSError) and (cause.errno in WHOLE_DISK or _lies_below(cause, folder)):
            return cause
        cause = cause.__cause__
    for code in WHOLE_DISK:  # as safetensors and Arrow report it, in errors of their own
        if os.strerror(code) in str(error):
            return OSError(code, os.strerror(code), None if folder is None else str(folder))
    return None


def _lies_below(error: OSError, folder: Path | None) -> bool:
    named = error.filename
    if folder is None or error.errno not in ONE_PLACE or not isinstance(named, str | os.PathLike):
        return False
    return Path(named).absolute().is_relative_to(folder.absolute())


def refusal(error: OSError) -> str | None:
    """One line about a refusal and what to do; None for other errors of the operating system."""
    known = (WHOLE_DISK | ONE_PLACE).get(error.errno or 0)
    if known is None:
        return None
    what, remedy = known
    where = f" ({error.filename})" if error.filename else ""
    return f"{what}{where}; {remedy} and give the same command again: finished runs and the last checkpoint are saved"
