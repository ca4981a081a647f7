"""Which differences are judged together, as a family, and what they say: planned ones, controls,
all pairs of rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence, Sized
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations, product

import numpy as np
from scipy.special import ndtri

from harness.files.printable import join_some
from reports.results import ResultRow, Results, find_start, name_rows
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
    pairs = []
    for row in results.rows:
        base, _ = find_start(row, results.rows)
        if base is not None and not row.source:
            pairs.append((row, base))
    name = f"{_count(pairs, 'row')} against their untrained start"
    return Family(name, tuple(pairs))


def own_against_others(results: Results) -> Family:
    """The comparison's own rows against those made elsewhere (`--against`)."""
    own = []
    others = []
    for row in results.rows:
        if row.source:
            others.append(row)
        elif not row.added:
            own.append(row)
    pairs = tuple(product(own, others))
    name = f"{_count(pairs, 'pair')} of an own row and one made elsewhere"
    return Family(name, pairs)


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
    for row in results.rows:
        if results.baseline and not row.added:
            named.append((row.label, results.baseline))

    pairs: dict[Pair, None] = {}
    for first, second in dict.fromkeys(named):
        own = by_label.get(first, [])
        others = by_label.get(second, [])
        for a, b in product(own, others):
            same_base = a.base_model == b.base_model
            comparable = same_base or len(others) == 1
            if a.key != b.key and comparable:
                pairs[a, b] = None

    frozen = results.plan
    if results.baseline and not results.contrasts:
        what = f"{_count(pairs, 'row')} against the baseline {results.baseline}"
    elif frozen is None:
        what = _count(pairs, "named pair")
    else:
        what = _count(pairs, "planned pair")
    apart = frozen is None or not frozen.deviates_by_choice
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
    if frozen is None:
        if replaces_model(results):
            return IN_USE
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
    differences = significance.differences(family.pairs, target, family.name)
    found = []
    for pair, difference in zip(family.pairs, differences, strict=True):
        if difference is not None:
            found.append((pair, difference))
    return found


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
            rows: list[ResultRow] = []
            for name in names:
                rows.extend(blocks[name])
            known[names] = Ranking(rows, significance, target)
        block = known[names]
        if a in block.rows and b in block.rows:
            difference = block.difference(a, b)
            found.append(((a, b), difference))
    return found


