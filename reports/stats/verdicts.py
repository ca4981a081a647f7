"""Which differences are judged together, as a family, and what they say: planned ones, controls,
all pairs of rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.special import ndtri

from harness.files.printable import join_some
from reports.results import ResultRow, Results, find_start
from reports.stats.estimate import Floats, Interval
from reports.stats.order import describe_order
from reports.stats.power import CHANCE
from reports.stats.significance import NOT_JUDGED, SAME, Difference, Significance
from reports.stats.simultaneous import ALPHA, EXPLORED
from reports.targets import Target, alone

EQUIVALENCE = 0.5  # points: less is no difference that matters
BETTER, WORSE, ALIKE, OPEN = "better", "worse", "no difference that matters", "cannot tell yet"
_LARGEST = 100.0  # points: scores differ by no more

Pair = tuple[ResultRow, ResultRow]


@dataclass(frozen=True)
class Family:
    """Differences that were named before any score was known, and are judged together.

    Attributes:
        name: in words: "3 rows against their untrained start".
        pairs: (row, other row).
        apart: they are corrected for this family alone; else, as after a deviation from a frozen
            plan, each is judged among all pairs of its rows.
    """

    name: str
    pairs: tuple[Pair, ...]
    apart: bool = True


def starts(results: Results) -> Family:
    """Each trained row against the untrained row that it starts from."""
    found = [(row, find_start(row, results.rows)[0]) for row in results.rows if not row.source]
    pairs = tuple((row, base) for row, base in found if base is not None)
    return Family(f"{_count(pairs, 'row')} against their untrained start", pairs)


def own_against_others(results: Results) -> Family:
    """The comparison's own rows against those made elsewhere (`--against`)."""
    own = [row for row in results.rows if not (row.source or row.added)]
    pairs = tuple((row, other) for row in own for other in results.rows if other.source)
    return Family(f"{_count(pairs, 'pair')} of an own row and one made elsewhere", pairs)


def planned_family(results: Results) -> Family:
    """Return what the comparison's file names: every row against its `baseline`, and its
    `[[contrasts]]`.

    They are no family of their own where a plan was frozen and its baseline, rows or seeds were
    changed: whoever changes them can have seen scores.
    """
    by_label: dict[str, list[ResultRow]] = {}
    for row in results.rows:
        by_label.setdefault(row.label, []).append(row)
    named = [*results.contrasts]
    if results.baseline:
        named += [(row.label, results.baseline) for row in results.rows if not row.added]
    pairs = dict.fromkeys(
        (a, b)
        for first, second in dict.fromkeys(named)
        for a in by_label.get(first, ())
        for b in by_label.get(second, ())
        if a.key != b.key and (a.base_model == b.base_model or len(by_label[second]) == 1)
    )
    frozen = results.plan
    apart = frozen is None or not frozen.deviates_by_choice
    what = f"{_count(tuple(pairs), 'planned pair' if frozen is not None else 'named pair')}"
    if results.baseline and not results.contrasts:
        what = f"{_count(tuple(pairs), 'row')} against the baseline {results.baseline}"
    return Family(what, tuple(pairs), apart)


IN_USE = "a row against the model in use"


def replaces_model(results: Results) -> bool:
    """True of a comparison whose question is whether a row replaces the model in use: its pairs
    follow from the question, and nobody chose them.
    """
    return bool(results.incumbent) and results.incumbent == results.baseline


def plan_status(results: Results) -> str:
    """Return how the pairs that a comparison's file names were chosen: "as planned" only with a
    frozen plan from which nothing differs.
    """
    frozen = results.plan
    if frozen is None and replaces_model(results):
        return IN_USE
    if frozen is None:
        return "chosen in the experiment file, not frozen"
    if not frozen.deviations:
        return "as planned"
    return f"not as planned: {join_some(frozen.texts, 2)}"


def judge_family(
    family: Family, significance: Significance, target: Target
) -> list[tuple[Pair, Difference]]:
    """Return its pairs that have the target's tasks, with their differences."""
    if not family.apart:
        return _judge_among_all(family.pairs, significance, target)
    found = significance.differences(family.pairs, target, family.name)
    return [(pair, d) for pair, d in zip(family.pairs, found, strict=True) if d is not None]


def _judge_among_all(
    pairs: Sequence[Pair], significance: Significance, target: Target
) -> list[tuple[Pair, Difference]]:
    """Judge each pair among all pairs of the rows that either is compared with."""
    blocks = significance.results.blocks
    known: dict[tuple[str, ...], Ranking] = {}
    found = []
    for a, b in pairs:
        names = tuple(dict.fromkeys((a.block, b.block)))
        if names not in known:
            rows = [row for name in names for row in blocks[name]]
            known[names] = Ranking(rows, significance, target)
        block = known[names]
        if a in block.rows and b in block.rows:
            found.append(((a, b), block.difference(a, b)))
    return found


