"""Seed strips: every seed a dot, with the mean and its 95 % interval. What one seed says, and what several say."""

from __future__ import annotations

import textwrap
from typing import Any

import numpy as np

from reports.document.blocks import Figure
from reports.figures.labels import row_name
from reports.figures.style import COLOURS, INK, MUTED, finish, new, style
from reports.read.comparison_runs import Comparison, ResultRow
from reports.stats.estimate import Estimate, Floats
from reports.stats.significance import Significance
from reports.stats.simultaneous import FEWEST_SEEDS, mean_over_seeds
from reports.stats.targets import Target, common_unit

MOST_PANELS = 3


def strip(comparison: Comparison, significance: Significance) -> Figure | None:
    """Scores by seed, a panel for each of the first targets; None where no row has two seeds with stored examples.

    Rows with one seed are drawn as a dot alone: what another seed would give is not known. The interval of the others
    holds the chance of the seeds and of the examples (`reports.stats.simultaneous.mean_over_seeds`).
    """
    panels: list[tuple[Target, dict[tuple[str, str], tuple[Floats, Estimate]]]] = []
    for target in significance.targets[:MOST_PANELS]:
        panel = {}
        for row in comparison.rows:
            runs = significance.by_seed(row, target)
            if runs is not None:
                variance = significance.examples_variance(row, target)
                panel[row.key] = 100 * runs.scores, mean_over_seeds(runs.scores, variance)
        if any(len(values) > 1 for values, _ in panel.values()):
            panels.append((target, panel))
    if not panels:
        return None
    rows = [row for row in comparison.rows if any(row.key in panel for _, panel in panels)]

    def height(row: ResultRow) -> float:
        """Rows are in the order of the first panel that has them."""
        return next(panel[row.key][1].value for _, panel in panels if row.key in panel)

    rows.sort(key=height)
    said = []
    with style():
        plot = new(7.2, 0.85 + 0.28 * len(rows))
        grid = plot.subplots(1, len(panels), sharey=True, squeeze=False)[0]
        for axes, (target, panel) in zip(grid, panels, strict=True):
            for y, row in enumerate(rows):
                if row.key in panel:
                    values, estimate = panel[row.key]
                    _strip(axes, y, values, estimate)
                    said.append(_said(target, row_name(row, comparison), values, estimate))
            axes.grid(axis="y", visible=False)
            axes.tick_params(axis="y", length=0)
            axes.locator_params(axis="x", nbins=5)
            axes.set_title(textwrap.fill(target.short, 15) if len(panels) > 2 else target.short)
        grid[0].set_yticks(range(len(rows)), [row_name(row, comparison) for row in rows])
        grid[0].set_ylim(-0.6, len(rows) - 0.4)
        plot.supxlabel(common_unit([target for target, _ in panels]), fontsize=8.5)
        return finish(
            plot,
            "seeds",
            "Every seed",
            "Each dot is a seed. Bar and tick: the mean with its 95 % interval, which holds the chance of seeds and of "
            "examples. Open dots: fewer than three seeds, no interval.",
            f"Dots by row. {'; '.join(said)}.",
        )


def _strip(axes: Any, y: int, values: Floats, estimate: Estimate) -> None:
    if len(values) < FEWEST_SEEDS:
        axes.plot(values, [y] * len(values), "o", color=MUTED, markerfacecolor="white", markersize=5)
        return
    low, high, mean = 100 * estimate.low, 100 * estimate.high, 100 * estimate.value
    axes.plot([low, high], [y, y], color=COLOURS[5], linewidth=5, solid_capstyle="butt", zorder=2)
    axes.plot([mean, mean], [y - 0.3, y + 0.3], color=INK, linewidth=1.4, zorder=3)
    # Seeds side by side in height, so that equal scores stay apart.
    heights = y + np.linspace(-0.18, 0.18, len(values))
    axes.plot(values, heights, "o", color=COLOURS[0], markersize=4, markeredgecolor="white", markeredgewidth=0.5)


def _said(target: Target, name: str, values: Floats, estimate: Estimate) -> str:
    if len(values) < FEWEST_SEEDS:
        return f"{target.short}: {name} {values.mean():.2f} ({len(values)} seeds)"
    interval = f"{100 * estimate.low:.2f} to {100 * estimate.high:.2f}"
    return f"{target.short}: {name} {100 * estimate.value:.2f}, {interval}, {len(values)} seeds"
