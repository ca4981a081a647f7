"""Promised power, against verdicts on drawn scores."""

from __future__ import annotations

import numpy as np
import pytest

from reports.stats.power import seeds_needed, smallest_difference
from reports.stats.simultaneous import all_pairs, judge
from tests.support.simulated_rows import drawn


@pytest.mark.parametrize(("rows", "seeds", "planned"), [(2, 3, False), (6, 3, False), (6, 5, True)])
def test_promised_power_is_kept(rows, seeds, planned):
    least = smallest_difference(seeds, 0.84, 0.42, rows, planned=planned)
    means = np.where(np.arange(rows) == 0, least, 0.0)
    pairs = all_pairs(rows)[:1] if planned else all_pairs(rows)
    comparisons = drawn(
        np.full(rows, 0.84), np.full(rows, seeds), examples=0.42 / 2**0.5, means=means, trials=120
    )
    found = np.mean([judge(comparison, pairs)[0].low > 0 for comparison in comparisons])
    assert found == pytest.approx(0.8, abs=0.1)


def test_as_many_seeds_as_needed_and_no_more():
    needed = seeds_needed(2.0, 0.84, 0.3, 4)
    assert needed is not None
    assert (
        smallest_difference(needed, 0.84, 0.3, 4)
        <= 2.0
        < smallest_difference(needed - 1, 0.84, 0.3, 4)
    )
    assert seeds_needed(0.5, 0.84, 0.3, 4) is None  # less than the examples alone hide


def test_a_planned_pair_takes_less_than_all_pairs():
    assert smallest_difference(3, 0.84, 0.6, 10, planned=True) < 0.7 * smallest_difference(
        3, 0.84, 0.6, 10
    )


@pytest.mark.parametrize("difference", [2.0, 2.3, 1.5])
def test_the_fewest_seeds_are_the_fewest_where_ten_find_less_than_nine(difference: float) -> None:
    least = {n: smallest_difference(n, 0.84, 0.0, 15) for n in range(3, 20)}
    assert least[10] > least[9]
    fewest = min(n for n, found in least.items() if found <= difference)
    assert seeds_needed(difference, 0.84, 0.0, 15) == fewest
