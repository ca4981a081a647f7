"""Seeds added until a decision is reached: how often one may analyse, and which row gets another seed.

Whoever adds seeds until p < 0.05 finds a difference between equal rows in 10 to 20 % of comparisons. Here every interim
analysis of a difference has a level of its own,

    0.05 x 0.25 x I / I_N,

which the fixed test (`reports.stats.simultaneous`) is made at: I is the inverse of the variance that the difference has
now, I_N the one that it would have with the most seeds. Where seeds say little yet, little of the 5 % is spent; where
the chance of the examples outweighs theirs, a first analysis is nearly as good as a last, and no seeds are spent to
come to a higher level. All analyses together stay below 5 %. The shape is error spending (Lan & DeMets, Biometrika 70,
1983) between Pocock's constant and O'Brien and Fleming's; nominal levels carry over to tests with few degrees of
freedom (Pocock, Biometrika 64, 1977). Of those tried (docs/statistics.md), it needs one constant for all N, and finds
as much as a fixed design with the fewest seeds. The constant is by simulation: over unequal spreads, rows that stop and
rows that go on. The first analysis has three seeds: of two, no level is low enough for tails that long.

The intervals of all analyses hold at once (repeated confidence intervals: Jennison & Turnbull, JRSS B 51, 1989), so
that a difference lies in all of them, and p is the smallest of all analyses, each divided by its share of 0.05.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from reports.stats.estimate import Estimate, Floats
from reports.stats.simultaneous import ALPHA, Family, SeedSpread, critical_values

Booleans = NDArray[np.bool_]

SHARE = 0.25  # of 0.05, at the last analysis
HOPE = 0.1  # less chance of a decision with all seeds that may come, and no more are spent


@dataclass(frozen=True)
class Boundary:
    """A comparison with an interim analysis after every seed.

    Attributes:
        first, most: seeds of a row at the first and at the last analysis.
    """

    first: int
    most: int

    def share(self, first: Floats, second: Floats, counts: Floats, others: Floats, pairs: Floats) -> Floats:
        """Of 0.05, the level of an analysis of differences; all of it where there is one analysis. Arrays of one shape.

        Args:
            first, second: what seeds add to the variances of the means of both sides.
            counts, others: of how many seeds each is; whatever, where none enters.
            pairs: variance of the differences that comes from the drawn pairs.
        """
        now = first + second + pairs
        if self.first >= self.most:
            return np.ones(np.shape(now))
        final = first * np.minimum(counts / self.most, 1) + second * np.minimum(others / self.most, 1) + pairs
        return np.asarray(SHARE * np.divide(final, now, out=np.ones(np.shape(now)), where=now > 0))


@dataclass(frozen=True)
class Standing:
    """Which rows get another seed, and why the others do not; (..., rows) each.

    Attributes:
        contending: the leader and the rows that are open against it; none where all is decided.
        beaten: some row is better.
        alike: no difference to the leader that matters.
        hopeless: even with all seeds that may come, a decision is unlikely.
    """

    contending: Booleans
    beaten: Booleans
    alike: Booleans
    hopeless: Booleans


def standing(
    means: Floats, better: Booleans, alike: Booleans, spread: SeedSpread, counts: Floats, pairs: Floats,
    family: Family, boundary: Boundary, margin: float,
) -> Standing:  # fmt: skip
    """Who stays in contention after an interim analysis; leading dimensions are comparisons.

    Args:
        means: (..., rows).
        better: (..., rows, rows) row i was found better than row j, at this or an earlier analysis.
        alike: (..., rows, rows) their difference was found to be none that matters.
        spread: of the rows' means; counts: (..., rows) of how many seeds, 0 where none enters.
        pairs: variance of the differences that comes from the drawn pairs, (..., rows, rows) or one for all.
        margin: half width of the region of practical equivalence, in the unit of the means.
    """
    beaten: Booleans = np.asarray(better.any(axis=-2))
    unbeaten = np.where(beaten & ~beaten.all(axis=-1, keepdims=True), -np.inf, means)
    lead = np.expand_dims(unbeaten.argmax(axis=-1), -1)
    same = np.take_along_axis(alike, lead[..., None], axis=-2)[..., 0, :]
    hopeless = _chance(means, lead, spread, counts, pairs, family, boundary.most, margin) < HOPE
    open_ = ~beaten & ~same & ~hopeless
    np.put_along_axis(open_, lead, False, axis=-1)
    contending = open_.copy()
    np.put_along_axis(contending, lead, open_.any(axis=-1, keepdims=True), axis=-1)
    np.put_along_axis(hopeless, lead, False, axis=-1)
    np.put_along_axis(same, lead, False, axis=-1)
    return Standing(contending, beaten, same & ~beaten, hopeless & ~beaten & ~same)


def _chance(
    means: Floats, lead: NDArray[np.intp], spread: SeedSpread, counts: Floats, pairs: Floats, family: Family,
    most: int, margin: float,
) -> Floats:  # fmt: skip
    """(..., rows) how likely a row and the leader are found different, or found alike, once both have `most` seeds.

    What their difference will be then is drawn from what is known now (stochastic curtailment: Lan, Simon & Halperin,
    Communications in Statistics C 1, 1982); the spreads are taken as they were estimated.
    """
    counts = np.maximum(np.broadcast_to(counts, means.shape), 1)
    final = SeedSpread(spread.variance * counts / most, spread.freedom * (most - 1) / np.maximum(counts - 1, 1))
    leader = SeedSpread(*(np.take_along_axis(part, lead, axis=-1) for part in (final.variance, final.freedom)))
    between = np.broadcast_to(pairs, (*means.shape, means.shape[-1]))
    between = np.take_along_axis(between, lead[..., None], axis=-2)[..., 0, :]
    error, points = critical_values(leader, final, between, family, np.array([ALPHA * SHARE]))
    half = error * points[..., 0]
    to_come = spread.variance * np.maximum(1 - counts / most, 0.0)
    deviation = np.sqrt(to_come + np.take_along_axis(to_come, lead, axis=-1)) + 1e-12
    gap = np.take_along_axis(means, lead, axis=-1) - means
    room = margin - half
    apart = ndtr((np.abs(gap) - half) / deviation) + ndtr((-np.abs(gap) - half) / deviation)
    alike = np.where(room > 0, ndtr((room - gap) / deviation) - ndtr((-room - gap) / deviation), 0.0)
    return np.asarray(apart + alike)


def combine_analyses(estimates: Sequence[Estimate]) -> Estimate:
    """One estimate from all analyses: the last one's value, an interval that holds at every analysis, and p of all.

    Analyses whose difference has the other sign than the last one's do not count for p, and the last value lies in its
    interval: who was ahead by chance at first is not called better. p <= 0.05 exactly where the interval excludes 0.

    Args:
        estimates: of each analysis, its interval at 0.05 times its share and its p divided by that.
    """
    value = estimates[-1].value
    low, high = max(e.low for e in estimates), min(e.high for e in estimates)
    p = min(e.p for e in estimates if e.value * value > 0 or e is estimates[-1])
    return Estimate(value, min(low, value), max(high, value), p)
