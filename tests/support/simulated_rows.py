"""Comparisons drawn from known means and spreads, and how often what is found in them is wrong."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import stdtrit

from reports.stats.clusters import Chance
from reports.stats.simultaneous import (
    ALONE,
    ALPHA,
    EXPLORED,
    Rows,
    all_pairs,
    combine_freedom,
    draw,
    explored_p_values,
    family_p_values,
    moderate,
    others_against,
)

# Standard deviations of seeds, in points: from BERT-base's 0.84 to one row that varies fifteen
# times as much as others.
SPREADS: dict[str, Callable[[int], np.ndarray]] = {
    "equal": lambda rows: np.full(rows, 0.84),
    "one 1.7 of 0.2": lambda rows: np.where(np.arange(rows) == rows - 1, 1.7, 0.2),
    "1/4 1.7 of 0.2": lambda rows: np.where(np.arange(rows) % 4, 0.2, 1.7),
    "0.2 to 3": lambda rows: np.geomspace(0.2, 3, rows),
    "one 3 of 0.2": lambda rows: np.where(np.arange(rows) == rows - 1, 3.0, 0.2),
}


def drawn(
    spreads: np.ndarray,
    seeds: np.ndarray,
    *,
    examples: float,
    means: np.ndarray | float = 0.0,
    trials: int = 1000,
    seed: int = 0,
) -> Iterator[Rows]:
    """Yield the rows of `trials` comparisons.

    Args:
        spreads, seeds: (rows,) standard deviation over seeds and their number (two or more).
        examples: standard deviation that the drawn examples give each row.
        means: true ones, in points.
    """
    generator = np.random.default_rng(seed)
    rows = len(spreads)
    most = int(max(seeds))
    scores = generator.normal(size=(trials, rows, most)) * spreads[:, None]
    mask = np.arange(most) < seeds[:, None]
    mean = np.where(mask, scores, 0).sum(axis=2) / seeds
    variance = np.where(mask, (scores - mean[:, :, None]) ** 2, 0).sum(axis=2) / (seeds - 1)
    mean = mean + means + generator.normal(size=(trials, rows)) * examples
    one, freedom = moderate(variance, seeds)
    covariance = np.eye(rows) * examples**2
    chance = Chance(covariance, covariance, np.zeros(rows))
    own_seeds = np.where(seeds >= ALONE, seeds, 0.0)
    for place in range(trials):
        yield Rows(mean[place], one[place] / seeds, freedom[place], chance, own_seeds)


@dataclass(frozen=True)
class PlannedPair:
    """One planned pair, judged alone, beside other rows.

    Attributes:
        wrong: per cent of comparisons in which two equal rows differ.
        found: the true difference that is found in 80 % of comparisons.
        power: per cent of comparisons in which a true difference `of` is found.
    """

    wrong: float
    found: float
    power: float


def planned_pair(
    spreads: Sequence[float],
    seeds: Sequence[int],
    *,
    examples: float = 0.0,
    of: float = 0.0,
    level: float = ALPHA,
    draws: int = 20_000,
    seed: int = 0,
) -> PlannedPair:
    """Judge the second row against the first one, in many comparisons at once.

    Args:
        spreads, seeds: (rows,) standard deviation over seeds and their number (two or more).
        examples: standard deviation of the difference by the choice of examples, which is known.
        level: of the test; below 0.05 for a pair of a family (Bonferroni).
    """
    generator = np.random.default_rng(seed)
    spread = np.asarray(spreads, dtype=float)
    count = np.asarray(seeds)
    freedom = count - 1
    variances = spread**2 * generator.chisquare(freedom, size=(draws, len(count))) / freedom
    true_error = np.sqrt((spread[:2] ** 2 / count[:2]).sum() + examples**2)
    error = true_error * generator.standard_normal(draws)

    one, known = moderate(variances, count)
    parts = one[:, :2] / count[:2]
    total = parts.sum(axis=1) + examples**2
    own = min(count[:2]) >= ALONE
    together = combine_freedom(parts.T, known[:, :2].T, examples**2, independent=own)
    critical = -stdtrit(together, level / 2) * np.sqrt(total)
    return PlannedPair(
        100 * float(np.mean(np.abs(error) > critical)),
        float(np.quantile(critical - error, 0.8)),
        100 * float(np.mean(of + error > critical)),
    )


@dataclass(frozen=True)
class Wrong:
    """Per cent of comparisons of equal rows.

    Attributes:
        pairs: in which some pair is found different.
        planned: in which some row is found different from the first one, as a family of its own.
        best: in which the first row is not among those that may be the best.
    """

    pairs: float
    planned: float
    best: float


def wrong(comparisons: Iterator[Rows], draws: int = 1000) -> Wrong:
    """Return how often something is found where there is nothing."""
    found = np.zeros(3)
    count = 0
    for rows in comparisons:
        k = len(rows.means)
        z = draw(rows, draws)
        pairs = all_pairs(k)
        others = others_against(0, k)
        every = explored_p_values(rows, pairs) if k >= EXPLORED else family_p_values(rows, pairs, z)
        planned = family_p_values(rows, others, z)
        best = family_p_values(rows, others, z, sides=1)
        found += [part.min() <= ALPHA for part in (every, planned, best)]
        count += 1
    return Wrong(*(100 * found / count))
