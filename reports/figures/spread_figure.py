"""Where the spread of a row's scores comes from, as a figure."""

from __future__ import annotations

from reports.document.blocks import Figure
from reports.figures.labels import row_name
from reports.figures.style import COLOURS, INK, MUTED, finish, new, style
from reports.read.comparison_runs import Comparison
from reports.stats.significance import Significance
from reports.stats.spread_sources import ALL, PAIRS, decompositions

MOST_PANELS = 4
_ROOM = 2.2  # a panel is so many times as wide as its largest deviation: the interval of two runs has no end in sight


def spread_figure(comparison: Comparison, significance: Significance) -> Figure | None:
    """Standard deviation by source with its interval, a panel for each of the first rows that have one."""
    found = decompositions(comparison, significance)[:MOST_PANELS]
    target = significance.first
    if not found or target is None:
        return None
    names = list(dict.fromkeys(source.name for d in found for source in d.sources))
    names.sort(key=lambda name: (name == ALL, name != PAIRS))  # from below: the pairs, the streams, all of them
    said = []
    with style():
        plot = new(7.2, 0.95 + 0.3 * len(names))
        grid = plot.subplots(1, len(found), sharey=True, squeeze=False)[0]
        for axes, d in zip(grid, found, strict=True):
            for source in d.sources:
                y = names.index(source.name)
                low, high = source.interval
                colour = {ALL: INK, PAIRS: MUTED}.get(source.name, COLOURS[0])
                axes.plot([low, high], [y, y], color=colour, linewidth=2, solid_capstyle="butt")
                axes.plot([source.deviation], [y], "o", color=colour, markersize=5.5)
                said.append(f"{d.row.label}, {source.name}: {source.deviation:.2f} ({low:.2f} to {high:.2f})")
            axes.set_xlim(0, _ROOM * max(source.deviation for source in d.sources) or 1)
            axes.grid(axis="y", visible=False)
            axes.tick_params(axis="y", length=0)
            axes.locator_params(axis="x", nbins=5)
            axes.set_title(row_name(d.row, comparison))
        grid[0].set_yticks(range(len(names)), names)
        grid[0].set_ylim(-0.6, len(names) - 0.4)
        plot.supxlabel(f"standard deviation in points, {target.short}", fontsize=8.5)
        return finish(
            plot,
            "spread",
            "Where the spread comes from",
            "Standard deviation of scores when one source alone is redrawn, with its 95 % interval. Blue: one "
            "stream of random numbers, the others held; black: all of them; grey: the test pairs. An interval "
            "that reaches the edge goes on beyond it.",
            f"Dot and interval for each source. {'; '.join(said)}.",
        )
