"""The scores of a search's trials by its options: lines over the bins of one option, a grid over
those of two.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from reports.figures.style import COLOURS, INK, MARKERS, draw_heat_map
from reports.stats.estimate import bin_of, quartile

Intervals = Sequence[tuple[float, float]]
# Middle of the bin, best, upper quartile, number of trials.
Points = list[tuple[float, float, float, int]]


def draw_by_bin(
    axes: Any,
    groups: Mapping[str, Sequence[tuple[float, float]]],
    intervals: Intervals,
    *,
    log: bool,
) -> dict[str, Points]:
    """The best trial (full line) and the upper quartile (dashed) of each bin, a colour for each
    group; what was drawn.

    Args:
        groups: name of a group -> (option, score) of its trials.
        log: whether the axis is logarithmic.
    """
    lines: dict[str, Points] = {}
    for name, trials in groups.items():
        by_bin: dict[int, list[float]] = {}
        for value, score in trials:
            by_bin.setdefault(bin_of(value, intervals), []).append(score)
        for i, scores in sorted(by_bin.items()):
            low, high = intervals[i]
            middle = _middle(low, high, log)
            point = (middle, max(scores), quartile(scores, 0.75), len(scores))
            lines.setdefault(name, []).append(point)
    for k, (name, points) in enumerate(lines.items()):
        x, best_scores, quartiles, _ = zip(*points, strict=True)
        shared = {"color": COLOURS[k % len(COLOURS)], "marker": MARKERS[k % len(MARKERS)]}
        axes.plot(x, best_scores, linestyle="-", markersize=4.5, label=name, **shared)
        axes.plot(x, quartiles, linestyle="--", markersize=3, **shared)
    if log:
        axes.set_xscale("log")
    places = sorted({point[0] for points in lines.values() for point in points})
    if len(places) > 4:
        slanted = {"rotation": 45, "ha": "right", "rotation_mode": "anchor"}
    else:
        slanted = {}
    axes.set_xticks(places, [_short(x) for x in places], fontsize=7, **slanted)
    axes.minorticks_off()
    return lines


def draw_legend(plot: Any) -> None:
    """The groups of all axes, and what full and dashed lines are."""
    from matplotlib.lines import Line2D

    named: dict[str, Any] = {}
    for axes in plot.axes:
        handles, labels = axes.get_legend_handles_labels()
        named |= zip(labels, handles, strict=True)
    named["best"] = Line2D([], [], color=INK, linestyle="-")
    named["upper quartile"] = Line2D([], [], color=INK, linestyle="--")
    plot.legend(
        list(named.values()),
        list(named),
        loc="outside lower center",
        ncols=min(len(named), 5),
        fontsize=8,
    )


def draw_best(
    axes: Any,
    trials: Sequence[tuple[float, float, float]],
    across: Intervals,
    up: Intervals,
    logs: tuple[bool, bool] = (True, True),
) -> Any:
    """The best score of each cell of two options' bins, as a heat map.

    Args:
        trials: the two options and the score of each.
        across, up: bins of the first and of the second option.
        logs: whether each option is on a logarithmic scale.
    """
    grid = np.full((len(up), len(across)), np.nan)
    for a, b, score in trials:
        place = bin_of(b, up), bin_of(a, across)
        grid[place] = np.fmax(grid[place], score)
    across_labels, up_labels = (
        [_short(_middle(low, high, log)) for low, high in intervals]
        for intervals, log in zip((across, up), logs, strict=True)
    )
    return draw_heat_map(
        axes,
        grid,
        across_labels,
        up_labels,
        (float(np.nanmin(grid)), float(np.nanmax(grid))),
    )


def _middle(low: float, high: float, log: bool) -> float:
    if log and low > 0:
        return math.sqrt(low * high)
    return (low + high) / 2


def _short(x: float) -> str:
    if x >= 10:
        return f"{x:,.0f}"
    return f"{x:.2g}"
