"""What a design can see: the smallest difference that it finds with some probability, and the seeds that one takes.

Nothing here is a formula for the power of another test: the verdict itself (`reports.stats.simultaneous`) is played
through on scores drawn from known spreads. A difference d is found where the error of the estimate plus d exceeds the
half width of the interval, so that one set of drawn comparisons gives the power of every difference at once.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass

import numpy as np

from reports.stats.estimate import Floats
from reports.stats.simultaneous import ALPHA, Family, SeedSpread, critical_values, seed_spread

CHANCE = 0.8  # with which a difference is to be found
TRIALS = 4000
MOST_SEEDS = 100


@dataclass(frozen=True)
class Design:
    """A comparison as planned.

    Attributes:
        deviations: (rows,) standard deviation over seeds of each row; 0 where no seed enters.
        pairs: standard deviation of the difference of two rows that comes from the drawn pairs.
        correlation: of the scores of two rows with the same seed. Verdicts do not use it (they hold with and without),
            but it takes spread out of differences.
        sides: the two rows whose difference is to be found.
        level: of the verdict; less where a comparison has several interim analyses.
        pools: (rows,) a name for each row: those of one name say together how far seeds lie apart; empty: all do.
    """

    deviations: tuple[float, ...]
    pairs: float
    family: Family
    correlation: float = 0.0
    sides: tuple[int, int] = (0, 1)
    level: float = ALPHA
    pools: tuple[Hashable, ...] = ()


def surpluses(design: Design, seeds: Floats, trials: int = TRIALS, seed: int = 0) -> Floats:
    """(trials,) what a true difference must exceed to be found, in each of as many drawn comparisons.

    Args:
        seeds: (rows,) how many of each row; of rows without a deviation it does not count.
    """
    deviations = np.asarray(design.deviations, dtype=np.float64)
    counts = np.where(deviations > 0, seeds, 0)
    generator = np.random.default_rng(seed)
    freedom = np.maximum(counts - 1, 1)
    variances = deviations**2 * generator.chisquare(freedom, size=(trials, len(counts))) / freedom
    first, second = (_spread(design, side, variances, counts) for side in design.sides)
    error, points = critical_values(
        first, second, np.full(trials, design.pairs**2), design.family, np.array([design.level])
    )
    parts = [deviations[side] ** 2 / counts[side] if counts[side] else 0.0 for side in design.sides]
    shared = 2 * design.correlation * np.sqrt(parts[0] * parts[1])
    deviation = np.sqrt(max(sum(parts) - shared, 0.0) + design.pairs**2)
    return np.asarray(error * points[:, 0] - deviation * generator.standard_normal(trials))


def _spread(design: Design, side: int, variances: Floats, counts: Floats) -> SeedSpread:
    """What is known of a row's spread, from those of its pool."""
    pools = design.pools or (None,) * len(counts)
    alike = [place for place, pool in enumerate(pools) if pool == pools[side]]
    known = seed_spread(variances[:, alike], counts[alike])
    own = alike.index(side)
    return SeedSpread(known.variance[:, own], known.freedom[:, own])


def smallest_difference(design: Design, seeds: Floats, chance: float = CHANCE) -> float:
    """The true difference that is found with probability `chance`, in the unit of the deviations."""
    return float(np.quantile(surpluses(design, seeds), chance))


def seeds_needed(design: Design, difference: float, chance: float = CHANCE, most: int = MOST_SEEDS) -> int | None:
    """The fewest seeds of every row with which a true difference is found with probability `chance`.

    None where as many as `most` do not suffice: the pairs alone may hide it.
    """
    rows = len(design.deviations)

    def enough(count: int) -> bool:
        return smallest_difference(design, np.full(rows, count), chance) <= difference

    if not enough(most):
        return None
    few, many = 1, most  # one is never judged
    while many - few > 1:
        middle = (few + many) // 2
        few, many = (few, middle) if enough(middle) else (middle, many)
    return many
