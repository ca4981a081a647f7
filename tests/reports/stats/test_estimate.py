"""Statistics against scipy, worked cases and simulation."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from reports.stats.clusters import chance
from reports.stats.estimate import predict
from reports.stats.influence import of_mean
from reports.stats.simultaneous import mean_of_shares, mean_over_seeds


def test_a_mean_over_seeds_without_chance_from_examples_is_students():
    seeds = np.array([0.4, 0.5, 0.6])
    estimate = mean_over_seeds(seeds, 0.0)
    half = stats.t.ppf(0.975, 2) * seeds.std(ddof=1) / 3**0.5
    assert (estimate.low, estimate.high) == (pytest.approx(0.5 - half), pytest.approx(0.5 + half))


def test_the_interval_of_one_or_two_seeds_holds_the_examples_alone():
    estimate = mean_over_seeds(np.array([0.4, 0.6]), 0.1**2)
    assert (estimate.high - estimate.low) / 2 == pytest.approx(
        stats.norm.ppf(0.975) * 0.1, rel=1e-4
    )
    still = mean_over_seeds(np.array([0.5]), 0.0)
    assert (still.low, still.high) == (0.5, 0.5)


@pytest.mark.parametrize("seeds", [3, 20])
def test_interval_of_a_mean_over_seeds_covers_95_percent(seeds):
    """Normal seed means, true mean 0: coverage 93-97 % down to three seeds."""
    generator = np.random.default_rng(seeds)
    trials, hits = 1000, 0
    for _ in range(trials):
        values = generator.normal(size=seeds)
        estimate = mean_over_seeds(values, 0.0)
        hits += estimate.low <= 0 <= estimate.high
    assert 0.93 <= hits / trials <= 0.97


@pytest.mark.parametrize("spread", [0.02, 0.3])
@pytest.mark.parametrize("seeds", [3, 5])
def test_interval_of_a_mean_covers_with_seeds_and_examples(seeds, spread):
    """Both sources of chance at once: effects of examples shared by all seeds, seed effects, a true
    mean of 0.3.
    """
    generator = np.random.default_rng(8)
    trials, hits, examples = 1000, 0, 60
    for _ in range(trials):
        effect = generator.normal(
            0.3, 1.0, size=examples
        )  # of each example, the same for all seeds
        a = (
            effect
            + generator.normal(0, spread, size=(seeds, 1))
            + generator.normal(0, 0.3, size=(seeds, examples))
        )
        moved = [np.stack([of_mean(seed)[1] for seed in a])]  # of one row
        estimate = mean_over_seeds(a.mean(axis=1), chance([(moved, None)]).of(0))
        hits += estimate.low <= 0.3 <= estimate.high
    assert 0.93 <= hits / trials <= 0.97


@pytest.mark.parametrize("examples", [10, 20, 60, 200])
@pytest.mark.parametrize("share", [0.8, 0.9, 0.97, 0.99])
def test_the_interval_of_an_accuracy_near_100_percent_covers(examples, share):
    """The chance of every number of right answers is binomial: where the interval misses adds up
    to 7 % at most.
    """
    missed = 0.0
    for right in range(examples + 1):
        mean = right / examples
        variance = mean * (1 - mean) / (examples - 1)
        found = mean_of_shares(np.array([mean]), variance, [examples])
        assert 0 <= found.low <= mean <= found.high <= 1
        if not found.low <= share <= found.high:
            missed += float(stats.binom.pmf(right, examples, share))
    assert missed <= 0.07


def test_the_interval_of_an_accuracy_far_from_its_bounds_is_the_usual_one():
    usual = mean_over_seeds(np.array([0.5]), 0.25 / 2000, 1999)
    found = mean_of_shares(np.array([0.5]), 0.25 / 2000, [2000])
    assert (found.low, found.high) == pytest.approx((usual.low, usual.high), abs=1e-4)


def test_the_mean_of_endless_runs_lies_in_students_interval():
    held = np.array([51.0, 53.0, 52.0, 54.5])
    found = predict(held.mean(), [held.tolist()], runs=math.inf)
    low, high = stats.ttest_1samp(held, 55.0).confidence_interval(0.95)
    assert (found.value, found.low, found.high) == pytest.approx((held.mean(), low, high))
