"""Statistics over tasks against scipy, worked cases and simulation."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from reports.stats.aggregate_metrics import (
    Interval,
    improvement_interval,
    interquartile_mean,
    optimism,
    probability_of_improvement,
    stratified_bootstrap,
)

LEVELS = np.linspace(30, 80, 7)  # tasks of unlike difficulty


def runs(generator: np.random.Generator, count: int, shared: float) -> np.ndarray:
    """(count, 7) scores of spread 1 around the tasks' levels; `shared` of their variance is common to all tasks."""
    common = generator.normal(size=(count, 1)) * shared**0.5
    return LEVELS + common + generator.normal(size=(count, 7)) * (1 - shared) ** 0.5


@pytest.mark.parametrize("shape", [(1, 3), (3, 7), (4, 5), (10, 7)])
def test_interquartile_mean_is_scipys_trimmed_mean(shape):
    scores = np.random.default_rng(0).normal(size=shape)
    assert interquartile_mean(scores) == pytest.approx(stats.trim_mean(scores, 0.25, axis=None))
    shifted = interquartile_mean(np.stack([scores, scores + 1]))  # any number of axes in front
    assert shifted[1] - shifted[0] == pytest.approx(1)


def test_probability_of_improvement_is_mann_whitneys_u_over_all_pairs():
    generator = np.random.default_rng(1)
    a, b = generator.integers(0, 6, size=(5, 4)).astype(float), generator.integers(0, 6, size=(3, 4)).astype(float)
    u = [stats.mannwhitneyu(a[:, t], b[:, t]).statistic for t in range(4)]
    assert probability_of_improvement(a, b) == pytest.approx(np.mean(u) / 15)
    assert probability_of_improvement(a, b) + probability_of_improvement(b, a) == pytest.approx(1)
    # Task 1: 2 of 2 above; task 2: one equal, one below.
    assert probability_of_improvement(np.array([[2.0, 1.0]]), np.array([[1.0, 1.0], [0.0, 3.0]])) == 0.625


def test_fewer_than_three_runs_have_no_interval():
    two = np.array([[1.0, 2.0, 3.0], [2.0, 3.0, 4.0]])
    assert stratified_bootstrap(two) == Interval(2.5)
    assert improvement_interval(two, np.zeros((1, 3))) == Interval(1.0)


def test_interval_of_improvement_stays_open_where_few_runs_happen_to_lie_above():
    a = np.array([[1.0], [1.1], [0.9]])
    near, far = improvement_interval(a, a - 0.3), improvement_interval(a, a - 30)
    assert near.value == far.value == 1
    assert near.low is not None
    assert near.low < 0.7
    assert far.low is not None
    assert far.low > 0.95
    still = improvement_interval(np.ones((3, 2)), np.array([[1.0, 0.0]]))  # nothing varies: half and one
    assert (still.value, still.low, still.high) == (0.75, 0.75, 0.75)


@pytest.mark.parametrize("count", [3, 10])
@pytest.mark.parametrize("shared", [0.0, 1.0])
def test_bootstrap_interval_of_the_interquartile_mean_covers_95_percent(count, shared):
    """Whether tasks are independent or move as one. The true value is that of many draws of as many runs."""
    generator = np.random.default_rng(count)
    true = np.mean([interquartile_mean(runs(generator, count, shared)) for _ in range(4000)])
    hits, trials = 0, 800
    for trial in range(trials):
        interval = stratified_bootstrap(runs(generator, count, shared), replicates=300, seed=trial)
        assert interval.low is not None
        assert interval.high is not None
        hits += interval.low <= true <= interval.high
    assert 0.93 <= hits / trials <= 0.97


@pytest.mark.parametrize(("count", "fixed"), [(3, True), (5, False)])
@pytest.mark.parametrize("probability", [0.5, 0.8])
def test_interval_of_improvement_covers_95_percent_where_tasks_move_as_one(count, fixed, probability):
    generator = np.random.default_rng(count)
    ahead = stats.norm.ppf(probability) * (1 if fixed else 2**0.5)
    hits, trials = 0, 600
    for trial in range(trials):
        a = runs(generator, count, 1.0) + ahead
        b = LEVELS[None] if fixed else runs(generator, count, 1.0)
        interval = improvement_interval(a, b, replicates=1000, seed=trial)
        assert interval.low is not None
        assert interval.high is not None
        hits += interval.low <= probability <= interval.high
    assert 0.93 <= hits / trials <= 0.985  # with two sides of few runs it is a little wide


def test_optimism_is_students_interval_of_the_held_out_mean():
    held = np.array([51.0, 53.0, 52.0, 54.5])
    estimate = optimism(55.0, held)
    scipys = stats.ttest_1samp(held, 55.0)
    low, high = scipys.confidence_interval(0.95)
    assert (estimate.value, estimate.low, estimate.high) == pytest.approx((55 - held.mean(), 55 - high, 55 - low))
    assert estimate.p == pytest.approx(scipys.pvalue)
    with pytest.raises(ValueError, match="two held-out"):
        optimism(55.0, held[:1])
