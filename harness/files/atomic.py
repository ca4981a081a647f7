"""Writing files so that nobody ever sees half of one, and errors of the file system itself.

A method that fails has a record that says so; a disk that fails is no fact about the method: the
program stops with what is stored, and the same command resumes.
"""

from __future__ import annotations

import errno
import os
import secrets
import stat
from contextlib import suppress
from glob import escape
from pathlib import Path

from harness.errors import InputError, NoRoom


def settle(folder: Path) -> None:
    """Wait until every file below a folder is on the disk, not only in the machine's memory.

    Raises:
        InputError: something else than a file or folder is there, which nobody could read again.
    """
    for path in (folder, *folder.rglob("*")):
        if path.exists():
            mode = path.stat().st_mode
        else:
            mode = 0
        if not stat.S_ISREG(mode) and not stat.S_ISDIR(mode):
            raise InputError("is no file: a method saves files and folders alone", file=path)
        handle = os.open(path, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def write_atomic(path: Path, data: bytes | str, *, durable: bool = True) -> None:
    """Write a file so that a reader (or a crash) sees either the old content or the new one, never
    a part.

    Not `durable`: without waiting for the disk, for what is soon rewritten; a loss of power may
    cost it.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    if isinstance(data, str):
        raw = data.encode()
    else:
        raw = data
    # Not tempfile: its files are readable by their owner only, and records are for everyone who may
    # read the folder.
    mark = f"{os.getpid()}.{secrets.token_hex(4)}"
    name = path.parent / f".{path.name}.{mark}"
    only_new = os.O_WRONLY | os.O_CREAT | os.O_EXCL
    handle = os.open(name, only_new, 0o666)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(raw)
            file.flush()
            if durable:
                os.fsync(file.fileno())
        os.replace(name, path)
    except BaseException as error:
        with suppress(
            OSError
        ):  # a disk that refuses the one refuses the other; the first error is the one to tell
            name.unlink(missing_ok=True)
        if isinstance(error, OSError) and error.filename is None:
            error.filename = str(path)
        raise


def sweep(path: Path) -> None:
    """Remove what kills left of the writing of a file; the caller keeps others from writing it
    meanwhile.
    """
    random = "[0-9a-f]" * 8
    for left in path.parent.glob(f".{escape(path.name)}.*.{random}"):
        left.unlink(missing_ok=True)


def open_folder(path: Path) -> Path:
    """A new folder next to `path` to write into, with the rights that the umask gives (tempfile's
    are its owner's).
    """
    mark = secrets.token_hex(4)
    folder = path.parent / f".{path.name}.{mark}"
    folder.mkdir()
    return folder


def share_files(folder: Path) -> None:
    """Give the files in a folder of `open_folder` the rights that the umask leaves: safetensors'
    are its owner's.
    """
    rights = folder.stat().st_mode & 0o666
    for file in folder.rglob("*"):
        if file.is_file():
            file.chmod(rights)


WHOLE_DISK = {  # code -> what is wrong, what to do
    errno.ENOSPC: ("the disk is full", "make room"),
    errno.EDQUOT: ("the disk quota is used up", "make room"),
    errno.EIO: ("the disk fails to read or write", "look after the disk"),
    errno.ESTALE: ("the network file system has gone away", "mount it again"),
    errno.EROFS: ("the file system can only be read", "mount it for writing"),
    errno.EFBIG: ("a file may not grow as large", "raise the limit (ulimit -f)"),
    errno.EMFILE: ("too many files are open", "raise the limit (ulimit -n)"),
    errno.ENFILE: ("too many files are open on this machine", "raise its limit (fs.file-max)"),
}
ONE_PLACE = dict.fromkeys(
    (errno.EACCES, errno.EPERM), ("no permission", "set its permissions right")
)


def storage_fault(error: BaseException, folder: Path | None = None) -> OSError | None:
    """The refusal of the file system that `error` is, comes from or reports; None for any other
    error.

    A lack of permission counts below `folder` alone: elsewhere it is the fault of whoever named the
    file.
    """
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, OSError) and _concerns(cause, folder):
            return cause
        cause = cause.__cause__
    for code in WHOLE_DISK:  # as safetensors and Arrow report it, in errors of their own
        reason = os.strerror(code)
        if reason in str(error):
            place = None if folder is None else str(folder)
            return OSError(code, reason, place)
    return None


def _concerns(error: OSError, folder: Path | None) -> bool:
    return error.errno in WHOLE_DISK or _lies_below(error, folder)


def _lies_below(error: OSError, folder: Path | None) -> bool:
    named = error.filename
    if folder is None or error.errno not in ONE_PLACE:
        return False
    if not isinstance(named, str | os.PathLike):
        return False
    return Path(named).absolute().is_relative_to(folder.absolute())


def is_exhausted(error: OSError) -> bool:
    """True if a disk or a limit is used up, or a disk fails: nobody has named a wrong place.

    >>> is_exhausted(OSError(errno.ENOSPC, "full")), is_exhausted(OSError(errno.EROFS, "read-only"))
    (True, False)
    """
    return error.errno in WHOLE_DISK and error.errno != errno.EROFS


def write_fault(
    error: OSError,
    message: str,
    *,
    file: Path,
    key: str | None = None,
    remedy: str | None = None,
) -> InputError:
    """Return the error to raise where a file cannot be written: `NoRoom` where nobody has named a
    wrong one.
    """
    kind = NoRoom if is_exhausted(error) else InputError
    return kind(message, file=file, key=key, remedy=remedy)


def append_line(path: Path, line: str) -> None:
    """Add a line to a file; one that could not be written whole leaves nothing behind.

    Raises:
        OSError: it cannot be written.
    """
    left = line.encode() + b"\n"
    with path.open("ab", buffering=0) as file:  # a buffer would be written again on closing
        size = file.tell()
        try:
            while left:
                left = left[file.write(left) :]
        except OSError as error:
            with suppress(OSError):
                file.truncate(size)
            error.filename = str(path)
            raise


def refusal(error: OSError) -> str | None:
    """One line about a refusal and what to do; None for other errors of the operating system."""
    known = (WHOLE_DISK | ONE_PLACE).get(error.errno or 0)
    if known is None:
        return None
    what, remedy = known
    if error.filename:
        where = f" ({error.filename})"
    else:
        where = ""
    return f"{what}{where}; {remedy} and give the same command again: finished runs and the last checkpoint are saved"
