"""The harness's own cache folder, the one clear line for a disk that is full, and archives unpacked
there.
"""

from __future__ import annotations

import errno
import lzma
import os
import shutil
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from harness.errors import InputError, NoRoom
from harness.files.atomic import settle
from harness.files.hashing import sha256_of
from harness.files.printable import first_line, one_line
from harness.files.reading import expand_user
from harness.files.zips import SizeLimit, unpack_zip

_NO_ROOM = {errno.ENOSPC, errno.EDQUOT}
_NO_ACCESS = {errno.EACCES, errno.EPERM, errno.EROFS}
# A file or a link that leads nowhere is in the place of the folder, or of one that it is in.
_NO_FOLDER = {errno.ENOTDIR, errno.EEXIST, errno.ELOOP}


def cache_root() -> Path:
    """HARNESS_CACHE, or `harness` in the user's cache folder. It is not created here.

    Raises:
        InputError: neither is known, as for a user without a home folder.
    """
    if given := os.environ.get("HARNESS_CACHE"):
        return expand_user(given)
    try:
        return expand_user(os.environ.get("XDG_CACHE_HOME") or "~/.cache") / "harness"
    except InputError:
        message = "there is no home folder for the cache"
        raise InputError(message, key="HARNESS_CACHE", remedy="set it to a folder") from None


@contextmanager
def writing(what: str, folder: Path, setting: str = "HARNESS_CACHE") -> Iterator[None]:
    """Turn "disk full" and "not allowed" while writing `what` into `folder` into one clear line.

    `setting`: the environment variable that names another folder.

    Raises:
        InputError: no space, quota used up, or a folder that cannot be written to.
    """
    try:
        yield
    except OSError as error:
        if error.errno in _NO_ROOM:
            raise NoRoom(
                f"no space left on the disk while writing {what}; nothing was saved",
                file=folder,
                remedy=(
                    "free some space, or set HARNESS_CACHE (and HF_HOME for downloads) to a "
                    "folder on another disk"
                ),
            ) from None
        if error.errno in _NO_ACCESS or (error.errno in _NO_FOLDER and not folder.is_dir()):
            raise InputError(
                f"cannot be written to ({error.strerror}) while storing {what}",
                file=folder,
                remedy=f"set {setting} to a folder that can",
            ) from None
        raise


def make_once(
    folder: Path,
    what: str,
    make: Callable[[Path], None],
    *,
    is_sound: Callable[[Path], bool] = Path.is_dir,
) -> Path:
    """`folder`, filled by `make` unless it is there and sound: whole or not at all, by one process
    at a time.

    Raises:
        InputError: no space left, a folder that cannot be written to, or what `make` raises.
    """
    from filelock import FileLock

    if is_sound(folder):
        return folder
    with writing(what, folder.parent):
        folder.parent.mkdir(parents=True, exist_ok=True)
        with FileLock(f"{folder}.lock"):
            if is_sound(folder):  # another process was faster
                return folder
            part = folder.with_suffix(".part")
            for left in (part, folder):  # of a killed process, or damaged
                shutil.rmtree(left, ignore_errors=True)
            part.mkdir()
            try:
                make(part)
                settle(part)
                part.rename(folder)
            finally:
                shutil.rmtree(part, ignore_errors=True)
    return folder


_REMEDY = "delete it to have it downloaded again"


def unpack_once(archive: Path, into: Path, *, remedy: str = _REMEDY) -> Path:
    """The folder `into`/<sha256 of the archive> with the archive's files; unpacked unless it is
    there already.

    Args:
        remedy: of an archive that is damaged; the default is that of a download.

    Raises:
        InputError: as `unpack`, or no space left.
    """

    def fill(folder: Path) -> None:
        unpack(archive, folder, remedy)

    return make_once(into / sha256_of(archive), f"the files of {archive.name}", fill)


def unpack_for_now(archive: Path, folder: Path, *, remedy: str) -> None:
    """Unpack an archive into an empty folder that is soon removed: nothing waits for the disk, which
    takes milliseconds a file.

    Raises:
        InputError: as `unpack`, a link that leads nowhere, or no space left.
    """
    with writing(f"the files of {archive.name}", folder):
        unpack(archive, folder, remedy)
    for path in folder.rglob("*"):
        if not path.exists():
            name = one_line(str(path.relative_to(folder)))
            message = f'"{name:.100}" in it is a link that leads nowhere'
            raise InputError(message, file=archive, remedy=remedy)


def unpack(archive: Path, folder: Path, remedy: str) -> None:
    """Unpack a tar or zip file of anyone into an empty folder.

    Raises:
        InputError: damaged or truncated archive, or a member that is a device or would land outside
            of the folder (then nothing is unpacked).
    """
    if zipfile.is_zipfile(archive):
        unpack_zip(archive, folder)
        return
    try:
        with tarfile.open(archive, "r:*") as tar:
            check = SizeLimit(archive)
            tar.extractall(folder, filter=lambda one, to: _readable(check.count(one), to))  # noqa: S202 - the filter keeps it inside
    except (tarfile.TarError, EOFError, zlib.error, lzma.LZMAError) as error:
        why = first_line(error).rstrip(":")
        raise InputError(f"cannot be unpacked ({why})", file=archive, remedy=remedy) from None


def _readable(member: tarfile.TarInfo, folder: str) -> tarfile.TarInfo | None:
    """A member as tarfile's data filter allows it, but readable for all users of the cache."""
    allowed = tarfile.data_filter(member, folder)
    if allowed is not None and allowed.isreg():
        return allowed.replace(mode=0o644)
    return allowed
