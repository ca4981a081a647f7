"""Rows compared within slices of a task: long pairs, pairs with a negation, pairs that share few words.

A slice is judged as a task is (`reports.stats.significance`): its own scores, its own chance of examples and seeds, all
pairs of rows together. That is done for many slices, and one of them would look good by chance: all levels are divided
by their number.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from reports.explore.examples import ExploredTask, restricted, trait_titles
from reports.read.comparison_runs import Comparison, ResultRow
from reports.read.examples import Examples
from reports.stats.example_scores import ExampleScores, Scored, ScoreKey
from reports.stats.significance import Difference, Significance
from reports.stats.simultaneous import AllPairs
from reports.stats.targets import Measure, Target, alone

FEWEST = 30  # examples of a slice that has a number


class _Given(ExampleScores):
    """Scores of examples that are at hand."""

    def __init__(self, comparison: Comparison, by_run: Mapping[str, Examples]) -> None:
        super().__init__(comparison)
        self._by_run = by_run

    @cached_property
    def _runs(self) -> dict[ScoreKey, dict[str, Scored]]:
        found: dict[ScoreKey, dict[str, Scored]] = {}
        for run, examples in self._by_run.items():
            found.setdefault(examples.score, {})[run] = self._scored(examples)
        return found

    def check(self, score: ScoreKey, aggregation: str) -> None:
        """Records hold the score of the whole task: there is nothing to check a part against."""


@dataclass(frozen=True)
class Slice:
    """Some of a task's examples, and how to judge rows on them.

    Attributes:
        trait: key of what it was cut by; name: of the slice; n: its examples.
    """

    task: ExploredTask
    trait: str
    name: str
    n: int
    target: Target
    significance: Significance

    @property
    def title(self) -> str:
        return f"{trait_titles()[self.trait]}: {self.name}"

    def mean(self, row: ResultRow) -> float | None:
        """In points; None where the row was not scored on the task."""
        runs = self.significance.by_seed(row, self.target)
        return None if runs is None else 100 * float(runs.scores.mean())

    def against(self, rows: Sequence[ResultRow], other: ResultRow) -> list[Difference | None]:
        """Each row minus another, corrected for all pairs of rows that can be judged, and for all slices."""
        judged = sum(self.significance.judged(row, self.target) for row in self.significance.comparison.rows)
        return self.significance.between([(row, other) for row in rows], self.target, AllPairs(max(judged, 2)))


def slices_of(comparison: Comparison, tasks: Sequence[ExploredTask]) -> list[Slice]:
    """The slices of some tasks that have enough examples, task by task and trait by trait.

    Pairs are not cut by their gold score: within a narrow range of it there is little left to correlate with.
    """
    cuts = [
        (task, trait, name, numbers == place)
        for task in tasks
        for trait, (named, numbers) in task.traits.items()
        if trait != "gold" or np.isnan(task.examples.target).all()
        for place, name in enumerate(named)
        if _enough(task, numbers == place)
    ]
    return [_slice(comparison, *cut, families=len(cuts)) for cut in cuts]


def _enough(task: ExploredTask, mask: NDArray[np.bool_]) -> bool:
    target = task.examples.target[mask]
    return int(mask.sum()) >= FEWEST and bool(np.isnan(target).all() or np.ptp(target) > 0)


def _slice(
    comparison: Comparison, task: ExploredTask, trait: str, name: str, mask: NDArray[np.bool_], *, families: int
) -> Slice:
    by_run = {run: restricted(examples, mask) for runs in task.runs.values() for run, examples in runs.items()}
    _, _, split, _ = task.examples.score
    target = alone(Measure(task.task, task.source, task.metric, "all", split))
    significance = Significance(comparison, examples=_Given(comparison, by_run), families=families)
    return Slice(task, trait, name, int(mask.sum()), target, significance)