def _count(items: Sequence[object], noun: str) -> str:
    return f"{len(items)} {noun}{'' if len(items) == 1 else 's'}"


class Ranking:
    """Rows that are compared with one another by a target: all their pairs, and which of them may
    be the best.

    Untrained starts that were added to the file's rows are there for those alone, and left out but
    for those in `also`.

    Attributes:
        rows: those with the target's tasks: contenders, random controls, then rows with too few
            seeds, each best first.
        judged: those with enough seeds.
        left_out: the added untrained starts with the target's tasks that are in no pair, best
            first.
        contenders: the judged ones that are no controls.
    """

    def __init__(
        self,
        rows: Sequence[ResultRow],
        significance: Significance,
        target: Target,
        also: Sequence[ResultRow] = (),
    ) -> None:
        self.significance, self.target = significance, target
        known = [row for row in rows if significance.by_seed(row, target) is not None]
        known.sort(key=lambda row: -self.mean(row))
        self.left_out = [row for row in known if row.added and row not in also]
        scored = [row for row in known if row not in self.left_out]
        judged = [row for row in scored if significance.judged(row, target)]
        self.controls = [row for row in judged if significance.control(row, target)]
        self.contenders = [row for row in judged if row not in self.controls]
        self.judged = self.contenders + self.controls
        self.unjudged = [row for row in scored if row not in judged]
        self.rows = self.judged + self.unjudged

    def runs(self, row: ResultRow) -> Floats:
        """Its mean over the target's tasks by seed, between -1 and 1."""
        found = self.significance.by_seed(row, self.target)
        assert found is not None
        return found.scores

    def mean(self, row: ResultRow) -> float:
        """In points."""
        return 100 * float(self.runs(row).mean())

    @property
    def family(self) -> str:
        """All pairs of the contenders, in words."""
        count = len(self.contenders)
        pairs = count * (count - 1) // 2
        name = "the only pair of rows" if pairs == 1 else f"all {pairs:,} pairs of {count} rows"
        return f"{name} (false discovery rate)" if count >= EXPLORED else name

    @cached_property
    def differences(self) -> dict[tuple[int, int], Difference]:
        """(i, j) with i < j -> row i minus row j, by their places in `rows`.

        Pairs of contenders are a family; those with each control are another one; rows with too few
        seeds are in none.
        """
        k, n = len(self.contenders), len(self.rows)
        families: dict[str, list[tuple[int, int]]] = {}
        for i in range(n):
            for j in range(i + 1, n):
                control = self.rows[j if j >= k else i].label
                name = (
                    self.family
                    if j < k
                    else f"{_count(self.contenders, 'row')} against the control {control}"
                )
                families.setdefault(name, []).append((i, j))
        found: dict[tuple[int, int], Difference] = {}
        for name, places in families.items():
            explore = name == self.family and k >= EXPLORED
            pairs = [(self.rows[i], self.rows[j]) for i, j in places]
            each = self.significance.differences(pairs, self.target, name, explore=explore)
            found |= {place: d for place, d in zip(places, each, strict=True) if d is not None}
        return found

    def difference(self, a: ResultRow, b: ResultRow) -> Difference:
        """Row `a` minus row `b`."""
        i, j = self.rows.index(a), self.rows.index(b)
        return self.differences[i, j] if i < j else self.differences[j, i].reversed

    @cached_property
    def candidates(self) -> list[ResultRow]:
        """The contenders that may be the best, at 95 %; the one with the highest mean is first."""
        found = self.significance.may_be_best(self.contenders, self.target)
        return [row for row in self.contenders if found[row.key]]

    def not_the_best(self, row: ResultRow) -> bool:
        """Whether a row is significantly worse than another one."""
        if row in self.contenders:
            return row not in self.candidates
        if row not in self.controls or not self.contenders:
            return False
        return self.difference(self.contenders[0], row).verdict == "better"

    def rank_interval(self, row: ResultRow) -> tuple[int, int] | None:
        """The ranks that a row may have, by the same tests as `groups`: from 1 + the rows found better
        to k - the rows found worse, of k judged rows; None for a row with too few seeds, or where no
        other row is judged.
        """
        if row not in self.judged or len(self.judged) < 2:
            return None
        place = self.judged.index(row)
        above = below = 0
        for (i, j), difference in self.differences.items():
            if place not in (i, j) or max(i, j) >= len(self.judged) or difference.verdict == SAME:
                continue
            if (difference.verdict == BETTER) == (place == i):
                below += 1
            else:
                above += 1
        return 1 + above, len(self.judged) - below

    def describe_order(self) -> str:
        """Say whether the order of the judged rows hangs on one task; "" where it cannot."""
        measures = self.target.measures
        found = [
            [self.significance.by_seed(row, alone(one)) for one in measures] for row in self.judged
        ]
        if any(runs is None for line in found for runs in line):
            return ""
        scores = np.array([[runs.scores.mean() for runs in line if runs] for line in found])
        labels = [row.label for row in self.judged]
        return describe_order(scores, labels, [one.task for one in measures])

    def groups(self) -> list[tuple[int, ...]]:
        """The largest sets of judged rows, by place, of which no two are separated.

        Two rows share a set if and only if they are not separated, also where that is not
        transitive: the insert-and-absorb algorithm of Piepho (Journal of Computational and
        Graphical Statistics 13, 2004).
        """
        count = len(self.judged)
        groups = {frozenset(range(count))} if count else set()
        for pair, difference in self.differences.items():
            if max(pair) >= count or difference.verdict == SAME:
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

    def describe_left_out(self) -> str:
        """Return which rows of the tables are in no pair, in words; "" where all are in some."""
        if not self.left_out:
            return ""
        labels = ", ".join(row.label for row in self.left_out)
        return f"Not among these rows: {labels}, added as untrained start."

    def design(self) -> tuple[int, float, float] | None:
        """Fewest seeds of the rows that seeds enter, their common standard deviation over seeds,
        and the median one of their differences by the choice of examples, in points; None with
        fewer than two such rows.
        """
        rows = [row for row in self.contenders if row.is_trained and np.ptp(self.runs(row)) > 0]
        if len(rows) < 2:
            return None
        runs = [self.runs(row) for row in rows]
        freedom = sum(len(scores) - 1 for scores in runs)
        variance = sum(float(scores.var(ddof=1)) * (len(scores) - 1) for scores in runs) / freedom
        parts = [
            self.significance.parts(a, b, self.target)[2]
            for i, a in enumerate(rows)
            for b in rows[i + 1 :]
        ]
        return min(map(len, runs)), 100 * variance**0.5, 100 * float(np.median(parts)) ** 0.5

    def detectable_of(self, a: ResultRow, b: ResultRow, estimate: Interval) -> float:
        """Return the true difference of two rows, in points, that is found in 80 % of comparisons
        with the spreads of these.

        Args:
            estimate: their difference, with its interval.
        """
        error = float(sum(self.significance.parts(a, b, self.target)) ** 0.5)
        return 100 * ((estimate.high - estimate.low) / 2 + float(ndtri(CHANCE)) * error)

    @cached_property
    def detectable(self) -> tuple[float, float] | None:
        """The smallest true differences that this comparison finds in 80 % of cases, in points: of
        the pair of contenders that needs least, and of the one that needs most.
        """
        found = []
        for (i, j), d in self.differences.items():
            known = d.judged and d.estimate.low < d.estimate.high
            if known and j < len(self.contenders):
                found.append(self.detectable_of(self.rows[i], self.rows[j], d.estimate))
        return (min(found), max(found)) if found else None


