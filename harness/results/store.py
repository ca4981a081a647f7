"""The work directory on disk: the folder of each run, and the file of each comparison.

    WORKDIR/runs/ID/record.json        specification and outcome
                    examples.parquet   one row per scored example
                    details.json       data of figures, results of other tools, tracebacks
                    curves.jsonl       training log
                    model/             saved weights
                    checkpoint/        of a training that has not ended
    WORKDIR/comparisons/NAME.json      which runs a comparison consists of
    WORKDIR/splits/NAME/FILE.csv       the dev and test part of a file of the user's, where drawn
    WORKDIR/studies.journal            the trials of studies
    WORKDIR/measurements.json          what was measured on this machine

These files are the truth. `progress.json`, `cache/`, `reports/` and `mlflow.db` can be deleted:
they are rebuilt.
"""

from __future__ import annotations

import io
import json
import shutil
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from harness.config import first_fault
from harness.errors import InputError
from harness.files.atomic import sweep, write_atomic
from harness.files.hashing import sha256_of
from harness.files.links import is_inside, refuse_link, refuse_links, refuse_links_below
from harness.files.locks import LOCK_FILE, try_run_lock
from harness.files.printable import first_line, name_fault
from harness.files.reading import parse_json, read_json, read_lines, read_text, require_ordinary
from harness.results.comparison import ComparisonFile
from harness.results.model_card import is_card
from harness.results.record import Record

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

MODEL = "model/"  # how the names of weight files begin among `Record.files`
STOP = "stop"  # a request to a run in another process; see `harness.runs.execute`
PAIR_METRIC = "cosine"  # the metric of the examples that are pairs of sentences


class DamagedRecord(InputError):  # noqa: N818 - names what was found
    """A record that cannot be read: the file is cut or changed."""


