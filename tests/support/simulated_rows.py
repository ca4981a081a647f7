"""Rows of a comparison drawn from known means and spreads, and how often the verdicts on them are wrong."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from reports.stats.simultaneous import AllPairs, Family, Planned, SeedSpread, critical_values, seed_spread

# Standard deviations of seeds, in points: from BERT-base's 0.84 to one row at 1.7 among rows at 0.2.
SPREADS: dict[str, Callable[[int], np.ndarray]] = {
    "equal": lambda rows: np.full(rows, 0.84),
    "0.5 / 1.0": lambda rows: np.where(np.arange(rows) % 2, 0.5, 1.0),
    "0.2 to 1.7": lambda rows: np.geomspace(0.2, 1.7, rows),
    "one 1.7": lambda rows: np.where(np.arange(rows) == rows - 1, 1.7, 0.2),
    "1/4 1.7": lambda rows: np.where(np.arange(rows) % 4, 0.2, 1.7),
    "1/2 1.7": lambda rows: np.where(np.arange(rows) % 2, 0.2, 1.7),
}


@dataclass(frozen=True)
class Rates:
    """Shares of simulated comparisons.

    Attributes:
        best: with equal means, the best is separated from some row.
        pairs: with equal means, some pair is separated.
        base: some row is separated from a base of the same mean, into which no seed enters.
        power: of the separations of a first row that is better by the gap.
        covered: of the differences' intervals, those that hold the true difference.
    """

    best: float
    pairs: float
    base: float
    power: float
    covered: float


def rates(
    spreads: np.ndarray, seeds: np.ndarray, *, pairs: float = 0.21, luck: float = 0.0, gap: float = 2.5,
    others: int | None = None, trials: int = 2000, seed: int = 0,
    spread: Callable[[np.ndarray, np.ndarray], SeedSpread] = seed_spread,
) -> Rates:  # fmt: skip
    """Simulate `trials` comparisons.

    Args:
        spreads, seeds: (rows,) standard deviation over seeds and their number.
        pairs: standard deviation that the drawn pairs give each row.
        gap, others: a first row that is better by `gap` is held against the next `others` rows, or all.
        luck: share of the seeds' variance that rows with the same seed have in common.
        spread: what is to be tried in place of `seed_spread`.
    """
    generator = np.random.default_rng(seed)
    rows, most = len(spreads), int(max(seeds))
    shared = generator.normal(size=(trials, 1, most)) * np.sqrt(luck)
    own = generator.normal(size=(trials, rows, most)) * np.sqrt(1 - luck)
    scores = np.where(np.arange(most) < seeds[:, None], (shared + own) * spreads[:, None], np.nan)
    count = np.maximum(seeds, 1)
    means = np.nansum(scores, axis=2) / count
    variance = np.nansum((scores - means[:, :, None]) ** 2, axis=2) / np.maximum(count - 1, 1)
    known = spread(variance, seeds)
    means = means + generator.normal(size=(trials, rows)) * pairs
    widths = margins(known, 2 * pairs**2, AllPairs(rows))
    error = means[:, :, None] - means[:, None, :]
    apart = np.abs(error) > widths
    best = apart[np.arange(trials), means.argmax(axis=1)].any(axis=1).mean()
    last = None if others is None else 1 + others
    ahead = (error[:, 0, 1:last] + gap > widths[:, 0, 1:last]).mean()
    base = SeedSpread(np.zeros_like(known.variance), np.full_like(known.freedom, np.inf))
    width = _widths(known, base, 2 * pairs**2, Planned(rows))
    off = np.abs(means - generator.normal(size=(trials, 1)) * pairs)
    upper = np.triu_indices(rows, 1)
    return Rates(
        float(best), float(apart.any(axis=(1, 2)).mean()), float((off > width).any(axis=1).mean()), float(ahead),
        float(1 - apart[:, upper[0], upper[1]].mean()),
    )  # fmt: skip


def _widths(first: SeedSpread, second: SeedSpread, pairs: float, family: Family) -> np.ndarray:
    error, points = critical_values(first, second, np.full(first.variance.shape, pairs), family, np.array([0.05]))
    return error * points[..., 0]


def margins(known: SeedSpread, pairs: float, family: Family, level: float = 0.05) -> np.ndarray:
    """(trials, rows, rows) half widths of the intervals of all differences."""
    return margins_at(known, pairs, family, np.array([level]))[0]


def margins_at(known: SeedSpread, pairs: float, family: Family, levels: np.ndarray) -> np.ndarray:
    """The same at several levels, (levels, trials, rows, rows)."""
    one = np.moveaxis(family.points(known.freedom, levels), -1, 0)
    last = family.points(np.array(np.inf), levels)[:, None, None, None]
    v = known.variance
    total = v[:, :, None] + v[:, None, :] + pairs
    weighted = (v * one)[..., :, None] + (v * one)[..., None, :] + pairs * last
    widths = weighted / np.sqrt(np.where(total > 0, total, 1))
    places = np.arange(v.shape[1])
    widths[..., places, places] = np.inf
    return widths
