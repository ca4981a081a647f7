"""Statistics of searches against hand-worked cases and against counting all outcomes."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reports.stats.estimate import bin_of, bins, expected_maximum


@given(st.lists(st.floats(-1, 1), min_size=1, max_size=6), st.data())
def test_expected_best_is_the_mean_over_all_sets_of_trials(
    values: list[float], data: st.DataObject
) -> None:
    n = data.draw(st.integers(1, len(values)))
    every_set = [max(drawn) for drawn in combinations(values, n)]
    assert expected_maximum(values, [n])[0] == pytest.approx(np.mean(every_set), abs=1e-12)


def test_expected_best_begins_at_the_mean_and_ends_at_the_best() -> None:
    curve = expected_maximum([0.2, 0.5, 0.8, 0.9], [1, 2, 3, 4])
    assert curve[0] == pytest.approx(0.6)
    assert curve[-1] == pytest.approx(0.9)
    assert (np.diff(curve) > 0).all()
    with pytest.raises(ValueError, match="1 to 4"):
        expected_maximum([0.2, 0.5, 0.8, 0.9], [5])


def test_few_values_have_a_bin_each_and_many_share_them() -> None:
    assert bins([0.5, 0.1, 0.5], log=False, listed=True) == [(0.1, 0.1), (0.5, 0.5)]
    decades = bins([10.0 ** (k / 10) for k in range(41)], log=True, count=4)  # 1 to 10,000
    assert np.allclose(decades, [(1, 10), (10, 100), (100, 1000), (1000, 10_000)])
    assert [bin_of(v, decades) for v in (1.0, 9.99, 10.0001, 10_000.0)] == [0, 0, 1, 3]
