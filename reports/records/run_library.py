"""All runs of a work directory, whichever comparison, study or command made them, as rows that can
be searched.
"""

from __future__ import annotations

import fnmatch
import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import Any

from harness import registry
from harness.errors import InputError
from harness.results.record import Record
from harness.results.store import (
    comparison_files,
    find_added_starts,
    read_comparison_file,
    read_records,
)
from harness.seeds import PartSeed
from reports.load import RecordedResults, RecordedRow, options_of

StoredTrial = tuple[str, float, list[str]]  # study, value of the objective, ids of its runs


@dataclass(frozen=True)
class TrialSetting:
    """What trials with comparable scores share: base model, dev set, training text and training
    steps.
    """

    base_model: str
    dev_task: str
    dev_source: str
    uri: str
    entries: int
    kind: str
    steps: str
    digests: tuple[str, str]  # of the dev set and of the training text

    def __str__(self) -> str:
        return f"{self.dev_task} dev, {self.entries:,} {self.kind}, {self.steps} training steps"


@dataclass(frozen=True)
class ScoredTrial:
    """One configuration that a study scored: the value of its objective (not times 100) and the
    runs behind it.
    """

    study: str
    value: float
    runs: tuple[Record, ...]

    @cached_property
    def setting(self) -> TrialSetting:
        run = self.runs[0]
        dev = run.dev or {}
        corpus = run.corpus or {}
        return TrialSetting(
            run.base_model,
            str(dev.get("task", "unknown")),
            str(dev.get("source")),
            str(corpus.get("uri")),
            corpus.get("count") or 0,
            str(corpus.get("kind", "entries")),
            str(run.training.get("planned_steps", "unknown")),
            (str(dev.get("sha256")), str(corpus.get("sha256"))),
        )


@dataclass
class RunLibrary(RecordedResults):
    """The results of a whole work directory: rows of equal method, base model, configuration
    (without seed), precision, training data and length of training.

    Attributes:
        trials: what the studies of the work directory scored.
    """

    trials: tuple[ScoredTrial, ...] = ()

    def find(self, method: str, where: Mapping[str, Any] | None = None) -> list[RecordedRow]:
        """The rows of a method whose configuration has all that `where` names (see `PaperRow`)."""
        found = []
        for row in self.rows:
            record = row.records[0]
            if record.method == method and matches(record, where or {}):
                found.append(row)
        return found

    @cached_property
    def settings(self) -> list[TrialSetting]:
        """Those of the studies: STS-B dev before other sets, then by the number of trials."""
        counted = Counter(trial.setting for trial in self.trials)

        def order(setting: TrialSetting) -> tuple[bool, int, str]:
            is_other = setting.dev_task != "STS-B"
            return is_other, -counted[setting], repr(setting)

        return sorted(counted, key=order)

    @cached_property
    def setting_names(self) -> dict[TrialSetting, str]:
        """How tables name each: by what it says, then by the text, the dev set's source and a
        number if need be.
        """
        names: dict[TrialSetting, str] = {}
        for setting in self.settings:
            name = str(setting)
            of_base = [one for one in self.settings if one.base_model == setting.base_model]
            names_of_base = list(map(str, of_base))
            if names_of_base.count(name) > 1:
                name = f"{setting} ({setting.uri}, {setting.dev_source})"
            earlier = [names[one] for one in of_base if one in names]
            same = sum(other.startswith(name) for other in earlier)
            if same:
                name += f", {same + 1}"
            names[setting] = name
        return names

    @cached_property
    def by_id(self) -> dict[str, Record]:
        found = {}
        for row in self.rows:
            for record in row.records:
                found[record.id] = record
        for trial in self.trials:
            found |= {run.id: run for run in trial.runs}
        return found


