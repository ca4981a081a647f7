"""The smallest difference that a comparison finds in 80 % of cases: the verdict, simulated."""

from __future__ import annotations

from bisect import bisect_left
from functools import cache

import numpy as np

from reports.stats.clusters import Chance
from reports.stats.estimate import Floats
from reports.stats.simultaneous import (
    ALONE,
    ALPHA,
    EXPLORED,
    FEWEST_SEEDS,
    MANY_SEEDS,
    Rows,
    all_pairs,
    combine_freedom,
    critical_values,
    draw,
    fewest_for_welch,
    largest,
    moderate,
)

CHANCE = 0.8  # with which a difference is to be found
MOST_SEEDS = 100
_TRIALS = 2000


@cache
def smallest_difference(
    seeds: int,
    deviation: float,
    examples: float,
    rows: int = 2,
    *,
    planned: bool = False,
    level: float = ALPHA,
) -> float:
    """The true difference of two rows that is found with probability 0.8, in the unit of the
    deviations.

    Args:
        seeds: of every row, three or more.
        deviation: standard deviation over seeds.
        examples: standard deviation of a difference by the choice of examples.
        rows: that are compared, all pairs of them.
        planned: the pair was named beforehand: nothing else is judged with it.
    """
    generator = np.random.default_rng(0)
    chi_square = generator.chisquare(seeds - 1, size=(_TRIALS, rows))
    drawn = deviation**2 * chi_square / (seeds - 1)
    variance, freedom = moderate(drawn, np.full(rows, seeds))
    parts = variance[:, :2] / seeds
    total = parts.sum(axis=1) + examples**2
    pairs = 1 if planned or rows == 2 else rows
    known = combine_freedom(
        parts.T,
        freedom[:, :2].T,
        examples**2,
        independent=seeds >= fewest_for_welch(pairs),
    )
    grid = np.geomspace(1.0, 1e5, 20)
    critical = np.interp(
        np.log(known),
        np.log(grid),
        _critical(grid, seeds, deviation, examples, rows, planned, level),
    )
    true_variance = 2 * deviation**2 / seeds + examples**2
    error = np.sqrt(true_variance) * generator.standard_normal(_TRIALS)
    half = np.sqrt(total) * critical
    return float(np.quantile(half - error, CHANCE))


def _critical(
    freedom: Floats,
    seeds: int,
    deviation: float,
    examples: float,
    rows: int,
    planned: bool,
    level: float,
) -> Floats:
    """Of rows with equal spreads, by degrees of freedom. Of many rows that of the first pair that
    is found.
    """
    if planned:
        count = 1
    else:
        count = rows * (rows - 1) // 2
    if count == 1 or rows >= EXPLORED:
        return critical_values(None, freedom, level, count)
    covariance = np.eye(rows) * examples**2 / 2
    known = Rows(
        np.zeros(rows),
        np.full(rows, deviation**2 / seeds),
        np.full(rows, np.inf),
        Chance(covariance, covariance, np.zeros(rows)),
    )
    pairs = all_pairs(rows)
    top = largest(draw(known), known, pairs)
    return critical_values(top, freedom, level, len(pairs))


def seeds_needed(
    difference: float,
    deviation: float,
    examples: float,
    rows: int = 2,
    *,
    planned: bool = False,
) -> int | None:
    """The fewest seeds of every row that find a true difference with probability 0.8; None beyond
    100.

    More seeds find more, but where rows begin to stand on their own seeds alone
    (`reports.stats.simultaneous`): ten may find less than nine.
    """

    def enough(seeds: int) -> bool:
        return smallest_difference(seeds, deviation, examples, rows, planned=planned) <= difference

    fewest = FEWEST_SEEDS
    for most in (ALONE - 1, MANY_SEEDS - 1, MOST_SEEDS):
        if enough(most):
            return bisect_left(range(most), True, fewest, key=enough)
        fewest = most + 1
    return None
