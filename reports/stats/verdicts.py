"""Is A better than B? Verdicts in words and numbers, for two rows and for all pairs of a block."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from reports.read.comparison_runs import ResultRow
from reports.stats.estimate import Floats
from reports.stats.power import CHANCE, Design, seeds_needed, smallest_difference
from reports.stats.significance import NOT_JUDGED, Difference, Significance, pool_of
from reports.stats.simultaneous import AllPairs, Planned
from reports.stats.targets import Target

SCALE = 100.0  # points: scores differ by no more
EQUIVALENCE = 0.5  # points: less is no difference that matters
BETTER, WORSE, ALIKE, OPEN = "better", "worse", "no difference that matters", "cannot tell yet"


@dataclass(frozen=True)
class Verdict:
    """A against B by one target; values in points (times 100).

    Attributes:
        kind: better, worse, no difference that matters (the whole interval within the region of practical equivalence),
            cannot tell yet, or that a side has one seed and nobody can judge it.
        difference: A - B; its interval holds together with those of all pairs of the block, and p is corrected alike.
        another_seed: probability that one more seed of A is ahead of one more of B on the same examples.
        detectable: the smallest true difference that this design finds with probability 0.8; None with one seed.
        needed: seeds of every row with which the difference as measured would be found so; None beyond 100.
    """

    a: ResultRow
    b: ResultRow
    target: Target
    kind: str
    difference: Difference
    another_seed: float | None
    detectable: float | None
    needed: int | None


class Block:
    """The rows of one base model that have a target's tasks: all their differences, corrected together."""

    def __init__(self, rows: Sequence[ResultRow], significance: Significance, target: Target) -> None:
        self.significance, self.target = significance, target
        runs = [(float(f.scores.mean()), row) for row in rows if (f := significance.by_seed(row, target)) is not None]
        ordered = [row for _, row in sorted(runs, key=lambda item: -item[0])]
        self.judged = [row for row in ordered if significance.judged(row, target)]
        known = {row.key for row in self.judged}
        self.rows = self.judged + [row for row in ordered if row.key not in known]  # each part best first
        self.family = AllPairs(max(len(self.judged), 2))

    def mean(self, row: ResultRow) -> float:
        """In points."""
        return 100 * float(self.runs(row).mean())

    def runs(self, row: ResultRow) -> Floats:
        """Its mean over the target's tasks by seed, between -1 and 1."""
        found = self.significance.by_seed(row, self.target)
        assert found is not None
        return found.scores

    def differences(self) -> dict[tuple[int, int], Difference]:
        """(i, j) with i < j -> row i minus row j, in the order of `rows`."""
        places = [(i, j) for i in range(len(self.rows)) for j in range(i + 1, len(self.rows))]
        pairs = [(self.rows[i], self.rows[j]) for i, j in places]
        found = self.significance.between(pairs, self.target, self.family)
        return {place: d for place, d in zip(places, found, strict=True) if d is not None}

    def groups(self) -> list[tuple[int, ...]]:
        """The largest sets of judged rows, by place, of which no two are separated.

        Two rows share a set if and only if they are not separated, also where that is not transitive: the
        insert-and-absorb algorithm of Piepho (Journal of Computational and Graphical Statistics 13, 2004).
        """
        count = len(self.judged)
        groups = {frozenset(range(count))} if count else set()
        for pair, difference in self.differences().items():
            if max(pair) >= count or difference.verdict == "not separable":
                continue
            both = {group for group in groups if group.issuperset(pair)}
            groups -= both
            parts = {group - {place} for group in both for place in pair}
            groups |= {part for part in parts if not any(part < other for other in parts | groups)}
        return sorted(tuple(sorted(group)) for group in groups)

    def describe_groups(self) -> list[str]:
        """The groups in words, best first: "1, 2, 4: SCD, SimCSE, whitening"."""
        return [
            f"{', '.join(str(place + 1) for place in group)}: {', '.join(self.rows[place].label for place in group)}"
            for group in self.groups()
        ]

    def deviation(self, row: ResultRow) -> float:
        """Standard deviation over seeds in points, as far as the row's own and the others' seeds tell."""
        variance, _ = self.significance.spread(row, self.target)
        return 100 * math.sqrt(variance * len(self.runs(row)))

    def pairs_deviation(self, a: ResultRow, b: ResultRow) -> float:
        """Standard deviation of their difference that comes from the choice of examples, in points."""
        return 100 * math.sqrt(self.significance.examples_variance(a, self.target, b))

    def design(self, a: ResultRow, b: ResultRow) -> Design:
        """The present comparison, with what is known of its spreads."""
        keys = [row.key for row in self.judged]
        deviations = tuple(self.deviation(row) for row in self.judged)
        sides = keys.index(a.key), keys.index(b.key)
        pools = tuple(map(pool_of, self.judged))
        pairs, level = self.pairs_deviation(a, b), self.level(a, b)
        return Design(deviations, pairs, self.family, sides=sides, level=level, pools=pools)

    def level(self, a: ResultRow, b: ResultRow) -> float:
        """The level of the last interim analysis of the difference of two judged rows."""
        return self.significance.level(a, b, self.target)

    def seeds(self) -> Floats:
        return np.array([len(self.runs(row)) for row in self.judged])

    def verdict(self, a: ResultRow, b: ResultRow, equivalence: float = EQUIVALENCE) -> Verdict:
        """A against B; both must be rows of the block.

        Args:
            equivalence: half width of the region of practical equivalence, in points.
        """
        (found,) = self.significance.between([(a, b)], self.target, self.family)
        assert found is not None
        if not found.judged:
            return Verdict(a, b, self.target, NOT_JUDGED, found, None, None, None)
        least = smallest_difference(self.design(a, b), self.seeds())
        kind = kind_of(found, equivalence)
        return Verdict(a, b, self.target, kind, found, self._another(a, b), least, self.needed(a, b))

    def needed(self, a: ResultRow, b: ResultRow) -> int | None:
        """Seeds of every row with which a difference as large as that measured is found with probability 0.8.

        None where no number up to 100 is enough, or no seed enters.
        """
        design = self.design(a, b)
        gap = abs(self.mean(a) - self.mean(b))
        return seeds_needed(design, gap) if gap > 0 and max(design.deviations) > 0 else None

    def _another(self, a: ResultRow, b: ResultRow) -> float:
        """Student's t of the difference over what two further seeds may lie apart (Welch's freedom)."""
        from scipy.special import stdtr

        parts = [
            (variance * len(self.runs(row)) * (1 + 1 / len(self.runs(row))), freedom)
            for row in (a, b)
            for variance, freedom in [self.significance.spread(row, self.target)]
        ]
        total = sum(v for v, _ in parts)
        gap = float(self.runs(a).mean() - self.runs(b).mean())
        if total == 0:
            return 0.5 if gap == 0 else float(gap > 0)
        freedom = total**2 / sum(v * v / f for v, f in parts)
        return float(stdtr(min(freedom, 1e9), gap / math.sqrt(total)))


