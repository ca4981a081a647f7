"""Shares of a difference: sums, known games, and how often intervals err."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest

from reports.stats.estimate import Floats
from reports.why.shares import Design, DesignScores, draw_orders, judge_contrasts


def by_definition(value: dict[frozenset[int], float], count: int) -> list[float]:
    """Shapley's values from all orders of changes, as the definition says."""
    orders = list(permutations(range(count)))
    shares = [0.0] * count
    for order in orders:
        taken: frozenset[int] = frozenset()
        for factor in order:
            shares[factor] += (value[taken | {factor}] - value[taken]) / len(orders)
            taken |= {factor}
    return shares


def game(design: Design, seed: int = 0) -> Floats:
    return np.random.default_rng(seed).normal(size=len(design.subsets))


@pytest.mark.parametrize("count", [1, 2, 3, 4, 6])
def test_shares_are_shapleys_values(count: int) -> None:
    design = Design(count)
    scores = game(design)
    value = dict(zip(design.subsets, scores, strict=True))
    np.testing.assert_allclose(design.shares @ scores, by_definition(value, count), atol=1e-12)


@pytest.mark.parametrize("orders", [(), draw_orders(5, 2), draw_orders(6, 7)])
def test_shares_sum_to_the_difference(orders: tuple[tuple[int, ...], ...]) -> None:
    design = Design(len(orders[0]) if orders else 4, orders)
    scores = game(design)
    assert (design.shares @ scores).sum() == pytest.approx((design.whole @ scores).item())
    assert (design.whole @ scores).item() == pytest.approx(scores[-1] - scores[0])


def test_all_orders_give_what_all_rows_give() -> None:
    every = Design(4, tuple(permutations(range(4))))
    whole = Design(4)
    assert every.subsets == whole.subsets
    np.testing.assert_allclose(every.shares, whole.shares, atol=1e-12)


def test_orders_come_with_their_reverses_and_differ() -> None:
    orders = draw_orders(5, 3)
    assert len(set(orders)) == 6
    assert {order[::-1] for order in orders} == set(orders)
    assert set(draw_orders(3, 100)) == set(permutations(range(3)))


def test_changes_that_add_have_no_interaction_and_one_pair_that_acts_together_has() -> None:
    design = Design(3)
    added = np.array([sum({0: 1.0, 1: 2.0, 2: -0.5}[f] for f in s) for s in design.subsets])
    together = added + np.array([4.0 if {0, 2} <= s else 0.0 for s in design.subsets])
    pairs = design.interactions
    assert [float(w @ added) for w in pairs.values()] == pytest.approx([0, 0, 0])
    assert {pair: float(w @ together) for pair, w in pairs.items()} == pytest.approx(
        {(0, 1): 0, (0, 2): 4, (1, 2): 0}
    )
    first, last = design.weigh_change(True), design.weigh_change(False)
    assert float(first[0] @ together) == pytest.approx(1)
    assert float(last[0] @ together) == pytest.approx(5)


def scored(scores: Floats, examples: int = 40, noise: float = 0.0) -> DesignScores:
    """Rows whose examples move all of them alike: contrasts have no chance of examples."""
    rows, seeds = scores.shape
    shared = np.random.default_rng(1).normal(size=examples)
    influences = np.broadcast_to(shared - shared.mean(), (rows, seeds, examples)).copy()
    own = np.random.default_rng(2).normal(size=(rows, 1, examples)) * noise
    influences += own - own.mean(axis=2, keepdims=True)
    return DesignScores(scores, [influences], [None])


def simulate(count: int, seeds: int, shared: float, spread: float, draws: int) -> tuple[int, int]:
    """(families with a false share, the same where variances of rows are added), of equal rows."""
    rng = np.random.default_rng(3)
    design = Design(count)
    spreads = np.array([spread if 0 in subset else 1.0 for subset in design.subsets])[:, None]
    wrong = naive = 0
    for _ in range(draws):
        common = rng.normal(size=seeds) * shared**0.5
        own = rng.normal(size=(len(design.subsets), seeds)) * (1 - shared) ** 0.5
        scores = spreads * (common + own) / 100
        found = judge_contrasts(scored(scores), design.shares)
        wrong += any(one.p <= 0.05 for one in found)
        variances = (design.shares**2) @ scores.var(axis=1, ddof=1) / seeds
        t = np.abs(design.shares @ scores.mean(axis=1)) / np.sqrt(variances)
        naive += bool((t > 1.96).any())
    return wrong, naive


@pytest.mark.parametrize(
    ("count", "seeds", "shared", "spread"), [(4, 3, 0.0, 1), (2, 3, 0.8, 5), (3, 5, 0.5, 3)]
)
def test_equal_rows_get_a_share_in_at_most_one_of_twenty(
    count: int, seeds: int, shared: float, spread: float
) -> None:
    draws = 600
    wrong, naive = simulate(count, seeds, shared, spread, draws)
    assert wrong / draws <= 0.05 + 2 * (0.05 * 0.95 / draws) ** 0.5
    if shared:  # seeds that rows have in common are what the spread of a contrast knows
        assert naive > 2 * wrong


def test_a_contrast_without_spread_is_certain_and_one_of_the_same_runs_is_nothing() -> None:
    scores = np.array([[0.5, 0.5, 0.5], [0.5, 0.5, 0.5], [0.6, 0.6, 0.6], [0.6, 0.6, 0.6]])
    found = judge_contrasts(scored(scores), Design(2).shares)
    assert [round(one.value, 9) for one in found] == [0.0, 0.1]
    assert [one.p for one in found] == [1.0, 0.0]


def test_the_choice_of_examples_widens_the_intervals() -> None:
    scores = 0.01 * np.random.default_rng(0).normal(size=(2, 5))
    narrow, wide = (
        judge_contrasts(scored(scores, noise=noise), Design(1).whole)[0] for noise in (0.0, 0.01)
    )
    assert wide.high - wide.low > narrow.high - narrow.low
