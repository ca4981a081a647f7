"""Promised power, against verdicts on drawn scores."""

from __future__ import annotations

import numpy as np
import pytest

from reports.stats.power import Design, seeds_needed, smallest_difference
from reports.stats.simultaneous import AllPairs, SeedSpread, seed_spread, simultaneous


def found(deviations, seeds, pairs, difference, *, correlation=0.0, trials=4000):
    """How often the verdict itself finds row 0 better than row 1, from scores seed by seed."""
    generator = np.random.default_rng(11)
    rows, spread = len(deviations), np.array(deviations)
    shared = generator.normal(size=(trials, 1, seeds)) * np.sqrt(correlation)
    own = generator.normal(size=(trials, rows, seeds)) * np.sqrt(1 - correlation)
    scores = spread[:, None] * (shared + own)
    known = seed_spread(scores.var(axis=2, ddof=1), np.where(spread > 0, seeds, 0))
    means = scores.mean(axis=2)
    values = means[:, 0] - means[:, 1] + difference + pairs * generator.normal(size=trials)
    sides = [SeedSpread(known.variance[:, i], known.freedom[:, i]) for i in (0, 1)]
    estimates = simultaneous(values, *sides, np.full(trials, pairs**2), AllPairs(rows))
    return np.mean([estimate.low > 0 for estimate in estimates])


@pytest.mark.parametrize(
    ("deviations", "seeds", "pairs", "correlation"),
    [
        ((0.84,) * 6, 5, 0.3, 0.0),
        ((0.84,) * 2, 3, 0.3, 0.6),
        ((1.7, 0.2, 0.2, 0.0), 4, 0.3, 0.0),
    ],
)
def test_promised_power_is_kept(deviations, seeds, pairs, correlation):
    design = Design(deviations, pairs, AllPairs(len(deviations)), correlation)
    least = smallest_difference(design, np.full(len(deviations), seeds))
    assert found(deviations, seeds, pairs, least, correlation=correlation) == pytest.approx(0.8, abs=0.03)


def test_as_many_seeds_as_needed_and_no_more():
    design = Design((0.84,) * 4, 0.3, AllPairs(4))
    needed = seeds_needed(design, 2.0)
    assert needed is not None
    assert smallest_difference(design, np.full(4, needed)) <= 2.0 < smallest_difference(design, np.full(4, needed - 1))
    assert seeds_needed(design, 0.5) is None  # less than the pairs alone hide


def test_a_row_of_another_pool_says_nothing_of_the_spread_of_two_rows():
    """Random vectors lie 13 points apart by seed: rows that were trained, 0.2."""
    seeds, spreads = np.full(3, 2), (0.2, 0.2, 13.0)
    alone = smallest_difference(Design((0.2, 0.2, 0.0), 1.3, AllPairs(3)), seeds)
    apart = smallest_difference(Design(spreads, 1.3, AllPairs(3), pools=("trained", "trained", "untrained")), seeds)
    assert apart == pytest.approx(alone, rel=0.03)
    assert smallest_difference(Design(spreads, 1.3, AllPairs(3)), seeds) > 5 * alone
