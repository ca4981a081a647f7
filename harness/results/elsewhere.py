"""Runs that were made elsewhere: another work directory, or an archive of one.

An archive is a tar or zip file of `comparisons/` and `runs/`, as a work directory has them, without
weights: `harness pack` makes one. The package ships one, which is called "shipped".
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory, mkdtemp

from harness.errors import InputError
from harness.files.printable import join_some
from harness.results.record import Record
from harness.results.store import (
    MODEL,
    DamagedRecord,
    RunFolder,
    comparison_files,
    read_comparison_file,
    write_comparison_file,
)

MANIFEST = "pack.json"  # of an archive that `harness pack` made
EXPERIMENT = "experiment"  # its folder in which the experiment can be run again
DATA = "data"  # in that folder: the user's own files
FILES = ("examples.parquet", "details.json", "curves.jsonl")  # what an archive has besides records


@contextmanager
def open_workdir(place: Path) -> Iterator[Path]:
    """A work directory: the folder itself, or an archive that is unpacked while the block lasts.

    Raises:
        InputError: no such folder or archive, or one without runs.
    """
    if place.is_dir():
        if not (place / "runs").is_dir():
            raise InputError(
                "holds no runs", file=place, remedy="name a work directory of `harness compare`"
            )
        yield place
        return
    if not place.is_file():
        raise InputError(
            'no work directory and no archive of one; "shipped" names those of the package',
            file=place,
        )
    from harness.sources.remote.cache_folder import unpack_for_now

    with TemporaryDirectory(prefix="harness-records-") as temporary:
        unpacked = Path(temporary)
        remedy = "name a work directory, or an archive of `harness pack`"
        unpack_for_now(place, unpacked, remedy=remedy)
        if not (unpacked / "runs").is_dir():
            raise InputError(
                "an archive without runs/; expected one of a work directory", file=place
            )
        try:
            locate_data(unpacked)
        except InputError as error:
            message = f"a comparison in it is damaged ({error.message})"
            raise InputError(message, file=place) from None
        check_runs(unpacked, place)
        yield unpacked


def check_runs(folder: Path, archive: Path) -> None:
    """Refuse an unpacked archive of which a run was changed or cut after it was written.

    Raises:
        InputError: a record does not have its hash, or a file not the one in its record.
    """
    damaged = []
    for path in sorted((folder / "runs").glob("*")):
        run = RunFolder(folder, path.name)
        try:
            record = run.read()
        except DamagedRecord:
            damaged.append(f"runs/{path.name}/{run.record_file.name}")
            continue
        if record is not None:
            found = run.find_damage(without_weights(record).files)
            damaged += [f"runs/{path.name}/{name}" for name in found]
    if damaged:
        raise InputError(
            f"{join_some(damaged, 3)}: not as it was written",
            file=archive,
            remedy="its scores cannot be relied on; get the archive again",
        )


def locate_data(folder: Path) -> None:
    """Have the comparisons of an unpacked archive name its own files by their whole paths.

    Raises:
        InputError: a comparison of it is damaged.
    """
    for name in comparison_files(folder):
        file = read_comparison_file(folder, name)
        if file is None or not file.files:
            continue
        located = {}
        for key, listed in file.files.items():
            written = str(listed.settings["task"])
            prefix, begin, inside = written.partition(f"{EXPERIMENT}/")
            if begin:
                task = f"{prefix}{folder / EXPERIMENT / inside}"
            else:
                task = prefix
            settings = {**listed.settings, "task": task}
            located[key] = listed.model_copy(update={"settings": settings})
        write_comparison_file(folder, file.model_copy(update={"files": located}))


def without_weights(record: Record) -> Record:
    """The record of a run that travels without its weights."""
    weights = {}
    files = {}
    for name, digest in record.files.items():
        if name.startswith(MODEL):
            weights[name] = digest
        if name in FILES:
            files[name] = digest
    light = {"files": files, "removed": record.removed or weights}
    return record.model_copy(update=light)


def copy_run(record: Record, source: RunFolder, workdir: Path) -> bool:
    """Copy a run without its weights from another work directory; False where it is here already,
    with equal scores.

    Raises:
        InputError: its files are not as its record says, or its id is here with other scores,
            damaged, or begun.
    """
    target = RunFolder(workdir, record.id)
    own = target.read()
    if own is not None:
        values = {score: score.value for score in own.scores}
        if values == {score: score.value for score in record.scores}:
            return False
        raise InputError(
            f"run {record.id} is here with other scores; yours stays", key=f"run {record.id}"
        )
    begun = [file for file in target.path.glob("*") if not file.name.startswith(".lock")]
    if begun:
        message = "begun here and not finished"
        raise InputError(message, file=target.path, remedy="remove it to have the other one")
    light = without_weights(record)
    links = [name for name in light.files if (source.path / name).is_symlink()]
    if damaged := [*source.find_damage(light.files), *links]:
        raise InputError(
            f"{', '.join(damaged)}: not as its record says; harness doctor --workdir tells more",
            file=", ".join(damaged),
        )
    (workdir / "runs").mkdir(parents=True, exist_ok=True)
    place = Path(mkdtemp(dir=workdir / "runs", prefix=".copying-"))
    try:
        for name in light.files:
            shutil.copyfile(source.path / name, place / name)
        record_file = place / target.record_file.name
        record_file.write_text(light.to_json(), encoding="utf-8")
        place.chmod(0o755)
        if target.path.exists():  # only its lock
            shutil.rmtree(target.path)
        place.rename(target.path)
    finally:
        shutil.rmtree(place, ignore_errors=True)
    return True
