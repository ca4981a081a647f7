"""What seeds and examples say about a comparison: each row's mean over tasks, differences, and who is best.

A target is what rows are compared by: a score of a task, or the mean of some (`reports.stats.targets`). How far a
difference may go by chance is computed in `reports.stats.simultaneous`; the chance of the examples, the same for all
rows, in `reports.stats.clusters`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import islice
from typing import NamedTuple

import numpy as np

from harness.results.record import Record
from reports.read.comparison_runs import Comparison, ResultRow, seeded
from reports.read.examples import Ids
from reports.stats.clusters import Chance, chance
from reports.stats.estimate import Estimate, Floats
from reports.stats.example_scores import ExampleScores, Scored
from reports.stats.sequential import Boundary, combine_analyses
from reports.stats.simultaneous import (
    ALPHA,
    AllPairs,
    Family,
    Planned,
    SeedSpread,
    seed_spread,
    simultaneous,
)
from reports.stats.suite_targets import known_targets
from reports.stats.targets import Measure, Target, targets

Pool = tuple[str, bool]  # base model, and whether the rows were trained
FEWEST_EXAMPLES = 10
NOT_JUDGED = "one seed: not judged"


@dataclass(frozen=True)
class Difference:
    """A row against another by one target.

    Attributes:
        estimate: the interval holds together with those of the other differences that it was made with, and p is
            corrected alike. Of a row with one seed the interval has the chance of the examples only.
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


class Runs(NamedTuple):
    """The runs of a row that have every task of a target.

    Attributes:
        seeds: of each run.
        scores: (runs,) their means over the tasks, between -1 and 1.
    """

    seeds: list[int]
    scores: Floats