@dataclass(frozen=True)
class Question:
    """Rows, what they are compared by, and what is known of both."""

    results: Results
    target: Target
    significance: Significance

    def block(self, rows: Sequence[ResultRow], also: Sequence[ResultRow] = ()) -> Ranking:
        """Rows that are compared with one another."""
        return Ranking(rows, self.significance, self.target, also)

    def blocks(self) -> dict[str, Ranking]:
        """All rows by block; the only block has no name."""
        blocks = self.results.blocks
        return {name if len(blocks) > 1 else "": self.block(rows) for name, rows in blocks.items()}


def kind_of(difference: Difference, equivalence: float = EQUIVALENCE) -> str:
    """The verdict in words, with a region of practical equivalence in points."""
    if not difference.judged:
        return NOT_JUDGED
    low, high = 100 * difference.estimate.low, 100 * difference.estimate.high
    if -equivalence <= low and high <= equivalence:
        return ALIKE
    if difference.estimate.p > ALPHA:
        return OPEN
    return BETTER if difference.estimate.value > 0 else WORSE


def describe_lost_seeds(rows: Iterable[ResultRow]) -> str:
    """Say which rows have seeds that ended without a score, a clause; "" where none has.

    Means are over the others, which flatters a row that sometimes collapses.
    """
    said = []
    for row in rows:
        if not row.finished:
            continue
        for status in ("collapsed", "diverged", "failed"):
            count = sum(run.status == status for run in row.runs)
            if count:
                seeds = f"{count} of {len(row.runs)} seeds of {row.label}"
                verb = "is" if count == 1 else "are"
                said.append(f"{seeds} {status} and {verb} left out")
    return "; ".join(said)


def describe_detectable(least: float, most: float = 0.0) -> str:
    """The smallest difference in points that is found in 80 % of cases, in words; of several pairs
    the range.
    """
    if least >= _LARGEST:
        return "no difference can be detected"
    first, last = _points(least), _points(max(least, most))
    if first == last:
        return f"differences of {first} points or more are found in {CHANCE:.0%} of cases"
    return f"differences of {first} to {last} points, by pair, are found in {CHANCE:.0%} of cases"


def _points(least: float) -> str:
    """A difference that is found, as text: with two decimals where one would be nothing."""
    return f"{least:.1f}" if least >= 0.1 else f"{max(least, 0.01):.2f}"
