"""Unpacking an archive from elsewhere: all of it or nothing, and never outside of its folder."""

from __future__ import annotations

import errno
import hashlib
import io
import os
import tarfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from harness.errors import InputError
from harness.sources.remote.archive import unpack_once

FILES = {"./STS/a.txt": b"one", "./STS/deep/b.txt": b"two" * 5000, "CR/c": b""}


def make(path: Path, change: Callable[[tarfile.TarFile], None] | None = None, mode: str = "w") -> Path:
    with tarfile.open(path, mode) as tar:  # type: ignore[call-overload]
        for name, data in FILES.items():
            member = tarfile.TarInfo(name)
            member.size = len(data)
            tar.addfile(member, io.BytesIO(data))
        if change is not None:
            change(tar)
    return path


def content(folder: Path) -> dict[str, bytes]:
    return {file.relative_to(folder).as_posix(): file.read_bytes() for file in folder.rglob("*") if file.is_file()}


def refusal(tar: Path, into: Path) -> str:
    with pytest.raises(InputError) as caught:
        unpack_once(tar, into)
    assert not into.exists() or list(into.iterdir()) == []
    message = str(caught.value)
    assert "\n" not in message
    return message


@pytest.mark.parametrize("mode", ["w", "w:gz"])
def test_an_archive_is_unpacked_once_into_a_folder_named_by_its_hash(tmp_path: Path, mode: str) -> None:
    tar = make(tmp_path / "x.tar", mode=mode)
    folder = unpack_once(tar, tmp_path / "cache")
    assert folder == tmp_path / "cache" / hashlib.sha256(tar.read_bytes()).hexdigest()
    assert content(folder) == {"STS/a.txt": b"one", "STS/deep/b.txt": b"two" * 5000, "CR/c": b""}
    stamp = (folder / "CR/c").stat().st_mtime_ns
    assert unpack_once(tar, tmp_path / "cache") == folder
    assert (folder / "CR/c").stat().st_mtime_ns == stamp
    assert [p.name for p in (tmp_path / "cache").iterdir()] == [folder.name]


def test_files_are_readable_whatever_the_archive_says(tmp_path: Path) -> None:
    def private(tar: tarfile.TarFile) -> None:
        for name, mode in (("private", 0o600), ("odd", 0o6777)):
            member = tarfile.TarInfo(name)
            member.mode = mode
            tar.addfile(member)

    folder = unpack_once(make(tmp_path / "x.tar", private), tmp_path / "cache")
    assert {(folder / name).stat().st_mode & 0o7777 for name in ("private", "odd")} == {0o644}


def test_many_at_once_agree(tmp_path: Path) -> None:
    tar = make(tmp_path / "x.tar")
    with ThreadPoolExecutor(8) as pool:
        folders = set(pool.map(lambda _: unpack_once(tar, tmp_path / "cache"), range(16)))
    assert len(folders) == 1
    assert list((tmp_path / "cache").iterdir()) == list(folders)
    assert len(content(folders.pop())) == 3


def _file(name: str) -> Callable[[tarfile.TarFile], None]:
    return lambda tar: tar.addfile(tarfile.TarInfo(name), io.BytesIO())


def _special(kind: bytes, target: str = "") -> Callable[[tarfile.TarFile], None]:
    def change(tar: tarfile.TarFile) -> None:
        member = tarfile.TarInfo("STS/special")
        member.type, member.linkname = kind, target
        tar.addfile(member)

    return change


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (_file("../evil"), 'member "../evil" would be written outside of its folder'),
        (_file("STS/../../evil"), "would be written outside"),
        (_file("/tmp/evil"), 'member "/tmp/evil" would be written outside'),
        (_file("..\\evil"), "would be written outside"),
        (_special(tarfile.SYMTYPE, "/etc"), 'member "STS/special" is a link or a device'),
        (_special(tarfile.SYMTYPE, "a.txt"), "is a link or a device"),
        (_special(tarfile.LNKTYPE, "STS/a.txt"), "is a link or a device"),
        (_special(tarfile.FIFOTYPE), "is a link or a device"),
        (_special(tarfile.CHRTYPE), "is a link or a device"),
    ],
)
def test_one_unsafe_member_refuses_the_whole(
    tmp_path: Path, change: Callable[[tarfile.TarFile], None], problem: str
) -> None:
    tar = make(tmp_path / "x.tar", change)
    message = refusal(tar, tmp_path / "deep" / "cache")
    assert message.startswith(f"{tar}: ")
    assert problem in message
    assert "nothing was unpacked" in message
    assert not (tmp_path / "evil").exists()
    assert not (tmp_path / "deep" / "evil").exists()


def test_truncated_anywhere_is_refused(tmp_path: Path) -> None:
    whole = make(tmp_path / "x.tar").read_bytes()
    end = 512 * (2 + 1 + 30 + 1)  # header and data of a.txt, header and 30 blocks of b.txt, header of c
    assert whole[end : end + 1024] == bytes(1024)
    for length in [*range(0, end + 1, 512), 100, 700, end - 1, end + 511]:
        tar = tmp_path / "cut.tar"
        tar.write_bytes(whole[:length])
        assert "damaged or truncated tar archive" in refusal(tar, tmp_path / "cache"), length


def test_garbage_is_refused(tmp_path: Path) -> None:
    whole = bytearray(make(tmp_path / "x.tar").read_bytes())
    whole[1024:1034] = b"0123456789"  # the header of the second member
    for number, data in enumerate((bytes(whole), b"<html>not found</html>" * 100, bytes(20480))):
        tar = tmp_path / f"{number}.tar"
        tar.write_bytes(data)
        assert "damaged or truncated tar archive" in refusal(tar, tmp_path / "cache")


def test_a_full_disk_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written = []

    def full(source: Any, target: Any, length: int, *_: Any) -> None:
        written.append(target.write(source.read(length)))
        if len(written) == 2:
            raise OSError(errno.ENOSPC, "No space left on device")

    tar = make(tmp_path / "x.tar")
    monkeypatch.setattr(tarfile, "copyfileobj", full)
    message = refusal(tar, tmp_path / "cache")
    assert message.startswith(f"{tmp_path / 'cache'}: no space left on the disk while writing the files of x.tar")


def test_what_a_killed_process_left_is_swept_after_a_day(tmp_path: Path) -> None:
    old, fresh = tmp_path / ".partial-old", tmp_path / ".partial-fresh"
    for folder in (old, fresh):
        folder.mkdir()
    os.utime(old, (time.time() - 90_000,) * 2)
    unpack_once(make(tmp_path / "x.tar"), tmp_path)
    assert not old.exists()
    assert fresh.exists()
