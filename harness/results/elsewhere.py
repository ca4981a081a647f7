"""Runs that were made elsewhere: another work directory, or an archive of one.

An archive is a tar file of `comparisons/` and `runs/`, as a work directory has them, without weights. The package ships
one, which is called "shipped".
"""

from __future__ import annotations

import io
import json
import shutil
import tarfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory, mkdtemp

from harness.errors import InputError
from harness.files.atomic import write_atomic
from harness.results.record import Record
from harness.results.store import MODEL, RunFolder, comparison_file, read_comparison_file

FILES = ("examples.parquet", "details.json", "curves.jsonl")  # what an archive has besides records


@contextmanager
def open_workdir(place: Path) -> Iterator[Path]:
    """A work directory: the folder itself, or an archive that is unpacked while the block lasts.

    Raises:
        InputError: no such folder or archive, or one without runs.
    """
    if place.is_dir():
        if not (place / "runs").is_dir():
            raise InputError(f"{place}: holds no runs; name a work directory of `harness compare`")
        yield place
        return
    if not place.is_file():
        raise InputError(f'{place}: no work directory and no archive of one; "shipped" names those of the package')
    from harness.sources.remote.cache_folder import unpack_once

    with TemporaryDirectory(prefix="harness-records-") as folder:
        unpacked = unpack_once(place, Path(folder))
        if not (unpacked / "runs").is_dir():
            raise InputError(f"{place}: an archive without runs/; expected one of a work directory")
        yield unpacked


def without_weights(record: Record) -> Record:
    """The record of a run that travels without its weights."""
    weights = {name: digest for name, digest in record.files.items() if name.startswith(MODEL)}
    files = {name: digest for name, digest in record.files.items() if name in FILES}
    return record.model_copy(update={"files": files, "removed": record.removed or weights})


def copy_run(record: Record, source: RunFolder, workdir: Path) -> bool:
    """Copy a run without its weights from another work directory; False where it is here already, with equal scores.

    Raises:
        InputError: its files are not as its record says, or its id is here with other scores, damaged, or begun.
    """
    target = RunFolder(workdir, record.id)
    own = target.read()
    if own is not None:
        if {s: s.value for s in own.scores} == {s: s.value for s in record.scores}:
            return False
        raise InputError(f"run {record.id} is here with other scores; yours stays")
    if any(not file.name.startswith(".lock") for file in target.path.glob("*")):
        raise InputError(f"begun here and not finished; remove {target.path} to have the other one")
    light = without_weights(record)
    links = [name for name in light.files if (source.path / name).is_symlink()]
    if damaged := [*source.find_damage(light.files), *links]:
        raise InputError(f"{', '.join(damaged)}: not as its record says; harness doctor --workdir tells more")
    (workdir / "runs").mkdir(parents=True, exist_ok=True)
    place = Path(mkdtemp(dir=workdir / "runs", prefix=".copying-"))
    try:
        for name in light.files:
            shutil.copyfile(source.path / name, place / name)
        (place / target.record_file.name).write_text(light.to_json(), encoding="utf-8")
        place.chmod(0o755)
        if target.path.exists():  # only its lock
            shutil.rmtree(target.path)
        place.rename(target.path)
    finally:
        shutil.rmtree(place, ignore_errors=True)
    return True


def pack(workdir: Path, comparison: str, archive: Path) -> list[str]:
    """Write the runs of a comparison as an archive (.tar.xz); equal runs give equal bytes.

    Returns:
        The rows that are left out, as some of their runs have not finished.

    Raises:
        InputError: no such comparison, or a damaged record.
    """
    tree = read_comparison_file(workdir, comparison)
    if tree is None:
        raise InputError(f'{workdir}: no comparison "{comparison}"')
    folders = {run["id"]: RunFolder(workdir, run["id"]) for run in tree["runs"]}
    records = {run: record for run, folder in folders.items() if (record := folder.read()) is not None}
    unfinished = {run["row"] for run in tree["runs"] if run["id"] not in records}
    runs = [run for run in tree["runs"] if run["row"] not in unfinished]
    members = {
        comparison_file(Path(), comparison).as_posix(): (json.dumps({**tree, "runs": runs}, indent=1) + "\n").encode()
    }
    for run in dict.fromkeys(run["id"] for run in runs):
        light, folder = without_weights(records[run]), folders[run]
        members |= {f"runs/{run}/{name}": (folder.path / name).read_bytes() for name in light.files}
        members[f"runs/{run}/record.json"] = light.to_json().encode()
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:xz", preset=9) as tar:
        # Files of one kind are neighbours: they are alike, and an archive of like files is small.
        for name, data in sorted(members.items(), key=lambda one: (one[0].rpartition("/")[2], one[0])):
            entry = tarfile.TarInfo(name)
            entry.size = len(data)
            tar.addfile(entry, io.BytesIO(data))
    write_atomic(archive, buffer.getvalue())
    return sorted(unfinished)
