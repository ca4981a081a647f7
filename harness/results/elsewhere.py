"""Runs that were made elsewhere: another work directory, an archive of one, or the records of an installed package.

A package that ships records names the archive (a Path) under the entry points `harness.records`; ours is "shipped". An
archive is a tar file of `comparisons/` and `runs/`, as a work directory has them, without weights.
"""

from __future__ import annotations

import io
import json
import tarfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from harness import registry
from harness.config import nearest
from harness.errors import InputError
from harness.files.atomic import write_atomic
from harness.results.checksums import MODEL
from harness.results.manifest import manifest_file, read_manifest
from harness.results.record import Record
from harness.results.run_folder import RunFolder

LIGHT = ("pairs.parquet", "outcomes.parquet", "figures.json", "curves.jsonl")  # what an archive has beside a record


def name_of(source: str) -> str:
    """What the runs of `source` are called by: "shipped", or the folder's or archive's own name."""
    return source if _installed(source) else Path(source).resolve().name.partition(".tar")[0]


def _installed(source: str) -> bool:
    return source in registry.names(registry.RECORDS) and not Path(source).exists()


@contextmanager
def opened(source: str) -> Iterator[Path]:
    """The work directory that `source` stands for: itself, or a copy that is gone with the block.

    Raises:
        InputError: no such folder or archive and no package's records, or a folder without runs.
    """
    place = Path(registry.load(registry.RECORDS, source)) if _installed(source) else Path(source)
    if place.is_dir():
        if not (place / "runs").is_dir():
            raise InputError(f"{source}: holds no runs; name a work directory of `harness compare`")
        yield place
        return
    if not place.is_file():
        known = registry.names(registry.RECORDS)
        raise InputError(
            f"{source}: no work directory, no archive of one{nearest(source, known)}; records that are installed: "
            f"{', '.join(known) or 'none'}"
        )
    from harness.sources.remote.archive import unpack_once

    with TemporaryDirectory(prefix="harness-records-") as folder:
        unpacked = unpack_once(place, Path(folder))
        if not (unpacked / "runs").is_dir():
            raise InputError(f"{source}: an archive without runs/; expected one of a work directory")
        yield unpacked


def without(record: Record, kept: tuple[str, ...]) -> Record:
    """The record of a run of whose files only `kept` travel: its weights count as scored and not kept."""
    weights = {name: digest for name, digest in record.files.items() if name.startswith(MODEL)}
    files = {name: digest for name, digest in record.files.items() if name in kept}
    return record.model_copy(update={"files": files, "removed": record.removed or weights})


def pack(workdir: Path, comparison: str, archive: Path) -> list[str]:
    """Write the runs of a comparison as an archive (.tar.xz); equal runs give equal bytes.

    Returns:
        The rows that are not in it, as some of their runs are not made yet.

    Raises:
        InputError: no such comparison, or a damaged record.
    """
    manifest = read_manifest(workdir, comparison)
    if manifest is None:
        raise InputError(f'{workdir}: no comparison "{comparison}"')
    folders = {cell["id"]: RunFolder(workdir, cell["id"]) for cell in manifest["cells"]}
    made = {run: record for run, folder in folders.items() if (record := folder.read()) is not None}
    begun = {cell["row"] for cell in manifest["cells"] if cell["id"] not in made}
    cells = [cell for cell in manifest["cells"] if cell["row"] not in begun]
    kept = {cell["id"]: made[cell["id"]] for cell in cells}
    here = manifest_file(Path(), comparison).as_posix()
    members = {here: (json.dumps({**manifest, "cells": cells}, indent=1) + "\n").encode()}
    for run, record in kept.items():
        folder = folders[run]
        there = tuple(name for name in LIGHT if (folder.path / name).is_file())
        # Files of one kind stand together: they are alike, and an archive of like files is small.
        members |= {f"runs/{run}/{name}": (folder.path / name).read_bytes() for name in there}
        members[f"runs/{run}/record.json"] = (without(record, there).model_dump_json() + "\n").encode()
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:xz", preset=9) as tar:
        for name, data in sorted(members.items(), key=lambda one: (one[0].rpartition("/")[2], one[0])):
            entry = tarfile.TarInfo(name)
            entry.size = len(data)
            tar.addfile(entry, io.BytesIO(data))
    write_atomic(archive, buffer.getvalue())
    return sorted(begun)
