"""A comparison that came as an archive of `harness pack`, run again and compared digit by digit."""

from __future__ import annotations

import math
import os
import shutil
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ValidationError

from harness import registry
from harness.api.experiments import compare
from harness.config import first_fault
from harness.errors import InputError
from harness.files.hashing import sha256_of
from harness.files.imports import import_path
from harness.files.links import real_path
from harness.files.model_names import is_file
from harness.files.printable import join_some, one_line
from harness.files.reading import is_there, read_json, read_text, read_toml
from harness.files.zips import unpack_zip
from harness.machine.progress import Reporter
from harness.results.comparison import ComparisonFile
from harness.results.elsewhere import EXPERIMENT, MANIFEST, check_runs, locate_data
from harness.results.record import Record
from harness.results.spec import RunSpec
from harness.results.store import RunFolder, read_comparison_file, read_records
from harness.runs.experiment import read_experiment
from harness.tasks.own.data import TaskFile, names_file

PACKED = "packed"  # folder of the new work directory: the unpacked archive
ARCHIVE = "archive.sha256"  # beside it: which archive that is, so that the same call resumes

Place = tuple[str, str, str]
ScoreKey = tuple[str, ...]


@dataclass
class Repetition:
    """What became of the runs of an archive.

    Attributes:
        runs, scores: how many were compared.
        differences: a line for each score or run that differs.
        reasons: what may be why.
    """

    runs: int = 0
    scores: int = 0
    differences: list[str] = field(default_factory=list)
    reasons: list[str] = field(default_factory=list)

    @property
    def equal(self) -> bool:
        """True if all scores are the same to the last digit."""
        return not self.differences


class PackedFile(BaseModel):
    """A file of its own that an archive names: its place, and its hash where that is known."""

    file: str
    sha256: str = ""
    used_as: str = ""
    included: bool = False


class PackedPlugin(BaseModel):
    """A plugin that runs of an archive need."""

    group: Literal["harness.methods", "harness.tasks"]
    name: str
    value: str
    package: str = ""
    version: str = ""


class Manifest(BaseModel):
    """What an archive says of itself; whatever else it says is for readers."""

    comparison: str
    data: list[PackedFile] = []
    code: dict[str, str] = {}
    plugins: list[PackedPlugin] = []


def unpack(archive: Path, workdir: Path) -> tuple[Path, Manifest]:
    """Unpack an archive into WORKDIR/packed, unless it is there; return this folder.

    Raises:
        InputError: the work directory has something else, or the archive is none of `harness pack`.
    """
    folder = workdir / PACKED
    digest = sha256_of(archive)
    mark = workdir / ARCHIVE
    if mark.is_file() and read_text(mark) == digest:
        return folder, _read_manifest(folder, archive)
    if workdir.exists() and not _is_empty_folder(workdir):
        raise InputError("is not empty", file=workdir, key="--run", remedy="name a new folder")
    folder.mkdir(parents=True)
    unpack_zip(archive, folder)
    manifest = _read_manifest(folder, archive)
    check_runs(folder, archive)
    locate_data(folder)
    mark.write_text(digest)
    return folder, manifest


def _is_empty_folder(path: Path) -> bool:
    return path.is_dir() and not any(path.iterdir())


def _read_manifest(folder: Path, archive: Path) -> Manifest:
    """Raises:
    InputError: the archive is none of `harness pack`, or damaged.
    """
    if not (folder / MANIFEST).is_file():
        message = f"has no {MANIFEST}, so it is no archive of `harness pack`"
        raise InputError(message, file=archive)
    try:
        manifest = Manifest.model_validate(read_json(folder / MANIFEST))
        file = read_comparison_file(folder, manifest.comparison)
    except ValidationError as error:
        fault = first_fault(error)
        raise InputError(f"damaged: {MANIFEST}: {fault}", file=archive) from None
    except InputError as error:
        raise InputError(f"damaged ({error.message})", file=archive) from None
    if file is None:
        raise InputError("damaged: it has no comparison", file=archive)
    return manifest


def repeat(
    archive: Path,
    workdir: Path,
    *,
    allow_code: bool = False,
    data: Path | None = None,
    overrides: Sequence[str] = (),
    progress: Reporter | None = None,
) -> Repetition:
    """Run the experiment of an archive in a new work directory, and compare all scores.

    Args:
        allow_code: whether code of the archive, commands and functions may be run.
        data: a folder with the files that the archive names but does not have.
        overrides: values of the experiment, as `--set` takes them.

    Raises:
        InputError: a damaged archive, code without consent, missing data.
    """
    workdir = workdir.absolute()
    is_new = not workdir.exists()
    try:
        folder, manifest = unpack(archive, workdir)
        name = manifest.comparison
        where = folder / EXPERIMENT
        _find_data(manifest, where, data)
        tree = read_toml(where / f"{name}.toml")
        keys = locate_files(tree, where, str(archive))
        experiment = read_experiment({"name": name, **keys}, overrides, allow_code=allow_code)
        experiment = experiment.model_copy(update={"reports": [], "incumbent": ""})  # scores alone
        with _code_of(manifest, where, str(archive), allow_code=allow_code):
            compare(
                experiment,
                workdir=workdir,
                tracking_uri="none",
                formats=[],
                executor="serial",
                progress=progress,
            )
    except InputError:
        if is_new and not (workdir / "runs").exists():  # nothing has run: the next call begins anew
            shutil.rmtree(workdir, ignore_errors=True)
        raise
    before = read_comparison_file(folder, name)
    assert before is not None
    own = {run.id for run in before.runs if not run.source}
    found = [RunFolder(folder, run).read() for run in own]
    old = [record for record in found if record is not None]
    return compare_records(_with_rows(old, before), read_records(workdir, name))