def _count(items: Sized, noun: str) -> str:
    if len(items) == 1:
        return f"1 {noun}"
    return f"{len(items)} {noun}s"


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
        self.significance = significance
        self.target = target
        known = []
        for row in rows:
            if significance.by_seed(row, target) is not None:
                known.append(row)
        known.sort(key=self.mean, reverse=True)
        self._names = name_rows(known)
        self.left_out: list[ResultRow] = []
        self.contenders: list[ResultRow] = []
        self.controls: list[ResultRow] = []
        self.unjudged: list[ResultRow] = []
        for row in known:
            if row.added and row not in also:
                self.left_out.append(row)
            elif not significance.judged(row, target):
                self.unjudged.append(row)
            elif significance.control(row, target):
                self.controls.append(row)
            else:
                self.contenders.append(row)
        self.judged = self.contenders + self.controls
        self.rows = self.judged + self.unjudged

    def name(self, row: ResultRow) -> str:
        """Its label, with its base model where another of these rows has the same label."""
        return self._names.get(row.key, row.label)

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
        if pairs == 1:
            return "the only pair of rows"
        name = f"all {pairs:,} pairs of {count} rows"
        if count >= EXPLORED:
            return f"{name} (false discovery rate)"
        return name

    def letter_of(self, family: str) -> str:
        """Return "q" for a family that is explored, so that its p-values are corrected for the share
        of wrong ones among all that are called different; else "p".
        """
        if family == self.family and len(self.contenders) >= EXPLORED:
            return "q"
        return "p"

    @cached_property
    def differences(self) -> dict[tuple[int, int], Difference]:
        """(i, j) with i < j -> row i minus row j, by their places in `rows`.

        Pairs of contenders are a family; those with each control are another one; rows with too few
        seeds are in none.
        """
        k = len(self.contenders)
        families: dict[str, list[tuple[int, int]]] = {}
        every = range(len(self.rows))
        for i, j in combinations(every, 2):
            if j < k:
                name = self.family
            else:
                control = self.name(self.rows[j])
                name = f"{_count(self.contenders, 'row')} against the control {control}"
            families.setdefault(name, []).append((i, j))

        found: dict[tuple[int, int], Difference] = {}
        for name, places in families.items():
            explore = name == self.family and k >= EXPLORED
            pairs = [(self.rows[i], self.rows[j]) for i, j in places]
            each = self.significance.differences(pairs, self.target, name, explore=explore)
            for place, difference in zip(places, each, strict=True):
                if difference is not None:
                    found[place] = difference
        return found

    def difference(self, a: ResultRow, b: ResultRow) -> Difference:
        """Row `a` minus row `b`."""
        i = self.rows.index(a)
        j = self.rows.index(b)
        if i < j:
            return self.differences[i, j]
        return self.differences[j, i].reversed

    @cached_property
    def candidates(self) -> list[ResultRow]:
        """The contenders that may be the best, at 95 %; the one with the highest mean is first.

        Of two rows their own test decides, so that none is called worse that does not differ.
        """
        if len(self.contenders) == 2 and self.differences[0, 1].verdict == SAME:
            return list(self.contenders)
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
        above = 0
        below = 0
        others = [other for other in self.judged if other is not row]
        for other in others:
            verdict = self.difference(row, other).verdict
            if verdict == BETTER:
                below += 1
            elif verdict == WORSE:
                above += 1
        return 1 + above, len(self.judged) - below

    @property
    def rank_certainty(self) -> str:
        """What the ranges of ranks hold at, in words: "95 %" for all rows at once; from twelve rows
        on only the share of wrong ones among the differences that they follow from is known.
        """
        if len(self.contenders) >= EXPLORED:
            return "q ≤ 0.05"
        return "95 %"

    def describe_order(self) -> str:
        """Say whether the order of the judged rows hangs on one task; "" where it cannot."""
        measures = self.target.measures
        shape = len(self.judged), len(measures)
        scores = np.empty(shape)
        for line, row in zip(scores, self.judged, strict=True):
            for place, measure in enumerate(measures):
                runs = self.significance.by_seed(row, alone(measure))
                if runs is None:
                    return ""
                line[place] = runs.scores.mean()
        labels = [self.name(row) for row in self.judged]
        tasks = [one.task for one in measures]
        return describe_order(scores, labels, tasks)

    def groups(self) -> list[tuple[int, ...]]:
        """The largest sets of judged rows, by place, of which no two are separated.

        Two rows share a set if and only if they are not separated, also where that is not
        transitive: the insert-and-absorb algorithm of Piepho (Journal of Computational and
        Graphical Statistics 13, 2004).
        """
        count = len(self.judged)
        groups: set[frozenset[int]] = set()
        if count:
            groups.add(frozenset(range(count)))
        for pair, difference in self.differences.items():
            if max(pair) >= count or difference.verdict == SAME:
                continue
            both = {group for group in groups if group.issuperset(pair)}
            groups -= both
            parts = set()
            for group in both:
                for place in pair:
                    parts.add(group - {place})
            others = parts | groups
            for part in parts:
                if not any(part < other for other in others):
                    groups.add(part)
        return sorted(tuple(sorted(group)) for group in groups)

    def describe_groups(self) -> list[str]:
        """The groups in words, best first: "1, 2, 4: SCD, SimCSE, whitening"."""
        texts = []
        for group in self.groups():
            numbers = []
            labels = []
            for place in group:
                numbers.append(str(place + 1))
                labels.append(self.name(self.rows[place]))
            texts.append(f"{', '.join(numbers)}: {', '.join(labels)}")
        return texts

    def describe_left_out(self) -> str:
        """Return which rows of the tables are in no pair, in words; "" where all are in some."""
        if not self.left_out:
            return ""
        labels = ", ".join(map(self.name, self.left_out))
        return f"Not among these rows: {labels}, added as untrained start."

    def design(self) -> tuple[int, float, float] | None:
        """Fewest seeds of the rows that seeds enter, their common standard deviation over seeds,
        and the median one of their differences by the choice of examples, in points; None with
        fewer than two such rows.
        """
        rows = []
        counts = []
        squares = 0.0
        for row in self.contenders:
            scores = self.runs(row)
            if row.is_trained and np.ptp(scores) > 0:
                count = len(scores)
                variance = float(scores.var(ddof=1))
                rows.append(row)
                counts.append(count)
                squares += variance * (count - 1)
        if len(rows) < 2:
            return None

        by_examples = []
        for a, b in combinations(rows, 2):
            _, _, examples = self.significance.parts(a, b, self.target)
            by_examples.append(examples)
        freedom = sum(counts) - len(counts)
        by_seeds = squares / freedom
        of_pairs = float(np.median(by_examples))
        return min(counts), 100 * by_seeds**0.5, 100 * of_pairs**0.5

    def detectable_of(self, a: ResultRow, b: ResultRow, estimate: Interval) -> float:
        """Return the true difference of two rows, in points, that is found in 80 % of comparisons
        with the spreads of these.

        Args:
            estimate: their difference, with its interval.
        """
        variance = sum(self.significance.parts(a, b, self.target))
        error = float(variance**0.5)
        half = (estimate.high - estimate.low) / 2
        beyond = float(ndtri(CHANCE)) * error
        return 100 * (half + beyond)

    @cached_property
    def detectable(self) -> tuple[float, float] | None:
        """The smallest true differences that this comparison finds in 80 % of cases, in points: of
        the pair of contenders that needs least, and of the one that needs most.
        """
        found = []
        for (i, j), difference in self.differences.items():
            estimate = difference.estimate
            is_known = difference.judged and estimate.low < estimate.high
            if is_known and j < len(self.contenders):
                a = self.rows[i]
                b = self.rows[j]
                found.append(self.detectable_of(a, b, estimate))
        if not found:
            return None
        return min(found), max(found)


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
        found = {}
        is_only = len(self.results.blocks) == 1
        for name, rows in self.results.blocks.items():
            found["" if is_only else name] = self.block(rows)
        return found


