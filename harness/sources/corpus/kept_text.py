"""Texts that were taken from a streamed data set, kept on the disk so that the next run need not read it again.

HARNESS_CACHE/corpora/<id>/ holds `texts`, `places.npy` and `about.json`. The id is that of the request (data set,
columns, selection, limit) and the commit, so what a folder holds never changes; deleting one costs another read.
"""

from __future__ import annotations

import json
import mmap
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from harness.errors import InputError
from harness.files.atomic import open_folder, settle
from harness.files.hashing import content_id
from harness.files.reading import read_json
from harness.sources.corpus.text_store import StoreWriter, TextStore
from harness.sources.remote.cache_folder import cache_root, writing

_ABOUT = "about.json"
_ABANDONED_SECONDS = 7 * 24 * 3600


def kept_folder() -> Path:
    """Where they lie. It is not created here."""
    return cache_root() / "corpora"


def stored(
    request: dict[str, Any], commit: str, columns: int, fill: Callable[[StoreWriter], dict[str, int]]
) -> tuple[TextStore, dict[str, Any]]:
    """What `fill` writes, or what it wrote for the same request and commit before; and the counts that it returned.

    Raises:
        InputError: no space left, or what `fill` raises.
    """
    final = kept_folder() / content_id({"request": request, "commit": commit})
    if (found := _opened(final)) is not None:
        return found
    with writing("the texts of a corpus", kept_folder()):
        kept_folder().mkdir(parents=True, exist_ok=True)
        _sweep()
        folder = open_folder(final)
        try:
            with StoreWriter(columns, folder / "texts") as writer:
                counts = fill(writer)
                store = writer.finish()
            about = {"request": request, "commit": commit, "columns": columns, "sha256": store.sha256,
                     "bytes": (folder / "texts").stat().st_size, "counts": counts}  # fmt: skip
            np.save(folder / "places.npy", store.places)
            (folder / _ABOUT).write_text(json.dumps(about, indent=1), encoding="utf-8")
            settle(folder)
            if len(store):  # nothing is no text to keep
                shutil.rmtree(final, ignore_errors=True)  # a damaged one
                with suppress(OSError):  # another process was faster, with the same content
                    folder.rename(final)
            return store, about
        finally:
            shutil.rmtree(folder, ignore_errors=True)


def newest(request: dict[str, Any]) -> str | None:
    """The commit of the newest text kept for a request; None where there is none."""
    found = [(folder, about) for folder, about in kept() if about["request"] == request]
    return max(found, key=lambda f: f[0].stat().st_mtime)[1]["commit"] if found else None


def kept() -> Iterator[tuple[Path, dict[str, Any]]]:
    """All folders, and what each says about itself."""
    for file in sorted(kept_folder().glob(f"*/{_ABOUT}")):
        if file.parent.name.startswith("."):
            continue
        try:
            about = read_json(file)
        except InputError:
            continue  # damaged: made again when it is asked for
        if {"request", "commit", "columns", "sha256", "bytes", "counts"} <= about.keys():
            yield file.parent, about


def _sweep() -> None:
    """Remove what killed processes left long ago."""
    for left in kept_folder().glob(".*"):
        with suppress(FileNotFoundError):
            if time.time() - left.stat().st_mtime > _ABANDONED_SECONDS:
                shutil.rmtree(left, ignore_errors=True)


def _opened(folder: Path) -> tuple[TextStore, dict[str, Any]] | None:
    """The store in a folder; None where there is none, or not all of it."""
    try:
        about = read_json(folder / _ABOUT)
        places = np.load(folder / "places.npy", mmap_mode="r", allow_pickle=False)
        with (folder / "texts").open("rb") as file:
            buffer = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        if len(buffer) != about["bytes"] or (places.size and int(places.max()) > len(buffer)):
            return None
        return TextStore(buffer, places, about["columns"], about["sha256"]), about
    except (OSError, ValueError, KeyError, InputError):
        return None