class RunFolder:
    """The folder of one run.

    Raises:
        InputError: an id (of a comparison, a study or a tracking store) that cannot be the name of
            a folder.
    """

    def __init__(self, workdir: Path, run_id: str) -> None:
        if fault := name_fault(run_id):
            raise InputError(f"id of a run: {fault}", key="id of a run")
        self.path = workdir.joinpath("runs", run_id)

    # Plans of thousands of runs look at one or two of these each, and paths take long to make.

    @property
    def record_file(self) -> Path:
        return self.path / "record.json"

    @property
    def examples_file(self) -> Path:
        return self.path / "examples.parquet"

    @property
    def details_file(self) -> Path:
        return self.path / "details.json"

    @property
    def curves_file(self) -> Path:
        return self.path / "curves.jsonl"

    @property
    def checkpoint(self) -> Path:
        return self.path / "checkpoint"

    @property
    def model(self) -> Path:
        return self.path / "model"

    @property
    def stop_file(self) -> Path:
        return self.path / STOP

    def read(self) -> Record | None:
        """The record, or None when there is none yet.

        Raises:
            DamagedRecord: the file is damaged, or belongs to another run. InputError: it cannot be
                read, or another version of the harness wrote it.
        """
        file = self.record_file
        if not file.exists() and not file.is_symlink():
            return None
        if file.is_dir() or not file.exists():
            raise self._damage_error("it is no file")
        try:
            record = Record.from_json(read_text(file))
        except ValidationError as error:
            raise self._damage_error(first_fault(error)) from None
        except ValueError as error:
            raise self._damage_error(str(error)) from None
        own = record.spec.id
        if record.id != self.path.name or own != record.id:
            raise self._damage_error(f"it is the record of run {record.spec.id}")
        return record

    def _damage_error(self, what: str) -> DamagedRecord:
        return DamagedRecord(
            f"{self.record_file}: damaged record ({what}); `harness compare` runs it again; remove the "
            "file to leave the run out"
        )

    def read_if_sound(self) -> Record | None:
        """As `read`; None also for a damaged record."""
        try:
            return self.read()
        except DamagedRecord:
            return None

    def rename_damaged_record(self) -> str:
        """Rename a damaged record so that a new one can be written; returns what was wrong, "" for
        a sound one.
        """
        try:
            self.read()
        except DamagedRecord as error:
            aside = self.record_file.with_name(f"{self.record_file.name}.damaged")
            remove(aside)
            self.record_file.replace(aside)
            return str(error).partition(";")[0]
        return ""

    def write(self, record: Record) -> None:
        """Write the record, atomically."""
        write_atomic(self.record_file, record.to_json())

    def remove_leftovers(self) -> None:
        """Remove what killed processes left, and folders in the place of files. The run's lock must
        be held.
        """
        below = self.path.glob("*/checkpoint")
        places = (self.path, *self.path.glob("checkpoint"), *below)
        for left in (
            left
            for place in places
            if is_inside(place, self.path)
            for left in place.glob(".*")
            if left.name != LOCK_FILE
        ):
            remove(left)
        for file in (self.examples_file, self.details_file, self.curves_file):
            if file.is_dir():
                remove(file)

    def refuse_links(self) -> None:
        """Check that what is written into this folder stays in it.

        Raises:
            InputError: it is a link, or has one that leads out of it.
        """
        refuse_link(self.path, self.path.parent)
        refuse_links_below(self.path)

    def tidy(self) -> None:
        """Remove the leftovers and the checkpoint of a finished run, unless another process works
        on it, or the folder is a link.
        """
        if self.checkpoint.exists() and not self.path.is_symlink():
            with try_run_lock(self.path) as held:
                if held:
                    self.remove_leftovers()
                    remove(self.checkpoint)

    def examples(self) -> pd.DataFrame | None:
        """All scored examples as they are stored; None where there are none.

        Raises:
            InputError: the file is damaged or cannot be read.
        """
        table = self.examples_table()
        if table is None:
            return None
        try:
            frame: pd.DataFrame = table.to_pandas()
        except ValueError as error:
            raise self._unreadable_examples(error) from None
        return frame

    def examples_table(self) -> pa.Table | None:
        """As `examples`, several times faster.

        Raises:
            InputError: the file is damaged or cannot be read.
        """
        import pyarrow
        from pyarrow import parquet

        if not self.examples_file.exists():
            return None
        require_ordinary(self.examples_file)
        try:
            with parquet.ParquetFile(self.examples_file) as file:
                return file.read()
        except (OSError, ValueError, pyarrow.ArrowException) as error:
            raise self._unreadable_examples(error) from None

    def _unreadable_examples(self, error: Exception) -> InputError:
        return InputError(
            f"cannot be read as Parquet ({first_line(error)})",
            file=self.examples_file,
            remedy="`harness compare` scores the run again",
        )

    def write_examples(self, examples: pd.DataFrame) -> None:
        """Store examples as `join_examples` gives them."""
        buffer = io.BytesIO()
        examples.to_parquet(buffer, index=False, compression="zstd")
        write_atomic(self.examples_file, buffer.getvalue())

    def pairs_and_outcomes(self) -> tuple[pd.DataFrame, pd.DataFrame]:
        """Scored pairs: columns task, source, split, subset, pair, gold, score (cosine), text1,
        text2 (`text_ids`); and
        the outcomes of other examples: `harness.results.outcomes.COLUMNS`.
        """
        from harness.results.outcomes import COLUMNS

        frame = self.examples()
        frame = _no_examples() if frame is None else frame
        scored = frame["metric"] == PAIR_METRIC
        columns = [
            "task",
            "source",
            "split",
            "subset",
            "example",
            "target",
            "outcome",
            "text1",
            "text2",
        ]
        pairs = frame.loc[scored, columns].reset_index(drop=True)
        outcomes = frame.loc[~scored, list(COLUMNS)]
        outcomes = outcomes.reset_index(drop=True)
        for column in (
            "text1",
            "text2",
        ):  # several times faster than `astype`, and reports read thousands of runs
            pairs[column] = pairs[column].to_numpy("int64")
        kinds = {"unit": "int64", "outcome": "float32", "target": "float32"}
        for column, kind in kinds.items():
            outcomes[column] = outcomes[column].to_numpy(kind)
        return pairs.rename(
            columns={"example": "pair", "outcome": "score", "target": "gold"}
        ), outcomes

    def pairs(self) -> pd.DataFrame:
        """The first of `pairs_and_outcomes`."""
        return self.pairs_and_outcomes()[0]

    def outcomes(self) -> pd.DataFrame:
        """The second of `pairs_and_outcomes`."""
        return self.pairs_and_outcomes()[1]

    def details(self) -> dict[str, Any]:
        """ "figures": task -> data; "artifacts": name -> text; "errors": task -> traceback;
        "traceback" of the run.

        Raises:
            InputError: the file is damaged or cannot be read.
        """
        if self.details_file.exists():
            return read_json(self.details_file)
        return {}

    def write_details(self, details: Mapping[str, Any]) -> None:
        """Store what `details` returns."""
        write_atomic(self.details_file, json.dumps(details) + "\n")

    def figures(self) -> dict[str, dict[str, Any]]:
        """Task -> data of its figures.

        Raises:
            InputError: as `details`.
        """
        return dict(self.details().get("figures", {}))

    def curves(self) -> list[dict[str, Any]]:
        """Training log: one dict per line with "step", "kind" ("train", "dev", or "early": a dev
        score that only the collapse guard uses) and named numbers.

        Raises:
            InputError: the file is damaged or cannot be read.
        """
        if not self.curves_file.exists():
            return []
        try:
            lines = [parse_json(line) for line in read_lines(self.curves_file) if line]
            whole = all(
                isinstance(line["step"], int) and isinstance(line["kind"], str) for line in lines
            )
        except (ValueError, TypeError, KeyError, RecursionError):
            whole = False
        if not whole:
            raise InputError(
                "damaged training curve",
                file=self.curves_file,
                remedy="remove this file to leave it out",
            )
        return lines

    def own_files(self, record: Record) -> list[Path]:
        """Return the record, examples and curve as far as they are the run's: no links, with the
        hashes that the record has.
        """
        found = []
        for file in (self.record_file, self.curves_file, self.examples_file):
            if file.is_symlink() or not file.is_file():
                continue
            is_record = file == self.record_file
            if is_record or sha256_of(file) == record.files.get(file.name):
                found.append(file)
        return found

    def weight_hashes(self) -> dict[str, str]:
        """Name -> sha256 of every file of the saved model but its card, which people may edit."""
        files = []
        for file in sorted(self.model.rglob("*")):
            if file.is_file() and not is_card(file):
                files.append(file)
        hashes = {}
        for file in files:
            name = file.relative_to(self.path).as_posix()
            hashes[name] = sha256_of(file)
        return hashes

    def result_hashes(self) -> dict[str, str]:
        """Name -> sha256 of the examples, details and curve, as far as they exist."""
        files = (self.examples_file, self.details_file, self.curves_file)
        return {f.name: sha256_of(f) for f in files if f.is_file()}

    def find_damage(self, expected: Mapping[str, str]) -> dict[str, str]:
        """Name -> what is wrong, of files that are missing or differ from their `expected` sha256."""
        damage = {}
        for name, digest in expected.items():
            file = self.path / name
            if not file.is_file():
                damage[name] = "missing"
            elif sha256_of(file) != digest:
                damage[name] = "not as it was written"
        return damage

    def remove_weights(self, record: Record) -> Record:
        """Remove the saved model of a finished run, whose scores hold; return its record afterwards.

        The run's lock must be held.
        """
        weights = {}
        for name, digest in record.files.items():
            if name.startswith(MODEL):
                weights[name] = digest
        files = {name: digest for name, digest in record.files.items() if name not in weights}
        light = {"files": files, "removed": record.removed or weights}
        record = record.model_copy(update=light)
        self.write(record)  # before they are gone
        remove(self.model)
        return record

    def has_weights(self, record: Record | None) -> bool:
        """Are the saved weights complete, and exactly those that the record names?"""
        if record is None:
            return False
        expected = {}
        for name, digest in record.files.items():
            if name.startswith(MODEL):
                expected[name] = digest
        return bool(expected) and not self.find_damage(expected)

    def is_damaged(self, record: Record) -> bool:
        """Do examples or details differ from what the record says, or are they missing?"""
        scored = (self.examples_file.name, self.details_file.name)
        return bool(
            self.find_damage(
                {name: digest for name, digest in record.files.items() if name in scored}
            )
        )


