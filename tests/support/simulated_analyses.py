"""Comparisons that add seeds until they are decided, drawn from known means and spreads."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from reports.stats.sequential import SHARE, Boundary, standing
from reports.stats.simultaneous import AllPairs, Family, SeedSpread, seed_spread
from tests.support.simulated_rows import margins, margins_at


@dataclass(frozen=True)
class Course:
    """Of simulated comparisons.

    Attributes:
        wrong: share in which some row was called better than one that is as good or better.
        found: of the separations of the best row from the others, those that were found.
        seeds: of a row, on average.
        analyses: on average.
    """

    wrong: float
    found: float
    seeds: float
    analyses: float


def course(
    means: np.ndarray, spreads: np.ndarray, boundary: Boundary, *, share: Callable[[int], float] | None = None,
    analyses: Sequence[int] = (), stops: bool = True, pairs: float = 0.21, margin: float = 0.5, luck: float = 0.0,
    trials: int = 1000, seed: int = 0,
) -> Course:  # fmt: skip
    """Simulate comparisons, by the code that decides real ones.

    Args:
        means, spreads: (rows,) true means, and standard deviations over seeds, in points.
        share: another one than the boundary's, of a analysis with so many seeds.
        analyses: numbers of seeds at which there is a analysis; after every seed when left out.
        stops: whether rows stop; else all go on to the last analysis, decided or not.
        pairs: standard deviation that the drawn pairs give each row.
        luck: share of the seeds' variance that rows with the same seed have in common.
    """
    analyses = analyses or range(boundary.first, boundary.most + 1)
    generator = np.random.default_rng(seed)
    rows, most, family, between = len(means), analyses[-1], AllPairs(len(means)), 2 * pairs**2
    x = generator.normal(size=(trials, rows, most)) * np.sqrt(1 - luck)
    x = (x + generator.normal(size=(trials, 1, most)) * np.sqrt(luck)) * spreads[:, None]
    numbers = np.arange(1, most + 1)
    mean = x.cumsum(axis=2) / numbers
    variance = np.maximum((x**2).cumsum(axis=2) - numbers * mean**2, 0) / np.maximum(numbers - 1, 1)
    mean = mean + (means + generator.normal(size=(trials, rows)) * pairs)[:, :, None]
    counts = np.full((trials, rows), analyses[0])
    better = np.zeros((trials, rows, rows), dtype=bool)
    going = np.ones((trials, rows), dtype=bool)
    seen = np.zeros(trials)
    for n in analyses:
        alive = going.any(axis=1)
        counts = np.where(going, n, counts)
        seen += alive
        now, spread = (np.take_along_axis(part, counts[..., None] - 1, axis=2)[..., 0] for part in (mean, variance))
        known = seed_spread(spread, counts)
        half = (
            _half(known, counts, between, family, boundary)
            if share is None
            else margins(known, between, family, 0.05 * share(n))
        )
        gap = now[:, :, None] - now[:, None, :]
        better |= (gap > half) & alive[:, None, None]
        alike = np.abs(gap) + half <= margin
        if stops:
            found = standing(now, better, alike, known, counts, np.array(between), family, boundary, margin)
            going = found.contending & alive[:, None]
        if not going.any():
            break
    upper = means[:, None] > means[None, :]
    best = int(means.argmax())
    behind = means < means[best]
    return Course(
        float((better & ~upper).any(axis=(1, 2)).mean()),
        float(better[:, best, behind].mean()) if behind.any() else float("nan"),
        float(counts.mean()),
        float(seen.mean()),
    )


def _half(known: SeedSpread, counts: np.ndarray, pairs: float, family: Family, boundary: Boundary) -> np.ndarray:
    """Half widths where every difference has a level of its own, between tabulated ones."""
    v = known.variance
    sides = np.broadcast_arrays(v[:, :, None], v[:, None, :], counts[:, :, None], counts[:, None, :], np.array(pairs))
    share = boundary.share(*sides)
    if boundary.first >= boundary.most:
        return margins(known, pairs, family)
    grid = SHARE * np.geomspace(boundary.first / boundary.most / 1.01, 1, 8)
    widths = margins_at(known, pairs, family, 0.05 * grid)
    place = np.clip(np.interp(np.log(share), np.log(grid), np.arange(8)), 0, 7)
    below = np.minimum(place.astype(int), 6)[None]
    low, high = (np.take_along_axis(widths, below + step, axis=0)[0] for step in (0, 1))
    with np.errstate(invalid="ignore"):
        return np.where(np.isinf(low), np.inf, low + (place - below[0]) * (high - low))


def paired_e_values(
    means: np.ndarray, spreads: np.ndarray, first: int, most: int, *, pairs: float = 0.21, trials: int = 1000,
    seed: int = 0,
) -> Course:  # fmt: skip
    """The same by e-values: a t-test of the differences by seed of each two rows, which holds at any time.

    Bayes factor of an effect N(0, 1 / g) in standard deviations against none (the scale-invariant mixture of Lai,
    Annals of Statistics 4, 1976; Wang & Ramdas, arXiv:2310.03722), g = 1 / 4, at 0.04 over the number of pairs of rows;
    the chance of the drawn pairs has the remaining 0.01 of 0.05, and is taken off the difference. No row borrows spread
    from another. Rows stop when another is better.
    """
    from scipy.stats import norm

    generator = np.random.default_rng(seed)
    rows, g = len(means), 0.25
    count = rows * (rows - 1) / 2
    x = generator.normal(size=(trials, rows, most)) * spreads[:, None]
    x += (means + generator.normal(size=(trials, rows)) * pairs)[:, :, None]
    off = norm.isf(0.01 / count / 2) * pairs * 2**0.5
    better = np.zeros((trials, rows, rows), dtype=bool)
    counts = np.full((trials, rows), first)
    seen = np.zeros(trials)
    going = np.ones((trials, rows), dtype=bool)
    for n in range(first, most + 1):
        alive = going.sum(axis=1) > 1
        counts = np.where(going & alive[:, None], n, counts)
        seen += alive
        mean = x[:, :, :n].mean(axis=2)
        centred = x[:, :, :n] - mean[:, :, None]
        cross = np.einsum("tin,tjn->tij", centred, centred) / (n - 1)
        own = np.einsum("tii->ti", cross)
        variance = np.maximum(own[:, :, None] + own[:, None, :] - 2 * cross, 1e-12)
        gap = mean[:, :, None] - mean[:, None, :]
        t2 = n * np.maximum(np.abs(gap) - off, 0) ** 2 / variance / (n - 1)
        e = 0.5 * np.log(g / (n + g)) + n / 2 * (np.log1p(t2) - np.log1p(g / (n + g) * t2))
        both = going[:, :, None] & going[:, None, :] & alive[:, None, None]
        better |= (e >= np.log(count / 0.04)) & (gap > 0) & both
        going = ~better.any(axis=1)
    upper = means[:, None] > means[None, :]
    behind = means < means.max()
    return Course(
        float((better & ~upper).any(axis=(1, 2)).mean()),
        float(better[:, int(means.argmax()), behind].mean()) if behind.any() else float("nan"),
        float(counts.mean()),
        float(seen.mean()),
    )
