"""The scores of a comparison as matrices (runs, tasks), one a benchmark: what statistics over tasks start from."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from harness.results.record import Record, Score
from harness.tasks.mteb.benchmarks import PREFIX, mteb_scores
from reports.read.comparison_runs import Comparison, ResultRow
from reports.stats.estimate import Floats
from reports.stats.targets import SOURCES, asked_of_most

# Suite -> title. The embedded tasks are too few and too unlike for statistics over tasks.
SUITES = {"sts": "STS tasks", "transfer": "transfer tasks", "probing": "probing tasks", "mteb": "MTEB data sets"}
_METRICS = {"sts": ("spearman", "all"), "transfer": ("accuracy", ""), "probing": ("accuracy", "")}


@dataclass(frozen=True)
class ScoreMatrix:
    """A benchmark: some tasks of one source, and the whole runs of every row that has them, scores times 100.

    `others` are tasks that only few rows were evaluated on: they are in no statistic.
    """

    key: str
    title: str  # "STS tasks (SentEval)"
    tasks: tuple[str, ...]
    records: dict[tuple[str, str], tuple[Record, ...]]  # row key -> its runs with a score of every task
    scores: dict[tuple[str, str], Floats]  # row key -> (runs, tasks), in the order of those
    others: tuple[str, ...] = ()

    def of(self, row: ResultRow) -> Floats | None:
        return self.scores.get(row.key)


def score_matrices(comparison: Comparison, fewest_tasks: int = 3) -> Iterator[ScoreMatrix]:
    """Every benchmark with enough tasks. A run counts when it has all of them, under the protocol that most runs share.

    A benchmark's tasks are those that most rows were to be evaluated on, whether or not there was data.
    """
    for suite, title in SUITES.items():
        for source in dict.fromkeys(source for _, source in comparison.columns(suite)):
            asked, others = asked_of_most(
                comparison.rows, [key for key in comparison.columns(suite) if key[1] == source]
            )
            tasks = tuple(task for task, _ in asked)
            if len(tasks) < fewest_tasks:
                continue
            by_run = {r.id: _scores(r, suite, source) for r in comparison.records if r.status == "finished"}
            usual = {task: _usual([s[task].comparable for s in by_run.values() if task in s]) for task in tasks}
            records: dict[tuple[str, str], tuple[Record, ...]] = {}
            scores: dict[tuple[str, str], Floats] = {}
            for row in comparison.rows:
                own = [(r, [by_run[r.id].get(task) for task in tasks]) for r in row.finished]
                whole = [
                    (r, [100 * s.value for s in line if s is not None])
                    for r, line in own
                    if all(s is not None and s.comparable == usual[s.task] for s in line)
                ]
                if whole:
                    records[row.key] = tuple(r for r, _ in whole)
                    scores[row.key] = np.array([values for _, values in whole])
            name = f"{title} ({SOURCES.get(source, source)})" if suite != "mteb" else title
            yield ScoreMatrix(f"{suite}-{source}", name, tasks, records, scores, tuple(t for t, _ in others))


def _scores(record: Record, suite: str, source: str) -> dict[str, Score]:
    """Task -> its main score."""
    tests = [s for s in record.scores if (s.suite, s.source) == (suite, source) and s.split != "dev"]
    if suite == "mteb":
        return {f"{PREFIX}{name}": score for name, score in mteb_scores(tests).items()}
    return {s.task: s for s in tests if (s.metric, s.aggregation) == _METRICS[suite]}


def _usual(ids: list[str]) -> str:
    count = Counter(ids)
    return max(sorted(count), key=lambda one: count[one]) if count else ""