def join_examples(pairs: pd.DataFrame | None, outcomes: pd.DataFrame | None) -> pd.DataFrame | None:
    """Pairs and outcomes of an evaluation as one frame, as stored; None where there are neither."""
    import pandas as pd

    frames = []
    if pairs is not None:
        renamed = pairs.rename(columns={"pair": "example", "score": "outcome", "gold": "target"})
        frames.append(renamed.assign(metric=PAIR_METRIC, unit=None))
    if outcomes is not None:
        frames.append(outcomes.assign(text1=None, text2=None))
    if not frames:
        return None
    columns = list(_no_examples().columns)
    parts = [_convert_types(frame[columns]) for frame in frames]
    return pd.concat(parts, ignore_index=True)


def _no_examples() -> pd.DataFrame:
    import pandas as pd

    texts = ("task", "source", "split", "subset", "metric")
    return _convert_types(
        pd.DataFrame(columns=[*texts, "example", "unit", "outcome", "target", "text1", "text2"])
    )


def _convert_types(frame: pd.DataFrame) -> pd.DataFrame:
    numbers = {"example": "int64", "outcome": "float64", "target": "float64"}
    ids = dict.fromkeys(("unit", "text1", "text2"), "Int64")
    return frame.astype({**numbers, **ids})


def remove(path: Path) -> None:
    """Remove a file, link or folder, whatever it is; a missing one is no error."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)


def _is_of_version_0_1(workdir: Path) -> bool:
    if any((workdir / name).exists() for name in ("precision.json", "live")):
        return True
    runs = workdir / "runs"
    left = [*runs.glob("*/fitted.json"), *runs.glob("*/pairs.parquet")]
    return bool(left)


def checked_workdir(path: str | Path, *, create: bool = True) -> Path:
    """The work directory, absolute, created if need be (not for a dry run).

    Raises:
        InputError: it cannot be created or written, version 0.1 of the harness wrote it, or it has
            links that lead out of it.
    """
    workdir = Path(path).absolute()
    if _is_of_version_0_1(workdir):
        raise InputError(
            f"--workdir {path}: a work directory of version 0.1, which this version does not read",
            key="--workdir",
            remedy="name a new folder",
        )
    if create:
        refuse_links(workdir)
        try:
            (workdir / "runs").mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise InputError(
                f"--workdir {path}: cannot be used ({error.strerror})",
                key="--workdir",
                remedy="name a folder you can write",
            ) from None
    return workdir


def run_ids(workdir: Path) -> set[str]:
    """Return the ids of the runs that have a folder: a plan of thousands of runs need not look for
    each of them.

    >>> run_ids(Path("no-such-folder"))
    set()
    """
    return {folder.name for folder in (workdir / "runs").glob("*")}


def comparison_file(workdir: Path, comparison: str) -> Path:
    """Return the path of the file of a comparison (`harness.results.comparison`).

    Raises:
        InputError: the name cannot be that of a file.
    """
    if fault := name_fault(comparison):
        raise InputError(f"comparison: {fault}", key="comparison")
    return workdir / "comparisons" / f"{comparison}.json"


DESIGN = "--why-"
"""In the names of comparisons that `harness why` made of the rows between two rows."""


def comparison_files(workdir: Path) -> dict[str, Path]:
    """Name -> file of all comparisons of a work directory."""
    files = sorted((workdir / "comparisons").glob("*.json"))
    return {file.stem: file for file in files}


def write_comparison_file(workdir: Path, comparison: ComparisonFile) -> None:
    """Write the file of a comparison; its lock must be held."""
    file = comparison_file(workdir, comparison.name)
    if file.is_dir():
        remove(file)
    sweep(file)
    write_atomic(file, comparison.to_text())


def read_comparison_file(workdir: Path, comparison: str) -> ComparisonFile | None:
    """Read the file of a comparison; None when there is none.

    Raises:
        InputError: it is damaged, was changed since, or another version of the harness wrote it.
    """
    # Looked up, so that no name leads out of the folder.
    file = comparison_files(workdir).get(comparison)
    if file is None:
        return None
    try:
        return ComparisonFile.from_tree(read_json(file))
    except InputError:
        fault = "damaged, or of another version"
    except ValueError as error:
        fault = str(error)
    remedy = "`harness compare` with the same experiment writes it again"
    raise InputError(fault, file=file, remedy=remedy)


def read_sound_comparison_files(workdir: Path) -> dict[str, ComparisonFile]:
    """Read the files of all comparisons by name; damaged ones are skipped."""
    found = {}
    for name in comparison_files(workdir):
        with suppress(InputError):  # reported where that comparison is read
            file = read_comparison_file(workdir, name)
            if file is not None:
                found[name] = file
    return found


def find_added_starts(workdir: Path) -> set[str]:
    """Return the ids of the runs that comparisons only contain as added untrained starts."""
    added: set[str] = set()
    asked_for: set[str] = set()
    for file in read_sound_comparison_files(workdir).values():
        added.update(run.id for run in file.runs if run.added)
        asked_for.update(run.id for run in file.runs if not run.added)
    return added - asked_for


class _SharedParts:
    """What the runs of a comparison have in common, once for all: half the memory of their records."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, ...], dict[str, Any] | None] = {}

    def share(self, record: Record) -> Record:
        """Return the record with the parts of earlier ones that equal its own."""
        spec = {}
        for name in ("config", "corpus", "dev"):
            spec[name] = self._find((record.row, name), getattr(record.spec, name))
        protocols = {}
        for name, content in record.protocols.items():
            protocols[name] = self._find((name,), content)
        shared = {
            "spec": record.spec.model_copy(update=spec),
            "protocols": self._find((record.row, "protocols"), protocols),
            "environment": self._find(("environment",), record.environment),
        }
        return record.model_copy(update=shared)

    def _find(self, key: tuple[str, ...], content: dict[str, Any] | None) -> dict[str, Any] | None:
        known = self._known.get(key)
        if known == content:
            return known
        self._known[key] = content
        return content


