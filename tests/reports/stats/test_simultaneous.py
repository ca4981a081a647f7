"""Simultaneous intervals: against scipy, worked cases, and how often equal rows are separated."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from reports.stats.simultaneous import AllPairs, Planned, SeedSpread, seed_spread, simultaneous
from tests.support.simulated_rows import SPREADS, rates

NONE = SeedSpread(np.zeros(1), np.full(1, np.inf))


@pytest.mark.parametrize("rows", [2, 7, 30])
def test_critical_values_of_all_pairs_are_the_studentized_ranges(rows):
    freedom, p = np.array([1.0, 2.3, 18, np.inf]), np.array([0.3, 0.05, 1e-3])
    points = AllPairs(rows).points(freedom, p)
    for f, line in zip(freedom, points, strict=True):
        exceeded = [stats.studentized_range.sf(q * 2**0.5, rows, min(f, 1e6)) for q in line]
        assert exceeded == pytest.approx(p, rel=0.01)


def test_critical_values_of_planned_differences_are_sidaks_of_half_as_many_again():
    one = -np.expm1(np.log1p(-0.05) / 18)
    found = Planned(12).points(np.array([3.0, np.inf]), np.array([0.05]))[:, 0]
    assert found == pytest.approx([stats.t.isf(one / 2, 3), stats.norm.isf(one / 2)])


def test_spread_of_equal_rows_worked_by_hand():
    # Freedoms 2, 2, 4: (2 x 1 + 2 x 1 + 4 x 1) / 8 = 1, no row above it: each has 1 / n and all eight degrees.
    known = seed_spread(np.array([1.0, 1.0, 1.0]), np.array([3, 3, 5]))
    assert known.variance == pytest.approx([1 / 3, 1 / 3, 1 / 5])
    assert known.freedom == pytest.approx([8, 8, 8])


def test_a_row_that_varies_more_keeps_its_own_spread_and_freedom():
    # Variances 0.5, 0.5, 6 with 3 seeds: mean 7 / 3; mean square of 36.5 / 3 less the half that is chance, 6.08;
    # caution (sqrt(6.08) / 2.33) ^ (1 / 2); the odd row: a prior of half a value at the floor, and its own two.
    known = seed_spread(np.array([0.5, 0.5, 6.0]), np.array([3, 3, 3]))
    caution = (((36.5 / 3) / 2) ** 0.5 / (7 / 3)) ** 0.5
    floor = 7 / 3 * caution
    assert known.variance == pytest.approx(np.array([floor, floor, (0.5 * floor + 2 * 6) / 2.5]) / 3)
    assert known.freedom == pytest.approx([6 / caution**2, 6 / caution**2, 2.5])


def test_rows_without_a_seed_have_no_spread_and_rows_with_one_are_refused():
    known = seed_spread(np.array([0.0, 2.0]), np.array([0, 4]))
    assert known.variance == pytest.approx([0, 0.5])
    assert list(known.freedom) == [np.inf, 3]  # a lone row: Student's t
    with pytest.raises(ValueError, match="one seed"):
        seed_spread(np.array([0.0, 2.0]), np.array([1, 4]))


def test_one_planned_difference_is_students_or_normal():
    seeds = np.array([1.1, 0.2, 0.9, 0.6])
    known = seed_spread(np.array([seeds.var(ddof=1)]), np.array([4]))
    (found,) = simultaneous(np.array([seeds.mean()]), known, NONE, np.zeros(1), Planned(1))
    t = stats.ttest_1samp(seeds, 0)
    assert found.p == pytest.approx(t.pvalue, rel=0.01)
    assert (found.low, found.high) == pytest.approx(tuple(t.confidence_interval()))
    (known_only,) = simultaneous(np.array([1.0]), NONE, NONE, np.array([0.16]), Planned(1))
    assert known_only.p == pytest.approx(2 * stats.norm.sf(2.5), rel=0.01)


def test_intervals_and_p_values_agree_and_p_has_no_floor():
    generator = np.random.default_rng(3)
    count = 400
    spreads = [SeedSpread(generator.uniform(0, 1, count), generator.uniform(1, 9, count)) for _ in range(2)]
    values = generator.normal(0, 5, count)
    found = simultaneous(values, *spreads, generator.uniform(0, 0.2, count), AllPairs(9))
    assert [(e.low > 0 or e.high < 0) == (e.p <= 0.05) for e in found].count(False) == 0
    assert 0.1 < np.mean([e.p <= 0.05 for e in found]) < 0.9
    (far,) = simultaneous(np.array([0.9]), NONE, NONE, np.array([0.02**2]), AllPairs(31))
    assert far.p < 1e-10


def test_equal_numbers_differ_by_nothing():
    same, other = simultaneous(np.array([0.0, 0.1]), *[SeedSpread(np.zeros(2), np.full(2, np.inf))] * 2, np.zeros(2),
                               AllPairs(2))  # fmt: skip
    assert (same.p, same.low, same.high) == (1, 0, 0)
    assert other.p == 0


@pytest.mark.parametrize("spread", SPREADS)
@pytest.mark.parametrize(("rows", "seeds"), [(3, 3), (10, 2), (20, 5)])
def test_equal_rows_are_separated_in_at_most_5_percent(rows, seeds, spread):
    found = rates(SPREADS[spread](rows), np.full(rows, seeds), trials=1000)
    slack = 2 * (0.05 * 0.95 / 1000) ** 0.5
    assert found.best <= 0.05 + slack
    assert found.pairs <= 0.05 + slack
    if rows <= 10:
        assert found.base <= 0.05 + slack


def test_it_holds_with_unequal_numbers_of_seeds_and_shared_luck_and_rows_without_seeds():
    counts = np.array([2, 3, 10, 5, 2, 3, 0, 0])
    deviations = np.array([0.84, 0.84, 0.2, 1.7, 0.84, 0.84, 0, 0])
    found = rates(deviations, counts, trials=2000)
    assert max(found.best, found.pairs, found.base) <= 0.06
    lucky = rates(np.full(8, 0.84), np.full(8, 3), luck=0.8, trials=2000)
    assert max(lucky.best, lucky.pairs) <= 0.06


def test_other_procedures_fail_where_this_one_holds():
    """The simulation can tell: each row's own variance alone, and one pooled variance, separate equal rows."""

    def own(variances, seeds):
        return SeedSpread(variances / seeds, np.full(variances.shape, 1.0) * (seeds - 1))

    def pooled(variances, seeds):
        mean = np.broadcast_to(variances.mean(axis=1, keepdims=True), variances.shape)
        return SeedSpread(mean / seeds, np.full(variances.shape, float((seeds - 1).sum())))

    assert rates(SPREADS["equal"](20), np.full(20, 2), spread=own, trials=1000).pairs > 0.1
    assert rates(SPREADS["1/2 1.7"](20), np.full(20, 3), spread=pooled, trials=1000).best > 0.15