def _with_rows(records: Sequence[Record], file: ComparisonFile) -> list[Record]:
    """Return the records as the rows of a comparison: two rows may share a run."""
    by_id = {record.id: record for record in records}
    return [
        by_id[run.id].as_row(run.row, file.name, run.base_model)
        for run in file.runs
        if run.id in by_id and not run.source
    ]


def _find_data(manifest: Manifest, where: Path, data: Path | None) -> None:
    """Put the files that were not packed at their places.

    Raises:
        InputError: one is not there, or is another.
    """
    for entry in manifest.data:
        target = where / entry.file
        place = Path(entry.file)
        if place.is_absolute() or ".." in place.parts:
            message = f'names the file "{one_line(entry.file)}", outside of it'
            raise InputError(message, file=MANIFEST)
        if is_there(target):
            continue
        remedy = f"give the folder that has {target.name} as --data FOLDER"
        found = None if data is None else data / target.name
        if found is None or not is_there(found):
            raise InputError("is not in the archive", file=target.name, remedy=remedy)
        if entry.sha256 and sha256_of(found) != entry.sha256:
            message = "is another file than that of the archive (sha256)"
            raise InputError(message, file=found, remedy=remedy)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.symlink_to(found.absolute())


def locate_files(keys: Mapping[str, Any], folder: Path, archive: str) -> dict[str, Any]:
    """Return keys of an experiment with the absolute paths of its own files.

    Raises:
        InputError: it names a file outside of the folder.
    """
    found = dict(keys)
    for key, value in keys.items():
        if key == "suites":
            tasks = [_locate(one, "task", folder, archive) for one in value]
            found[key] = tasks
        elif key == "dev":
            found[key] = _locate(value, "task", folder, archive)
        elif key == "corpus":
            found[key] = _locate(value, "uri", folder, archive)
        elif key in ("corpora", "blocks") and isinstance(value, dict):
            found[key] = {
                name: _locate(one, "uri", folder, archive)
                if key == "corpora"
                else locate_files(one, folder, archive)
                for name, one in value.items()
            }
        elif key == "methods":
            rows = [locate_files(row, folder, archive) for row in value]
            found[key] = [_with_vectors(row, folder, archive) for row in rows]
        elif key == "shared":
            found[key] = _with_vectors(value, folder, archive)
    return found


def _with_vectors(row: Any, folder: Path, archive: str) -> Any:
    """Return a row or its config with the absolute paths of its files of vectors."""
    if not isinstance(row, dict):
        return row

    def place(name: Any) -> Any:
        own = isinstance(name, str) and is_file(name)
        return _path_in(name, folder, archive) if own else name

    found = dict(row)
    if "model" in row:
        found["model"] = place(row["model"])
    if isinstance(row.get("model_by_seed"), list):
        found["model_by_seed"] = [place(name) for name in row["model_by_seed"]]
    if "config" in row:
        found["config"] = _with_vectors(row["config"], folder, archive)
    return found


def _locate(value: Any, key: str, folder: Path, archive: str) -> Any:
    if isinstance(value, dict):
        if key not in value:
            return value
        return {**value, key: _locate(value[key], key, folder, archive)}
    if not isinstance(value, str):
        return value
    if not names_file(value) and not (folder / value).exists():
        return value
    if ":" in value and not TaskFile(task=value).prefix:
        return value  # a name of the hub, or embedded:NAME
    prefix = TaskFile(task=value).prefix
    path = _path_in(value.removeprefix(prefix), folder, archive)
    return f"{prefix}{path}"


def _path_in(name: str, folder: Path, archive: str) -> str:
    path = folder / name
    if not real_path(path).is_relative_to(real_path(folder)) and not path.is_symlink():
        message = f'its experiment names the file "{name}", which is not in it'
        raise InputError(message, file=archive)
    return str(path)


