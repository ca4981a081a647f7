"""The figures of a comparison. Each returns None when there is nothing to draw."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from harness.files.printable import one_line
from reports.analysis import Analysis, Difference, Target, untrained_base
from reports.document.blocks import Figure
from reports.records import Comparison, Row, base_name
from reports.selection import chosen
from reports.statistics import mean_sd
from reports.style import COLOURS, GRID, INK, MUTED, finish, new, settle, style

_ENDS = ("untrained", "supervised")
_LABEL = 28  # longest row label inside a figure; the tables carry the whole


def short(label: str) -> str:
    label = one_line(label)
    return label if len(label) <= _LABEL else label[: _LABEL - 1] + "…"


def row_name(row: Row, comparison: Comparison) -> str:
    """A row's label as figures show it, with its base model where the label alone is ambiguous."""
    twins = sum(other.label == row.label for other in comparison.rows)
    return short(f"{row.label} · {base_name(row.base_model)}" if twins > 1 else row.label)


def forest(comparison: Comparison, analysis: Analysis) -> Figure | None:
    """Differences to the untrained base with their intervals, a panel for each target."""
    if not analysis.targets:
        return None
    first = analysis.targets[0]
    pairs = [(r, b[0]) for r in comparison.rows if (b := untrained_base(r, comparison.rows, analysis, first))]
    results = {target.key: analysis.differences(pairs, target) for target in analysis.targets}
    kept = [i for i in range(len(pairs)) if any(found[i] for found in results.values())]
    panels = [target for target in analysis.targets if any(results[target.key])]
    if not kept:
        return None

    def height(i: int) -> float:
        """Rows stand in the order of the first target that has them."""
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
        plot.supxlabel("difference in points of Spearman ×100", fontsize=8.5)
        return finish(
            plot,
            "differences",
            "Difference to the untrained base",
            "Each trained row minus its base, with 95 % intervals of a paired hierarchical bootstrap. "
            "Filled triangles: separable from zero after Holm's correction; open circles: not.",
            f"Dot and interval for each trained row. {'; '.join(said)}.",
        )


def _interval(axes: Any, y: int, d: Difference) -> None:
    e = d.estimate
    colour = {"better": COLOURS[0], "worse": COLOURS[1]}.get(d.verdict, MUTED)
    marker = {"better": ">", "worse": "<"}.get(d.verdict, "o")
    fill = "white" if d.verdict == "not separable" else colour
    axes.plot([100 * e.low, 100 * e.high], [y, y], color=colour, linewidth=2, solid_capstyle="round")
    axes.plot([100 * e.value], [y], marker=marker, color=colour, markerfacecolor=fill, markersize=6.5)


# Offsets in points around a dot, nearest first: right, left, corners, above, below; then the same farther out.
_AROUND = ((7, 0, "left"), (-7, 0, "right"), (5, 8, "left"), (5, -8, "left"), (-5, 8, "right"), (-5, -8, "right"),
           (0, 11, "center"), (0, -11, "center"))  # fmt: skip


_NAMED = 16  # dots of a scatter that have room for their names
_SHARE = {"left": 0.0, "center": 0.5, "right": 1.0}  # of a label's width that lies left of where it is anchored
Points = Sequence[tuple[float, float]]


def place_labels(axes: Any, points: Points, labels: Sequence[str], line: Points = ()) -> None:
    """Write each label at the nearest place around its dot that covers no dot and no earlier label; "" is none.

    `line`: corners of a line of horizontal and vertical parts that is not to be covered either.

    Call last: the layout is fixed here, since places are measured in it. Labels that stand off get a line.
    """
    from matplotlib.transforms import Bbox

    plot = axes.figure
    settle(plot)
    renderer = plot.canvas.get_renderer()
    area = axes.get_window_extent(renderer)
    unit = plot.dpi / 72  # pixels a point
    dots = axes.transData.transform(points)
    taken = [Bbox.from_extents(x - 5 * unit, y - 5 * unit, x + 5 * unit, y + 5 * unit) for x, y in dots]
    for (x0, y0), (x1, y1) in pairwise(axes.transData.transform(line) if line else ()):
        taken.append(Bbox.from_extents(min(x0, x1) - unit, min(y0, y1) - unit, max(x0, x1) + unit, max(y0, y1) + unit))
    # Crowded dots first would be better still; top to bottom keeps the outcome easy to foresee.
    for i in sorted(range(len(points)), key=lambda k: (-points[k][1], points[k][0])):
        if not labels[i]:
            continue
        text = axes.annotate(labels[i], points[i], xytext=(0, 0), textcoords="offset points", va="center", fontsize=8)
        size = text.get_window_extent(renderer)
        places: list[tuple[int, int, tuple[float, float], str, Bbox]] = []
        for far in (1.0, 2.0, 3.2, 4.5):
            for dx, dy, side in _AROUND:
                left = dots[i][0] + dx * far * unit - _SHARE[side] * size.width
                middle = dots[i][1] + dy * far * unit
                box = Bbox.from_extents(left, middle - size.height / 2, left + size.width, middle + size.height / 2)
                outside = box.x0 < area.x0 or box.x1 > area.x1 or box.y0 < area.y0 or box.y1 > area.y1
                cost = sum(box.overlaps(other) for other in taken) + 3 * outside
                places.append((cost, len(places), (dx * far, dy * far), side, box))
        _, rank, offset, side, box = min(places, key=lambda place: place[:2])
        text.xyann = offset
        text.set_horizontalalignment(side)
        taken.append(box)
        if rank >= len(_AROUND):
            end = axes.transData.inverted().transform((min(max(dots[i][0], box.x0), box.x1), (box.y0 + box.y1) / 2))
            axes.plot(
                [points[i][0], end[0]], [points[i][1], end[1]],
                color=MUTED, linewidth=0.6, zorder=2, scalex=False, scaley=False,
            )  # fmt: skip


def scatter(comparison: Comparison, task: str, source: str, target: Target | None) -> Figure | None:
    """Alignment against uniformity, coloured by the score; supervised rows as stars, untrained ones as squares."""
    points, scores, rows = [], [], []
    for row in comparison.rows:
        a, u = row.scores(task, source, "alignment"), row.scores(task, source, "uniformity")
        if not a or not u:
            continue
        points.append((mean_sd([s.value for _, s in u])[0], mean_sd([s.value for _, s in a])[0]))
        rows.append(row)
        values = [
            float(np.mean([s.value for _, s in part]))
            for t in (target.tasks if target else ())
            if (part := row.scores(*t, "spearman", "all"))
        ]
        scores.append(100 * float(np.mean(values)) if target and len(values) == len(target.tasks) else math.nan)
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
        named, others = chosen(rows, target, _NAMED)
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
