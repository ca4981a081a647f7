"""Results: rows that are compared, the scores of their runs, and what is planned to be compared.

Statistics read nothing else, whether the results are those of records (`reports.load`) or scores
that others made (`reports.scores`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product
from typing import Any, NamedTuple, Protocol, Self, TypeVar

from harness.results.facts import Facts
from harness.results.record import Score
from harness.tasks.catalogue import tasks_of
from harness.tasks.mteb.benchmarks import MTEB_SUITES
from reports.read.examples import Examples
from reports.read.plan_followed import FrozenPlan

SUPERVISION = ("untrained", "transductive", "unsupervised", "supervised")
STS_ORDER = ("STS12", "STS13", "STS14", "STS15", "STS16", "STS-B", "SICK-R")
Key = tuple[str, str]
"""Base model and label of a row."""


class Run(Protocol):
    """A run, as statistics read it; a `Record` is one.

    Attributes:
        random_seed: its seed, which only some streams of random numbers may have
            (`harness.seeds.PartSeed`).
        scores: of all splits.
        missing: task -> why it has no score.
        evaluation: "SOURCE:TASK" of what it was to be scored on.
    """

    @property
    def id(self) -> str: ...
    @property
    def seed(self) -> int: ...
    @property
    def random_seed(self) -> int: ...
    @property
    def status(self) -> str: ...
    @property
    def scores(self) -> Sequence[Score]: ...
    @property
    def missing(self) -> Mapping[str, object]: ...
    @property
    def evaluation(self) -> Mapping[str, object]: ...


class ScoreKind(NamedTuple):
    """What a score is of, whichever run has it."""

    suite: str
    source: str
    task: str
    split: str


@dataclass(frozen=True)
class Encoding:
    """How an encoder makes a vector of a text."""

    pooling: str
    layer: object
    max_length: object


@dataclass(frozen=True, eq=False)
class ResultRow:
    """What is compared: the runs of one label on one base model, by seed.

    Runs that share some streams lie closer together than runs of other seeds, so they are no seeds
    of the row. A row that has no other runs is shown with one of them.

    Attributes:
        partial_seed_runs: runs with another seed in some streams alone: they say where spread comes
            from.
        deterministic: no seed enters its method.
        rehearsal: a run of it is one of a rehearsal.
        encoding: how texts become vectors; None where nothing is pooled.
        read_text: a finished run of it was trained on text.
        added: it is in no file: the untrained start of rows that are, evaluated so that their gain
            is known.
        start: id of the run of its own untrained start; "" where none is named.
        source: whose it is, of a row that was made elsewhere and compared with those of the file;
            else empty.
        group: name of the rows that it is compared with, where they are not those of its base model
            alone.
        files: those that its scores are from, of scores that others made; of logs their folder.
    """

    label: str
    base_model: str
    runs: tuple[Run, ...]
    partial_seed_runs: tuple[Run, ...] = ()
    supervision: str = "unsupervised"
    deterministic: bool = False
    rehearsal: bool = False
    encoding: Encoding | None = None
    read_text: bool = False
    added: bool = False
    start: str = ""
    source: str = ""
    group: str = ""
    files: tuple[str, ...] = ()

    @property
    def block(self) -> str:
        """Name of the rows that it is compared with and ranked among."""
        return self.group or base_name(self.base_model)

    @property
    def key(self) -> Key:
        return self.base_model, self.label

    @property
    def finished(self) -> tuple[Run, ...]:
        return tuple(run for run in self.runs if run.status == "finished")

    @property
    def status(self) -> str:
        """ "finished" when any seed finished, else how the first one ended."""
        if self.finished:
            return "finished"
        return self.runs[0].status

    @property
    def unavailable(self) -> str:
        """What the row needs and is not available, so that nothing of it was tried; else empty."""
        return ""

    @property
    def is_trained(self) -> bool:
        return self.supervision != "untrained"

    @property
    def is_random(self) -> bool:
        """True if another seed may give another score: not of an untrained row, nor where no seed
        enters the method.
        """
        return self.is_trained and not self.deterministic

    def reasons(self, task: str, *, named: bool = True) -> tuple[str, ...]:
        """Why finished seeds have no score of a task, each reason once; unnamed ones are those of
        other tasks too.
        """
        start = f"{task}: " if named else ""
        found: dict[str, None] = {}
        for run in self.finished:
            if task in run.missing:
                found[f"{start}{run.missing[task]}"] = None
        return tuple(found)


AnyRow = TypeVar("AnyRow", bound=ResultRow)


@dataclass(frozen=True)
class InterimAnalyses:
    """The interim analyses of a comparison whose seeds were added until it was decided.

    Attributes:
        first, most: seeds of a row at the first analysis, and at the last that was planned.
        seeds: of the rows in contention at each analysis.
        since: (base model, label, seed) of a run -> the first analysis that includes it, from 1.
        rows: what each analysis found for each row ("row", "base_model", "state").
        rule: how the analyses decide, in a line.
        ended: "decided", "seeds" (no more were available); "" for a comparison that has not ended.
        equivalence: half width of the region of practical equivalence, in points.
    """

    first: int
    most: int
    seeds: tuple[int, ...]
    since: Mapping[tuple[str, str, int], int]
    rows: tuple[tuple[Mapping[str, Any], ...], ...]
    rule: str
    ended: str
    equivalence: float


@dataclass
class Results:
    """All rows that are compared, in the order of the report's tables.

    Attributes:
        analyses: of a comparison whose seeds were added until it was decided.
        baseline: label of the row that all others are planned to be compared with.
        contrasts: labels of further rows that are planned to be compared.
        primary: the score that decides, as the file names it.
        incumbent: label of the row in use, which others may replace.
        plan: written before the results; None where none was.
        note: what is not known of seeds and examples, and so is not counted; a clause.
    """

    name: str
    rows: Sequence[ResultRow]
    analyses: InterimAnalyses | None = None
    baseline: str = ""
    contrasts: tuple[Key, ...] = ()
    primary: str = ""
    incumbent: str = ""
    plan: FrozenPlan | None = None
    note: str = ""

    @property
    def runs(self) -> Sequence[Run]:
        return [run for row in self.rows for run in row.runs]

    @cached_property
    def scores(self) -> list[Score]:
        """All scores of all runs but those of a dev split."""
        return [score for run in self.runs for score in run.scores if score.split != "dev"]

    @cached_property
    def score_kinds(self) -> Sequence[ScoreKind]:
        """What any run has a score of, of all splits, as first met."""
        kinds: dict[ScoreKind, None] = {}
        for run in self.runs:
            for s in run.scores:
                kinds[ScoreKind(s.suite, s.source, s.task, s.split)] = None
        return tuple(kinds)

    @property
    def scored_tasks(self) -> set[str]:
        """The names of all tasks that a run has a score of."""
        return {kind.task for kind in self.score_kinds}

    @cached_property
    def requested_tasks(self) -> Sequence[str]:
        """The names of all tasks that a run has a score of or missed, as first met."""
        names: dict[str, None] = {}
        for run in self.runs:
            for score in run.scores:
                names[score.task] = None
            names |= dict.fromkeys(run.missing)
        return tuple(names)

    @property
    def suites(self) -> list[str]:
        """The suites that a run has a score of, as first met; a dev score makes none."""
        return list(dict.fromkeys(kind.suite for kind in self.score_kinds if kind.split != "dev"))

    @cached_property
    def blocks(self) -> Mapping[str, Sequence[ResultRow]]:
        """The rows that are compared with one another, by the name of their block."""
        return group_by_block(self.rows)

    @cached_property
    def base_models(self) -> list[str]:
        return list(dict.fromkeys(row.base_model for row in self.rows))

    @property
    def examples(self) -> Mapping[str, Sequence[Examples]]:
        """Run id -> the examples of its scores, where they are known."""
        return {}

    @property
    def facts(self) -> Mapping[str, Facts]:
        """What else is known of a task, by name."""
        return {}

    @property
    def benchmarks(self) -> Mapping[str, Mapping[str, tuple[str, ...]]]:
        """Suites of mteb's tasks whose averages are known -> category -> mteb's names."""
        return MTEB_SUITES

    def at_analysis(self, number: int) -> Self:
        """Return the results as they were at one of their interim analyses, from 1."""
        if self.analyses is not None:
            since = self.analyses.since
        else:
            since = {}
        rows = []
        for row in self.rows:
            runs = []
            for run in row.runs:
                if since.get((*row.key, run.seed), 1) <= number:
                    runs.append(run)
            if runs:
                rows.append(replace(row, runs=tuple(runs)))
        return replace(self, rows=tuple(rows), analyses=None)

    def columns(self, suite: str) -> list[tuple[str, str]]:
        """Return (task, source) of every test score of a suite, in the order of the papers, else as
        first met.

        A task of the suite whose data was missing is among them too: an average without it must not
        appear complete.
        """
        met: dict[tuple[str, str], None] = {}
        for kind in self.score_kinds:
            if kind.suite == suite and kind.split != "dev":
                met[kind.source, kind.task] = None
        wanted = set()
        if suite != "geometry" or not met:  # each of its tasks has a table of its own
            missing: set[str] = set()
            for run in self.runs:
                missing.update(run.missing)
            wanted = missing & set(tasks_of(suite))
        sources = {source for source, _ in met} or self._sources_of(wanted)
        met |= dict.fromkeys(product(sorted(sources), sorted(wanted)))
        place = {task: i for i, task in enumerate(STS_ORDER)}
        last = len(place)
        ordered = sorted(met, key=lambda key: (key[0], place.get(key[1], last)))
        return [(task, source) for source, task in ordered]

    def _sources_of(self, tasks: set[str]) -> set[str]:
        """Where tasks that no run has a score of were to be read from."""
        found = set()
        for key in {key for run in self.runs for key in run.evaluation}:
            source, _, task = key.partition(":")
            if task in tasks:
                found.add(source)
        return found


def group_by_block(rows: Iterable[AnyRow]) -> dict[str, list[AnyRow]]:
    """Return rows by the name of their block."""
    found: dict[str, list[AnyRow]] = {}
    for row in rows:
        found.setdefault(row.block, []).append(row)
    return found


def find_start(row: ResultRow, rows: Sequence[ResultRow]) -> tuple[ResultRow | None, str]:
    """Return the untrained row that a row starts from: same base model, pooling and text length,
    nothing learnt.

    The one whose run it names, else the one that is configured so. None where there is none, and
    then why: never another one in its place, so none of a row whose base model is not known.
    Untrained rows, and models that others trained, have neither a start nor a reason.
    """
    if not row.is_trained:
        return None, ""
    for other in rows:
        if row.start and any(run.id == row.start for run in other.runs):
            return other, ""
    how = row.encoding
    for other in rows:
        same_base = other.base_model == row.base_model != ""
        if how is not None and same_base and not other.is_trained and other.encoding == how:
            return other, ""
    if not row.read_text and row.supervision != "transductive":
        return None, ""
    if how is None:
        return None, "it does not start from an encoder whose vectors are pooled"
    if how.max_length is not None:
        length = f" and {how.max_length} tokens"
    else:
        length = ""
    return None, f"no untrained run with {how.pooling} pooling{length} was stored"


def name_rows(rows: Sequence[ResultRow]) -> dict[Key, str]:
    """Return the label of each row, with its base model where several of these rows have that label."""
    labels = [row.label for row in rows]
    names = {}
    for row in rows:
        name = row.label
        if labels.count(name) > 1:
            name += f" · {base_name(row.base_model)}"
        names[row.key] = name
    return names


def base_name(base_model: str) -> str:
    """Return a base model's name as a reader knows it: without "embedded:", a hub organisation or
    the folders before it.
    """
    return base_model.rstrip("/").rsplit("/", 1)[-1].removeprefix("embedded:") or base_model
