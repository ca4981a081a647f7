"""How much each example moves a score: against derivatives of the scores themselves, and
bootstraps.
"""

from __future__ import annotations

import numpy as np
import pytest

from harness.results.outcomes import score_of
from reports.stats.influence import influence


def examples(metric, n=60):
    generator = np.random.default_rng(4)
    if metric in ("spearman", "pearson"):
        target = np.round(generator.uniform(0, 5, n) * 2) / 2  # gold scores tie
        return target, np.round(target + generator.normal(size=n), 1)
    target = (generator.random(n) < 0.4).astype(float)
    if metric == "cosine_ap":
        return target, np.round(target + generator.normal(size=n), 1)
    return target, np.where(generator.random(n) < 0.75, target, 1 - target)


@pytest.mark.parametrize("metric", ["accuracy", "spearman", "pearson", "f1", "cosine_ap"])
def test_influence_is_the_derivative_by_an_examples_weight(metric):
    target, outcome = examples(metric)
    value, found = influence(metric, target, outcome)
    ones = np.ones(len(target))
    assert value == pytest.approx(score_of(metric, target, outcome, ones))
    for m in (0, 17, 59):
        sides = [
            score_of(metric, target, outcome, ones + step * (np.arange(60) == m))
            for step in (1e-5, -1e-5)
        ]
        assert found[m] == pytest.approx((sides[0] - sides[1]) / 2e-5, abs=1e-7)
    assert found.sum() == pytest.approx(0, abs=1e-12)  # all weights doubled change nothing
    assert np.abs(found).max() > 1e-3


@pytest.mark.parametrize("metric", ["spearman", "pearson", "f1", "cosine_ap"])
def test_what_nothing_can_move_has_no_influence(metric):
    value, found = influence(metric, np.zeros(9), np.zeros(9))
    assert value == 0
    assert not found.any()


@pytest.mark.parametrize("metric", ["spearman", "pearson", "f1", "cosine_ap"])
def test_its_sum_of_squares_is_what_a_bootstrap_of_the_examples_gives(metric):
    target, outcome = (np.tile(side, 5) for side in examples(metric))
    _, found = influence(metric, target, outcome)
    generator = np.random.default_rng(0)
    drawn = [
        score_of(metric, target, outcome, generator.multinomial(300, np.full(300, 1 / 300)))
        for _ in range(800)
    ]
    assert np.sqrt(found @ found) == pytest.approx(np.std(drawn), rel=0.08)


def test_scores_of_examples_without_gold_values_are_averaged_whatever_their_metric():
    outcome = np.array([0.2, 0.9, 0.4, 0.5])
    value, found = influence("spearman", np.full(4, np.nan), outcome)
    assert value == 0.5
    assert found == pytest.approx((outcome - 0.5) / 4)
