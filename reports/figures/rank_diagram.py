"""Rows ranked over many tasks: Friedman's test, Nemenyi's critical difference, and the diagram that shows both.

Source: Demsar, "Statistical Comparisons of Classifiers over Multiple Data Sets", JMLR 7, 2006, sections 3.2.2-3.2.4.
The first part is plain numpy and scipy; the diagram follows.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from reports.document.blocks import Figure
from reports.figures.labels import row_name
from reports.figures.style import INK, MUTED, finish, new, style
from reports.read.comparison_runs import Comparison, ResultRow, base_name
from reports.stats.ranks import ALPHA, FEWEST_ROWS, FEWEST_TASKS, ranking
from reports.stats.score_matrices import ScoreMatrix


def diagrams(comparison: Comparison, matrix: ScoreMatrix) -> list[Figure]:
    """A critical-difference diagram for each base model with enough rows; none for a benchmark of too few tasks."""
    if len(matrix.tasks) < FEWEST_TASKS:
        return []
    figures = []
    for base in comparison.base_models:
        rows = [r for r in comparison.rows if r.base_model == base and r.supervision != "supervised"]
        rows = [r for r in rows if matrix.of(r) is not None]
        if len(rows) >= FEWEST_ROWS:
            figures.append(_diagram(comparison, matrix, base, rows))
    return figures


def _diagram(comparison: Comparison, matrix: ScoreMatrix, base: str, rows: Sequence[ResultRow]) -> Figure:
    """Rows on an axis of average ranks, best at the left; bars join those close together (as Demsar's figure 1)."""
    means = [scores.mean(axis=0) for row in rows if (scores := matrix.of(row)) is not None]
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
        several = any(len(matrix.records[row.key]) > 1 for row in rows)
        seeds = "means over seeds" if several else "of one run each"
        where = f" · {base_name(base)}" if len(comparison.base_models) > 1 else ""
        verdict = (
            "bars join rows within Nemenyi's critical difference at 0.05"
            if result.p <= ALPHA
            else "the order differs from task to task as it does by chance"
        )
        caption = (
            f"Average rank over {len(matrix.tasks)} {matrix.title}, 1 is best, {seeds} ({test}): {verdict} "
            "(Demsar 2006). It shows how alike the order on the tasks is, and no more: one model answers all of them, "
            "so that a lucky seed is ahead on most, and equal methods lie further apart than the critical difference "
            "more often than not. Which rows differ is judged over seeds and pairs, in the other tables."
        )
        key = f"ranks-{matrix.key}" + (f"-{base_name(base)}" if where else "")
        alt = f"Average ranks: {said}. Critical difference {result.difference:.2f}. Within it: {joined}."
        return finish(plot, key, f"Ranks over tasks · {matrix.title}{where}", caption, alt)


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
