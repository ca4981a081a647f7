"""The harness's own cache folder, the one clear line for a disk that is full, and archives unpacked there."""

from __future__ import annotations

import errno
import lzma
import os
import shutil
import tarfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from harness.errors import InputError
from harness.files.atomic import settle
from harness.files.hashing import sha256_of
from harness.files.printable import first_line

_NO_ROOM = {errno.ENOSPC, errno.EDQUOT}
_NO_ACCESS = {errno.EACCES, errno.EPERM, errno.EROFS}


def cache_root() -> Path:
    """HARNESS_CACHE, or `harness` in the user's cache folder. It is not created here."""
    if given := os.environ.get("HARNESS_CACHE"):
        return Path(given).expanduser()
    return Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser() / "harness"


@contextmanager
def writing(what: str, folder: Path) -> Iterator[None]:
    """Turn "disk full" and "not allowed" while writing `what` into `folder` into one clear line.

    Raises:
        InputError: no space, quota used up, or a folder that cannot be written to.
    """
    try:
        yield
    except OSError as error:
        if error.errno in _NO_ROOM:
            raise InputError(
                f"{folder}: no space left on the disk while writing {what}; nothing was kept; "
                "free some space, or set HARNESS_CACHE (and HF_HOME for downloads) to a folder on another disk"
            ) from None
        if error.errno in _NO_ACCESS:
            raise InputError(
                f"{folder}: cannot be written to ({error.strerror}) while storing {what}; "
                "set HARNESS_CACHE to a folder that can"
            ) from None
        raise


def unpack_once(archive: Path, into: Path) -> Path:
    """The folder `into`/<sha256 of the archive> with the archive's files; unpacked unless it is there already.

    All files are unpacked or none, by one process at a time.

    Raises:
        InputError: damaged or truncated archive, a member that is a device or would land outside of the folder (then
            nothing is unpacked), no space left.
    """
    from filelock import FileLock

    final = into / sha256_of(archive)
    if final.is_dir():
        return final
    with writing(f"the files of {archive.name}", into):
        into.mkdir(parents=True, exist_ok=True)
        with FileLock(f"{final}.lock"):
            part = final.with_suffix(".part")
            shutil.rmtree(part, ignore_errors=True)  # of a killed process
            if final.is_dir():  # another process was faster
                return final
            part.mkdir()
            try:
                with tarfile.open(archive, "r:*") as tar:
                    tar.extractall(part, filter=_readable)  # noqa: S202 - the filter keeps it inside
                settle(part)
                part.rename(final)
            except (tarfile.TarError, EOFError, zlib.error, lzma.LZMAError) as error:
                raise InputError(
                    f"{archive}: cannot be unpacked ({first_line(error)}); nothing was kept; delete it to have it "
                    "downloaded again"
                ) from None
            finally:
                shutil.rmtree(part, ignore_errors=True)
    return final


def _readable(member: tarfile.TarInfo, folder: str) -> tarfile.TarInfo | None:
    """A member as tarfile's data filter allows it, but readable for all users of the cache."""
    allowed = tarfile.data_filter(member, folder)
    return allowed.replace(mode=0o644) if allowed is not None and allowed.isreg() else allowed
