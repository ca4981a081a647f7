"""Unpacking an archive from elsewhere: all of it or nothing, and never outside of its folder."""

from __future__ import annotations

import errno
import hashlib
import io
import tarfile
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from harness.errors import InputError
from harness.sources.remote.cache_folder import unpack_once

FILES = {"./STS/a.txt": b"one", "./STS/deep/b.txt": b"two" * 5000, "CR/c": b""}


def make(
    path: Path, change: Callable[[tarfile.TarFile], None] | None = None, mode: str = "w"
) -> Path:
    with tarfile.open(path, mode) as tar:  # type: ignore[call-overload]
        for name, data in FILES.items():
            member = tarfile.TarInfo(name)
            member.size = len(data)
            tar.addfile(member, io.BytesIO(data))
        if change is not None:
            change(tar)
    return path


def content(folder: Path) -> dict[str, bytes]:
    return {
        file.relative_to(folder).as_posix(): file.read_bytes()
        for file in folder.rglob("*")
        if file.is_file()
    }


def refusal(tar: Path, into: Path) -> str:
    with pytest.raises(InputError) as caught:
        unpack_once(tar, into)
    assert not [path for path in into.iterdir() if path.is_dir()]
    message = str(caught.value)
    assert "\n" not in message
    return message


@pytest.mark.parametrize("mode", ["w", "w:gz", "w:xz"])
def test_an_archive_is_unpacked_once_into_a_folder_named_by_its_hash(
    tmp_path: Path, mode: str
) -> None:
    tar = make(tmp_path / "x.tar", mode=mode)
    with ThreadPoolExecutor(8) as pool:
        (folder,) = set(pool.map(lambda _: unpack_once(tar, tmp_path / "cache"), range(16)))
    assert folder == tmp_path / "cache" / hashlib.sha256(tar.read_bytes()).hexdigest()
    assert content(folder) == {"STS/a.txt": b"one", "STS/deep/b.txt": b"two" * 5000, "CR/c": b""}


def test_files_are_readable_whatever_the_archive_says(tmp_path: Path) -> None:
    def private(tar: tarfile.TarFile) -> None:
        for name, mode in (("private", 0o600), ("odd", 0o6777)):
            member = tarfile.TarInfo(name)
            member.mode = mode
            tar.addfile(member)

    folder = unpack_once(make(tmp_path / "x.tar", private), tmp_path / "cache")
    assert {(folder / name).stat().st_mode & 0o7777 for name in ("private", "odd")} == {0o644}


def _file(name: str) -> Callable[[tarfile.TarFile], None]:
    return lambda tar: tar.addfile(tarfile.TarInfo(name), io.BytesIO())


def _special(kind: bytes, target: str = "") -> Callable[[tarfile.TarFile], None]:
    def change(tar: tarfile.TarFile) -> None:
        member = tarfile.TarInfo("STS/special")
        member.type, member.linkname = kind, target
        tar.addfile(member)

    return change


@pytest.mark.parametrize(
    "change",
    [
        _file("../evil"),
        _file("STS/../../evil"),
        _special(tarfile.SYMTYPE, "/etc"),
        _special(tarfile.SYMTYPE, "../../evil"),
        _special(tarfile.LNKTYPE, "../../evil"),
        _special(tarfile.FIFOTYPE),
        _special(tarfile.CHRTYPE),
    ],
)
def test_one_unsafe_member_refuses_the_whole(
    tmp_path: Path, change: Callable[[tarfile.TarFile], None]
) -> None:
    tar = make(tmp_path / "x.tar", change)
    assert refusal(tar, tmp_path / "deep" / "cache").startswith(f"{tar}: ")
    assert not list(tmp_path.rglob("evil"))


def test_an_absolute_name_stays_inside(tmp_path: Path) -> None:
    folder = unpack_once(make(tmp_path / "x.tar", _file("/tmp/harness-evil")), tmp_path / "cache")
    assert (folder / "tmp" / "harness-evil").is_file()
    assert not Path("/tmp/harness-evil").exists()


@pytest.mark.parametrize("mode", ["w:gz", "w:xz"])
def test_truncated_and_other_files_are_refused(tmp_path: Path, mode: str) -> None:
    whole = make(tmp_path / "x.tar", mode=mode).read_bytes()
    for data in (b"", b"<html>not found</html>" * 100, whole[: len(whole) // 2]):
        (tmp_path / "cut.tar").write_bytes(data)
        refusal(tmp_path / "cut.tar", tmp_path / "cache")


def test_a_full_disk_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(source: Any, target: Any, length: int, *_: Any) -> None:
        target.write(source.read(length))
        raise OSError(errno.ENOSPC, "No space left on device")

    tar = make(tmp_path / "x.tar")
    monkeypatch.setattr(tarfile, "copyfileobj", full)
    assert refusal(tar, tmp_path / "cache").startswith(
        f"{tmp_path / 'cache'}: no space left on the disk"
    )
