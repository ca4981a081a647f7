"""Ranks over tasks against scipy, the table and the example that Demsar (2006) prints, and counting."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from reports.figures.rank_diagram import diagrams
from reports.read.comparison_runs import read_comparison
from reports.stats.ranks import average_ranks, cliques, critical_difference, friedman, ranking
from reports.stats.score_matrices import score_matrices
from tests.support import synthetic


def test_friedman_is_the_rank_formula_and_scipys():
    scores = np.random.default_rng(0).normal(size=(9, 4))
    ranks = average_ranks(scores)
    n, k = scores.shape
    by_hand = 12 * n / (k * (k + 1)) * ((ranks**2).sum() - k * (k + 1) ** 2 / 4)
    assert friedman(scores) == pytest.approx((by_hand, stats.chi2.sf(by_hand, k - 1)))
    tied = np.round(scores)
    assert friedman(tied) == pytest.approx(tuple(stats.friedmanchisquare(*tied.T)))
    assert friedman(np.ones((5, 3))) == (0.0, 1.0)


@pytest.mark.parametrize(
    ("rows", "q"), [(2, 1.960), (3, 2.343), (4, 2.569), (5, 2.728), (6, 2.850), (7, 2.949), (8, 3.031), (10, 3.164)]
)
def test_quantiles_are_those_of_demsars_table_5(rows, q):
    tasks = 14
    assert critical_difference(rows, tasks) / math.sqrt(rows * (rows + 1) / (6 * tasks)) == pytest.approx(q, abs=1e-3)


def test_cliques_are_the_largest_sets_within_the_difference():
    ranks = np.array([3.0, 1.0, 2.0, 4.5, 9.0])
    # Sorted: rows 1, 2, 0, 3, 4 at 1, 2, 3, 4.5, 9. Exactly the critical difference apart is separable.
    assert cliques(ranks, 2.0) == ((1, 2), (2, 0), (0, 3))
    assert cliques(ranks, 2.1) == ((1, 2, 0), (0, 3))
    assert cliques(ranks, 0.5) == ()
    assert cliques(ranks, math.inf) == ((1, 2, 0, 3, 4),)


def test_no_two_rows_are_separable_where_friedman_does_not_reject():
    generator = np.random.default_rng(2)
    noise = ranking(generator.normal(size=(6, 5)))
    assert noise.p > 0.05
    assert [len(clique) for clique in noise.cliques] == [5]
    clear = ranking(np.arange(3) + 0.01 * generator.normal(size=(12, 3)))
    assert clear.cliques == ()


def test_nemenyi_keeps_false_separations_rare():
    """Equal rows, 7 tasks: at most one comparison in twenty finds any difference; the test errs on the careful side."""
    generator = np.random.default_rng(3)
    trials = 800
    difference = critical_difference(5, 7)
    false = sum(np.ptp(average_ranks(generator.normal(size=(7, 5)))) >= difference for _ in range(trials))
    assert 0.01 < false / trials <= 0.06


def test_a_diagram_needs_five_tasks_and_three_rows(tmp_path: Path) -> None:
    made = synthetic.Invented(tmp_path, scale=0.05)
    made.add("mean", 0, noise=2.0, supervision="untrained")
    made.add("SCD", 1, noise=1.27)
    made.add("all-MiniLM-L6-v2", 0, noise=0.5, supervision="supervised")  # not ranked among the others
    two = read_comparison(tmp_path, "invented")
    assert [diagrams(two, bench) for bench in score_matrices(two)] == [[]]
    made.add("<SimCSE> $1", 1, noise=0.98)
    three = read_comparison(tmp_path, "invented")
    (figure,) = diagrams(three, next(iter(score_matrices(three))))
    assert "<SimCSE> $1 1.00" in figure.alt
    assert "one run each" in figure.caption
    assert "&lt;SimCSE&gt; $1" in figure.svg
    again = read_comparison(tmp_path, "invented")
    assert diagrams(again, next(iter(score_matrices(again))))[0] == figure
    few = synthetic.Invented(tmp_path / "few", scale=0.05)
    for row in ("a", "b", "c"):
        few.add(row, 1, tasks=("STS12", "STS13", "STS14", "STS15"))
    comparison = read_comparison(tmp_path / "few", "invented")
    assert [diagrams(comparison, bench) for bench in score_matrices(comparison)] == [[]]