class Significance:
    """What a comparison's rows score and how far that may go by chance, computed once for each target.

    Examples are redrawn for all rows and tasks together: rows are paired. Nothing is simulated: what a bootstrap of
    texts approaches is computed (`reports.stats.clusters`). Of a comparison whose seeds were added until it was
    decided, every difference combines all its interim analyses.
    """

    def __init__(
        self,
        comparison: Comparison,
        *,
        whole: Significance | None = None,
        examples: ExampleScores | None = None,
        families: int = 1,
    ) -> None:
        """Args:
        whole: of the same comparison with more seeds, whose examples are used.
        examples: what is used instead of all that the runs saved.
        families: of how many comparisons like this one it is: levels and p-values are corrected for them (Bonferroni).
        """
        self.comparison = comparison
        own = examples if examples is not None else ExampleScores(comparison) if whole is None else whole._examples
        self._examples: ExampleScores = own
        self._families = families
        self._checked: set[Measure] = set()
        self._by_row: dict[tuple[tuple[str, str], Target], tuple[Runs, list[str]] | None] = {}
        self._chance: dict[Target, tuple[Chance, dict[tuple[str, str], int]]] = {}
        self._known: dict[tuple[Pool, Target], dict[tuple[str, str], tuple[float, float]]] = {}
        self._boundary, self._earlier = Boundary(1, 1), list[Significance]()
        if comparison.analyses is not None:
            analyses, boundary = comparison.analyses, Boundary(comparison.analyses.first, comparison.analyses.most)
            self._earlier = [
                Significance(comparison.at_analysis(number), whole=self, families=families)
                for number in range(1, len(analyses.seeds))
            ]
            for one in (*self._earlier, self):
                one._boundary = boundary

    @cached_property
    def targets(self) -> list[Target]:
        """What a report goes by: STS and the embedded pairs; in a comparison without them, what else can be judged, an
        average before a task."""
        if usual := targets(self.comparison):
            return usual
        others = (one for _, one in known_targets(self.comparison) if not self.unknown(one))
        return list(islice(others, 1))

    @property
    def first(self) -> Target | None:
        """The target that figures shade and choose rows by."""
        return next(iter(self.targets), None)

    @property
    def unlike(self) -> set[tuple[str, str, str]]:
        """(record id, task, source) of scores on other examples than the rest; of what was requested so far."""
        return self._examples.unlike

    def _scored(self, measure: Measure) -> dict[str, Scored]:
        score = (measure.task, measure.source, measure.split, measure.metric)
        if measure not in self._checked:
            self._checked.add(measure)
            self._examples.check(score, measure.aggregation)
        return self._examples.of(score)

    def _texts(self, measure: Measure) -> Ids | None:
        return self._examples.texts((measure.task, measure.source, measure.split, measure.metric))

    def unknown(self, target: Target) -> str:
        """Why nothing can be judged by the target, "" where it can: no run saved its examples, or they are too few."""
        lacking = [one.task for one in target.measures if not self._scored(one)]
        if lacking:
            known = self.comparison.facts.get(lacking[0])
            if known is not None and known.lacks:
                return f"no run saved the examples of {lacking[0]} scored: {known.lacks}"
            names = ", ".join(lacking[:3]) + (f" and {len(lacking) - 3} more" if len(lacking) > 3 else "")
            return f"no run saved the examples of {names} scored"
        few = min(len(next(iter(self._scored(one).values())).influence) for one in target.measures)
        if few < FEWEST_EXAMPLES:
            return f"{few} example{'s' if few > 1 else ''} of a task do not say how far its score goes by chance"
        return ""

    def lacks_examples(self, record: Record) -> bool:
        """Whether a run saved no examples of its targets."""
        measures = [one for target in self.targets for one in target.measures]
        kept = {run for one in measures for run in (*self._scored(one), *(run for run, *_ in self.unlike))}
        return bool(measures) and record.id not in kept

    def examples(self, target: Target) -> int:
        """How many examples its tasks have together."""
        return sum(
            len(next(iter(self._scored(one).values())).influence) for one in target.measures if self._scored(one)
        )

    def by_seed(self, row: ResultRow, target: Target) -> Runs | None:
        """The runs of a row that have all tasks of the target, scored on the examples that most runs were."""
        found = self._read(row, target)
        return found[0] if found is not None else None

    def _read(self, row: ResultRow, target: Target) -> tuple[Runs, list[str]] | None:
        key = (row.key, target)
        if key not in self._by_row:
            by_task = [self._scored(one) for one in target.measures]
            whole = [record for record in row.finished if all(record.id in scored for scored in by_task)]
            scores = [float(np.mean([scored[record.id].value for scored in by_task])) for record in whole]
            runs = Runs([record.seed for record in whole], np.array(scores))
            self._by_row[key] = (runs, [record.id for record in whole]) if whole else None
        return self._by_row[key]

    def _drawn(self, target: Target) -> tuple[Chance, dict[tuple[str, str], int]]:
        """The chance of the examples of all rows' means, and the place of each row among them."""
        if target not in self._chance:
            rows = [(row.key, found[1]) for row in self.comparison.rows if (found := self._read(row, target))]
            tasks = []
            for one in target.measures:
                scored = self._scored(one)
                moved = [np.mean([scored[run].influence for run in runs], axis=0) for _, runs in rows]
                tasks.append((np.stack(moved) / len(target.measures), self._texts(one)))
            self._chance[target] = chance(tasks), {key: place for place, (key, _) in enumerate(rows)}
        return self._chance[target]

    def examples_variance(self, row: ResultRow, target: Target, other: ResultRow | None = None) -> float:
        """What the choice of examples adds to the variance of a row's mean, or of its difference to another's."""
        found, places = self._drawn(target)
        return found.of(places[row.key]) if other is None else found.between(places[row.key], places[other.key])

    def run_variance(self, row: ResultRow, target: Target) -> float | None:
        """What the choice of examples adds to the variance of the score of one run of a row, the mean over its runs."""
        found = self._read(row, target)
        if found is None:
            return None
        runs, by_measure = found[1], [(self._scored(one), self._texts(one)) for one in target.measures]
        moved = [
            (np.stack([scored[run].influence for run in runs]) / len(by_measure), texts) for scored, texts in by_measure
        ]
        of_each = chance(moved)
        return float(np.mean([of_each.of(place) for place in range(len(runs))]))

    def standard_error(self, row: ResultRow, target: Target) -> float | None:
        """Of a row's mean, over seeds and examples; over examples alone for a row with one seed. None without runs."""
        if self.by_seed(row, target) is None:
            return None
        seeds = self.spread(row, target)[0] if self.judged(row, target) else 0.0
        return float(np.sqrt(seeds + self.examples_variance(row, target)))

    def _spreads(self, pool: Pool, target: Target) -> dict[tuple[str, str], tuple[float, float]]:
        """Row key -> what its seeds add to the variance of its mean, and the degrees of freedom of that."""
        key = (pool, target)
        if key not in self._known:
            rows = [row for row in self.comparison.rows if pool_of(row) == pool and self.judged(row, target)]
            runs = [part.scores for row in rows if (part := self.by_seed(row, target)) is not None]
            counts = np.array([len(scores) if np.ptp(scores) > 0 else 0 for scores in runs])
            variances = np.array([scores.var(ddof=1) if n else 0.0 for scores, n in zip(runs, counts, strict=True)])
            known = seed_spread(variances, counts)
            values = zip(known.variance.tolist(), known.freedom.tolist(), strict=True)
            self._known[key] = dict(zip([row.key for row in rows], values, strict=True))
        return self._known[key]

    def spread(self, row: ResultRow, target: Target) -> tuple[float, float]:
        """What seeds add to the variance of the mean of a row that is judged, and the degrees of freedom of that."""
        return self._spreads(pool_of(row), target)[row.key]

    def judged(self, row: ResultRow, target: Target) -> bool:
        """Whether the row has the target's tasks, and its spread is known: several seeds, or none that enters it."""
        runs = self.by_seed(row, target)
        return runs is not None and (len(runs.seeds) > 1 or not seeded(row)) and not self.unknown(target)

    def between(
        self, pairs: Sequence[tuple[ResultRow, ResultRow]], target: Target, family: Family
    ) -> list[Difference | None]:
        """Each (row, other row): mean(row) - mean(other), corrected for a family and all interim analyses.

        None where a side lacks a task of the target.
        """
        last = self._at_this_look(pairs, target, family)
        courses = [[d.estimate] if d is not None and d.judged else [] for d in last]
        for then in self._earlier:
            rows = {row.key: row for row in then.comparison.rows}
            there = [place for place, sides in enumerate(pairs) if all(row.key in rows for row in sides)]
            found = then._at_this_look(
                [(rows[a.key], rows[b.key]) for a, b in map(pairs.__getitem__, there)], target, family
            )
            for place, d in zip(there, found, strict=True):
                if d is not None and d.judged and courses[place]:
                    courses[place].insert(-1, d.estimate)
        return [
            replace(d, estimate=combine_analyses(course)) if d is not None and course else d
            for d, course in zip(last, courses, strict=True)
        ]

    def _at_this_look(
        self, pairs: Sequence[tuple[ResultRow, ResultRow]], target: Target, family: Family
    ) -> list[Difference | None]:
        """Differences by the seeds of this analysis alone: intervals at 0.05 times its share, p divided by that."""
        results: list[Difference | None] = [None] * len(pairs)
        groups: dict[bool, list[tuple[int, Floats, tuple[int, int]]]] = {True: [], False: []}
        for place, (a, b) in enumerate(pairs):
            first, second = self.by_seed(a, target), self.by_seed(b, target)
            if first is None or second is None:
                continue
            judged = self.judged(a, target) and self.judged(b, target)
            sides = [self.spread(row, target) if judged else (0.0, np.inf) for row in (a, b)]
            value = first.scores.mean() - second.scores.mean()
            line = np.array([value, self.examples_variance(a, target, b), *sides[0], *sides[1]])
            groups[judged].append((place, line, (len(first.seeds), len(second.seeds))))
        for judged, members in groups.items():
            if not members:
                continue
            values, drawn, *known = np.stack([line for _, line, _ in members], axis=1)
            spreads = SeedSpread(known[0], known[1]), SeedSpread(known[2], known[3])
            counts, others = np.array([seeds for _, _, seeds in members], dtype=np.float64).T
            shares = np.ones(len(members))
            if judged:
                shares = self._boundary.share(known[0], known[2], counts, others, drawn)
            shares = shares / self._families
            estimates = simultaneous(values, *spreads, drawn, family if judged else Planned(1), ALPHA * shares)
            for (place, _, seeds), estimate, share in zip(members, estimates, shares.tolist(), strict=True):
                results[place] = Difference(replace(estimate, p=min(1.0, estimate.p / share)), seeds, judged)
        return results

    def level(self, a: ResultRow, b: ResultRow, target: Target) -> float:
        """The level of the last interim analysis of the difference of two judged rows; 0.05 if seeds were fixed."""
        sides = [self.spread(row, target)[0] for row in (a, b)]
        counts = [len(runs.seeds) if (runs := self.by_seed(row, target)) is not None else 0 for row in (a, b)]
        drawn = self.examples_variance(a, target, b)
        parts = (np.array(float(part)) for part in (sides[0], sides[1], counts[0], counts[1], drawn))
        return ALPHA * float(self._boundary.share(*parts)) / self._families

    def differences(self, pairs: Sequence[tuple[ResultRow, ResultRow]], target: Target) -> list[Difference | None]:
        """The same for differences that were planned, corrected for as many as can be judged."""
        count = sum(self.judged(a, target) and self.judged(b, target) for a, b in pairs)
        return self.between(pairs, target, Planned(max(count, 1)))

    def leaders(self, rows: Sequence[ResultRow], target: Target) -> Leaders | None:
        """The best of the rows that can be judged, and those that are not separated from it.

        Only rows that have every task of the target take part; None when fewer than two of them can be judged.
        """
        means = {r.key: float(runs.scores.mean()) for r in rows if (runs := self.by_seed(r, target)) is not None}
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