def kind_of(difference: Difference, equivalence: float = EQUIVALENCE) -> str:
    """The verdict in words, with a region of practical equivalence in points."""
    if not difference.judged:
        return NOT_JUDGED
    low, high = 100 * difference.estimate.low, 100 * difference.estimate.high
    if -equivalence <= low and high <= equivalence:
        return ALIKE
    if difference.estimate.p > 0.05:
        return OPEN
    return BETTER if difference.estimate.value > 0 else WORSE


def common_design(block: Block) -> Design | None:
    """Two rows like the trained ones of a block, for what its number of seeds can see; None with fewer than two.

    Random vectors differ by more between seeds than training does, and say nothing about it.
    """
    random = [row for row in block.judged if row.supervision != "untrained" and block.deviation(row) > 0]
    if len(random) < 2:
        return None
    common = _common_deviation([block.runs(row) for row in random])
    keys = {row.key for row in random}
    deviations = tuple(common if row.key in keys else 0.0 for row in block.judged)
    places = [i for i, row in enumerate(block.judged) if row.key in keys]
    gaps = [block.pairs_deviation(a, b) for i, a in enumerate(random) for b in random[i + 1 :]]
    return Design(
        deviations,
        float(np.median(gaps)),
        block.family,
        sides=(places[0], places[1]),
        level=block.level(random[0], random[1]),
    )


