"""What our records have for one column of a paper's table: values by seed and their runs, or why
there are none.
"""

from __future__ import annotations

import fnmatch
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from harness.results.record import Record, Score
from harness.tasks.averages import Average, Mean, Number, mean_of
from harness.tasks.mteb.benchmarks import MTEB_SUITES, PREFIX, mteb_values, names_of
from harness.tasks.senteval.transfer import transfer_mean
from harness.tasks.sts import DEV, STS, YEARS, sts_mean
from reports.document.table import State
from reports.load import RecordedRow
from reports.papers.definition import STATISTICS, PaperColumn
from reports.papers.paper_suites import declutr_means
from reports.records.run_library import ScoredTrial

_MTEB = "mteb-en-v1"  # the benchmark of the papers' tables
ENDED: tuple[State, ...] = ("collapsed", "diverged")  # ends of a run that are not errors
_PROTOCOL = {
    "similarity": "cosine",
    "preparation": "Moses-tokenised*",
}  # of the STS scores of all papers


@dataclass(frozen=True)
class Measured:
    """Values by seed, in the unit of the column (usually times 100).

    Attributes:
        protocols: comparable ids of the scores.
        unlike: how their evaluation protocol differs from the paper's.
        missing: why there is no value; empty where the runs were not evaluated on it.
        state: without a value: "empty" where none is expected, else how the runs ended.
        partly: a remark where only some seeds have a value, or where the reference row is not the
            one shown.
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


def measure(row: RecordedRow, column: PaperColumn) -> Measured:
    """A column's number for every finished seed of a row. An average that lacks a task has no
    value.
    """
    if row.unavailable:
        return Measured(missing=f"not run: {row.unavailable}")
    if not row.finished:
        return _describe_end(row)
    protocol = _protocol_of(column)
    by_seed = {}
    ids = []
    comparable = []
    unlike: list[str] = []
    reasons = []
    for record in row.finished:
        value, scores, why = _value(record, column)
        if value is None:
            reasons.append(why)
            continue
        by_seed[record.seed] = value
        ids.append(record.id)
        for score in scores:
            comparable.append(score.comparable)
            unlike += _differences(record, score, protocol)
    if not ids:
        known = dict.fromkeys(reasons)
        known.pop("", None)
        return Measured(missing="; ".join(known))
    partly = ""
    if reasons:
        partly = f"Mean of {len(ids)} of {len(row.finished)} seeds: the others have no such score."
    return Measured(
        by_seed,
        tuple(ids),
        tuple(dict.fromkeys(comparable)),
        tuple(dict.fromkeys(unlike)),
        partly=partly,
    )


def _describe_end(row: RecordedRow) -> Measured:
    """Return how the seeds of a row without a finished one ended."""
    for known in ENDED:
        if known == row.status:
            return Measured(missing=f"every seed {known}", state=known)
    missing = "every seed failed"
    if reason := row.records[0].reason:
        missing += f" ({reason})"
    return Measured(missing=missing, state="failed")


def _protocol_of(column: PaperColumn) -> Mapping[str, str]:
    """Return what the protocol of a column's scores has to say, where a paper published it."""
    is_average = column.kind == "average" and column.name.startswith("sts")
    is_sts = is_average or column.name in (*STS, DEV)
    if is_sts and column.published:
        return _PROTOCOL
    return {}


def _value(record: Record, column: PaperColumn) -> tuple[float | None, list[Score], str]:
    """A number, the scores behind it, or why it is missing. Scores on SentEval's data go before
    those of others.
    """
    known = {s.source for s in record.scores if s.suite != "embedded"}
    sources = sorted(known, key=lambda source: (source != "senteval", source)) or [""]
    if column.kind and column.name.startswith("mteb"):
        sources = [""]
    why = ""
    for source in sources:
        scores = [s for s in record.scores if source in ("", s.source)]
        if column.kind:
            average, chosen = _average(column.name, scores, column.split)
            if average.value is not None:
                return average.value, chosen, ""
            why = why or _describe_lacking(record, average)
        else:
            score = _find_score(column, scores)
            if score is not None:
                return column.scale * score.value, [score], ""
            why = str(record.missing.get(column.name, ""))
    return None, [], why


def _find_score(column: PaperColumn, scores: Sequence[Score]) -> Score | None:
    wanted = Number(column.name, column.metric, column.aggregation, column.split)
    for score in scores:
        if _number_of(score) == wanted:
            return score
    return None


def _number_of(score: Score) -> Number:
    return Number(score.task, score.metric, score.aggregation, score.split)


