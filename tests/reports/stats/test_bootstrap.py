"""Statistics against scipy, worked cases and simulation."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from reports.stats.bootstrap import (
    bootstrap_spearman,
    hierarchical_difference,
    hierarchical_mean,
    holm,
    mean_sd,
    percentile_estimate,
    resample_counts,
    with_seed_spread,
)


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


def test_holm_worked_case():
    # Sorted 0.005, 0.01, 0.03, 0.04 times 4, 3, 2, 1 = 0.02, 0.03, 0.06, 0.04; running maximum: 0.02, 0.03, 0.06, 0.06.
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm([0.9, 0.8]) == [1.0, 1.0]
    assert holm([]) == []


def test_seed_spread_of_one_seed_says_nothing_and_of_several_is_students():
    from scipy.stats import t

    still = np.full(20_000, 0.5)
    assert (with_seed_spread(still, [np.array([0.5])]) == still).all()
    seeds = np.array([0.4, 0.5, 0.6])
    drawn = with_seed_spread(still, [seeds])  # no chance from the pairs: Student's interval with 2 degrees of freedom
    half = t.ppf(0.975, 2) * seeds.std(ddof=1) / 3**0.5
    assert np.quantile(drawn, [0.025, 0.975]) == pytest.approx([0.5 - half, 0.5 + half], rel=0.03)


def test_percentile_estimate():
    estimate = percentile_estimate(0.5, np.arange(1.0, 1001.0))
    assert (estimate.low, estimate.high) == (pytest.approx(25.975), pytest.approx(975.025))
    assert estimate.p == pytest.approx(2 / 1001)
    assert percentile_estimate(0.0, np.zeros(10)).p == 1


@pytest.mark.parametrize("seeds", [3, 5, 10, 20])
def test_interval_of_a_mean_over_seeds_covers_95_percent(seeds):
    """Normal seed means, true mean 0: coverage 93-97 % down to three seeds. Two seeds stay below (about 92-93 %)."""
    generator = np.random.default_rng(seeds)
    trials, hits = 3000, 0
    for _ in range(trials):
        values = generator.normal(size=seeds)
        estimate = hierarchical_mean(
            values, np.repeat(values[:, None], 600, axis=1), seed=int(generator.integers(1 << 30))
        )
        hits += estimate.low <= 0 <= estimate.high
    assert 0.93 <= hits / trials <= 0.97


@pytest.mark.parametrize("spread", [0.02, 0.3])
@pytest.mark.parametrize("seeds", [3, 5])
def test_interval_of_a_difference_covers_with_seeds_and_pairs(seeds, spread):
    """Both sources of chance at once: pair effects shared by all seeds, seed effects, a true difference of 0.3."""
    generator = np.random.default_rng(8)
    trials, hits, pairs, replicates = 400, 0, 60, 300
    for trial in range(trials):
        counts = resample_counts(pairs, replicates, seed=trial) / pairs
        effect = generator.normal(0.3, 1.0, size=pairs)  # of each pair, the same for all seeds
        a = effect + generator.normal(0, spread, size=(seeds, 1)) + generator.normal(0, 0.3, size=(seeds, pairs))
        b = generator.normal(0, 0.3, size=(1, pairs))  # an untrained base: one seed
        estimate = hierarchical_difference(
            a.mean(axis=1), b.mean(axis=1), a @ counts, b @ counts, paired_seeds=False, seed=trial
        )
        hits += estimate.low <= 0.3 <= estimate.high
    assert 0.92 <= hits / trials <= 0.98  # 0.95 give or take three standard errors of 400 trials


def test_paired_seeds_cancel_what_they_share():
    shared = np.array([0.1, 0.5, 0.9])[:, None] + np.zeros((3, 200))
    a, b = shared + 0.2, shared
    paired = hierarchical_difference(a[:, 0], b[:, 0], a, b, paired_seeds=True)
    apart = hierarchical_difference(a[:, 0], b[:, 0], a, b, paired_seeds=False)
    assert (paired.low, paired.high) == (pytest.approx(0.2), pytest.approx(0.2))
    assert apart.low < 0 < apart.high
