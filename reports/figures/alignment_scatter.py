"""Alignment against uniformity, a dot a row; a row that would squeeze all others has an arrow that leads to it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from reports.document.blocks import Figure
from reports.document.table import number_text
from reports.figures.labels import place_labels, row_name
from reports.figures.style import GRID, INK, finish, new, style
from reports.read.comparison_runs import Comparison
from reports.stats.estimate import mean_sd
from reports.stats.shown_rows import rows_shown, target_mean
from reports.stats.targets import Target

_ENDS = ("untrained", "supervised")


_NAMED = 16  # dots of a scatter that have room for their names
_SQUEEZED = 0.5  # of an axis: where one row alone takes more of it than all others together, it has an arrow instead


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
        far = far_off(points)
        _leave_out(axes, points, far)
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
        inside = [i for i in range(len(rows)) if i not in far]
        names = [row_name(rows[i], comparison) if rows[i] in named else "" for i in inside]
        place_labels(axes, [points[i] for i in inside], names)
        for i in far:
            _arrow(axes, points[i], row_name(rows[i], comparison), sum(points[j][1] >= points[i][1] for j in far))
        data = task.removeprefix("geometry:")
        said = "; ".join(
            f"{r.label}: uniformity {x:.2f}, alignment {y:.2f}" for r, (x, y) in zip(rows, points, strict=True)
        )
        off = " Arrows lead to rows beyond the axes: uniformity, alignment." if far else ""
        shade = (
            f" Colour: {target.short}, light is high; white: not known."
            if mappable is not None and target is not None
            else ""
        )
        return finish(
            plot,
            f"geometry-{source}-{data}",
            f"Alignment and uniformity · {data}",
            f"Means over seeds; the lower left corner is best.{shade}{off}{others.replace('not drawn', 'not named')}",
            f"Scatter of {len(rows)} rows. {said}.",
        )


def far_off(points: Sequence[tuple[float, float]]) -> list[int]:
    """Which points squeeze the others: those without which the rest takes less than `_SQUEEZED` of an axis.

    One by one, the one that leaves the least; at most a third of them, and never so that fewer than three are left.
    """
    kept = list(range(len(points)))
    far: list[int] = []
    while len(kept) > 3 and 3 * (len(far) + 1) <= len(points):
        least, worst = min((_share(points, kept, i), i) for i in kept)
        if least >= _SQUEEZED:
            break
        far.append(worst)
        kept.remove(worst)
    return far


def _share(points: Sequence[tuple[float, float]], kept: Sequence[int], without: int) -> float:
    """The part of the wider-spread axis that the others take: the smaller of the two."""
    shares = []
    for axis in (0, 1):
        values = [points[i][axis] for i in kept]
        rest = [points[i][axis] for i in kept if i != without]
        whole = max(values) - min(values)
        shares.append((max(rest) - min(rest)) / whole if whole > 0 else 1.0)
    return min(shares)


def _leave_out(axes: Any, points: Sequence[tuple[float, float]], far: Sequence[int]) -> None:
    """Axes by the points that are not far off, with room for the others' arrows."""
    if not far:
        return
    for axis, limits in ((0, axes.set_xlim), (1, axes.set_ylim)):
        values = [p[axis] for i, p in enumerate(points) if i not in far]
        low, high = min(values), max(values)
        span = (high - low) or 0.1
        beyond = [(points[i][axis] - low) / span for i in far]
        limits(low - span * _room(min(beyond) < -0.16), high + span * _room(max(beyond) > 1.16))


def _room(arrows: bool) -> float:
    """Of the points' span, beyond them: more where there are arrows and their names."""
    return 0.36 if arrows else 0.16


def _arrow(axes: Any, point: tuple[float, float], name: str, place: int) -> None:
    """From inside the axes' edge towards a point outside of them, with its name and where it is."""
    (left, right), (bottom, top) = axes.get_xlim(), axes.get_ylim()
    shares = (point[0] - left) / (right - left), (point[1] - bottom) / (top - bottom)
    end = tuple(min(max(share, 0.0), 1.0) for share in shares)
    across = math.hypot(end[0] - 0.5, end[1] - 0.5)
    start = tuple(share + 0.13 * (0.5 - share) / across for share in end)
    inside: dict[str, Any] = {"xycoords": "axes fraction", "textcoords": "axes fraction"}
    axes.annotate("", end, start, arrowprops={"arrowstyle": "-|>", "color": INK, "linewidth": 1.0}, **inside)
    said = f"{name}: {number_text(point[0], 2)}, {number_text(point[1], 2)}"
    side, step = ("right", -4) if end[0] > 0.5 else ("left", 4)
    offset = (step, (-8 if end[1] > 0.5 else 8) * place)
    axes.annotate(
        said, start, offset, xycoords="axes fraction", textcoords="offset points", fontsize=8, ha=side, va="center"
    )
