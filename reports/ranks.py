"""Rows ranked over many tasks: Friedman's test, Nemenyi's critical difference, and the diagram that shows both.

Source: Demsar, "Statistical Comparisons of Classifiers over Multiple Data Sets", JMLR 7, 2006, sections 3.2.2-3.2.4.
The first part is plain numpy and scipy; the diagram follows.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from reports.benches import Bench
from reports.document.blocks import Figure
from reports.figures import row_name
from reports.records import Comparison, Row, base_name
from reports.statistics import Floats
from reports.style import INK, MUTED, finish, new, style

ALPHA = 0.05
FEWEST_TASKS, FEWEST_ROWS = 5, 3


@dataclass(frozen=True)
class Ranking:
    """Average ranks over tasks (1 is best) and what may be said of their differences."""

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
    ranks differ by at least CD are separable; the chance of any false separation among all pairs is alpha.
    """
    from scipy.stats import studentized_range

    q = float(studentized_range.ppf(1 - alpha, rows, math.inf)) / math.sqrt(2)
    return q * math.sqrt(rows * (rows + 1) / (6 * tasks))


def cliques(ranks: Floats, difference: float) -> tuple[tuple[int, ...], ...]:
    """The largest sets of two or more rows whose ranks all lie within `difference`, best first."""
    order = np.argsort(ranks, kind="stable")
    found: list[tuple[int, ...]] = []
    reached = 0
    for start in range(len(order)):
        end = start
        while end + 1 < len(order) and ranks[order[end + 1]] - ranks[order[start]] < difference:
            end += 1
        if end > start and end > reached:
            found.append(tuple(int(i) for i in order[start : end + 1]))
            reached = end
    return tuple(found)


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


def diagrams(comparison: Comparison, bench: Bench) -> list[Figure]:
    """A critical-difference diagram for each base model with enough rows; none for a benchmark of too few tasks."""
    if len(bench.tasks) < FEWEST_TASKS:
        return []
    found = []
    for base in comparison.base_models:
        rows = [r for r in comparison.rows if r.base_model == base and r.supervision != "supervised"]
        rows = [r for r in rows if bench.of(r) is not None]
        if len(rows) >= FEWEST_ROWS:
            found.append(_diagram(comparison, bench, base, rows))
    return found


def _diagram(comparison: Comparison, bench: Bench, base: str, rows: Sequence[Row]) -> Figure:
    """Rows on an axis of average ranks, best at the left; bars join those not separable (as Demsar's figure 1)."""
    means = [scores.mean(axis=0) for row in rows if (scores := bench.of(row)) is not None]
    result = ranking(np.stack(means, axis=1))
    k = len(rows)
    order = [int(i) for i in np.argsort(result.ranks, kind="stable")]
    left = (k + 1) // 2
    bars = len(result.cliques)
    names = [row_name(row, comparison) for row in rows]
    with style():
        plot = new(7.2, 1.0 + 0.16 * bars + 0.23 * left)
        axes = plot.add_subplot()
        # One line of height 1 for each bar and each label; the axis of ranks lies at 0, all else below it.
        axes.set_xlim(1 - 0.45 * (k - 1), k + 0.45 * (k - 1))
        axes.set_ylim(-(0.9 + 0.62 * bars + left), 2.0)
        axes.set_axis_off()
        axes.plot([1, k], [0, 0], color=INK, linewidth=1)
        for tick in range(1, k + 1):
            axes.plot([tick, tick], [0, 0.22], color=INK, linewidth=0.8)
            if k <= 12 or (tick % 2 if k <= 26 else tick == 1 or tick % 5 == 0):
                axes.annotate(f"{tick}", (tick, 0.3), ha="center", va="bottom", fontsize=8)
        shown = min(result.difference, k - 1)
        axes.plot([1, 1 + shown], [1.45, 1.45], color=INK, linewidth=1)
        for x in (1, 1 + shown):
            axes.plot([x, x], [1.3, 1.6], color=INK, linewidth=1)
        over = "" if shown == result.difference else ", more than the axis"
        text = f"critical difference {result.difference:.2f}{over}"
        axes.annotate(text, (1 + shown, 1.45), xytext=(5, 0), textcoords="offset points", va="center", fontsize=8)
        for i, clique in enumerate(result.cliques):
            ranks = result.ranks[list(clique)]
            y = -0.5 - 0.62 * i
            axes.plot([ranks.min() - 0.03, ranks.max() + 0.03], [y, y], color=INK, linewidth=3, solid_capstyle="round")
        for place, i in enumerate(order):
            _label(axes, place, left, k, bars, float(result.ranks[i]), names[i])
        said = ", ".join(f"{names[i]} {result.ranks[i]:.2f}" for i in order)
        joined = "; ".join(f"{names[c[0]]} to {names[c[-1]]}" for c in result.cliques) or "none"
        p = "< 0.001" if result.p < 1e-3 else f"= {result.p:.3f}"
        test = f"Friedman's chi-squared {result.statistic:.1f}, p {p}"
        several = any(len(bench.records[row.key]) > 1 for row in rows)
        seeds = "means over seeds" if several else "of one run each"
        where = f" · {base_name(base)}" if len(comparison.base_models) > 1 else ""
        verdict = (
            "bars join rows that Nemenyi's test does not separate at 0.05"
            if result.p <= ALPHA
            else "rows are not told apart: no two are separable"
        )
        caption = (
            f"Average rank over {len(bench.tasks)} {bench.title}, 1 is best, {seeds} ({test}): {verdict} "
            "(Demsar 2006). Tasks count as independent, and only the order on each counts, not by how much; the chance "
            "of seeds is left out."
        )
        key = f"ranks-{bench.key}" + (f"-{base_name(base)}" if where else "")
        alt = f"Average ranks: {said}. Critical difference {result.difference:.2f}. Not separable: {joined}."
        return finish(plot, key, f"Ranks over tasks · {bench.title}{where}", caption, alt)


def _label(axes: Any, place: int, left: int, k: int, bars: int, rank: float, name: str) -> None:
    """A row's name at the side, with a line to its rank: the better half at the left, the best one on top."""
    at_left = place < left
    line = place if at_left else k - 1 - place
    y = -(0.75 + 0.62 * bars + line)
    x = 1 - 0.05 * (k - 1) if at_left else k + 0.05 * (k - 1)
    axes.plot([rank, rank, x], [0, y, y], color=MUTED, linewidth=0.8, solid_joinstyle="miter", zorder=1)
    text = f"{name}  {rank:.2f}" if at_left else f"{rank:.2f}  {name}"
    side, shift = ("right", -4) if at_left else ("left", 4)
    axes.annotate(text, (x, y), xytext=(shift, 0), textcoords="offset points", ha=side, va="center", fontsize=8)
