"""What rows are compared by: scores of tasks, alone or as the average that a suite prints."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from reports.results import STS_ORDER, AnyRow, ResultRow, Results, Run

SOURCES = {"senteval": "SentEval", "mteb": "MTEB", "embedded": "embedded"}


class Measure(NamedTuple):
    """The one of a task's scores that rows are compared by."""

    task: str
    source: str
    metric: str = "spearman"
    aggregation: str = "all"
    split: str = "test"

    @property
    def score(self) -> tuple[str, str, str, str]:
        """What its examples are stored by: task, source, split, metric."""
        return self.task, self.source, self.split, self.metric

    def value(self, run: Run) -> float | None:
        """Between -1 and 1; None where the run has no such score."""
        wanted = tuple(self)
        for s in run.scores:
            if (s.task, s.source, s.metric, s.aggregation, s.split) == wanted:
                return s.value
        return None


@dataclass(frozen=True)
class Target:
    """What rows are compared by: the mean of some measures, of which every one counts the same.

    `others` have scores of few rows, and are in no average.
    """

    key: str
    title: str  # "the average of the seven STS tasks (SentEval)"
    short: str  # "STS average"
    measures: tuple[Measure, ...]
    others: tuple[Measure, ...] = ()

    @property
    def tasks(self) -> tuple[tuple[str, str], ...]:
        """(task, source) of each."""
        return tuple((one.task, one.source) for one in self.measures)

    @property
    def unit(self) -> str:
        """What a difference is in."""
        metrics = {one.metric for one in self.measures}
        if len(metrics) > 1:
            return "mixed metrics ×100"
        metric = metrics.pop()
        if not metric:
            return "points"
        if metric == "spearman":
            return "Spearman ×100"
        return f"{metric.replace('_', ' ')} ×100"

    def value_of_run(self, run: Run) -> float | None:
        """A run's mean over the measures, times 100; None where a measure has no score."""
        values = []
        for measure in self.measures:
            value = measure.value(run)
            if value is None:
                return None
            values.append(value)
        return 100 * float(np.mean(values))

    def value(self, row: ResultRow) -> float | None:
        """A row's mean over the measures and over its seeds, times 100; None where a measure has no
        score.
        """
        means = []
        for measure in self.measures:
            values = [measure.value(run) for run in row.finished]
            known = [value for value in values if value is not None]
            if not known:
                return None
            means.append(np.mean(known))
        return 100 * float(np.mean(means))


def common_unit(some: Sequence[Target]) -> str:
    """What their numbers are in, for an axis that they share."""
    units = {target.unit for target in some}
    if len(units) == 1:
        return units.pop()
    return "×100"


def alone(measure: Measure, title: str = "") -> Target:
    """One task alone."""
    task, source = measure[:2]
    if source == "file":
        origin = ""
    else:
        origin = f" ({SOURCES.get(source, source)})"
    name = title or f"{task}{origin}"
    return Target(f"task-{source}-{task}", name, task, (measure,))


def tasks_of_most_rows(
    rows: Sequence[ResultRow], tasks: Sequence[tuple[str, str]]
) -> tuple[list[tuple[str, str]], list[tuple[str, str]]]:
    """Those of some (task, source) that most finished rows were to be evaluated on, and the others.

    A task whose data was missing was requested: an average without it must not appear complete.
    Where no task is one of most rows, all are.
    """
    finished = [row for row in rows if row.finished]
    count = dict.fromkeys(tasks, 0)
    for row in finished:
        scored = set()
        for r in row.finished:
            for s in r.scores:
                if s.split != "dev":
                    scored.add((s.task, s.source))
        missing = {task for r in row.finished for task in r.missing}
        for key in tasks:
            count[key] += key in scored or key[0] in missing
    most = [key for key in tasks if 2 * count[key] > len(finished)]
    if not most:
        return list(tasks), []
    return most, [key for key in tasks if key not in most]


def targets(results: Results) -> list[Target]:
    """The average of each source's STS tasks that most rows have, then every embedded task alone
    (never averaged).
    """
    wanted = []
    by_source: dict[str, list[str]] = {}
    for task, source in results.columns("sts"):
        by_source.setdefault(source, []).append(task)
    for source, names in by_source.items():
        tasks, others = tasks_of_most_rows(results.rows, [(task, source) for task in names])
        name = SOURCES.get(source, source)
        if len(tasks) == 1:
            title = f"{tasks[0][0]} ({name})"
            short = tasks[0][0]
        else:
            if {task for task, _ in tasks} == set(STS_ORDER):
                count = "the seven"
            else:
                count = str(len(tasks))
            title = f"the average of {count} STS tasks ({name})"
            short = "STS average"
        if len(by_source) > 1:
            short = f"{short} ({name})"
        wanted.append(
            Target(
                f"sts-{source}",
                title,
                short,
                measures=tuple(Measure(*one) for one in tasks),
                others=tuple(Measure(*one) for one in others),
            )
        )
    for task, source in results.columns("embedded"):
        if not task.startswith("geometry:"):
            wanted.append(Target(f"embedded-{task}", task, task, (Measure(task, source),)))
    return wanted


ROOM = 12  # panels, or lines in one panel, that a reader can still tell apart


def rows_shown(
    rows: Sequence[AnyRow],
    target: Target | None,
    room: int = ROOM,
) -> tuple[list[AnyRow], str]:
    """At most `room` of the rows, in their order, and a sentence for the caption about the others
    ("" if none).

    The best by `target` (the first, without one) are shown, and always the best untrained row: what
    the others are to be seen against.
    """
    if len(rows) <= room:
        return list(rows), ""
    scores = {}
    for row in rows:
        if target and (value := target.value(row)) is not None:
            scores[row.key] = value
    best = sorted(rows, key=lambda row: -scores.get(row.key, -1e9))
    kept = best[:room]
    untrained = next((row for row in best if row.supervision == "untrained"), None)
    if untrained is not None and untrained not in kept:
        kept[-1] = untrained
    keys = {row.key for row in kept}
    others = ", ".join(row.label for row in rows if row.key not in keys)
    if scores and target is not None:
        which = f"the best by {target.short} and the best untrained one"
    else:
        which = "the first"
    shown = [row for row in rows if row.key in keys]
    return shown, f" {room} of {len(rows)} rows, {which}; not drawn: {others}."