def read_records(
    workdir: Path,
    comparison: str | None = None,
    *,
    damaged: dict[str, str] | None = None,
    known: Mapping[str, Record] = MappingProxyType({}),
) -> list[Record]:
    """The records of a comparison in the order of its table, or all records of a work directory.

    A run may belong to several comparisons, under a row label of each and scored on what each
    requests. Runs that are trained but not scored yet are left out.

    Args:
        damaged: gets run id -> what is wrong of records that cannot be read, which are then left
            out.
        known: run id -> records that were read before, and are not read again.

    Raises:
        InputError: a damaged record, without `damaged`.
    """

    parts = _SharedParts()

    def read(run_id: str) -> Record | None:
        if run_id in known:
            return known[run_id]
        try:
            record = RunFolder(workdir, run_id).read()
        except InputError as error:
            if damaged is None:
                raise
            damaged[run_id] = str(error)
            return None
        if record is None or record.status == "trained":
            return None
        return parts.share(record)

    listed = read_comparison_file(workdir, comparison) if comparison else None
    if listed is not None:
        records = []
        for run in listed.runs:
            record = read(run.id)
            if record is not None:
                base_model = run.base_model if run.source else None
                limited = record.limit_to(listed.tasks_of(run))
                records.append(limited.as_row(run.row, listed.name, base_model))
        return records
    found = []
    for file in sorted((workdir / "runs").glob("*/record.json")):
        found.append(read(file.parent.name))
    records = []
    for r in found:
        if r is not None and comparison in (None, r.comparison):
            records.append(r)
    return sorted(records, key=lambda r: (r.comparison, r.row, r.base_model, r.seed, r.id))
