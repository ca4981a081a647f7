"""What the pairs say about a comparison: each row's mean over tasks in every resample, differences, and who is best.

A target is what rows are compared by: the mean of Spearman's "all" over some tasks of one source.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from reports.read.comparison_runs import Comparison, ResultRow
from reports.stats.bootstrap import Estimate, bootstrap_spearman, hierarchical_difference, holm, resample_counts
from reports.stats.targets import Target, targets

Floats = NDArray[np.float64]
REPLICATES = 1000
_FEWEST = 400
_BUDGET = 6e8  # pairs x runs x replicates: some five seconds of one processor core
ALPHA = 0.05


@dataclass(frozen=True)
class Difference:
    """A row against another by one target; `holm` is p corrected for all rows of the same table."""

    estimate: Estimate
    holm: float
    seeds: tuple[int, int]

    @property
    def verdict(self) -> str:
        if self.holm > ALPHA:
            return "not separable"
        return "better" if self.estimate.value > 0 else "worse"


class PairedBootstrap:
    """Bootstrap results of a comparison, computed once for each task."""

    def __init__(self, comparison: Comparison, replicates: int = REPLICATES) -> None:
        self.comparison = comparison
        self.targets = targets(comparison)
        self._by_task: dict[tuple[str, str], dict[str, tuple[float, Floats]]] = {}
        self.unlike: set[tuple[str, str, str]] = set()  # (record id, task, source): other pairs than the rest
        work = 0
        for key in {key for target in self.targets for key in target.tasks}:
            sizes = [len(p[1]) for r in comparison.records if (p := comparison.pairs(r, *key)) is not None]
            work += sum(sizes)
        self.replicates = replicates if work * replicates <= _BUDGET else max(_FEWEST, int(_BUDGET / work))

    @property
    def first(self) -> Target | None:
        """The target that figures shade and choose rows by."""
        return next(iter(self.targets), None)

    def _task(self, task: str, source: str) -> dict[str, tuple[float, Floats]]:
        """Record id -> (Spearman, its value in every resample) for the runs scored on the same pairs."""
        key = (task, source)
        if key in self._by_task:
            return self._by_task[key]
        reference: tuple[NDArray[np.object_], Floats] | None = None
        members: dict[bytes, tuple[Floats, list[str]]] = {}  # equal cosines (an untrained row's seeds) once
        for record in self.comparison.records:
            pairs = self.comparison.pairs(record, task, source)
            if pairs is None:
                continue
            names, gold, scores = pairs
            if reference is None:
                reference = names, gold
            if not (np.array_equal(reference[0], names) and np.array_equal(reference[1], gold)):
                self.unlike.add((record.id, task, source))
                continue
            members.setdefault(scores.tobytes(), (scores, []))[1].append(record.id)
        result: dict[str, tuple[float, Floats]] = {}
        if reference is not None:
            gold = reference[1]
            arrays = [scores for scores, _ in members.values()]
            points = bootstrap_spearman(arrays, gold, np.ones((len(gold), 1)))[:, 0]
            # The same stream for every task of the same size is harmless: tasks hold different pairs.
            drawn = bootstrap_spearman(arrays, gold, resample_counts(len(gold), self.replicates, seed=20240117))
            for i, (_, ids) in enumerate(members.values()):
                result.update({run: (float(points[i]), drawn[i]) for run in ids})
            self._check(task, source, result)
        self._by_task[key] = result
        return result

    def _check(self, task: str, source: str, result: dict[str, tuple[float, Floats]]) -> None:
        """Stored pairs and stored score must tell the same number."""
        for record in self.comparison.records:
            stored = [
                s.value
                for s in record.scores
                if (s.task, s.source, s.metric, s.aggregation) == (task, source, "spearman", "all") and s.split != "dev"
            ]
            if stored and record.id in result and abs(stored[0] - result[record.id][0]) > 1e-3:
                self.comparison.warnings.append(
                    f"run {record.id}: the stored pairs of {task} give {result[record.id][0]:.4f}, "
                    f"its record says {stored[0]:.4f}"
                )

    def by_seed(self, row: ResultRow, target: Target) -> tuple[list[int], Floats, Floats] | None:
        """(seeds, their mean over the target's tasks, the same in every resample), of seeds that have all tasks."""
        seeds, points, drawn = [], [], []
        for record in row.finished:
            parts = [self._task(*key).get(record.id) for key in target.tasks]
            have = [part for part in parts if part is not None]
            if len(have) == len(parts):
                seeds.append(record.seed)
                points.append(float(np.mean([point for point, _ in have])))
                drawn.append(np.mean([values for _, values in have], axis=0))
        return (seeds, np.array(points), np.array(drawn)) if seeds else None

    def _estimate(self, a: ResultRow, b: ResultRow, target: Target) -> tuple[Estimate, tuple[int, int]] | None:
        first, second = self.by_seed(a, target), self.by_seed(b, target)
        if first is None or second is None:
            return None
        estimate = hierarchical_difference(
            first[1], second[1], first[2], second[2], paired_seeds=first[0] == second[0], seed=1
        )
        return estimate, (len(first[0]), len(second[0]))

    def differences(self, pairs: Sequence[tuple[ResultRow, ResultRow]], target: Target) -> list[Difference | None]:
        """Each (row, other row): mean(row) - mean(other), Holm-corrected over all of them."""
        raw = [self._estimate(a, b, target) for a, b in pairs]
        adjusted = iter(holm([pair[0].p for pair in raw if pair is not None]))
        return [None if pair is None else Difference(pair[0], next(adjusted), pair[1]) for pair in raw]

    def leaders(self, rows: Sequence[ResultRow], target: Target) -> tuple[ResultRow, list[ResultRow]] | None:
        """The row with the highest mean and the other rows that the bootstrap does not separate from it.

        Only rows that have every task of the target take part; None when fewer than two do.
        """
        means = {}
        for row in rows:
            seeds = self.by_seed(row, target)
            if seeds is not None:
                means[row.key] = float(seeds[1].mean())
        entered = [row for row in rows if row.key in means]
        if len(entered) < 2:
            return None
        best = max(entered, key=lambda row: means[row.key])
        others = [row for row in entered if row is not best]
        apart = self.differences([(best, row) for row in others], target)
        return best, [row for row, d in zip(others, apart, strict=True) if d is not None and d.holm > ALPHA]


def untrained_base(
    row: ResultRow, rows: Sequence[ResultRow], bootstrap: PairedBootstrap, target: Target
) -> tuple[ResultRow, str] | None:
    """The untrained row that a trained row is held against, and a remark where the rule had to give way.

    Same base model and the same pooling; else the untrained row named like that pooling; else the best untrained row
    of that base model (which cannot flatter the trained row). None without an untrained row or for an untrained row.
    """
    if row.supervision == "untrained":
        return None
    candidates = [
        r for r in rows if r.base_model == row.base_model and r.supervision == "untrained" and r.pooling is not None
    ]
    for candidate in candidates:
        if candidate.pooling == row.pooling:
            return candidate, ""
    for candidate in candidates:
        if row.pooling is not None and candidate.label == row.pooling:
            return candidate, ""
    scored = [(float(f[1].mean()), r) for r in candidates if (f := bootstrap.by_seed(r, target)) is not None]
    if not scored:
        return None
    best = max(scored, key=lambda item: item[0])[1]
    wanted = f"pooling {row.pooling}" if row.pooling else "a named pooling"
    return best, f"no untrained row with {wanted}: held against the best untrained row, {best.label}"
