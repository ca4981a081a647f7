"""What our records say for one column of a paper's table: values by seed, the runs behind them, why there are none."""

from __future__ import annotations

import fnmatch
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from harness.results.record import Record, Score
from harness.tasks.averages import Average, Mean, mean_of
from harness.tasks.mteb.benchmarks import PREFIX, mteb_averages, mteb_values
from harness.tasks.senteval.transfer import transfer_mean
from harness.tasks.sts import STS, YEARS, sts_mean
from reports.document.table import State
from reports.papers.declutr_averages import declutr_means
from reports.papers.definition import STATISTICS, PaperColumn
from reports.read.comparison_runs import ResultRow
from reports.read.run_library import RunLibrary, ScoredTrial

_MTEB = "mteb-en-v1"  # the benchmark of the papers' tables
ENDED: tuple[State, ...] = ("collapsed", "diverged")  # ends of a run that are no fault


@dataclass(frozen=True)
class Lack:
    """Why there is no value.

    Attributes:
        task: the task whose own reason it is, if it is one's.
        asked: whether a value was to be there: nothing was tried otherwise.
    """

    text: str
    task: str = ""
    asked: bool = True

    def __str__(self) -> str:
        return f"{self.task}: {self.text}" if self.task else self.text


NOT_EVALUATED, NO_STUDY = Lack("not evaluated", asked=False), Lack("no study", asked=False)


@dataclass(frozen=True)
class Measured:
    """Values in the unit of the column (usually times 100), by seed."""

    by_seed: Mapping[int, float]
    records: tuple[str, ...] = ()
    protocols: tuple[str, ...] = ()  # comparable ids
    unlike: tuple[str, ...] = ()  # how our protocol differs from the paper's
    lacks: tuple[Lack, ...] = ()  # why there is no value
    state: State = "missing"  # then: missing, collapsed, diverged, failed
    partly: str = ""  # a remark where only some seeds have it
    sides: tuple[tuple[float, ...], ...] = ()  # of a difference that is not seed by seed: values of row and reference

    @property
    def missing(self) -> str:
        """Why there is no value, in words."""
        return "; ".join(map(str, self.lacks))

    @property
    def values(self) -> list[float]:
        return [self.by_seed[seed] for seed in sorted(self.by_seed)]


NOTHING = Measured({})


def measure(library: RunLibrary, row: ResultRow, column: PaperColumn) -> Measured:
    """A column's number for every finished seed of a row that has it. Averages are whole or not there."""
    if row.lacking:
        return Measured({}, lacks=(Lack(f"not run: {row.lacking}"),))
    if not row.finished:
        state: State = next((known for known in ENDED if known == row.status), "failed")
        reason = f": {row.records[0].reason}" if state == "failed" and row.records[0].reason else ""
        return Measured({}, lacks=(Lack(f"every seed {state}{reason}"),), state=state)
    by_seed: dict[int, float] = {}
    used: dict[str, None] = {}
    protocols: dict[str, None] = {}
    unlike: dict[str, None] = {}
    lacking: dict[Lack, None] = {}
    for record in row.finished:
        value, parts, why = _value(library, record, column)
        if value is None:
            lacking |= dict.fromkeys(why)
            continue
        by_seed[record.seed] = value
        for run, score in parts:
            used[run.id] = None
            protocols[score.comparable] = None
            unlike |= dict.fromkeys(_differences(run, score, column))
    if not by_seed:
        return Measured({}, tuple(used), lacks=tuple(lacking) or (NOT_EVALUATED,))
    few = len(by_seed) < len(row.finished)
    partly = f"mean of {len(by_seed)} of {len(row.finished)} seeds: the others lack it" if few else ""
    return Measured(by_seed, tuple(used), tuple(protocols), tuple(unlike), partly=partly)


Parts = list[tuple[Record, Score]]


def _value(library: RunLibrary, record: Record, column: PaperColumn) -> tuple[float | None, Parts, list[Lack]]:
    """A number, the scores behind it, and else what is lacking. The column's own source goes before any other."""
    scores = library.scores(record)
    sources = sorted({s.source for _, s in scores if s.suite != "embedded"}, key=lambda s: (s != column.source, s))
    why: list[Lack] = []
    for source in (sources if not column.average.startswith("mteb") else None) or [""]:
        parts = [(r, s) for r, s in scores if source in ("", s.source)]
        if column.task:
            chosen = [
                (r, s)
                for r, s in parts
                if (s.task, s.metric, s.aggregation, s.split)
                == (column.task, column.metric, column.aggregation, column.split)
            ]
            if chosen:
                return column.scale * chosen[0][1].value, chosen[:1], []
            continue
        average, chosen = _average(column.average, parts, column.split)
        if average.value is not None:
            return average.value, chosen, []
        if len(average.missing) < average.of and not why:
            few = ", ".join(average.missing[:4]) + (", ..." if len(average.missing) > 4 else "")
            why = [Lack(f"incomplete, no average: without {few} ({len(average.missing)} of {average.of})")]
        elif not why:
            why = _all_missing(record, average)
    if not why and column.task in record.missing:
        why = [Lack(str(record.missing[column.task]), column.task)]
    return None, [], why


