"""Runs of another work directory come into one: checked, as records of today, and nothing here is overwritten."""

from __future__ import annotations

import shutil
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import mkdtemp

from harness.errors import InputError
from harness.results.checksums import MODEL, changed, lost
from harness.results.elsewhere import without
from harness.results.manifest import manifest_files, read_manifest, write_manifest
from harness.results.record import Record
from harness.results.run_folder import RunFolder

_RESULTS = ("pairs.parquet", "outcomes.parquet", "sample.parquet", "figures.json", "curves.jsonl")


@dataclass
class Merged:
    """What came of it.

    Attributes:
        taken, there: ids of the runs that came, and of those that were there with the same scores.
        refused: id of a run that did not come -> why.
        comparisons: names of those that came. kept: name of one that did not, as another is called so -> why.
    """

    taken: list[str] = field(default_factory=list)
    there: list[str] = field(default_factory=list)
    refused: dict[str, str] = field(default_factory=dict)
    comparisons: list[str] = field(default_factory=list)
    kept: dict[str, str] = field(default_factory=dict)


def merge(workdir: Path, other: Path, *, weights: bool = False) -> Merged:
    """Bring every run of `other` that has a record into `workdir`, and the comparisons that name them.

    Args:
        weights: saved models too, of the runs that kept theirs.
    """
    merged = Merged()
    for folder in sorted(file.parent for file in (other / "runs").glob("*/record.json")):
        try:
            source = RunFolder(other, folder.name)
            record = source.read()
            assert record is not None
            came = take_run(record, source, workdir, weights=weights)
        except InputError as error:
            merged.refused[folder.name] = str(error)
        else:
            (merged.taken if came else merged.there).append(record.id)
    for name in manifest_files(other):
        try:
            manifest, own = read_manifest(other, name), read_manifest(workdir, name)
        except InputError as error:
            merged.kept[name] = str(error)
            continue
        if own is None and manifest is not None:
            write_manifest(workdir, {**manifest, "name": name})
            merged.comparisons.append(name)
        elif own is not None and manifest is not None and own["cells"] != manifest["cells"]:
            merged.kept[name] = (
                "one of that name is here, of other runs; it stays as it is. harness compare with a file that asks for "
                "the runs of both finds them all"
            )
    return merged


def take_run(record: Record, source: RunFolder, workdir: Path, *, weights: bool = False) -> bool:
    """Copy a run from another work directory; False where it is here already, with the same scores.

    Raises:
        InputError: its files are not as its record says, or its id is here: with other scores, damaged, or begun.
    """
    if record.id != source.path.name:
        raise InputError(f"its record is that of run {record.id}")
    target = RunFolder(workdir, record.id)
    if _is_here(record, target):
        return False
    with_model = weights and source.fitted_file.is_file() and any(name.startswith(MODEL) for name in record.files)
    names = tuple(n for n in record.files if n in _RESULTS or (with_model and n.startswith(MODEL)))
    if outside := [name for name in names if ".." in Path(name).parts]:
        raise InputError(f"its record names a file outside of its folder ({outside[0]})")
    damaged = [*changed(source, wanted := {n: record.files[n] for n in names}), *lost(source, wanted)]
    if damaged:
        raise InputError(f"{', '.join(damaged)}: not as its record says; harness doctor --workdir tells more")
    # Records of before have no hashes: what lies there is taken as it is.
    old = () if record.files else tuple(n for n in _RESULTS if (source.path / n).is_file())
    (workdir / "runs").mkdir(parents=True, exist_ok=True)
    place = Path(mkdtemp(dir=workdir / "runs", prefix=".merging-"))
    try:
        more = [f.relative_to(source.path).as_posix() for f in source.model.rglob("*") if f.is_file()]
        for name in {*names, *old, *([*more, source.fitted_file.name] if with_model else ())}:
            (place / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source.path / name, place / name)
        (place / target.record_file.name).write_text(
            (record if with_model else without(record, names)).model_dump_json(indent=1) + "\n", encoding="utf-8"
        )
        place.chmod(0o755)
        place.rename(target.path)
    except OSError as error:
        if target.path.exists():  # begun meanwhile
            raise InputError(f"a run of this id is being made in {target.path}") from None
        raise error
    finally:
        shutil.rmtree(place, ignore_errors=True)
    return True


def _is_here(record: Record, target: RunFolder) -> bool:
    """Raises:
    InputError: another one is.
    """
    own = target.read()
    if own is None:
        if any(not file.name.startswith(".lock") for file in target.path.glob("*")):
            raise InputError(f"begun here and not finished; remove {target.path} to have the other one")
        return False
    if (own.status, _numbers(own)) == (record.status, _numbers(record)):
        return True
    ours, theirs = _numbers(own), _numbers(record)
    unlike = [key for key in theirs if key in ours and ours[key] != theirs[key]]
    if unlike:
        key = unlike[0]
        said = f"{key[0]} {key[3]} is {ours[key]:.6g} here and {theirs[key]:.6g} there"
    else:
        said = f"{own.status} with {len(ours)} scores here, {record.status} with {len(theirs)} there"
    raise InputError(f"is here with other results ({said}); yours stays")


def _numbers(record: Record) -> dict[tuple[str, ...], float]:
    return {(s.task, s.source, s.split, s.metric, s.aggregation): s.value for s in record.scores}