def _describe_lacking(record: Record, average: Average) -> str:
    """Say why an average has no value: the tasks that it lacks; without any task, what the record
    says of the first.
    """
    lacking = len(average.missing)
    if lacking < average.of:
        few = ", ".join(average.missing[:4])
        if lacking > 4:
            few += ", ..."
        return f"the average is incomplete, without {few} ({lacking} of {average.of})"
    for task in average.missing:
        reason = record.missing.get(task) or record.missing.get(PREFIX + task)
        if reason is not None:
            return str(reason)
    return ""


def _mean(name: str, split: str) -> Mean:
    """The definition of an average of tasks that are not mteb's."""
    if name == "sts-years":
        return Mean("", sts_mean("all").parts[: len(YEARS)])
    if name.startswith("sts"):
        return sts_mean(name.partition("-")[2] or "all")
    if name == "transfer":
        return transfer_mean(split)
    return declutr_means(split)[name]


def _mteb_names(name: str) -> Sequence[str]:
    """The data sets of "mteb", "mteb:CATEGORY" or "mteb-task:NAME"."""
    kind, _, rest = name.partition(":")
    sets = MTEB_SUITES[_MTEB]
    if kind == "mteb-task":
        return [rest]
    if rest:
        return sets[rest]
    return names_of(sets)


def _average(name: str, scores: list[Score], split: str) -> tuple[Average, list[Score]]:
    """An average as its paper takes it, and the scores in it."""
    if name.startswith("mteb"):
        names = _mteb_names(name)
        chosen = []
        for s in scores:
            if s.task.removeprefix(PREFIX) in names and s.task.startswith(PREFIX):
                chosen.append(s)
        return mean_of(mteb_values(scores, _MTEB), names), chosen
    mean = _mean(name, split)
    numbers = set(_numbers(mean))
    return mean.of(scores), [s for s in scores if _number_of(s) in numbers]


def _numbers(mean: Mean) -> Iterator[Number]:
    for part in mean.parts:
        if isinstance(part, Mean):
            yield from _numbers(part)
        else:
            yield part


def _differences(record: Record, score: Score, protocol: Mapping[str, str]) -> Iterable[str]:
    """How the protocol of a score differs from the paper's."""
    if score.source == "mteb" and not score.task.startswith(PREFIX):
        yield "data of mteb instead of senteval"
    described = record.protocol_of(score)
    for key, wanted in protocol.items():
        given = described.get(key)
        if not fnmatch.fnmatchcase(str(given), wanted):
            shown = "not recorded" if given is None else given
            yield f"{key} {shown} instead of {wanted}"


def subtract(own: Measured, reference: Measured, sign: int = 1) -> Measured:
    """Row minus reference, times `sign`: seed by seed where they share two or more seeds.

    Else the runs of one against the mean of the other; that has the spread of one side only,
    `sides` has both.
    """
    if not own.by_seed:
        return Measured(missing="")
    if not reference.by_seed:
        return Measured(missing="the reference row has no value")
    shared = sorted(set(own.by_seed) & set(reference.by_seed))
    sides: tuple[tuple[float, ...], ...] = ()
    by_seed = {}
    if len(shared) > 1:
        for seed in shared:
            by_seed[seed] = sign * (own.by_seed[seed] - reference.by_seed[seed])
    elif len(own.by_seed) >= len(reference.by_seed):
        sides = (tuple(own.values), tuple(reference.values))
        mean = float(np.mean(reference.values))
        for seed, value in own.by_seed.items():
            by_seed[seed] = sign * (value - mean)
    else:
        sides = (tuple(own.values), tuple(reference.values))
        mean = float(np.mean(own.values))
        for seed, value in reference.by_seed.items():
            by_seed[seed] = sign * (mean - value)
    return Measured(
        by_seed,
        _join(own.records, reference.records),
        _join(own.protocols, reference.protocols),
        _join(own.unlike, reference.unlike),
        sides=sides,
    )


def _join(own: Sequence[str], others: Sequence[str]) -> tuple[str, ...]:
    """Return the texts of both, each once."""
    return tuple(dict.fromkeys((*own, *others)))


def measure_trials(trials: Sequence[ScoredTrial], statistic: str) -> Measured:
    """max, q75 or q50 (linear interpolation) of the scores of trials, times 100."""
    if not trials:
        return NOTHING
    values = []
    ids: list[str] = []
    for trial in trials:
        values.append(trial.value)
        ids += [record.id for record in trial.runs]
    value = 100 * float(np.quantile(values, STATISTICS[statistic]))
    return Measured({0: value}, tuple(dict.fromkeys(ids)))


def tasks_of_column(column: PaperColumn) -> frozenset[str]:
    """The tasks that a column needs; none for a column of the paper alone, of a study, or of
    differences.
    """
    name = column.name
    if column.kind != "average":
        if column.kind or not name:
            return frozenset()
        return frozenset([name])
    if name.startswith("mteb"):
        return frozenset(PREFIX + one for one in _mteb_names(name))
    return frozenset(_mean(name, column.split).tasks)
