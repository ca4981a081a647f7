"""Interim analyses of a comparison whose seeds are added until it is decided: what each may use of
0.05, and one estimate from all of them.
"""

from __future__ import annotations

from collections.abc import Sequence

from reports.stats.estimate import Estimate


def share_of_analysis(number: int, first: int, most: int) -> float:
    """Return the part of 0.05 that an analysis (from 1) may use, with `first` seeds of a row at the
    first and `most` at the last.

    Whoever adds seeds until p < 0.05 finds a difference between equal rows far too often
    (docs/statistics.md). Here all analyses with up to n seeds may use (n / most)^2 of 0.05 together: 9 / 225
    at a first analysis with three of at most 15 seeds, 29 / 225 at the last one (Kim & DeMets,
    Biometrika 74, 1987; Lan & DeMets, Biometrika 70, 1983). Most is left for the analyses that know
    most. The shares add up to 1, so that all analyses together stay below 5 % whatever their
    correlation (Bonferroni).
    """
    seeds = first + number - 1
    if number > 1:
        before = seeds - 1
    else:
        before = 0
    return (seeds**2 - before**2) / most**2


def combine_analyses(estimates: Sequence[Estimate]) -> Estimate:
    """One estimate from all analyses: the last one's value, an interval that holds at every
    analysis, and p of all.

    The intervals of all analyses hold at once (repeated confidence intervals: Jennison & Turnbull,
    JRSS B 51, 1989), so that a difference lies in all of them, and p is the smallest of all
    analyses, each divided by its share of 0.05.

    Analyses whose difference has the other sign than the last one's do not count for p, and the
    last value lies in its
    interval: who was ahead by chance at first is not called better.

    Args:
        estimates: of each analysis, its interval at its share of 0.05 and its p divided by that
            share.
    """
    last = estimates[-1]
    value = last.value
    low = max(e.low for e in estimates)
    high = min(e.high for e in estimates)
    p = last.p
    for e in estimates:
        has_same_sign = e.value * value > 0
        if has_same_sign:
            p = min(p, e.p)
    return Estimate(
        value,
        min(low, value),
        max(high, value),
        p,
    )
