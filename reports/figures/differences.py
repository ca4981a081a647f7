"""Differences to the untrained base, with their intervals."""

from __future__ import annotations

from typing import Any

from reports.document.blocks import Figure
from reports.figures.labels import row_name, short
from reports.figures.style import COLOURS, MUTED, finish, new, style
from reports.read.comparison_runs import Comparison
from reports.stats.significance import Difference, Significance
from reports.stats.targets import common_unit
from reports.stats.verdicts import starts


def forest(comparison: Comparison, significance: Significance) -> Figure | None:
    """Differences to the untrained base with their intervals, a panel for each target."""
    if not significance.targets:
        return None
    family = starts(comparison)
    pairs = family.pairs
    results = {t.key: significance.differences(pairs, t, family.name) for t in significance.targets}
    kept = [i for i in range(len(pairs)) if any(differences[i] for differences in results.values())]
    panels = [target for target in significance.targets if any(results[target.key])]
    if not kept:
        return None

    def height(i: int) -> float:
        """Rows are in the order of the first target that has them."""
        return next(d.estimate.value for target in panels if (d := results[target.key][i]) is not None)

    kept.sort(key=height)
    said = []
    with style():
        plot = new(7.2, 0.85 + 0.3 * len(kept))
        grid = plot.subplots(1, len(panels), sharey=True, squeeze=False)[0]
        for axes, target in zip(grid, panels, strict=True):
            axes.axvline(0, color=MUTED, linewidth=1)
            for y, i in enumerate(kept):
                d = results[target.key][i]
                if d is not None:
                    _interval(axes, y, d)
                    said.append(f"{target.short}: {pairs[i][0].label} {100 * d.estimate.value:+.2f} ({d.verdict})")
            axes.grid(axis="y", visible=False)
            axes.tick_params(axis="y", length=0)
            axes.locator_params(axis="x", nbins=5)
            axes.set_title(target.short)
        names = [f"{row_name(pairs[i][0], comparison)} − {short(pairs[i][1].label)}" for i in kept]
        grid[0].set_yticks(range(len(kept)), names)
        grid[0].set_ylim(-0.6, len(kept) - 0.4)
        plot.supxlabel(f"difference in points of {common_unit(panels)}", fontsize=8.5)
        return finish(
            plot,
            "differences",
            "Difference to the untrained start",
            f"Each trained row minus what it starts from, with 95 % intervals corrected for {family.name}. Filled "
            "triangles: the interval excludes zero; open circles: it does not, or the row has fewer than three seeds.",
            f"Dot and interval for each trained row. {'; '.join(said)}.",
        )


def _interval(axes: Any, y: int, d: Difference) -> None:
    e = d.estimate
    colour = {"better": COLOURS[0], "worse": COLOURS[1]}.get(d.verdict, MUTED)
    marker = {"better": ">", "worse": "<"}.get(d.verdict, "o")
    fill = colour if d.verdict in ("better", "worse") else "white"
    axes.plot([100 * e.low, 100 * e.high], [y, y], color=colour, linewidth=2, solid_capstyle="round")
    axes.plot([100 * e.value], [y], marker=marker, color=colour, markerfacecolor=fill, markersize=6.5)
