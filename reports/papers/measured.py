"""What our records have for one column of a paper's table: values by seed and their runs, or why there are none."""

from __future__ import annotations

import fnmatch
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from harness.results.record import Record, Score
from harness.tasks.averages import Average, Mean, mean_of
from harness.tasks.mteb.benchmarks import MTEB_SUITES, PREFIX, mteb_averages, mteb_values
from harness.tasks.senteval.transfer import transfer_mean
from harness.tasks.sts import STS, YEARS, sts_mean
from reports.document.table import State
from reports.papers.definition import STATISTICS, PaperColumn
from reports.papers.paper_suites import declutr_means
from reports.read.comparison_runs import ResultRow
from reports.read.run_library import ScoredTrial

_MTEB = "mteb-en-v1"  # the benchmark of the papers' tables
ENDED: tuple[State, ...] = ("collapsed", "diverged")  # ends of a run that are not errors
_PROTOCOL = {"similarity": "cosine", "preparation": "Moses-tokenised*"}  # of the STS scores of all papers


@dataclass(frozen=True)
class Measured:
    """Values by seed, in the unit of the column (usually times 100).

    Attributes:
        protocols: comparable ids of the scores.
        unlike: how their evaluation protocol differs from the paper's.
        missing: why there is no value; empty where the runs were not evaluated on it.
        state: without a value: "empty" where none is expected, else how the runs ended.
        partly: a remark where only some seeds have a value, or where the reference row is not the one shown.
        sides: the values of row and reference of a difference that is not taken seed by seed.
    """

    by_seed: Mapping[int, float] = field(default_factory=dict)
    records: tuple[str, ...] = ()
    protocols: tuple[str, ...] = ()
    unlike: tuple[str, ...] = ()
    missing: str = ""
    state: State = "missing"
    partly: str = ""
    sides: tuple[tuple[float, ...], ...] = ()

    @property
    def values(self) -> list[float]:
        return [self.by_seed[seed] for seed in sorted(self.by_seed)]


NOTHING = Measured(state="empty")


def measure(row: ResultRow, column: PaperColumn) -> Measured:
    """A column's number for every finished seed of a row. An average that lacks a task has no value."""
    if row.unavailable:
        return Measured(missing=f"not run: {row.unavailable}")
    if not row.finished:
        state: State = next((known for known in ENDED if known == row.status), "failed")
        reason = f" ({row.records[0].reason})" if state == "failed" and row.records[0].reason else ""
        return Measured(missing=f"every seed {state}{reason}", state=state)
    is_sts = column.name in STS or (column.kind == "average" and column.name.startswith("sts"))
    protocol = _PROTOCOL if is_sts and column.published else {}
    by_seed: dict[int, float] = {}
    runs: dict[str, None] = {}
    protocols: dict[str, None] = {}
    unlike: dict[str, None] = {}
    reasons: dict[str, None] = {}
    for record in row.finished:
        value, scores, why = _value(record, column)
        if value is None:
            reasons |= {why: None} if why else {}
            continue
        by_seed[record.seed] = value
        runs[record.id] = None
        protocols |= dict.fromkeys(score.comparable for score in scores)
        unlike |= dict.fromkeys(text for score in scores for text in _differences(record, score, protocol))
    if not by_seed:
        return Measured(missing="; ".join(reasons))
    few = len(by_seed) < len(row.finished)
    partly = f"Mean of {len(by_seed)} of {len(row.finished)} seeds: the others have no such score." if few else ""
    return Measured(by_seed, tuple(runs), tuple(protocols), tuple(unlike), partly=partly)


def _value(record: Record, column: PaperColumn) -> tuple[float | None, list[Score], str]:
    """A number, the scores behind it, or why it is missing. Scores on SentEval's data go before those of others."""
    if column.kind == "average" and column.name.startswith("mteb"):
        sources = [""]
    else:
        known = {s.source for s in record.scores if s.suite != "embedded"}
        sources = sorted(known, key=lambda s: (s != "senteval", s)) or [""]
    wanted = (column.name, column.metric, column.aggregation, column.split)
    why = ""
    for source in sources:
        scores = [s for s in record.scores if source in ("", s.source)]
        if not column.kind:
            chosen = [s for s in scores if (s.task, s.metric, s.aggregation, s.split) == wanted][:1]
            if chosen:
                return column.scale * chosen[0].value, chosen, ""
            continue
        average, chosen = _average(column.name, scores, column.split)
        if average.value is not None:
            return average.value, chosen, ""
        why = why or _lacking(record, average)
    if not why and not column.kind and column.name in record.missing:
        why = str(record.missing[column.name])
    return None, [], why