def pool_of(row: ResultRow) -> Pool:
    """Rows of one pool say together how far seeds lie apart: all trained ones of a base model. What the seeds of rows
    without training draw (random vectors) is another thing, and says nothing about those."""
    return row.base_model, _trained(row)


def _trained(row: ResultRow) -> bool:
    return row.supervision != "untrained"


def untrained_base(row: ResultRow, rows: Sequence[ResultRow]) -> tuple[ResultRow | None, str]:
    """The untrained row that a row starts from: same base model, pooling and text length, nothing learnt.

    The one that comparison file names, else the one that is configured so. None where there
    is none, and then why: never another one in its place. Untrained rows, and models that others trained, have neither
    a start nor a reason.
    """
    if not _trained(row):
        return None, ""
    start = next((r for r in rows if row.start and any(record.id == row.start for record in r.records)), None)
    how = _encoding(row)
    if start is None and how is not None:
        alike = (r for r in rows if r.base_model == row.base_model and not _trained(r) and _encoding(r) == how)
        start = next(alike, None)
    if start is not None:
        return start, ""
    if all(record.corpus is None for record in row.finished) and row.supervision != "transductive":
        return None, ""
    if how is None:
        return None, "it does not start from an encoder whose vectors are pooled"
    length = f" and {how[2]} tokens" if how[2] is not None else ""
    return None, f"no untrained run with {row.pooling} pooling{length} was stored"


def _encoding(row: ResultRow) -> tuple[object, ...] | None:
    """What of a row's configuration says how a text becomes a vector; None where nothing is pooled."""
    config = row.records[0].config
    if row.pooling in (None, "none"):
        return None
    layer = config.get("first_layer", 1) if row.pooling == "first_last_avg" else 1
    return row.pooling, layer, config.get("max_length")
