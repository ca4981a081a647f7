"""Unpacking an archive: all of it or nothing, never outside of its folder, once for all processes."""

from __future__ import annotations

import lzma
import shutil
import tarfile
import zlib
from pathlib import Path

from harness.errors import InputError
from harness.files.atomic import settle
from harness.sources.remote.cache_folder import writing
from harness.sources.remote.hub import first_line, sha256_of


def unpack_once(archive: Path, into: Path) -> Path:
    """The folder `into`/<sha256 of the archive> with the archive's files; unpacked unless it is there already.

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
