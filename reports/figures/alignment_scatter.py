"""The figures of a comparison. Each returns None when there is nothing to draw."""

from __future__ import annotations

import math
from typing import Any

from reports.document.blocks import Figure
from reports.figures.labels import place_labels, row_name
from reports.figures.style import GRID, INK, finish, new, style
from reports.read.comparison_runs import Comparison
from reports.stats.bootstrap import mean_sd
from reports.stats.shown_rows import rows_shown, target_mean
from reports.stats.targets import Target

_ENDS = ("untrained", "supervised")


_NAMED = 16  # dots of a scatter that have room for their names


def scatter(comparison: Comparison, task: str, source: str, target: Target | None) -> Figure | None:
    """Alignment against uniformity, coloured by the score; supervised rows as stars, untrained ones as squares."""
    points, scores, rows = [], [], []
    for row in comparison.rows:
        a, u = row.scores(task, source, "alignment"), row.scores(task, source, "uniformity")
        if not a or not u:
            continue
        points.append((mean_sd([s.value for _, s in u])[0], mean_sd([s.value for _, s in a])[0]))
        rows.append(row)
        value = target_mean(row, target)
        scores.append(math.nan if value is None else value)
    if not points:
        return None
    from matplotlib.lines import Line2D

    with style():
        plot = new(7.2, 4.4)
        axes = plot.add_subplot()
        known = [s for s in scores if not math.isnan(s)]
        low, high = (min(known), max(known)) if known else (0.0, 1.0)
        if high - low < 1e-9:
            low, high = low - 1, high + 1
        mappable: Any = None
        kinds: list[tuple[str, str, int]] = []
        for kind, marker, size in (("untrained", "s", 60), ("trained", "o", 64), ("supervised", "*", 150)):
            members = [
                i for i, r in enumerate(rows) if kind == (r.supervision if r.supervision in _ENDS else "trained")
            ]
            if not members:
                continue
            kinds.append((kind, marker, size))
            common: dict[str, Any] = {"marker": marker, "s": size, "edgecolors": INK, "linewidths": 0.8, "zorder": 3}
            for i in members:
                if math.isnan(scores[i]):
                    axes.scatter(*points[i], c="white", **common)
                else:
                    mappable = axes.scatter(*points[i], c=[scores[i]], cmap="cividis", vmin=low, vmax=high, **common)
        axes.set_xlabel("uniformity (lower: more even)")
        axes.set_ylabel("alignment (lower: closer pairs)")
        axes.margins(0.16)
        if len(kinds) > 1:
            handles = [
                Line2D(
                    [],
                    [],
                    linestyle="",
                    marker=marker,
                    markersize=size**0.5,
                    markerfacecolor=GRID,
                    markeredgecolor=INK,
                    label=label,
                )
                for label, marker, size in kinds
            ]
            plot.legend(handles=handles, loc="outside upper left", ncols=3, fontsize=8)
        if mappable is not None and target is not None:
            bar = plot.colorbar(mappable, ax=axes, pad=0.02, aspect=30)
            bar.set_label(target.short)
            bar.outline.set_visible(False)
        named, others = rows_shown(rows, target, _NAMED)
        place_labels(axes, points, [row_name(row, comparison) if row in named else "" for row in rows])
        data = task.removeprefix("geometry:")
        said = "; ".join(
            f"{r.label}: uniformity {x:.2f}, alignment {y:.2f}" for r, (x, y) in zip(rows, points, strict=True)
        )
        shade = (
            f" Colour: {target.short}, light is high; white: not known."
            if mappable is not None and target is not None
            else ""
        )
        return finish(
            plot,
            f"geometry-{source}-{data}",
            f"Alignment and uniformity · {data}",
            f"Means over seeds; the lower left corner is best.{shade}{others.replace('not drawn', 'not named')}",
            f"Scatter of {len(rows)} rows. {said}.",
        )
