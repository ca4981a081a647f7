"""All runs of a work directory, whichever comparison, study or command made them, as rows that can be searched."""

from __future__ import annotations

import csv
import fnmatch
import math
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from harness.errors import InputError
from harness.results.record import Record as Record  # for `reports.papers`
from harness.results.record import Score as Score
from harness.results.store import added_starts, read_records
from harness.seeds import PartSeed
from reports.read.comparison_runs import Comparison, ResultRow, rehearsed
from reports.read.configuration import configuration, default_of


@dataclass(frozen=True)
class TrialSetting:
    """What trials with comparable scores share: base model, dev set, training text and training steps."""

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
    """One configuration that a study scored: the value of its objective (not times 100) and the runs behind it."""

    study: str
    value: float
    runs: tuple[Record, ...]

    @cached_property
    def setting(self) -> TrialSetting:
        run = self.runs[0]
        dev, corpus = run.dev or {}, run.corpus or {}
        count = corpus.get("count")
        return TrialSetting(
            run.base_model, str(dev.get("task", "unknown")), str(dev.get("source")), str(corpus.get("uri")),
            count if isinstance(count, int) else 0, str(corpus.get("kind", "entries")),
            str(run.training.get("planned_steps", "unknown")), (str(dev.get("sha256")), str(corpus.get("sha256"))),
        )  # fmt: skip


@dataclass
class RunLibrary:
    """Rows of equal method, base model, configuration (without seed), training data and length of training."""

    workdir: Path
    rows: tuple[ResultRow, ...]
    trials: tuple[ScoredTrial, ...] = ()
    summaries: Mapping[str, list[dict[str, str]]] = field(default_factory=dict)  # study -> lines of its summary.csv
    warnings: list[str] = field(default_factory=list)
    older: Mapping[str, tuple[Record, ...]] = field(default_factory=dict)  # record id -> earlier runs of the same cell

    @property
    def records(self) -> list[Record]:
        return [record for row in self.rows for record in row.records]

    def find(
        self, method: str, where: Mapping[str, Any] | None = None, base_model: str | None = None
    ) -> list[ResultRow]:
        """The rows of a method whose configuration has all that `where` names (see `PaperRow`)."""
        return [
            row
            for row in self.rows
            if row.records[0].method == method
            and base_model in (None, row.base_model)
            and matches(row.records[0], where or {})
        ]

    def scores(self, record: Record) -> list[tuple[Record, Score]]:
        """Every score of a cell: of its newest run, then what earlier runs of it have beyond that."""
        newest: dict[tuple[str, ...], tuple[Record, Score]] = {}
        for one in (record, *self.older.get(record.id, ())):
            for s in one.scores:
                newest.setdefault((s.task, s.source, s.split, s.metric, s.aggregation), (one, s))
        return list(newest.values())

    def as_comparison(self, name: str, rows: Iterable[ResultRow], title: str = "") -> Comparison:
        """Some rows as the figures and tables of comparisons take them."""
        return Comparison(name, self.workdir, tuple(rows), title or name)

    @cached_property
    def settings(self) -> list[TrialSetting]:
        """Those of the studies: STS-B dev before other sets, then by the number of trials."""
        counted = Counter(trial.setting for trial in self.trials)
        return sorted(counted, key=lambda s: (s.dev_task != "STS-B", -counted[s], repr(s)))

    @cached_property
    def setting_names(self) -> dict[TrialSetting, str]:
        """How tables name each: by what it says, then by the text, the dev set's source and a number if need be."""
        names: dict[TrialSetting, str] = {}
        for setting in self.settings:
            twins = [s for s in self.settings if s.base_model == setting.base_model and str(s) == str(setting)]
            name = f"{setting} ({setting.uri}, {setting.dev_source})" if len(twins) > 1 else str(setting)
            alike = sum(s.base_model == setting.base_model and n.startswith(name) for s, n in names.items())
            names[setting] = f"{name}, {alike + 1}" if alike else name
        return names

    @cached_property
    def by_id(self) -> dict[str, Record]:
        return {r.id: r for record in self.records for r in (record, *self.older.get(record.id, ()))}


def matches(record: Record, where: Mapping[str, Any]) -> bool:
    """Whether a run has the configuration that `where` asks for."""
    for key, wanted in where.items():
        value = value_of(record, key)
        options = wanted if isinstance(wanted, list) and not isinstance(value, list) else [wanted]
        if not any(same_value(value, option) for option in options):
            return False
    return True


def value_of(record: Record, key: str) -> Any:
    """An option of a run, what it is without it where the record is older; "corpus.KEY": of its training text,
    "base_model": what it started from."""
    place, _, rest = key.partition(".")
    if place == "corpus" and rest:
        return (record.corpus or {}).get(rest)
    if key == "base_model":
        return record.base_model
    return record.config[key] if key in record.config else default_of(record.method, key)


