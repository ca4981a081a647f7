"""Copies of the packages and of their ledgers, to change."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from harness.identity import code
from harness.identity.ledger import read_ledger

REPOSITORY = Path(__file__).resolve().parents[2]
PACKAGES = ("harness", "methods")


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the packages that is left as it was found."""
    folder = tmp_path_factory.mktemp("packages")
    for package in PACKAGES:
        shutil.copytree(
            REPOSITORY / package, folder / package, ignore=shutil.ignore_patterns("embedded", "__pycache__")
        )
    return folder


@pytest.fixture
def copies(whole: Path, tmp_path: Path) -> Path:
    """A copy of the packages to change."""
    for package in PACKAGES:
        shutil.copytree(whole / package, tmp_path / package)
    return tmp_path


@pytest.fixture
def versions(copies: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., None]]:
    """Sets versions of parts in the ledgers that ids are made from."""

    def put(**by_part: int) -> None:
        for package in PACKAGES:
            file = REPOSITORY / package / "ledger.toml"
            text = file.read_text()
            for name, version in by_part.items():
                text = text.replace(f"[parts.{name}]\n", f"[parts.{name}]\n#\n", 1)
                head, mark, tail = text.partition(f"[parts.{name}]\n#\n")
                text = head + mark + tail.replace("version = 1", f"version = {version}", 1)
            (copies / package / "ledger.toml").write_text(text)
        monkeypatch.setattr(code, "ledger_of", lambda folder: read_ledger(copies / folder.name)
                            if folder.name in PACKAGES else None)  # fmt: skip
        code._ids.cache_clear()

    yield put
    code._ids.cache_clear()