def _common_deviation(runs: Sequence[Floats]) -> float:
    """Of the scores by seed of some rows, in points."""
    freedom = sum(len(scores) - 1 for scores in runs)
    return 100 * math.sqrt(sum(float(scores.var(ddof=1)) * (len(scores) - 1) for scores in runs) / freedom)


def seen_from_base(significance: Significance, pairs: Sequence[tuple[ResultRow, ResultRow]], target: Target) -> str:
    """One line: what differences planned ones, of trained rows to rows without seeds, are found from which size on."""
    judged = [(a, b) for a, b in pairs if significance.judged(a, target) and significance.judged(b, target)]
    runs = [found.scores for a, _ in judged if (found := significance.by_seed(a, target)) and np.ptp(found.scores) > 0]
    if not runs:
        return ""
    gaps = [100 * math.sqrt(significance.examples_variance(a, target, b)) for a, b in judged]
    deviations = (*[_common_deviation(runs)] * len(runs), 0.0)
    sides = 0, len(runs)
    design = Design(deviations, float(np.median(gaps)), Planned(max(len(judged), 1)), sides=sides)
    counts = [len(scores) for scores in runs]
    said = [
        f"with {n} seeds {sight(smallest_difference(design, np.full(len(deviations), n)))}"
        for n in dict.fromkeys((min(counts), max(counts)))
    ]
    return f"On {target.short}, {', '.join(said)}."


def seen(block: Block) -> dict[int, float]:
    """The fewest and the most seeds of its rows -> the smallest difference that so many can see, in points; empty where
    nothing is known."""
    design = common_design(block)
    if design is None:
        return {}
    random = np.array(design.deviations) > 0
    counts = sorted({int(n) for n in block.seeds()[random]})
    rows = len(design.deviations)
    return {n: smallest_difference(design, np.full(rows, n)) for n in dict.fromkeys((counts[0], counts[-1]))}


def seen_text(block: Block) -> str:
    """One line: what differences this design can detect; "" where nothing is known."""
    texts = [f"{count} seeds {sight(least)}" for count, least in seen(block).items()]
    return f"With {', with '.join(texts)}." if texts else ""


def seen_on_each(found: Sequence[tuple[str, Block]]) -> str:
    """The same for several columns (title, block) of a table: from the smallest to the largest of them."""
    if len(found) == 1:
        return seen_text(found[0][1])
    known = [(title, least) for title, block in found if (least := seen(block))]
    if not known:
        return ""
    count = min(n for _, least in known for n in least)
    by_title = sorted((max(least.values()), title) for title, least in known)
    (low, first), (high, last) = by_title[0], by_title[-1]
    if len(known) == 1:
        return f"With {count} seeds {sight(low, f' on {first}')}."
    most = f"{high:.1f} points" if high < SCALE else f"more than {SCALE:.0f} points"
    return f"With {count} seeds {CHANCE:.0%} power for differences of {low:.1f} ({first}) to {most} ({last})."


def sight(least: float, where: str = "") -> str:
    """The smallest difference in points that a design detects, in words."""
    if least >= SCALE:
        return f"no difference{where} can be detected"
    return f"{CHANCE:.0%} power for differences of {least:.1f} points{where}"
