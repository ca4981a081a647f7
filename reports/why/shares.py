"""Split a difference between two rows into shares of the settings in which they differ.

A design is a set of rows between the two: each takes some factors from the first row and the others
from the second one. The share of a factor is its Shapley value (Shapley, Contributions to the Theory
of Games II, 1953; for orders of changes: Castro, Gomez & Tejada, Computers & Operations Research 36,
2009): what it adds when it is changed, in the mean over the orders in which all factors can be
changed. The shares sum to the difference.

Every number here is a linear contrast of the rows' scores. Rows of one design share the effects of
their seeds, so a contrast is computed within each seed and its spread over seeds is what counts:
adding the variances of the rows as if they were independent finds too much or too little. The
examples are redrawn for all rows together, by the influences of the contrast
(`reports.stats.influence` is linear in the rows). Contrasts that are asked for together are judged
as one family (`reports.stats.simultaneous`).

Plain numpy; nothing here knows rows, records or reports.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from math import factorial

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtr, stdtrit

from reports.stats.clusters import chance
from reports.stats.estimate import Estimate, Floats
from reports.stats.simultaneous import ALPHA, combine_freedom, list_estimates, moderate

_NOTHING = 1e-18  # a variance below it: rounding

Subset = frozenset[int]  # the factors that a row takes from the first of the two rows
Order = tuple[int, ...]


@dataclass(frozen=True)
class Design:
    """The rows between two rows, as subsets of `count` factors.

    Attributes:
        count: how many factors there are.
        orders: the orders in which the factors are changed; empty where all rows are made, and so
            all orders are known.

    >>> design = Design(2)
    >>> design.shares.tolist()  # of the rows (), (0), (1), (0, 1)
    [[-0.5, 0.5, -0.5, 0.5], [-0.5, -0.5, 0.5, 0.5]]
    """

    count: int
    orders: tuple[Order, ...] = ()

    @cached_property
    def subsets(self) -> tuple[Subset, ...]:
        """The rows, from the second row (no factor) to the first one (all factors)."""
        found: set[Subset] = set()
        every = range(self.count)
        for size in range(self.count + 1):
            if self.orders:
                found.update(frozenset(order[:size]) for order in self.orders)
            else:
                found.update(map(frozenset, combinations(every, size)))

        def place(some: Subset) -> tuple[int, list[int]]:
            return len(some), sorted(some)

        return tuple(sorted(found, key=place))

    @cached_property
    def places(self) -> dict[Subset, int]:
        """Return the place of each row."""
        return {subset: place for place, subset in enumerate(self.subsets)}

    @cached_property
    def shares(self) -> Floats:
        """(factors, rows) weights that make the share of each factor of the rows' scores."""
        weights = np.zeros((self.count, len(self.subsets)))
        if self.orders:
            for order in self.orders:
                weights += self._steps(order) / len(self.orders)
            return weights
        for subset, place in self.places.items():
            for factor in range(self.count):
                before = len(subset - {factor})
                after = self.count - before - 1
                weight = factorial(before) * factorial(after)
                if factor not in subset:
                    weight = -weight
                weights[factor, place] = weight / factorial(self.count)
        return weights

    def _steps(self, order: Order) -> Floats:
        """(factors, rows) weights of what each factor adds in one order."""
        weights = np.zeros((self.count, len(self.subsets)))
        for number, factor in enumerate(order):
            before = frozenset(order[:number])
            after = before | {factor}
            weights[factor, self.places[after]] += 1
            weights[factor, self.places[before]] -= 1
        return weights

    @cached_property
    def whole(self) -> Floats:
        """(1, rows) weights of the whole difference."""
        weights = np.zeros((1, len(self.subsets)))
        weights[0, -1] = 1
        weights[0, 0] = -1
        return weights

    def weigh_change(self, first: bool) -> dict[int, Floats]:
        """Return the weights of what a factor adds when it is changed first, or last; of the
        factors whose row there is.
        """
        every = frozenset(range(self.count))
        found = {}
        for factor in range(self.count):
            before = every - {factor}
            if first:
                before = frozenset()
            after = before | {factor}
            if before in self.places and after in self.places:
                weights = np.zeros(len(self.subsets))
                weights[self.places[after]] += 1
                weights[self.places[before]] -= 1
                found[factor] = weights
        return found

    @cached_property
    def interactions(self) -> dict[tuple[int, int], Floats]:
        """Two factors -> the weights of what they add together beyond what each adds alone, in the
        mean over all settings of the others that the design has.
        """
        found = {}
        for a, b in combinations(range(self.count), 2):
            squares = self._squares(a, b)
            if not squares:
                continue
            share = 1 / len(squares)
            weights = np.zeros(len(self.subsets))
            for neither, only_a, only_b, both in squares:
                weights[both] += share
                weights[only_a] -= share
                weights[only_b] -= share
                weights[neither] += share
            found[a, b] = weights
        return found

    def _squares(self, a: int, b: int) -> list[list[int]]:
        """Return the places of four rows that differ in two factors alone: with neither, with `a`, with
        `b`, with both.
        """
        found = []
        for subset in self.subsets:
            if a in subset or b in subset:
                continue
            with_a = subset | {a}
            with_b = subset | {b}
            four = [subset, with_a, with_b, with_a | with_b]
            if all(one in self.places for one in four):
                found.append([self.places[one] for one in four])
        return found