def matches(record: Record, where: Mapping[str, Any]) -> bool:
    """Whether a run has the configuration that `where` asks for."""

    def has(key: str, wanted: Any) -> bool:
        value = value_of(record, key)
        if isinstance(wanted, list) and not isinstance(value, list):
            return any(same_value(value, option) for option in wanted)
        return same_value(value, wanted)

    return all(has(key, wanted) for key, wanted in where.items())


def value_of(record: Record, key: str) -> Any:
    """An option of a run; "corpus.KEY": of its training text, "base_model": what it started from."""
    place, _, rest = key.partition(".")
    if place == "corpus" and rest:
        return (record.corpus or {}).get(rest)
    if key == "base_model":
        return record.base_model
    if key in record.config:
        return record.config[key]
    return _default_of(record.method, key)


@cache
def _default_of(method: str, key: str) -> Any:
    """The default of an option, which a run need not write (`later` of `harness.config.option`);
    None of no option.
    """
    try:
        fields = registry.load(registry.METHODS, method).Config.model_fields
    except InputError:
        return None
    if key in fields and fields[key].exclude_if:
        return fields[key].default
    return None


def same_value(value: Any, wanted: Any) -> bool:
    """Whether an option has a value; "*" in a text matches anything in the last part of a path or a
    hub's name.
    """
    if isinstance(value, bool) or isinstance(wanted, bool):
        return value is wanted
    if isinstance(value, list | tuple) and isinstance(wanted, list | tuple):
        if len(value) != len(wanted):
            return False
        return all(map(same_value, value, wanted))
    if isinstance(value, int | float) and isinstance(wanted, int | float):
        return math.isclose(value, wanted, rel_tol=1e-9, abs_tol=1e-12)
    if isinstance(value, str) and isinstance(wanted, str) and "*" in wanted:
        *_, name = value.rstrip("/").split("/")
        return fnmatch.fnmatchcase(name, wanted)
    if value is None and wanted == "":
        return True
    return bool(value == wanted)


def trained_on(record: Record) -> tuple[Any, ...]:
    """Fingerprints of the training text and the dev set, and the number of training steps."""
    corpus = record.corpus or {}
    dev = record.dev or {}
    return (
        corpus.get("sha256"),
        dev.get("sha256"),
        record.training.get("planned_steps"),
    )


def _rows(records: Iterable[Record]) -> tuple[RecordedRow, ...]:
    """Return rows in the order of method, base model and options, with the newest run of each seed
    by the newest code.
    """
    groups: dict[tuple[str, str, str], dict[tuple[Any, ...], list[Record]]] = {}
    for record in records:
        options = f"{record.rehearsal} {record.spec.precision} {options_of(record)}"
        configuration = (record.method, record.base_model, options)
        by_data = groups.setdefault(configuration, {})
        by_data.setdefault(trained_on(record), []).append(record)
    rows: list[RecordedRow] = []
    taken: set[tuple[str, str]] = set()
    for (_, base_model, _), by_data in sorted(groups.items()):
        _join_unfinished(by_data)
        for members in by_data.values():
            newest_last = _leave_out_earlier_code(sorted(members, key=_age))
            by_seed = {record.seed: record for record in newest_last}
            label = newest_last[-1].row
            name = label
            number = 2
            while (base_model, name) in taken:  # rows have their cards by label
                name = f"{label} ({number})"
                number += 1
            taken.add((base_model, name))
            runs = [by_seed[seed] for seed in sorted(by_seed)]
            rows.append(RecordedRow.of_records(name, base_model, runs))
    return tuple(rows)


def _leave_out_earlier_code(newest_last: Sequence[Record]) -> list[Record]:
    """Return runs without finished ones of other code, base model or files than the newest one has:
    the mean over both would be that of neither.
    """

    def made_by(record: Record) -> tuple[Any, ...]:
        spec = record.spec
        return spec.version, spec.numerics, spec.model, spec.inputs

    newest = made_by(newest_last[-1])
    kept = []
    for record in newest_last:
        if record.status != "finished" or made_by(record) == newest:
            kept.append(record)
    return kept