def kind_of(difference: Difference, equivalence: float = EQUIVALENCE) -> str:
    """The verdict in words, with a region of practical equivalence in points."""
    if not difference.judged:
        return NOT_JUDGED
    estimate = difference.estimate
    low = 100 * estimate.low
    high = 100 * estimate.high
    if -equivalence <= low and high <= equivalence:
        return ALIKE
    if estimate.p > ALPHA:
        return OPEN
    if estimate.value > 0:
        return BETTER
    return WORSE


def describe_lost_seeds(rows: Iterable[ResultRow]) -> str:
    """Say which rows have seeds that ended without a score, a clause; "" where none has.

    Means are over the others, which flatters a row that sometimes collapses.
    """
    said = []
    for row in rows:
        if not row.finished:
            continue
        statuses = [run.status for run in row.runs]
        for status in ("collapsed", "diverged", "failed"):
            count = statuses.count(status)
            if count:
                seeds = f"{count} of {len(statuses)} seeds of {row.label}"
                verb = "is" if count == 1 else "are"
                said.append(f"{seeds} {status} and {verb} left out")
    return "; ".join(said)


def describe_detectable(least: float, most: float = 0.0) -> str:
    """The smallest difference in points that is found in 80 % of cases, in words; of several pairs
    the range.
    """
    if least >= _LARGEST:
        return "no difference can be detected"
    first = _points(least)
    last = _points(max(least, most))
    if first == last:
        return f"differences of {first} points or more are found in {CHANCE:.0%} of cases"
    return f"differences of {first} to {last} points, by pair, are found in {CHANCE:.0%} of cases"


def _points(least: float) -> str:
    """A difference that is found, as text: with two decimals where one would be nothing."""
    if least >= 0.1:
        return f"{least:.1f}"
    return f"{max(least, 0.01):.2f}"
