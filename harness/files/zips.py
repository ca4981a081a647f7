"""Zip archives that are passed on: the same content gives the same bytes, and an archive of someone
else is unpacked without trust.
"""

from __future__ import annotations

import os
import re
import secrets
import shutil
import stat
import tarfile
import zipfile
import zlib
from collections.abc import Mapping
from pathlib import Path

from harness.errors import InputError
from harness.files.printable import first_line, one_line

MOST_FILES = 200_000
_FREE = 1 << 30  # bytes that any archive may unpack to
_RATIO = 20  # above that: bytes for each of its own; records and text are packed less densely
_CHUNK = 1 << 20
_DATE = (1980, 1, 1, 0, 0, 0)
_DRIVE = re.compile(r"[A-Za-z]:")


def write_zip(archive: Path, members: Mapping[str, bytes | Path]) -> None:
    """Write files by their names in the archive; dates, owners and order are always the same.

    Raises:
        OSError: the archive cannot be written, or a file cannot be read.
    """
    mark = f"{os.getpid()}.{secrets.token_hex(4)}"
    part = archive.with_name(f".{archive.name}.{mark}")
    try:
        with zipfile.ZipFile(part, "w", zipfile.ZIP_DEFLATED, compresslevel=6) as packed:
            for name in sorted(members):
                _add(packed, name, members[name])
        part.replace(archive)
    finally:
        part.unlink(missing_ok=True)


def _add(packed: zipfile.ZipFile, name: str, content: bytes | Path) -> None:
    about = zipfile.ZipInfo(name, _DATE)
    about.compress_type = zipfile.ZIP_DEFLATED
    about.create_system = 3  # so that the mode is one of Unix, wherever it is written
    about.external_attr = (stat.S_IFREG | 0o644) << 16
    if isinstance(content, bytes):
        packed.writestr(about, content)
        return
    with (
        content.open("rb") as source,
        packed.open(about, "w", force_zip64=True) as target,
    ):
        shutil.copyfileobj(source, target, _CHUNK)


def unpack_zip(archive: Path, folder: Path) -> None:
    """Unpack an archive into an empty folder.

    Raises:
        InputError: damaged, encrypted, with a name that leads out of the folder, with a link, two
            files of one name, too many files, or more bytes than such a file can hold.
    """
    most = SizeLimit(archive).most
    try:
        with zipfile.ZipFile(archive) as packed:
            members = packed.infolist()
            _check_members(archive, members, most)
            left = most
            for member in members:
                if not member.is_dir():
                    left -= _unpack_one(packed, member, folder / member.filename, left)
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError) as error:
        message = f"cannot be unpacked ({first_line(error)})"
        raise InputError(message, file=archive, remedy="get it again") from None


def _check_members(archive: Path, members: list[zipfile.ZipInfo], most: int) -> None:
    if len(members) > MOST_FILES:
        message = f"has {len(members):,} files; expected at most {MOST_FILES:,}"
        raise InputError(message, file=archive)
    seen: set[str] = set()
    for member in members:
        fault = _fault_of(member, seen)
        if fault:
            name = f"{one_line(member.filename):.100}"
            message = f'the file "{name}" {fault}; nothing was unpacked'
            raise InputError(message, file=archive)
        seen.add(member.filename.casefold())
    if sum(member.file_size for member in members) > most:
        raise _too_large(archive, most)


def _fault_of(member: zipfile.ZipInfo, seen: set[str]) -> str:
    """Return why a file is not unpacked; empty for a sound one."""
    name = member.filename
    parts = name.rstrip("/").split("/")
    kind = stat.S_IFMT(member.external_attr >> 16)
    if kind not in (0, stat.S_IFREG, stat.S_IFDIR):
        return "is a link or a device"
    is_relative = any(part in ("", ".", "..") for part in parts)
    if _DRIVE.match(name) or is_relative:
        return "would be outside of the folder"
    is_strange = any(character in name for character in "\\\0:")
    if is_strange or any(len(part) > 200 for part in parts):
        return "has a name that not every system can have"
    if member.flag_bits & 1:
        return "is encrypted"
    if name.casefold() in seen:
        return "is there twice"
    return ""


def _unpack_one(packed: zipfile.ZipFile, member: zipfile.ZipInfo, target: Path, left: int) -> int:
    """Unpack a file; return its bytes, which are counted: the archive may state others."""
    target.parent.mkdir(parents=True, exist_ok=True)
    count = 0
    with packed.open(member) as source, target.open("xb") as sink:
        while chunk := source.read(_CHUNK):
            count += len(chunk)
            if count > left:
                raise _too_large(Path(packed.filename or ""), left)
            sink.write(chunk)
    return count


class SizeLimit:
    """How many bytes an archive may unpack to; counts those of a tar file.

    Attributes:
        most: grows with the archive, which can hold so much and hardly more.
    """

    def __init__(self, archive: Path) -> None:
        self.archive = archive
        self.most = _FREE + _RATIO * archive.stat().st_size
        self.left = self.most

    def count(self, member: tarfile.TarInfo) -> tarfile.TarInfo:
        """Return the member once its bytes are counted.

        Raises:
            InputError: it is too much.
        """
        self.left -= member.size
        if self.left < 0:
            raise _too_large(self.archive, self.most)
        return member


def _too_large(archive: Path, most: int) -> InputError:
    message = f"holds more than {most >> 20:,} MiB, too much for an archive of its size"
    return InputError(message, file=archive)
