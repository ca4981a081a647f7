"""Rows ranked over many tasks: Friedman's test and Nemenyi's critical difference."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from reports.stats.estimate import Floats

ALPHA = 0.05


FEWEST_TASKS, FEWEST_ROWS = 5, 3


@dataclass(frozen=True)
class Ranking:
    """Average ranks over tasks (1 is best) and which of their differences are significant."""

    ranks: Floats  # (rows,)
    statistic: float  # Friedman's chi-squared, corrected for ties
    p: float
    difference: float  # Nemenyi's critical difference at alpha
    cliques: tuple[tuple[int, ...], ...]  # rows that are not separable, best first; none inside another


def average_ranks(scores: Floats) -> Floats:
    """Mean rank of each row over the tasks; the highest score has rank 1, equal ones share the mean of their ranks.

    Args:
        scores: (tasks, rows), higher is better.
    """
    from scipy.stats import rankdata

    return np.asarray(rankdata(-scores, axis=1).mean(axis=0))


def friedman(scores: Floats) -> tuple[float, float]:
    """Friedman's test of "all rows are equivalent": chi-squared with k - 1 degrees of freedom, and its p-value.

    chi^2 = 12 N / (k (k + 1)) (sum_j R_j^2 - k (k + 1)^2 / 4) for N tasks, k rows and average ranks R_j (Friedman, JASA
    32, 1937), divided by 1 - sum (t^3 - t) / (N k (k^2 - 1)) over groups of t equal scores. (0, 1) where every task has
    equal scores alone.

    Args:
        scores: (tasks, rows), at least three rows.
    """
    from scipy.stats import friedmanchisquare

    if (scores == scores[:, :1]).all():
        return 0.0, 1.0
    statistic, p = friedmanchisquare(*scores.T)
    return float(statistic), float(p)


def critical_difference(rows: int, tasks: int, alpha: float = ALPHA) -> float:
    """Nemenyi's critical difference of average ranks, CD = q sqrt(k (k + 1) / (6 N)) (Demsar 2006, section 3.2.2).

    q is the 1 - alpha quantile of the studentized range of k means with infinite degrees of freedom, divided by sqrt(2)
    (computed by `scipy.stats.studentized_range`; Demsar's Table 5 prints it to three digits). Two rows whose average
    ranks differ by at least CD differ in order over tasks like these; with independent tasks the chance of any false
    difference among all pairs is alpha. One model answers all tasks: a seed's luck moves its ranks together, and this
    test says nothing about the next seed.
    """
    from scipy.stats import studentized_range

    q = float(studentized_range.ppf(1 - alpha, rows, math.inf)) / math.sqrt(2)
    return q * math.sqrt(rows * (rows + 1) / (6 * tasks))


def cliques(ranks: Floats, difference: float) -> tuple[tuple[int, ...], ...]:
    """The largest sets of two or more rows whose ranks all lie within `difference`, best first."""
    order = np.argsort(ranks, kind="stable")
    together: list[tuple[int, ...]] = []
    reached = 0
    for start in range(len(order)):
        end = start
        while end + 1 < len(order) and ranks[order[end + 1]] - ranks[order[start]] < difference:
            end += 1
        if end > start and end > reached:
            together.append(tuple(int(i) for i in order[start : end + 1]))
            reached = end
    return tuple(together)


def ranking(scores: Floats, alpha: float = ALPHA) -> Ranking:
    """Friedman's test, then Nemenyi's. Where Friedman's does not reject, no two rows are separable: one clique of all.

    Args:
        scores: (tasks, rows), higher is better.
    """
    tasks, rows = scores.shape
    ranks = average_ranks(scores)
    statistic, p = friedman(scores)
    difference = critical_difference(rows, tasks, alpha)
    together = cliques(ranks, difference if p <= alpha else math.inf)
    return Ranking(ranks, statistic, p, difference, together)