def _age(record: Record) -> tuple[bool, str, str, str]:
    """Return what puts the newest run last, finished ones after others."""
    is_finished = record.status == "finished"
    return is_finished, record.finished, record.started, record.id


def _join_unfinished(by_data: dict[tuple[Any, ...], list[Record]]) -> None:
    """Move runs that ended before their data was known to the finished runs of their configuration."""
    finished = []
    for key, members in by_data.items():
        if any(r.status == "finished" for r in members):
            finished.append(key)
    if not finished:
        return
    for key in [key for key in by_data if key not in finished]:
        text, *_ = key
        same = [other for other in finished if other[0] == text]
        if text is None:
            same = same or finished
        if same:
            first = same[0]
            by_data[first] = by_data[first] + by_data.pop(key)


def read_number(text: str) -> float | None:
    """A finite number; None for any other text."""
    try:
        value = float(text)
    except ValueError:
        return None
    if math.isfinite(value):
        return value
    return None


def _runs_of(workdir: Path, comparisons: Sequence[str], records: Iterable[Record]) -> set[str]:
    """Return the ids of the runs of some comparisons and of their parts (`--only`): those that
    their files list; without a file those that were made for them.
    """
    parts = []
    for name in comparison_files(workdir):
        whole, is_part, _ = name.partition("--")
        if is_part and whole in comparisons:
            parts.append(name)
    found = set()
    for name in [*comparisons, *parts]:
        file = read_comparison_file(workdir, name)
        if file is None:
            found |= {record.id for record in records if record.comparison == name}
        else:
            found |= {run.id for run in file.runs}
    return found


def read_library(
    workdir: Path,
    trials: Callable[[], Iterable[StoredTrial]] = tuple,
    *,
    comparisons: Sequence[str] = (),
    studies: Sequence[str] = (),
) -> RunLibrary:
    """All runs of a work directory, but for the untrained starts that comparisons added to their
    rows, which are no rows of a paper. Unreadable files are warnings; an empty directory gives an
    empty library.

    Args:
        trials: gives study, value and ids of the runs of each scored trial.
        comparisons: the rows are those of these comparisons alone; empty: every run is in a row.
        studies: the trials are those of these studies alone, "*" matches any text; empty: all.
    """
    damaged: dict[str, str] = {}
    try:
        every = read_records(workdir, damaged=damaged)
    except OSError as error:
        raise InputError(f"its runs cannot be read ({error.strerror})", file=workdir) from None
    added = find_added_starts(workdir)
    # Runs that share some random streams only serve the decomposition of spread.
    records = []
    for r in every:
        if r.id not in added and not isinstance(r.random_seed, PartSeed):
            records.append(r)
    warnings = [damaged[key] for key in sorted(damaged)]
    scored = _read_trials(trials, studies, records, warnings)
    if comparisons:
        wanted = _runs_of(workdir, comparisons, records)
        records = [record for record in records if record.id in wanted]
    return RunLibrary(
        workdir.name,
        _rows(records),
        workdir=workdir,
        warnings=warnings,
        trials=tuple(scored),
    )


def _read_trials(
    trials: Callable[[], Iterable[StoredTrial]],
    studies: Sequence[str],
    records: Iterable[Record],
    warnings: list[str],
) -> list[ScoredTrial]:
    """Return the trials of some studies (empty: of all) with their runs; what is wrong with them is
    added to `warnings`.
    """
    by_id = {record.id: record for record in records}
    scored = []
    lost = Counter[str]()
    try:
        for study, value, ids in trials():
            if studies and not any(fnmatch.fnmatchcase(study, one) for one in studies):
                continue
            runs = tuple(by_id[run] for run in ids if run in by_id)
            if runs:
                scored.append(ScoredTrial(study, value, runs))
            else:
                lost[study] += 1
    except InputError as error:
        warnings.append(str(error))
    for study, count in lost.items():
        warnings.append(f"study {study}: the runs of {count} scored trials are not here")
    return scored
