"""Writing files so that nobody ever sees half of one."""

from __future__ import annotations

import os
import secrets
from contextlib import suppress
from glob import escape
from pathlib import Path


def settle(folder: Path) -> None:
    """Wait until every file below a folder is on the disk, not only in the machine's memory."""
    for path in (folder, *folder.rglob("*")):
        handle = os.open(path, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def write_atomic(path: Path, data: bytes | str, *, durable: bool = True) -> None:
    """Write a file so that a reader (or a crash) sees either the old content or the new one, never a part.

    Not `durable`: without waiting for the disk, for what is soon rewritten; a loss of power may cost it.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    raw = data.encode() if isinstance(data, str) else data
    # Not tempfile: its files are readable by their owner only, and records are for everyone who may read the folder.
    name = path.parent / f".{path.name}.{os.getpid()}.{secrets.token_hex(4)}"
    handle = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(raw)
            file.flush()
            if durable:
                os.fsync(file.fileno())
        os.replace(name, path)
    except BaseException as error:
        with suppress(OSError):  # a disk that refuses the one refuses the other; the first error is the one to tell
            name.unlink(missing_ok=True)
        if isinstance(error, OSError) and error.filename is None:
            error.filename = str(path)
        raise


def sweep(path: Path) -> None:
    """Remove what kills left of the writing of a file; the caller keeps others from writing it meanwhile."""
    for left in path.parent.glob(f".{escape(path.name)}.*.{'[0-9a-f]' * 8}"):
        left.unlink(missing_ok=True)


def open_folder(path: Path) -> Path:
    """A new folder next to `path` to write into, with the rights that the umask gives (tempfile's are its owner's)."""
    folder = path.parent / f".{path.name}.{secrets.token_hex(4)}"
    folder.mkdir()
    return folder


def share_files(folder: Path) -> None:
    """Give the files in a folder of `open_folder` the rights that the umask leaves: safetensors' are its owner's."""
    rights = folder.stat().st_mode & 0o666
    for file in folder.rglob("*"):
        if file.is_file():
            file.chmod(rights)
