"""What the file system itself refuses, told apart from the faults of methods and data.

A method that fails has a record that says so; a disk that fails is no fact about the method: the program stops with
what is kept, and the same command goes on.
"""

from __future__ import annotations

import errno
import os
from pathlib import Path

WHOLE_DISK = {
    errno.ENOSPC: "the disk is full",
    errno.EDQUOT: "the disk quota is used up",
    errno.EIO: "the disk fails to read or write",
    errno.ESTALE: "the network file system has gone away",
    errno.EROFS: "the file system can only be read",
}
ONE_PLACE = {errno.EACCES: "no permission", errno.EPERM: "no permission"}
_REMEDIES = {
    errno.ENOSPC: "make room",
    errno.EDQUOT: "make room",
    errno.EIO: "look after the disk",
    errno.ESTALE: "mount it again",
    errno.EROFS: "mount it for writing",
    errno.EACCES: "set its permissions right",
    errno.EPERM: "set its permissions right",
}


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
    what = (WHOLE_DISK | ONE_PLACE).get(error.errno or 0)
    if what is None:
        return None
    where = f" ({error.filename})" if error.filename else ""
    return (
        f"{what}{where}; {_REMEDIES[error.errno or 0]} and give the same command again: "
        "finished runs and the last checkpoint are kept"
    )
