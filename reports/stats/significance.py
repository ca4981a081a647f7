"""What seeds and examples say about a comparison: each row's mean over tasks, differences, and
which row may be best.

A target is what rows are compared by: a score of a task, or the mean of some
(`reports.targets`). How far a difference may go by chance is computed in
`reports.stats.simultaneous`; which differences are judged together, as one family, in
`reports.stats.verdicts`; what interim analyses give together, in `reports.stats.interim`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np

from harness.files.printable import join_some
from reports.read.examples import Ids
from reports.results import Key, ResultRow, Results, Run
from reports.stats.clusters import chance, chance_of_rows, influence_of_row
from reports.stats.estimate import Estimate, Floats, Interval
from reports.stats.example_scores import ExampleScores, Scored
from reports.stats.interim import combine_analyses, share_of_analysis
from reports.stats.simultaneous import (
    ALONE,
    ALPHA,
    EXPLORED,
    FEWEST_SEEDS,
    Rows,
    all_pairs,
    judge,
    keep_own_freedom,
    may_be_best,
    mean_of_shares,
    mean_over_seeds,
    moderate,
)
from reports.suite_targets import known_targets, primary_target
from reports.targets import Measure, Target, targets

FEWEST_EXAMPLES = 10
SAME, NOT_JUDGED = "not significant", "fewer than 3 seeds: not judged"
EstimateSpreads = Callable[[Floats, Floats], tuple[Floats, Floats]]
"""(variances over seeds, numbers of seeds) of rows -> the variance of one run, degrees of freedom.
"""


@dataclass(frozen=True)
class Difference:
    """A row against another by one target.

    Attributes:
        estimate: interval and p are corrected for the family. Of a row with one or two seeds the
            interval has the chance of the examples only.
        seeds: how many runs there are of each side.
        family: the differences that it was judged with, in words; empty where a side has too few
            seeds.
    """

    estimate: Estimate
    seeds: tuple[int, int]
    family: str = ""

    @property
    def judged(self) -> bool:
        return bool(self.family)

    @property
    def reversed(self) -> Difference:
        """The other row against this one."""
        return replace(self, estimate=self.estimate.reversed, seeds=self.seeds[::-1])

    @property
    def verdict(self) -> str:
        if not self.judged:
            return NOT_JUDGED
        if self.estimate.p > ALPHA:
            return SAME
        if self.estimate.value > 0:
            return "better"
        return "worse"


class Runs(NamedTuple):
    """The runs of a row that have every task of a target.

    Attributes:
        seeds: of each run.
        scores: (runs,) their means over the tasks, between -1 and 1.
        ids: of the runs.
    """

    seeds: list[int]
    scores: Floats
    ids: tuple[str, ...]


class Significance:
    """What a comparison's rows score and how far that may go by chance, computed once for each
    target.

    Examples are redrawn for all rows and tasks together: rows are paired. Rows that are the same
    runs count once. Of a comparison whose seeds were added until it was decided, every difference
    combines all its interim analyses.

    """

    def __init__(
        self,
        results: Results,
        *,
        whole: Significance | None = None,
        examples: ExampleScores | None = None,
        targets: Sequence[Target] | None = None,
        families: int = 1,
        estimate_spreads: EstimateSpreads = moderate,
    ) -> None:
        """Args:
        whole: of the same comparison with more seeds, whose examples are used.
        examples: what is used instead of all that the runs saved.
        targets: what rows are compared by, instead of what their scores suggest.
        families: of how many comparisons like this one it is: levels and p-values are corrected for
        them (Bonferroni).
        estimate_spreads: how the spreads of rows over seeds are estimated from one another.
        """
        self.results = results
        self._targets = targets
        self._estimate_spreads = estimate_spreads
        if examples is None:
            if whole is None:
                examples = ExampleScores(results)
            else:
                examples = whole._examples
        self._examples: ExampleScores = examples
        self._by_row: dict[tuple[Key, Target], Runs | None] = {}
        self._known: dict[Target, tuple[Rows, dict[Key, int]]] = {}
        self._share = 1 / families  # of 0.05, for this analysis alone
        self._earlier: list[Significance] = []
        if results.analyses is not None:
            first = results.analyses.first
            most = results.analyses.most
            last = len(results.analyses.seeds)
            for number in range(1, last):
                earlier = Significance(
                    results.at_analysis(number), whole=self, estimate_spreads=estimate_spreads
                )
                earlier._share = share_of_analysis(number, first, most) / families
                self._earlier.append(earlier)
            self._share = share_of_analysis(last, first, most) / families

    @cached_property
    def targets(self) -> list[Target]:
        """What a report goes by: STS and the embedded pairs; in a comparison without them, what
        else can be judged, an average before a task. The file's primary score is the first.
        """
        if self._targets is not None:
            return list(self._targets)
        primary = primary_target(self.results)
        usual = targets(self.results)
        if primary is not None:
            others = [one for one in usual if one != primary]
            return [primary, *others]
        if usual:
            return usual
        for _, other in known_targets(self.results):
            if not self.unknown(other):
                return [other]
        return []

    @property
    def first(self) -> Target | None:
        """The target that figures shade and choose rows by."""
        return next(iter(self.targets), None)

    @property
    def on_other_examples(self) -> set[tuple[str, str, str]]:
        """(record id, task, source) of scores on other examples than the rest; of what was
        requested so far.
        """
        return self._examples.on_other_examples

    def _scores_of(self, measure: Measure) -> dict[str, Scored]:
        return self._examples.of(measure.score)

    def texts(self, measure: Measure) -> Ids | None:
        return self._examples.texts(measure.score)

    def _count(self, measure: Measure) -> int:
        """How many examples a task has; 0 where no run saved them."""
        for scored in self._scores_of(measure).values():
            return len(scored.influence)
        return 0

    def unknown(self, target: Target) -> str:
        """Why nothing can be judged by the target, "" where it can: no run saved its examples, or
        they are too few. Of scores that were given what is not known is noted.
        """
        if self._examples.given is not None:
            return ""
        lacking = [one.task for one in target.measures if not self._scores_of(one)]
        if lacking:
            known = self.results.facts.get(lacking[0])
            if known is not None and known.lacks:
                return f"no run saved the examples of {lacking[0]} scored: {known.lacks}"
            return f"no run saved the examples of {join_some(lacking, 3)} scored"
        few = min(map(self._count, target.measures))
        if few < FEWEST_EXAMPLES:
            return f"a task has too few examples ({few}) to estimate the chance of its score"
        return ""

    def saved_no_examples(self, record: Run) -> bool:
        """True if a run saved no examples of its targets."""
        measures = [one for target in self.targets for one in target.measures]
        if not measures:
            return False
        if any(record.id in self._scores_of(one) for one in measures):
            return False
        runs = [run for run, _, _ in self.on_other_examples]
        return record.id not in runs

    def examples(self, target: Target) -> int:
        """How many examples its tasks have together."""
        return sum(map(self._count, target.measures))

    def by_seed(self, row: ResultRow, target: Target) -> Runs | None:
        """The runs of a row that have all tasks of the target, scored on the examples that most
        runs were.
        """
        key = (row.key, target)
        if key not in self._by_row:
            self._by_row[key] = self._find_runs(row, target)
        return self._by_row[key]

    def _find_runs(self, row: ResultRow, target: Target) -> Runs | None:
        by_task = [self._scores_of(one) for one in target.measures]
        seeds = []
        means = []
        ids = []
        for record in row.finished:
            if not all(record.id in scored for scored in by_task):
                continue
            scores = [scored[record.id].value for scored in by_task]
            seeds.append(record.seed)
            means.append(float(np.mean(scores)))
            ids.append(record.id)
        if not ids:
            return None
        return Runs(seeds, np.array(means), tuple(ids))

    def of_two(self, a: ResultRow, b: ResultRow) -> Significance:
        """The same of two rows alone, whose spreads over seeds borrow nothing from other rows."""
        two = replace(self.results, rows=(a, b))
        return Significance(two, examples=self._examples, estimate_spreads=keep_own_freedom)

    def digests(self, row: ResultRow, target: Target) -> list[str]:
        """A hash of each run of a row: of its seed, its scores, and what its examples do to them.

        Runs that were made again with other scores have other hashes, whatever their names.
        """
        runs = self.by_seed(row, target)
        if runs is None:
            return []
        found = []
        for seed, run in zip(runs.seeds, runs.ids, strict=True):
            digest = hashlib.sha256(str(seed).encode())
            for measure in target.measures:
                scored = self._scores_of(measure)[run]
                numbers = np.append(scored.influence, scored.value)
                digest.update(repr(measure).encode())
                rounded = np.round(numbers, 9) + 0.0  # no negative zero
                digest.update(rounded.tobytes())
            found.append(digest.hexdigest()[:16])
        return found

    def judged(self, row: ResultRow, target: Target) -> bool:
        """Whether the row has the target's tasks, and its spread is known: three seeds, or none
        that enters it.
        """
        runs = self.by_seed(row, target)
        if runs is None or self.unknown(target):
            return False
        return len(runs.ids) >= FEWEST_SEEDS or not row.is_random

    def control(self, row: ResultRow, target: Target) -> bool:
        """Whether the row is random: nothing is learnt, and yet its seeds differ. Such a row is no
        contender.
        """
        runs = self.by_seed(row, target)
        if row.is_trained or runs is None:
            return False
        return bool(np.ptp(runs.scores) > 0)

    def _rows(self, target: Target) -> tuple[Rows, dict[Key, int]]:
        """All rows with the target's tasks, those of the same runs once, and the place of each row
        among them.
        """
        if target not in self._known:
            self._known[target] = self._estimate_rows(target)
        return self._known[target]

    def _estimate_rows(self, target: Target) -> tuple[Rows, dict[Key, int]]:
        distinct, places = self._distinct_rows(target)
        means = []
        counts = []
        influences = []
        for _, runs in distinct:
            means.append(float(runs.scores.mean()))
            counts.append(len(runs.ids))
            influences.append(influence_of_row(self.influences(runs, target)))

        seeds, freedom = self._seeds(distinct, target)
        own_seeds = np.zeros(len(distinct))
        if self._estimate_spreads is moderate:  # others take a floor from all rows
            enough = np.array(counts) >= ALONE
            own_seeds = np.where(enough, counts, 0.0)
        own_seeds[seeds == 0] = np.inf

        tasks = [(self._count(one), self.texts(one)) for one in target.measures]
        examples = chance_of_rows(influences, tasks)
        # Where seeds are not judged, their interaction with examples is held by nothing else.
        held = np.where(seeds > 0, examples.interaction, 0.0)
        rows = Rows(
            np.array(means),
            seeds,
            freedom,
            replace(examples, interaction=held),
            own_seeds,
        )
        return rows, places

    def _distinct_rows(
        self,
        target: Target,
    ) -> tuple[list[tuple[ResultRow, Runs]], dict[Key, int]]:
        """Return the rows with the target's tasks, one of those that are the same runs, where the last
        of them is; and the place of each row among them.
        """
        found: dict[tuple[str, ...], tuple[ResultRow, Runs]] = {}
        ids_of: dict[Key, tuple[str, ...]] = {}
        for row in self.results.rows:
            runs = self.by_seed(row, target)
            if runs is not None:
                first = found.pop(runs.ids, (row, runs))
                found[runs.ids] = first
                ids_of[row.key] = runs.ids
        order = {ids: place for place, ids in enumerate(found)}
        places = {key: order[ids] for key, ids in ids_of.items()}
        return list(found.values()), places

    def influences(self, runs: Runs, target: Target) -> list[Floats]:
        """Of each task's examples on the mean over the tasks, (seeds, n)."""
        found = []
        for measure in target.measures:
            scored = self._scores_of(measure)
            of_task = np.stack([scored[run].influence for run in runs.ids])
            found.append(of_task / len(target.measures))
        return found

    def _seeds(
        self, rows: Sequence[tuple[ResultRow, Runs]], target: Target
    ) -> tuple[Floats, Floats]:
        """What seeds add to the variance of each mean, and its degrees of freedom: moderated
        between the trained rows of a group. What the seeds of random rows draw is another thing,
        and says nothing about training.
        """
        variance = np.zeros(len(rows))
        freedom = np.full(len(rows), np.inf)
        pools: dict[tuple[str, bool], list[int]] = {}
        for place, (row, runs) in enumerate(rows):
            random = row.is_random or np.ptp(runs.scores) > 0
            if random and self.judged(row, target):
                pools.setdefault((row.block, row.is_trained), []).append(place)

        least = self._rounding_variance(target)
        for places in pools.values():
            own = []
            counts = []
            for place in places:
                _, runs = rows[place]
                of_seeds = 0.0
                if np.ptp(runs.scores) > 0:  # the variance of equal floats may be 1e-32
                    of_seeds = float(runs.scores.var(ddof=1))
                own.append(max(of_seeds, least))
                counts.append(len(runs.scores))
            seeds = np.array(counts)
            of_run, of_row = self._estimate_spreads(np.array(own), seeds)
            variance[places] = of_run / seeds
            freedom[places] = of_row
        return variance, freedom

    def _rounding_variance(self, target: Target) -> float:
        """The variance that scores have by their steps alone, such as one of 60 answers or a tenth
        of a point.

        Seeds that tie do not show that a row has no randomness, but that it is below a step. The
        step of a task is the smallest difference between two runs.
        """
        total = 0.0
        for measure in target.measures:
            scores = self._scores_of(measure).values()
            values = [scored.value for scored in scores]
            distinct = np.unique(np.round(values, 9))
            if len(distinct) > 1:
                smallest = float(np.diff(distinct).min())
                step = smallest / len(target.measures)
                total += step**2 / 12
        return total

    def examples_variance(self, row: ResultRow, target: Target) -> float:
        """What the choice of examples adds to the variance of a row's mean."""
        rows, places = self._rows(target)
        return rows.examples.of(places[row.key])

    def interval_of_mean(self, row: ResultRow, target: Target) -> Interval:
        """Return a row's mean with its 95 % interval, by its own seeds and the choice of examples."""
        runs = self.by_seed(row, target)
        assert runs is not None
        rows, places = self._rows(target)
        place = places[row.key]
        variance = rows.examples.of(place)
        if not self._is_share(target):
            return mean_over_seeds(runs.scores, variance, rows.examples.freedom_of(place))
        counts = [self._count(one) for one in target.measures]
        at_bounds = []
        for measure in target.measures:
            scored = self._scores_of(measure)
            at_bounds += [scored[run].at_bounds for run in runs.ids]
        return mean_of_shares(runs.scores, variance, counts, float(np.mean(at_bounds)))

    def _is_share(self, target: Target) -> bool:
        """True if the target's scores are means of outcomes between 0 and 1."""
        for measure in target.measures:
            for one in self._scores_of(measure).values():
                if not one.is_share or len(one.influence) <= 1:
                    return False
        return True

    def run_variance(self, row: ResultRow, target: Target) -> float | None:
        """What the choice of examples adds to the variance of the score of one run of a row, the
        mean over its runs.
        """
        runs = self.by_seed(row, target)
        if runs is None:
            return None
        tasks = []
        of_tasks = self.influences(runs, target)
        for measure, influences in zip(target.measures, of_tasks, strict=True):
            of_runs = list(influences)
            tasks.append((of_runs, self.texts(measure)))
        of_each = chance(tasks)
        variances = []
        for place in range(len(runs.ids)):
            variances.append(of_each.of(place))
        return float(np.mean(variances))

    def standard_error(self, row: ResultRow, target: Target) -> float | None:
        """Of a row's mean, over seeds and examples; over examples alone with one or two seeds. None
        without runs.
        """
        if self.by_seed(row, target) is None:
            return None
        rows, places = self._rows(target)
        place = places[row.key]
        variance = rows.seeds[place] + rows.examples.of(place)
        return float(np.sqrt(variance))

    def differences(
        self,
        pairs: Sequence[tuple[ResultRow, ResultRow]],
        target: Target,
        family: str,
        *,
        explore: bool = False,
    ) -> list[Difference | None]:
        """Mean of the first row less that of the second of each pair, judged as one family over all
        interim analyses.

        None where a side lacks a task of the target. A pair of which a side has too few seeds is in
        no family.

        Args:
            family: what the pairs are, in words.
            explore: many pairs, of which a share may be found wrongly
                (`reports.stats.simultaneous.judge`).
        """
        courses: list[list[Estimate]] = [[] for _ in pairs]
        for then in self._earlier:
            known = {row.key: row for row in then.results.rows}
            numbers = []
            pairs_then = []
            for number, (a, b) in enumerate(pairs):
                if a.key in known and b.key in known:
                    pair = known[a.key], known[b.key]
                    numbers.append(number)
                    pairs_then.append(pair)
            found = then._at_this_analysis(pairs_then, target, family, explore=explore)
            for number, difference in zip(numbers, found, strict=True):
                if difference is not None and difference.judged:
                    courses[number].append(difference.estimate)

        last = self._at_this_analysis(pairs, target, family, explore=explore)
        for number, difference in enumerate(last):
            if difference is not None and difference.judged:
                combined = combine_analyses([*courses[number], difference.estimate])
                last[number] = Difference(combined, difference.seeds, family)
        return last

    def _at_this_analysis(
        self,
        pairs: Sequence[tuple[ResultRow, ResultRow]],
        target: Target,
        family: str,
        *,
        explore: bool,
    ) -> list[Difference | None]:
        """By the seeds of this analysis alone: intervals at its share of 0.05, p divided by that
        share.
        """
        found: list[Difference | None] = [None] * len(pairs)
        counts: dict[int, tuple[int, int]] = {}
        for number, (a, b) in enumerate(pairs):
            one = self.by_seed(a, target)
            other = self.by_seed(b, target)
            if one is not None and other is not None:
                counts[number] = len(one.ids), len(other.ids)
        if not counts:
            return found

        rows, places = self._rows(target)
        numbers_of: dict[tuple[int, int], list[int]] = {}  # two rows -> the pairs of these runs
        for number, of_both in counts.items():
            a, b = pairs[number]
            place = places[a.key], places[b.key]
            if self.judged(a, target) and self.judged(b, target):
                numbers_of.setdefault(place, []).append(number)
            else:
                found[number] = Difference(_judge_examples(rows, place), of_both)
        if not numbers_of:
            return found

        level = ALPHA * self._share
        distinct = np.array(list(numbers_of))
        estimates = judge(rows, distinct, level=level, explore=explore)
        for estimate, numbers in zip(estimates, numbers_of.values(), strict=True):
            p = min(1.0, estimate.p / self._share)
            corrected = replace(estimate, p=p)
            for number in numbers:
                found[number] = Difference(corrected, counts[number], family)
        return found

    def parts(self, a: ResultRow, b: ResultRow, target: Target) -> tuple[float, float, float]:
        """The variance of the difference of two rows' means: by the seeds of either, and by the
        examples.
        """
        rows, places = self._rows(target)
        i = places[a.key]
        j = places[b.key]
        of_one = float(rows.seeds[i])
        of_other = float(rows.seeds[j])
        examples = float(rows.examples.between(i, j))
        return of_one, of_other, examples

    def half_width_at_the_end(
        self, pair: tuple[ResultRow, ResultRow], rows: Sequence[ResultRow], target: Target
    ) -> float:
        """Half the width that the interval of a pair is expected to have at the last analysis that
        is planned, when both rows have all seeds that may come, judged with all pairs of `rows`.
        """
        analyses = self.results.analyses
        assert analyses is not None
        now, places = self._rows(target)
        seeds = now.seeds.copy()
        freedom = now.freedom.copy()
        assert now.own_seeds is not None
        own_seeds = now.own_seeds.copy()
        most = analyses.most
        for row in pair:
            place = places[row.key]
            runs = self.by_seed(row, target)
            assert runs is not None
            count = len(runs.ids)
            if seeds[place] == 0 or count >= most:
                continue
            seeds[place] *= count / most
            freedom[place] += most - count
            if most >= ALONE:
                freedom[place] = most - 1
                own_seeds[place] = most
        at_the_end = replace(now, seeds=seeds, freedom=freedom, own_seeds=own_seeds)

        distinct = list(dict.fromkeys(places[row.key] for row in rows))
        pairs = all_pairs(len(distinct))
        last = most - analyses.first + 1
        share = share_of_analysis(last, analyses.first, most)
        found = judge(
            at_the_end.of(distinct),
            pairs,
            level=ALPHA * share,
            explore=len(distinct) >= EXPLORED,
        )
        first, second = pair
        both = {distinct.index(places[first.key]), distinct.index(places[second.key])}
        of_pairs = [set(places_of_two) for places_of_two in pairs.tolist()]
        estimate = found[of_pairs.index(both)]
        return (estimate.high - estimate.low) / 2

    def may_be_best(self, rows: Sequence[ResultRow], target: Target) -> dict[Key, bool]:
        """Of each row that can be judged, whether it may be the best of them
        (`reports.stats.simultaneous`).
        """
        found: dict[Key, bool] = {}
        for analysis in (*self._earlier, self):
            there = {row.key: row for row in analysis.results.rows}
            judged = []
            for row in rows:
                then = there.get(row.key)
                if then is not None and analysis.judged(then, target):
                    judged.append(row.key)
            if not judged:
                continue
            every, places = analysis._rows(target)
            distinct = list(dict.fromkeys(places[key] for key in judged))
            p_of_each = may_be_best(every.of(distinct))
            p = dict(zip(distinct, p_of_each, strict=True))
            level = ALPHA * analysis._share
            for key in judged:
                may_be = bool(p[places[key]] > level)
                found[key] = found.get(key, True) and may_be
        return found


def _judge_examples(rows: Rows, place: tuple[int, int]) -> Estimate:
    """Return the difference of two rows with the chance of the examples alone."""
    nothing = np.zeros_like(rows.seeds)
    seedless = replace(rows, seeds=nothing, examples=rows.examples.without_interaction())
    return judge(seedless, np.array([place]))[0]
