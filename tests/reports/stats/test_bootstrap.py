"""Statistics against scipy, worked cases and simulation."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from reports.stats.bootstrap import bootstrap_spearman, mean_sd, resample_counts
from reports.stats.simultaneous import hierarchical_mean


def test_mean_and_sd():
    assert mean_sd([2.0, 4.0, 9.0]) == (5.0, pytest.approx(13**0.5))
    assert mean_sd([3.0]) == (3.0, None)


@pytest.mark.parametrize("ties", [False, True])
def test_bootstrap_spearman_equals_scipy_on_the_drawn_pairs(ties):
    generator = np.random.default_rng(0)
    gold = np.round(generator.uniform(0, 5, 83) * 2) / 2  # gold scores always tie
    models = [gold + generator.normal(size=83) for _ in range(3)]
    if ties:
        models = [np.round(m) for m in models]
    counts = resample_counts(83, 70, seed=3)  # more than two blocks of replicates, the last one short
    assert (counts.sum(axis=0) == 83).all()
    replicates = bootstrap_spearman(models, gold, counts)
    for r in (0, 31, 32, 69):
        drawn = np.repeat(np.arange(83), counts[:, r].astype(int))
        for m, model in enumerate(models):
            assert replicates[m, r] == pytest.approx(stats.spearmanr(model[drawn], gold[drawn])[0], abs=1e-12)


def test_bootstrap_spearman_of_a_constant_is_zero():
    counts = np.ones((20, 1))
    assert bootstrap_spearman([np.zeros(20)], np.arange(20.0), counts)[0, 0] == 0


def test_a_mean_over_seeds_without_chance_from_pairs_is_students():
    seeds = np.array([0.4, 0.5, 0.6])
    estimate = hierarchical_mean(seeds, np.repeat(seeds[:, None], 50, axis=1))
    half = stats.t.ppf(0.975, 2) * seeds.std(ddof=1) / 3**0.5
    assert (estimate.low, estimate.high) == (pytest.approx(0.5 - half), pytest.approx(0.5 + half))
    assert estimate.p == pytest.approx(stats.ttest_1samp(seeds, 0).pvalue, rel=0.01)


def test_the_interval_of_one_seed_holds_the_pairs_alone():
    drawn = np.random.default_rng(0).normal(0.5, 0.1, size=(1, 4000))
    estimate = hierarchical_mean(np.array([0.5]), drawn)
    assert (estimate.high - estimate.low) / 2 == pytest.approx(1.96 * drawn.std(), rel=1e-3)
    still = hierarchical_mean(np.array([0.5]), np.full((1, 10), 0.5))
    assert (still.low, still.high, still.p) == (0.5, 0.5, 0)


@pytest.mark.parametrize("seeds", [3, 5, 10, 20])
def test_interval_of_a_mean_over_seeds_covers_95_percent(seeds):
    """Normal seed means, true mean 0: coverage 93-97 % down to three seeds."""
    generator = np.random.default_rng(seeds)
    trials, hits = 1000, 0
    for _ in range(trials):
        values = generator.normal(size=seeds)
        estimate = hierarchical_mean(values, np.repeat(values[:, None], 2, axis=1))
        hits += estimate.low <= 0 <= estimate.high
    assert 0.93 <= hits / trials <= 0.97


@pytest.mark.parametrize("spread", [0.02, 0.3])
@pytest.mark.parametrize("seeds", [3, 5])
def test_interval_of_a_mean_covers_with_seeds_and_pairs(seeds, spread):
    """Both sources of chance at once: pair effects shared by all seeds, seed effects, a true mean of 0.3."""
    generator = np.random.default_rng(8)
    trials, hits, pairs, replicates = 400, 0, 60, 300
    for trial in range(trials):
        counts = resample_counts(pairs, replicates, seed=trial) / pairs
        effect = generator.normal(0.3, 1.0, size=pairs)  # of each pair, the same for all seeds
        a = effect + generator.normal(0, spread, size=(seeds, 1)) + generator.normal(0, 0.3, size=(seeds, pairs))
        estimate = hierarchical_mean(a.mean(axis=1), a @ counts)
        hits += estimate.low <= 0.3 <= estimate.high
    assert 0.92 <= hits / trials <= 0.98  # 0.95 give or take three standard errors of 400 trials