@contextmanager
def _code_of(manifest: Manifest, where: Path, archive: str, *, allow_code: bool) -> Iterator[None]:
    """Have the code of an archive importable, where that is allowed.

    Raises:
        InputError: a plugin is neither installed nor allowed.
    """
    groups = {group.entry_points: group for group in (registry.METHODS, registry.TASKS)}
    missing = []
    for one in manifest.plugins:
        if one.name not in registry.names(groups[one.group]):
            missing.append(one)
    if missing and not allow_code:
        plugins = [f"{one.name} ({one.package} {one.version})" for one in missing]
        names = join_some(plugins)
        message = f"needs plugins that are not installed: {one_line(names)}"
        remedy = "install it, or read its code in the archive and give --allow-code"
        raise InputError(message, file=archive, remedy=remedy)
    if not allow_code:
        yield  # and the archive's folder is on no path of Python
        return
    before = Path.cwd()
    sys.path.append(str(where))
    os.chdir(where)
    try:
        for plugin in missing:
            loaded = import_path(plugin.value, key=plugin.name)
            registry.add(groups[plugin.group], plugin.name, loaded)
        yield
    finally:
        os.chdir(before)
        sys.path.remove(str(where))


def compare_records(before: Sequence[Record], now: Sequence[Record]) -> Repetition:
    """Compare the scores of runs with those of their repetition, to the last digit."""
    found = Repetition()
    repeated = {_place_of(record): record for record in now}
    reasons: dict[str, None] = {}
    for old in before:
        new = repeated.get(_place_of(old))
        label = f"{old.row}, seed {old.seed}"
        found.runs += 1
        if new is None or new.status != old.status:
            if new is None:
                now_is = "not run"
            else:
                now_is = f"{new.status} ({new.reason})"
            difference = f"{label}: {old.status} in the archive, now {now_is}"
            found.differences.append(difference)
            continue
        ended = len(found.differences)
        scores = _scores_of(new)
        for key, value in _scores_of(old).items():
            found.scores += 1
            if scores.get(key) != value:
                difference = _describe(key, value, scores.get(key))
                found.differences.append(f"{label}: {difference}")
        if len(found.differences) > ended:
            reasons |= dict.fromkeys(explain(old, new))
    found.reasons = list(reasons)
    return found


def _place_of(record: Record) -> Place:
    return record.row, record.spec.model, repr(record.random_seed)


def _scores_of(record: Record) -> dict[ScoreKey, float]:
    return {
        (s.task_key, s.split, s.metric, s.aggregation): s.value
        for s in record.scores
        if s.value is not None and math.isfinite(s.value)
    }


def _describe(key: ScoreKey, before: float, now: float | None) -> str:
    task = key[0].partition(":")[2]
    score = f"{task} {key[2]}"
    if key[3] != "all":
        score += f" ({key[3]})"
    if now is None:
        return f"{score} is {before!r} in the archive, and there is none now"
    digits = count_digits(before, now)
    return f"{score} is {before!r} in the archive, now {now!r}: {digits}"


def count_digits(a: float, b: float) -> str:
    """Say how many digits of two numbers are the same.

    >>> count_digits(0.76123456, 0.76123999), count_digits(0.5, 0.9)
    ('the first 5 digits are equal', 'no digit is equal')
    """
    scale = max(abs(a), abs(b))
    if a != b and scale:
        share = abs(a - b) / scale
        same = math.floor(-math.log10(share))
    else:
        same = 17
    if same < 1:
        return "no digit is equal"
    return f"the first {same} digits are equal" if same > 1 else "the first digit is equal"


_PARTS = {
    "model": "the base model is another",
    "numerics": "the numerical code of the harness is of another version",
    "version": "the code of the method is another",
    "config": "options are others",
    "inputs": "what the options refer to is another",
    "max_steps": "the number of training steps is another",
    "precision": "the precision of training is another",
}
_MACHINE = {
    "cpu": "processor",
    "platform": "system",
    "device_name": "device",
    "precision": "precision",
    "threads": "number of threads",
    "python": "version of Python",
}


def explain(before: Record, now: Record) -> Iterator[str]:
    """Yield what differs between two runs that should be one: their specifications, or else what
    they ran on.
    """
    if before.id != now.id:
        yield from _compare_specs(before.spec, now.spec)
        return
    differences = list(_compare_machines(before.environment, now.environment))
    yield from differences
    if not differences:
        yield "same specification, processor, versions and threads: look for what is not seeded"


def _compare_specs(before: RunSpec, now: RunSpec) -> Iterator[str]:
    for key, phrase in _PARTS.items():
        if getattr(before, key) != getattr(now, key):
            yield phrase
    for key, phrase in {"corpus": "training text", "dev": "dev set"}.items():
        text_before = getattr(before, key) or {}
        text_now = getattr(now, key) or {}
        if text_before.get("sha256") != text_now.get("sha256"):
            yield f"the {phrase} is another"


def _compare_machines(before: Mapping[str, Any], now: Mapping[str, Any]) -> Iterator[str]:
    for key, name in _MACHINE.items():
        there = before.get(key)
        here = now.get(key)
        if there != here:
            yield f"another {name}: {there} in the archive, {here} here"
    versions_before = before.get("versions", {})
    versions_now = now.get("versions", {})
    for package in sorted({*versions_before, *versions_now}):
        there = versions_before.get(package, "none")
        here = versions_now.get(package, "none")
        if there != here:
            yield f"another version of {package}: {there} in the archive, {here} here"