def draw_orders(count: int, pairs: int, seed: int = 0) -> tuple[Order, ...]:
    """Return so many orders of `count` factors and their reverses, all different: a change that
    comes early in an order comes late in its reverse.
    """
    rng = np.random.default_rng(seed)
    found: dict[Order, None] = {}
    most = min(2 * pairs, factorial(count))
    while len(found) < most:
        order = tuple(rng.permutation(count).tolist())
        found[order] = None
        found[order[::-1]] = None
    return tuple(found)


@dataclass(frozen=True)
class DesignScores:
    """What the rows of a design scored, by one target.

    Attributes:
        scores: (rows, seeds) means over the target's tasks, between -1 and 1.
        influences: of each task, (rows, seeds, n): what each of its n examples does to the mean.
        texts: of each task the ids of its examples' texts; None where they are not known.
    """

    scores: Floats
    influences: Sequence[Floats]
    texts: Sequence[NDArray[np.int64] | None]


def judge_contrasts(scored: DesignScores, weights: Floats, level: float = ALPHA) -> list[Estimate]:
    """Judge some contrasts of rows as one family, by Bonferroni's bound: what their seeds have in
    common correlates them in ways that few seeds do not tell.

    The spreads of the contrasts over seeds are moderated between them
    (`reports.stats.simultaneous.moderate`); a contrast that is the same for all seeds has none. How
    often that errs is in docs/why.md.

    Args:
        weights: (m, rows) the contrasts.
        level: of the whole family.
    """
    by_seed = weights @ scored.scores
    count, seeds = by_seed.shape
    value = by_seed.mean(axis=1)
    variance = np.zeros(count)
    freedom = np.full(count, np.inf)
    if seeds > 1:
        own = by_seed.var(axis=1, ddof=1)
        varies = own > _NOTHING
        if varies.any():
            some = own[varies]
            counts = np.full(len(some), seeds)
            of_run, freedom[varies] = moderate(some, counts)
            variance[varies] = of_run / seeds

    of_examples, examples_freedom = _estimate_examples(scored, weights)
    parts = np.stack([variance, of_examples])
    error = np.sqrt(parts.sum(axis=0))
    freedoms = np.stack([freedom, examples_freedom])
    total = combine_freedom(parts, freedoms)

    size = np.abs(value)
    same = error**2 <= _NOTHING
    divisor = np.where(same, 1.0, error)
    t = np.where(same, 0.0, size / divisor)
    tail = stdtr(total, -t)
    p = np.minimum(count * 2 * tail, 1.0)
    p[same & (size > _NOTHING)] = 0.0
    critical = -stdtrit(total, level / count / 2)
    half = critical * error
    return list_estimates(value, half, p)


def _estimate_examples(scored: DesignScores, weights: Floats) -> tuple[Floats, Floats]:
    """(m,) what the choice of examples adds to the variance of each contrast, and the degrees of
    freedom of that.
    """
    tasks = []
    for influences, texts in zip(scored.influences, scored.texts, strict=True):
        of_contrasts = np.einsum("mr,rsn->msn", weights, influences)
        tasks.append((list(of_contrasts), texts))
    examples = chance(tasks)
    variance = []
    freedom = []
    for place in range(len(weights)):
        variance.append(examples.of(place))
        freedom.append(examples.freedom_of(place))
    return np.array(variance), np.array(freedom)
