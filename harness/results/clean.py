"""What a work directory can do without: models, checkpoints and caches, with their sizes.

Scores, examples and curves of runs are never removed.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from harness.files.locks import try_run_lock
from harness.results.store import RunFolder, remove
from harness.sources.remote.cache_folder import cache_root


@dataclass(frozen=True)
class Removable:
    """A folder that can be removed.

    Attributes:
        bytes: of its files.
        remove: removes it, unless another process uses it: then False.
    """

    folder: Path
    bytes: int
    remove: Callable[[], bool]


def find_removable(workdir: Path, kind: str) -> list[Removable]:
    """Return the folders that are there, in the order of their names.

    Args:
        kind: "models" of finished runs, "checkpoints", the "cache" of the work directory, or the
            "shared-cache" of this user.
    """
    if kind == "cache":
        return _caches(workdir / "cache")
    if kind == "shared-cache":
        return _caches(cache_root())
    find = _find_model if kind == "models" else _find_checkpoint
    found = []
    for path in sorted((workdir / "runs").glob("*")):
        if path.is_dir() and not path.is_symlink():
            item = find(RunFolder(workdir, path.name))
            if item is not None:
                found.append(item)
    return found


def folder_size(folder: Path) -> int:
    """Return the bytes of all files of a folder; those that go meanwhile count nothing."""
    total = 0
    for place, _, files in os.walk(folder):
        for file in files:
            with suppress(OSError):
                total += os.lstat(os.path.join(place, file)).st_size
    return total


def _caches(root: Path) -> list[Removable]:
    """Return the parts of a cache folder."""
    found = []
    for folder in sorted(root.glob("*")):
        if folder.is_dir() and not folder.is_symlink():
            clear = partial(_clear, folder)
            found.append(Removable(folder, folder_size(folder), clear))
    return found


def _clear(folder: Path) -> bool:
    remove(folder)
    return not folder.exists()


def _find_model(run: RunFolder) -> Removable | None:
    record = run.read_if_sound()
    if record is None or record.status != "finished":
        return None
    if not run.model.is_dir():
        return None
    remove_model = partial(_remove_model, run)
    return Removable(run.model, folder_size(run.model), remove_model)


def _remove_model(run: RunFolder) -> bool:
    with try_run_lock(run.path) as held:
        record = run.read_if_sound() if held else None
        if record is None or record.status != "finished":
            return False
        run.remove_weights(record)
    return True


def _find_checkpoint(run: RunFolder) -> Removable | None:
    if not run.checkpoint.is_dir() or run.checkpoint.is_symlink():
        return None
    remove_checkpoint = partial(_remove_checkpoint, run)
    return Removable(run.checkpoint, folder_size(run.checkpoint), remove_checkpoint)


def _remove_checkpoint(run: RunFolder) -> bool:
    with try_run_lock(run.path) as held:
        if held:
            remove(run.checkpoint)
    return held
