"""Unpacking an archive from elsewhere: all of it or nothing, never outside of its folder, once for all processes."""

from __future__ import annotations

import hashlib
import lzma
import os
import shutil
import tarfile
import tempfile
import time
import zlib
from pathlib import Path, PurePosixPath

from harness.errors import InputError
from harness.sources.remote.cache_folder import writing
from harness.sources.remote.hub import first_line

_BLOCK = tarfile.BLOCKSIZE
_PARTIAL = ".partial-"
_ABANDONED_SECONDS = 24 * 3600


def unpack_once(archive: Path, into: Path) -> Path:
    """The folder `into`/<sha256 of the archive> with the archive's files; unpacked unless it is there already.

    The files are written to a temporary folder that is renamed when complete, so any number of processes may do this at
    once and a crash leaves nothing that passes for the whole.

    Raises:
        InputError: damaged or truncated archive, a member that is a link, a device or would land outside of the
            folder (then nothing is unpacked), no space left.
    """
    with archive.open("rb") as stream:
        final = into / hashlib.file_digest(stream, "sha256").hexdigest()
    if final.is_dir():
        return final
    with writing(f"the files of {archive.name}", into):
        into.mkdir(parents=True, exist_ok=True)
        _sweep(into)
        temporary = Path(tempfile.mkdtemp(dir=into, prefix=_PARTIAL))
        try:
            _unpack(archive, temporary)
            temporary.chmod(0o755)
            try:
                temporary.rename(final)
            except OSError:
                if not final.is_dir():  # else another process was faster, with the same content
                    raise
        finally:
            shutil.rmtree(temporary, ignore_errors=True)
    return final


def _sweep(folder: Path) -> None:
    """Remove what killed processes left long ago."""
    for left in folder.glob(_PARTIAL + "*"):
        try:
            if time.time() - left.stat().st_mtime > _ABANDONED_SECONDS:
                shutil.rmtree(left, ignore_errors=True)
        except FileNotFoundError:
            continue


def _unpack(archive: Path, folder: Path) -> None:
    damaged = f"{archive}: damaged or truncated tar archive"
    remedy = "; delete it to have it downloaded again"
    try:
        with tarfile.open(archive, "r:*") as tar:
            members = tar.getmembers()
            for member in members:
                _check(archive, member)
                member.mode = 0o644  # whoever packed them, all users of the cache may read them
            # tarfile takes a file that stops between two members, or garbage there, for the end of the archive
            end = max((m.offset_data + -(-m.size // _BLOCK) * _BLOCK * m.isreg() for m in members), default=0)
            assert tar.fileobj is not None
            tar.fileobj.seek(end)
            if not members or tar.fileobj.read(_BLOCK) != bytes(_BLOCK):
                raise InputError(f"{damaged} (no end mark){remedy}")
            tar.extractall(folder, members, filter="data")
            for member in members:
                if member.isreg():  # on the disk before the folder gets its name: a crash leaves no empty files there
                    with (folder / member.name).open("rb") as file:
                        os.fsync(file.fileno())
    except (tarfile.TarError, EOFError, zlib.error, lzma.LZMAError) as error:
        raise InputError(f"{damaged} ({first_line(error)}){remedy}") from None


def _check(archive: Path, member: tarfile.TarInfo) -> None:
    """What tarfile's filter would change in silence (it drops a leading "/") or lets pass (links within the folder)."""
    path = PurePosixPath(member.name)
    outside = path.is_absolute() or ".." in path.parts or "\\" in member.name
    if outside:
        problem = "would be written outside of its folder"
    elif not (member.isreg() or member.isdir()):
        problem = "is a link or a device, not a plain file"
    else:
        return
    raise InputError(f'{archive}: member "{member.name}" {problem}; the archive was refused and nothing was unpacked')