def _lacking(record: Record, average: Average) -> str:
    """Why an average has no value: the tasks that it lacks; without any task, what the record says of the first."""
    if len(average.missing) < average.of:
        few = ", ".join(average.missing[:4]) + (", ..." if len(average.missing) > 4 else "")
        return f"the average is incomplete, without {few} ({len(average.missing)} of {average.of})"
    reasons = (record.missing.get(task) or record.missing.get(PREFIX + task) for task in average.missing)
    return next((str(reason) for reason in reasons if reason is not None), "")


def _mean(name: str, split: str) -> Mean:
    """The definition of an average of tasks that are not mteb's."""
    if name == "sts-years":
        return Mean("", sts_mean("all").parts[: len(YEARS)])
    if name.startswith("sts"):
        return sts_mean(name.partition("-")[2] or "all")
    return transfer_mean(split) if name == "transfer" else declutr_means(split)[name]


def _average(name: str, scores: list[Score], split: str) -> tuple[Average, list[Score]]:
    """An average as its paper takes it, and the scores that can be in it."""
    if name.startswith("mteb-task:"):
        task = name.removeprefix("mteb-task:")
        return mean_of(mteb_values(scores, _MTEB), [task]), [s for s in scores if s.task == PREFIX + task]
    if name.startswith("mteb"):
        categories, overall = mteb_averages(scores, _MTEB)
        chosen = [s for s in scores if s.task.startswith(PREFIX)]
        return (overall if name == "mteb" else categories[name.removeprefix("mteb:")]), chosen
    average = _mean(name, split).of(scores)
    if not name.startswith("sts"):
        suites = ("transfer",) if name == "transfer" else ("transfer", "downstream", "probing", "sts")
        return average, [s for s in scores if s.suite in suites]
    own = name.partition("-")[2] if name in ("sts-mean", "sts-wmean") else "all"
    aggregations = {task: (own,) if task in YEARS else (own, "all") for task in (YEARS if name == "sts-years" else STS)}
    return average, [s for s in scores if s.metric == "spearman" and s.aggregation in aggregations.get(s.task, ())]


def _differences(record: Record, score: Score, protocol: Mapping[str, str]) -> Iterable[str]:
    """How the protocol of a score differs from the paper's."""
    if score.source == "mteb" and not score.task.startswith(PREFIX):
        yield "data of mteb instead of senteval"
    described = record.protocols.get(score.comparable) or record.protocols.get(score.protocol) or {}
    for key, wanted in protocol.items():
        given = described.get(key)
        if not fnmatch.fnmatchcase(str(given), wanted):
            yield f"{key} {'not recorded' if given is None else given} instead of {wanted}"


def subtract(own: Measured, reference: Measured, sign: int = 1) -> Measured:
    """Row minus reference, times `sign`: seed by seed where they share two or more seeds.

    Else the runs of one against the mean of the other; that has the spread of one side only, `sides` has both.
    """
    if not own.by_seed or not reference.by_seed:
        return Measured(missing="the reference row has no value" if own.by_seed else "")
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
    records, protocols, unlike = (
        tuple(dict.fromkeys((*getattr(own, key), *getattr(reference, key))))
        for key in ("records", "protocols", "unlike")
    )
    return Measured({seed: sign * value for seed, value in by_seed.items()}, records, protocols, unlike, sides=sides)


def measure_trials(trials: Sequence[ScoredTrial], statistic: str) -> Measured:
    """max, q75 or q50 (linear interpolation) of the scores of trials, times 100."""
    if not trials:
        return NOTHING
    value = 100 * float(np.quantile([t.value for t in trials], STATISTICS[statistic]))
    return Measured({0: value}, tuple(dict.fromkeys(record.id for t in trials for record in t.runs)))


def tasks_of_column(column: PaperColumn) -> frozenset[str]:
    """The tasks that a column needs; none for a column of the paper alone, of a study, or of differences."""
    name = column.name
    if column.kind != "average":
        return frozenset(() if column.kind or not name else (name,))
    if name.startswith("mteb-task:"):
        return frozenset((PREFIX + name.removeprefix("mteb-task:"),))
    if name.startswith("mteb"):
        groups = MTEB_SUITES[_MTEB].items()
        return frozenset(PREFIX + one for group, sets in groups for one in sets if name in ("mteb", f"mteb:{group}"))
    return frozenset(_mean(name, column.split).tasks)