def _all_missing(record: Record, average: Average) -> list[Lack]:
    """What the record says of the tasks of an average that has none of them: the first one's reason."""
    said = (record.missing.get(task) or record.missing.get(PREFIX + task) for task in average.missing)
    return [Lack(str(reason)) for reason in said if reason is not None][:1]


def _average(name: str, parts: Parts, split: str) -> tuple[Average, Parts]:
    """An average as its paper takes it, and the scores that may be in it."""
    scores = [s for _, s in parts]
    if name.startswith("mteb"):
        chosen = [(r, s) for r, s in parts if s.task.startswith("mteb:")]
        if name.startswith("mteb-task:"):
            task = name.removeprefix("mteb-task:")
            return mean_of(mteb_values(scores, _MTEB), [task]), [p for p in chosen if p[1].task == f"mteb:{task}"]
        categories, overall = mteb_averages(scores, _MTEB)
        return (overall if name == "mteb" else categories[name.removeprefix("mteb:")]), chosen
    if name.startswith("sts"):
        aggregation = name.removeprefix("sts-") if name in ("sts-mean", "sts-wmean") else "all"
        tasks = YEARS if name == "sts-years" else STS
        seven = sts_mean(aggregation)
        average = (Mean("", seven.parts[: len(YEARS)]) if name == "sts-years" else seven).of(scores)
        kinds = (aggregation, "all")
        chosen = [(r, s) for r, s in parts if s.task in tasks and s.metric == "spearman" and s.aggregation in kinds]
        if aggregation != "all":  # one set each: always "all"
            chosen = [p for p in chosen if p[1].aggregation == aggregation or p[1].task not in YEARS]
        return average, chosen
    if name == "transfer":
        return transfer_mean(split).of(scores), [p for p in parts if p[1].suite == "transfer"]
    suites = ("transfer", "downstream", "probing", "sts")
    return declutr_means(split)[name].of(scores), [p for p in parts if p[1].suite in suites]


def _differences(record: Record, score: Score, column: PaperColumn) -> Iterable[str]:
    """How the protocol of a score differs from what the column asks for."""
    if not column.average.startswith("mteb") and score.source != column.source:
        yield f"source {score.source}, not {column.source}"
    said = record.protocols.get(score.comparable) or record.protocols.get(score.protocol) or {}
    for key, wanted in column.protocol.items():
        given = said.get(key)
        if not fnmatch.fnmatchcase(str(given), wanted):
            yield f"{key} {'not recorded' if given is None else given}, not {wanted}"


def difference(own: Measured, reference: Measured, sign: int = 1) -> Measured:
    """Row minus reference: seed by seed where they share several, else the runs of one against the mean of the other.

    The second has the spread of one side only; `sides` has both.
    """
    if not own.by_seed or not reference.by_seed:
        why = Lack("no difference: the reference row has no value") if own.by_seed else NOT_EVALUATED
        return Measured({}, lacks=(why,))
    shared = sorted(set(own.by_seed) & set(reference.by_seed))
    sides: tuple[tuple[float, ...], ...] = ()
    if len(shared) > 1:
        by_seed = {seed: own.by_seed[seed] - reference.by_seed[seed] for seed in shared}
    else:
        sides = tuple(own.values), tuple(reference.values)
        if len(own.by_seed) >= len(reference.by_seed):
            by_seed = {seed: value - float(np.mean(sides[1])) for seed, value in own.by_seed.items()}
        else:
            by_seed = {seed: float(np.mean(sides[0])) - value for seed, value in reference.by_seed.items()}
    by_seed = {seed: sign * value for seed, value in by_seed.items()}
    records = tuple(dict.fromkeys((*own.records, *reference.records)))
    protocols = tuple(dict.fromkeys((*own.protocols, *reference.protocols)))
    unlike = tuple(dict.fromkeys((*own.unlike, *reference.unlike)))
    return Measured(by_seed, records, protocols, unlike, sides=sides)


def of_trials(trials: Sequence[ScoredTrial], statistic: str) -> Measured:
    """max, q75 or q50 (linear interpolation) over the scores of trials, times 100."""
    if not trials:
        return Measured({}, lacks=(NO_STUDY,))
    value = 100 * float(np.quantile([t.value for t in trials], STATISTICS[statistic]))
    runs = tuple(dict.fromkeys(record.id for t in trials for record in t.runs))
    return Measured({0: value}, runs)
