"""What a design of rows between two rows says: how much of their difference each factor makes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations

import numpy as np

from harness.errors import InputError
from reports.load import RecordedResults, RecordedRow
from reports.stats.estimate import Estimate, Floats, Interval, mean_sd
from reports.stats.significance import Runs, Significance
from reports.stats.simultaneous import ALPHA, FEWEST_SEEDS
from reports.targets import Target
from reports.why.shares import Design, DesignScores, Subset, judge_contrasts


@dataclass(frozen=True)
class FactorShare:
    """The part of the difference that one factor makes.

    Attributes:
        name: of the factor, and `settings` what it changes, in words.
        share: its Shapley value; interval and p hold for all factors together.
        first, last: what it adds when it is changed first, with all else as in the second row, and
            last; None where no such row was made.
    """

    name: str
    settings: str
    share: Estimate
    first: float | None
    last: float | None


@dataclass(frozen=True)
class Interaction:
    """What two factors add together beyond what each adds alone; corrected for all pairs."""

    one: str
    other: str
    estimate: Estimate


@dataclass(frozen=True)
class RowBetween:
    """A row of the design: which factors it has from the first row, and its mean in points over the
    seeds that all rows have.
    """

    label: str
    factors: tuple[str, ...]
    mean: float
    sd: float | None
    runs: int


@dataclass(frozen=True)
class Smallest:
    """The fewest factors with which the second row comes within a margin of the first one.

    Attributes:
        gap: the first row less that row; None where it is the first row itself.
    """

    factors: tuple[str, ...]
    gap: Interval | None


@dataclass(frozen=True)
class Explanation:
    """The shares of a difference between two rows, on a scale of -1 to 1.

    Attributes:
        whole: the difference, first row less second one.
        shares: the largest first; they sum to the difference.
        interaction: the largest that is significant; None where none is.
        orders: how many orders of changes were drawn; 0 where all are known.
        seeds: how many each row has.
        level: of the intervals: less than 5 % where the design was analysed before with fewer seeds.
    """

    a: str
    b: str
    target: Target
    whole: Estimate
    shares: tuple[FactorShare, ...]
    interaction: Interaction | None
    smallest: Smallest
    rows: tuple[RowBetween, ...]
    orders: int
    seeds: int
    equivalence: float
    level: float = ALPHA

    @property
    def runs(self) -> int:
        """How many runs all rows have."""
        return sum(row.runs for row in self.rows)


class DesignRows:
    """The rows of a design in a comparison that was run.

    Args:
        labels: the factors that a row has from the first row -> its label.
    """

    def __init__(
        self,
        comparison: RecordedResults,
        significance: Significance,
        target: Target,
        labels: Mapping[Subset, str],
    ) -> None:
        self._significance = significance
        self._target = target
        by_label = {row.label: row for row in comparison.rows}
        self.rows: dict[Subset, RecordedRow] = {}
        self.runs: dict[Subset, Runs] = {}
        self.lacking: dict[Subset, str] = {}
        for subset, label in labels.items():
            row = by_label.get(label)
            if row is None:
                self.lacking[subset] = "it was not run"
                continue
            runs = significance.by_seed(row, target)
            if runs is None:
                self.lacking[subset] = _why_unscored(row)
                continue
            count = len(runs.seeds)
            if row.is_random and count < FEWEST_SEEDS:
                of_all = f"{count} of {len(row.runs)} seeds of {row.label} have a score"
                self.lacking[subset] = f"only {of_all}, and {FEWEST_SEEDS} are needed"
                continue
            self.rows[subset] = row
            self.runs[subset] = runs

    @cached_property
    def seeds(self) -> list[int]:
        """The seeds that all rows have; rows without randomness count for every seed.

        Raises:
            InputError: they are too few to estimate a spread.
        """
        several = []
        for runs in self.runs.values():
            if len(runs.seeds) > 1:
                several.append(set(runs.seeds))
        if not several:
            first = next(iter(self.runs.values()))
            return first.seeds[:1]
        shared = sorted(set.intersection(*several))
        if len(shared) < FEWEST_SEEDS:
            message = f"{len(shared)} seeds have a score in all rows of the design"
            remedy = f"the spread of a share needs {FEWEST_SEEDS}: add seeds with --seeds"
            raise InputError(message, key="why", remedy=remedy)
        return shared

    def scores(self, subset: Subset) -> Floats:
        """(seeds,) of a row by the seeds that all rows have; one where it has no randomness."""
        runs = self.runs[subset]
        if len(runs.seeds) == 1:
            return runs.scores
        return runs.scores[[runs.seeds.index(seed) for seed in self.seeds]]

    def score(self, design: Design) -> DesignScores:
        """Return scores and influences of the rows of a design, seed by seed."""
        scores = []
        parts = []
        for subset in design.subsets:
            runs = self.runs[subset]
            if len(runs.seeds) == 1:
                places = [0] * len(self.seeds)
            else:
                places = [runs.seeds.index(seed) for seed in self.seeds]
            scores.append(runs.scores[places])
            influences = self._significance.influences(runs, self._target)
            parts.append([of_task[places] for of_task in influences])
        by_task = []
        for of_rows in zip(*parts, strict=True):
            by_task.append(np.stack(of_rows))
        texts = []
        for measure in self._target.measures:
            texts.append(self._significance.texts(measure))
        return DesignScores(np.stack(scores), by_task, texts)


def _why_unscored(row: RecordedRow) -> str:
    for record in row.records:
        if record.reason:
            return record.reason
    return "it has no score"


def explain(
    rows: DesignRows,
    design: Design,
    factors: Sequence[tuple[str, str]],
    labels: tuple[str, str],
    target: Target,
    *,
    equivalence: float = 0.5,
    level: float = ALPHA,
) -> Explanation:
    """Return the shares of the factors of a design whose rows all have scores.

    Args:
        factors: (name, settings in words) of each.
        labels: of the first and of the second row.
        equivalence: points; a smaller share is no difference that matters.
        level: of the intervals.
    """
    scored = rows.score(design)
    names = [name for name, _ in factors]
    means = scored.scores.mean(axis=1)
    (whole,) = judge_contrasts(scored, design.whole, level)
    shares = judge_contrasts(scored, design.shares, level)
    first = {}
    for number, weights in design.weigh_change(True).items():
        first[number] = float(weights @ means)
    last = {}
    for number, weights in design.weigh_change(False).items():
        last[number] = float(weights @ means)
    found = []
    for number, (name, settings) in enumerate(factors):
        found.append(
            FactorShare(
                name,
                settings,
                shares[number],
                first.get(number),
                last.get(number),
            )
        )
    found.sort(key=lambda one: -abs(one.share.value))
    return Explanation(
        *labels,
        target,
        whole,
        tuple(found),
        _find_interaction(scored, design, names, level),
        _find_smallest(scored, design, names, equivalence, level),
        tuple(_describe_row(rows, subset, names) for subset in design.subsets),
        len(design.orders),
        len(rows.seeds),
        equivalence,
        level,
    )


def _find_interaction(
    scored: DesignScores,
    design: Design,
    names: Sequence[str],
    level: float,
) -> Interaction | None:
    """Return the largest interaction that is significant among those of all pairs of factors."""
    weights = design.interactions
    if not weights:
        return None
    contrasts = np.stack(list(weights.values()))
    estimates = judge_contrasts(scored, contrasts, level)
    found = []
    for (one, other), estimate in zip(weights, estimates, strict=True):
        if estimate.p <= level:
            interaction = Interaction(names[one], names[other], estimate)
            found.append(interaction)
    return max(found, key=lambda one: abs(one.estimate.value), default=None)


def _find_smallest(
    scored: DesignScores,
    design: Design,
    names: Sequence[str],
    equivalence: float,
    level: float,
) -> Smallest:
    """Return the fewest factors whose row is within the margin of the first row, the nearest of
    those with as many.
    """
    means = scored.scores.mean(axis=1)
    gaps = np.abs(means[-1] - means)
    margin = equivalence / 100
    near = [subset for subset, place in design.places.items() if gaps[place] <= margin]

    def order(subset: Subset) -> tuple[int, float]:
        place = design.places[subset]
        return len(subset), gaps[place]

    best = min(near, key=order)
    named = tuple(names[number] for number in sorted(best))
    if len(best) == design.count:
        return Smallest(named, None)
    weights = np.zeros((1, len(design.subsets)))
    weights[0, -1] += 1
    weights[0, design.places[best]] -= 1
    (gap,) = judge_contrasts(scored, weights, level)
    return Smallest(named, gap)


def _describe_row(rows: DesignRows, subset: Subset, names: Sequence[str]) -> RowBetween:
    scores = rows.scores(subset)
    mean, sd = mean_sd(100 * scores)
    return RowBetween(
        rows.rows[subset].label,
        tuple(names[number] for number in sorted(subset)),
        mean,
        sd,
        len(scores),
    )


def parts_of(groups: Sequence[frozenset[str]], subset: Subset) -> frozenset[str]:
    """Return the settings that a row has from the first row, by the groups of its factors."""
    return frozenset().union(*(groups[number] for number in subset))


def unions(groups: Sequence[frozenset[str]]) -> list[Subset]:
    """Return all subsets of some factors."""
    every = range(len(groups))
    found = []
    for size in range(len(groups) + 1):
        for some in combinations(every, size):
            found.append(frozenset(some))
    return found
