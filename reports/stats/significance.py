"""What seeds and pairs say about a comparison: each row's mean over tasks, differences, and who is best.

A target is what rows are compared by: the mean of Spearman's "all" over some tasks of one source. How far a difference
may go by chance is computed in `reports.stats.simultaneous`; the chance of the pairs comes from a bootstrap that draws
the same pairs for all rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from reports.read.comparison_runs import Comparison, ResultRow
from reports.read.seeded import seeded
from reports.stats.bootstrap import Estimate, bootstrap_spearman, resample_counts
from reports.stats.simultaneous import ALPHA, AllPairs, Family, Planned, SeedSpread, seed_spread, simultaneous
from reports.stats.targets import Target, targets

Floats = NDArray[np.float64]
REPLICATES = 1000
_FEWEST = 400
_BUDGET = 6e8  # pairs x runs x replicates: some five seconds of one processor core
NOT_JUDGED = "one seed: not judged"


@dataclass(frozen=True)
class Difference:
    """A row against another by one target.

    Attributes:
        estimate: the interval holds together with those of the other differences that it was made with, and p is
            corrected alike. Of a row with one seed the interval has the chance of the pairs only.
        seeds: how many runs there are of each side.
        judged: False where a side is one run of many that another seed would have given.
    """

    estimate: Estimate
    seeds: tuple[int, int]
    judged: bool = True

    @property
    def verdict(self) -> str:
        if not self.judged:
            return NOT_JUDGED
        if self.estimate.p > ALPHA:
            return "not separable"
        return "better" if self.estimate.value > 0 else "worse"


@dataclass(frozen=True)
class Leaders:
    """The best of the rows whose spread is known, those that are not separated from it, and those that nobody can
    judge from one seed."""

    best: ResultRow
    tied: list[ResultRow]
    unjudged: list[ResultRow]
    others: list[tuple[ResultRow, Difference]]  # best minus each other row that is judged, the nearest first


class PairedBootstrap:
    """Bootstrap results of a comparison, computed once for each task."""

    def __init__(self, comparison: Comparison, replicates: int = REPLICATES) -> None:
        self.comparison = comparison
        self.targets = targets(comparison)
        self._by_task: dict[tuple[str, str], dict[str, tuple[float, Floats]]] = {}
        self._by_row: dict[tuple[tuple[str, str], str], tuple[list[int], Floats, Floats] | None] = {}
        self._known: dict[tuple[str, bool, str], dict[tuple[str, str], tuple[float, float]]] = {}
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
        key = (row.key, target.key)
        if key not in self._by_row:
            self._by_row[key] = self._read(row, target)
        return self._by_row[key]

    def _read(self, row: ResultRow, target: Target) -> tuple[list[int], Floats, Floats] | None:
        seeds, points, drawn = [], [], []
        for record in row.finished:
            parts = [self._task(*key).get(record.id) for key in target.tasks]
            have = [part for part in parts if part is not None]
            if len(have) == len(parts):
                seeds.append(record.seed)
                points.append(float(np.mean([point for point, _ in have])))
                drawn.append(np.mean([values for _, values in have], axis=0))
        return (seeds, np.array(points), np.array(drawn)) if seeds else None

    def _spreads(self, base_model: str, trained: bool, target: Target) -> dict[tuple[str, str], tuple[float, float]]:
        """Row key -> what its seeds add to the variance of its mean, and the degrees of freedom of that.

        Of all trained rows on a base model that can be judged: together they say how far seeds lie apart. What the
        seeds of rows without training draw (random vectors) is another thing, and says nothing about those.
        """
        key = (base_model, trained, target.key)
        if key not in self._known:
            rows = [
                row
                for row in self.comparison.rows
                if row.base_model == base_model and _trained(row) == trained and self.judged(row, target)
            ]
            runs = [part[1] for row in rows if (part := self.by_seed(row, target)) is not None]
            counts = np.array([len(scores) if np.ptp(scores) > 0 else 0 for scores in runs])
            variances = np.array([scores.var(ddof=1) if n else 0.0 for scores, n in zip(runs, counts, strict=True)])
            known = seed_spread(variances, counts)
            values = zip(known.variance.tolist(), known.freedom.tolist(), strict=True)
            self._known[key] = dict(zip([row.key for row in rows], values, strict=True))
        return self._known[key]

    def spread(self, row: ResultRow, target: Target) -> tuple[float, float]:
        """What seeds add to the variance of the mean of a row that is judged, and the degrees of freedom of that."""
        return self._spreads(row.base_model, _trained(row), target)[row.key]

    def judged(self, row: ResultRow, target: Target) -> bool:
        """Whether the row has the target's tasks, and its spread is known: several seeds, or none that enters it."""
        runs = self.by_seed(row, target)
        return runs is not None and (len(runs[0]) > 1 or not seeded(row))

    def between(
        self, pairs: Sequence[tuple[ResultRow, ResultRow]], target: Target, family: Family
    ) -> list[Difference | None]:
        """Each (row, other row): mean(row) - mean(other), corrected for a family of comparisons.

        None where a side lacks a task of the target.
        """
        results: list[Difference | None] = [None] * len(pairs)
        groups: dict[bool, list[tuple[int, Floats, tuple[int, int]]]] = {True: [], False: []}
        for place, (a, b) in enumerate(pairs):
            first, second = self.by_seed(a, target), self.by_seed(b, target)
            if first is None or second is None:
                continue
            judged = self.judged(a, target) and self.judged(b, target)
            sides = [self.spread(row, target) if judged else (0.0, np.inf) for row in (a, b)]
            value = first[1].mean() - second[1].mean()
            drawn = np.var(first[2].mean(axis=0) - second[2].mean(axis=0), ddof=1)
            line = np.array([value, drawn, *sides[0], *sides[1]])
            groups[judged].append((place, line, (len(first[0]), len(second[0]))))
        for judged, members in groups.items():
            if not members:
                continue
            values, drawn, *known = np.stack([line for _, line, _ in members], axis=1)
            spreads = SeedSpread(known[0], known[1]), SeedSpread(known[2], known[3])
            estimates = simultaneous(values, *spreads, drawn, family if judged else Planned(1))
            for (place, _, seeds), estimate in zip(members, estimates, strict=True):
                results[place] = Difference(estimate, seeds, judged)
        return results

    def differences(self, pairs: Sequence[tuple[ResultRow, ResultRow]], target: Target) -> list[Difference | None]:
        """The same for differences that were planned, corrected for as many as can be judged."""
        count = sum(self.judged(a, target) and self.judged(b, target) for a, b in pairs)
        return self.between(pairs, target, Planned(max(count, 1)))

    def leaders(self, rows: Sequence[ResultRow], target: Target) -> Leaders | None:
        """The best of the rows that can be judged, and those that are not separated from it.

        Only rows that have every task of the target take part; None when fewer than two of them can be judged.
        """
        means = {row.key: float(runs[1].mean()) for row in rows if (runs := self.by_seed(row, target)) is not None}
        judged = [row for row in rows if self.judged(row, target)]
        if len(judged) < 2:
            return None
        best = max(judged, key=lambda row: means[row.key])
        others = sorted((row for row in judged if row.key != best.key), key=lambda row: -means[row.key])
        apart = self.between([(best, row) for row in others], target, AllPairs(len(judged)))
        held = [(row, d) for row, d in zip(others, apart, strict=True) if d is not None]
        tied = {row.key for row, d in held if d.verdict == "not separable"}
        known = {row.key for row in judged}
        unjudged = [row for row in rows if row.key in means and row.key not in known]
        return Leaders(best, [row for row in rows if row.key in tied], unjudged, held)


def _trained(row: ResultRow) -> bool:
    return row.supervision != "untrained"


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
