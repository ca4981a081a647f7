"""Seeds added until a decision is reached: the levels of the analyses, and what they say together."""

from __future__ import annotations

import pytest

from reports.stats.estimate import Estimate
from reports.stats.interim import combine_analyses, share_of_analysis


@pytest.mark.parametrize(("first", "most"), [(3, 15), (5, 5), (3, 40)])
def test_the_levels_of_all_analyses_add_up_to_5_percent(first, most):
    shares = [share_of_analysis(number, first, most) for number in range(1, most - first + 2)]
    assert sum(shares) == pytest.approx(1)
    # After n seeds the square of n / most is spent (Kim & DeMets 1987).
    assert sum(shares[:-1]) == pytest.approx(((most - 1) / most) ** 2 if most > first else 0)


def test_of_all_analyses_the_interval_is_what_they_share_and_p_is_the_smallest():
    analyses = [
        Estimate(2.0, 0.5, 3.5, 0.01),
        Estimate(1.6, -0.2, 3.4, 0.2),
        Estimate(1.5, -0.1, 2.9, 0.09),
    ]
    found = combine_analyses(analyses)
    assert (found.value, found.low, found.high, found.p) == (1.5, 0.5, 2.9, 0.01)
    assert combine_analyses(analyses[2:]) == analyses[2]


def test_who_was_ahead_at_first_and_is_behind_at_last_is_not_better():
    found = combine_analyses([Estimate(2.0, 0.5, 3.5, 0.01), Estimate(-0.3, -1.0, 0.4, 0.5)])
    assert found.p == 0.5
    assert found.low == -0.3
    assert found.high == 0.4