def same_value(value: Any, wanted: Any) -> bool:
    """Whether an option has a value; "*" in a text stands for anything in the last part of a path or a hub's name."""
    if isinstance(value, bool) or isinstance(wanted, bool):
        return value is wanted
    if isinstance(value, int | float) and isinstance(wanted, int | float):
        return math.isclose(value, wanted, rel_tol=1e-9, abs_tol=1e-12)
    if isinstance(value, str) and isinstance(wanted, str) and "*" in wanted:
        return fnmatch.fnmatchcase(value.rstrip("/").rsplit("/", 1)[-1], wanted)
    return bool(value == wanted) or (value is None and wanted == "")


def _group(record: Record) -> tuple[str, str, str]:
    return record.method, record.base_model, f"{rehearsed(record)} {configuration(record)}"


def trained_on(record: Record) -> tuple[Any, ...]:
    """Fingerprints of the training text and the dev set, and the number of training steps."""
    data = [(part or {}).get("sha256") for part in (record.corpus, record.dev)]
    return (*data, record.training.get("planned_steps"))


def _rows(records: Iterable[Record]) -> tuple[list[ResultRow], dict[str, tuple[Record, ...]]]:
    """Rows in the order of method, base model and label; and what stands behind a cell's newest run."""
    cells: dict[tuple[str, str, str], dict[tuple[Any, ...], list[Record]]] = {}
    for record in records:
        cells.setdefault(_group(record), {}).setdefault(trained_on(record), []).append(record)
    rows: list[ResultRow] = []
    older: dict[str, tuple[Record, ...]] = {}
    taken: set[tuple[str, str]] = set()
    for (_, base_model, _), by_data in sorted(cells.items()):
        for members in _joined_losses(by_data):
            newest = sorted(members, key=lambda r: (r.status == "finished", r.finished, r.started, r.id), reverse=True)
            by_seed: dict[int, list[Record]] = {}
            for record in newest:
                by_seed.setdefault(record.seed, []).append(record)
            for first, *rest in by_seed.values():
                older[first.id] = tuple(r for r in rest if r.status == "finished")
            label = name = newest[0].row
            number = 2
            while (base_model, name) in taken:  # rows have their cards by label
                name, number = f"{label} ({number})", number + 1
            taken.add((base_model, name))
            rows.append(ResultRow(name, base_model, tuple(by_seed[seed][0] for seed in sorted(by_seed))))
    return rows, {key: value for key, value in older.items() if value}


def _joined_losses(by_data: dict[tuple[Any, ...], list[Record]]) -> list[list[Record]]:
    """A run that ended before its data was known belongs to those of its configuration that finished."""
    lost = [key for key, members in by_data.items() if all(r.status != "finished" for r in members)]
    kept = [key for key in by_data if key not in lost]
    if not kept:
        return list(by_data.values())
    for key in lost:
        same = [k for k in kept if k[0] == key[0]] or (kept if key[0] is None else [])
        if same:
            by_data[same[0]] = by_data[same[0]] + by_data.pop(key)
    return list(by_data.values())


def _trials(workdir: Path, by_id: Mapping[str, Record], warnings: list[str]) -> list[ScoredTrial]:
    """The scored trials of every study that wrote its tables."""
    scored = []
    for file in sorted((workdir / "studies").glob("*/trials.csv")):
        name = file.parent.name
        lost = 0
        for line in _csv(file, warnings):
            columns = list(line)
            columns = columns[: columns.index("state")] if "state" in columns else []
            objective = next((c for c in columns if c.endswith(" dev")), "")
            try:
                value = float(line[objective]) if objective and line[objective] else math.nan
            except ValueError:
                value = math.nan
            if line.get("state") != "complete" or not math.isfinite(value):
                continue
            runs = tuple(by_id[run] for run in (line.get("runs") or "").split() if run in by_id)
            lost += not runs
            scored += [ScoredTrial(name, value, runs)] if runs else []
        if lost:
            warnings.append(f"study {name}: the runs of {lost} scored trials are not in {workdir / 'runs'}")
    return scored


def _csv(file: Path, warnings: list[str]) -> list[dict[str, str]]:
    try:
        with file.open(newline="", encoding="utf-8") as stream:
            return [{str(k): v for k, v in line.items() if isinstance(v, str)} for line in csv.DictReader(stream)]
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        warnings.append(f"{file} is unreadable ({type(error).__name__})")
        return []


def read_library(workdir: Path) -> RunLibrary:
    """Everything in a work directory, but for the untrained starts that comparisons added to their rows.

    Nobody asked for those: they must not stand where a row of a paper is looked for. What cannot be read is a warning;
    an empty directory gives an empty library.
    """
    damaged: dict[str, str] = {}
    try:
        whole = read_records(workdir, damaged=damaged)
    except OSError as error:
        raise InputError(f"{workdir}: its runs cannot be read ({error.strerror})") from None
    added = added_starts(workdir)
    # Runs that share streams belong to where spread comes from.
    records = [r for r in whole if r.id not in added and not isinstance(r.random_seed, PartSeed)]
    rows, older = _rows(records)
    library = RunLibrary(workdir, tuple(rows), warnings=[damaged[key] for key in sorted(damaged)], older=older)
    library.trials = tuple(_trials(workdir, {r.id: r for r in records}, library.warnings))
    library.summaries = {
        file.parent.name: lines
        for file in sorted((workdir / "studies").glob("*/summary.csv"))
        if (lines := _csv(file, library.warnings))
    }
    return library
