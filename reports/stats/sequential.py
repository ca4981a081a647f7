"""Seeds added until a decision is reached: the level of each interim analysis, and what all of them say together.

Whoever adds seeds until p < 0.05 finds a difference between equal rows in 10 to 20 % of comparisons. Here each analysis
has the share of 0.05 that its new seeds are of the most seeds: 3 / 15 at a first analysis with three of at most 15
seeds, 1 / 15 at each further one (linear error spending: Lan & DeMets, Biometrika 70, 1983). The shares add up to 1, so
that all analyses together stay below 5 % whatever their correlation (Bonferroni).

The intervals of all analyses hold at once (repeated confidence intervals: Jennison & Turnbull, JRSS B 51, 1989), so
that a difference lies in all of them, and p is the smallest of all analyses, each divided by its share of 0.05.
"""

from __future__ import annotations

from collections.abc import Sequence

from reports.stats.estimate import Estimate


def share_of_analysis(number: int, first: int, most: int) -> float:
    """Of 0.05, the part of an analysis (from 1) with `first` seeds of a row at the first and `most` at the last."""
    return first / most if number == 1 else 1 / most


def combine_analyses(estimates: Sequence[Estimate]) -> Estimate:
    """One estimate from all analyses: the last one's value, an interval that holds at every analysis, and p of all.

    Analyses whose difference has the other sign than the last one's do not count for p, and the last value lies in its
    interval: who was ahead by chance at first is not called better.

    Args:
        estimates: of each analysis, its interval at its share of 0.05 and its p divided by that share.
    """
    value = estimates[-1].value
    low, high = max(e.low for e in estimates), min(e.high for e in estimates)
    p = min(e.p for e in estimates if e.value * value > 0 or e is estimates[-1])
    return Estimate(value, min(low, value), max(high, value), p)
