"""Score against the cost of training, with the Pareto front.

By the steadiest clock that the records have (`reports.records.measured_cost`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from reports.document.blocks import Figure
from reports.document.table import number_text
from reports.figures.labels import kind_of, mark_handles, mark_of, place_labels, row_name
from reports.figures.style import COLOURS, GRID, finish, new, plain, style
from reports.load import RecordedResults, RecordedRow
from reports.records.measured_cost import CLOCKS, training_clock, training_cost
from reports.targets import Target

_LABELS = 12  # dots that can all be named
_FRONT = 6  # of its dots, where there are too many
_SCALE = 0.5  # share of the best score below which a row would only squash the scale


@dataclass(frozen=True)
class Point:
    row: RecordedRow
    cost: float
    score: float


def pareto(points: Sequence[Point]) -> list[Point]:
    """The points that no other one beats in score at the same or a lower cost, by cost."""
    front: list[Point] = []
    for point in sorted(points, key=lambda p: (p.cost, -p.score)):
        if not front or point.score > front[-1].score:
            front.append(point)
    return front


def tradeoff(comparison: RecordedResults, target: Target | None) -> Figure | None:
    """Score of each row against what its training cost; None where nothing was trained."""
    if target is None:
        return None
    every, clock = _points(comparison, target)
    floor = _SCALE * max((p.score for p in every), default=0.0)
    points = [p for p in every if p.score >= floor]
    if len(points) < 2 or not any(p.cost > 0 for p in points):
        return None
    front = pareto(points)
    if len(points) <= _LABELS:
        named = points
    else:
        named = _choose_named(points, front)
    with style():
        plot = new(7.2, 3.9)
        axes = plot.add_subplot()
        _draw_points(plot, axes, points, front)
        axes.set_xlabel(f"training, {CLOCKS[clock]}")
        axes.set_ylabel(target.short)
        labels = []
        places = []
        for p in points:
            labels.append(row_name(p.row, comparison) if p in named else "")
            places.append((p.cost, p.score))
        place_labels(axes, places, labels, _corners(front, points))
    caption = _describe_scale([p for p in every if p not in points])
    if len(named) < len(points):
        caption += " Named: some of the front, and the four best."
    devices = _devices(points)
    if len(devices) > 1:
        caption += f" Runs on unlike devices ({', '.join(devices)}) are not comparable."
    texts = []
    for p in front:
        texts.append(f"{p.row.label} ({p.cost:,.0f}, {p.score:.2f})")
    best = ", ".join(texts)
    return finish(
        plot,
        "tradeoff",
        f"Score and cost of training · {target.short}",
        caption,
        f"Scatter of {target.short} against the cost of training. On the front, with cost and score: {best}.",
    )


def _draw_points(plot: Any, axes: Any, points: Sequence[Point], front: Sequence[Point]) -> None:
    """Draw the rows and the front, and the legend of both."""
    from matplotlib.lines import Line2D

    # No cost is left of all others.
    axes.set_xscale("symlog", linthresh=min(p.cost for p in points if p.cost > 0))
    plain(axes.xaxis)
    corners = _corners(front, points)
    axes.plot(
        *zip(*corners, strict=True),
        color=COLOURS[0],
        linewidth=1.4,
        zorder=1,
    )
    for p in points:
        if p in front:
            colour = COLOURS[0]
        else:
            colour = GRID
        axes.scatter(p.cost, p.score, color=colour, **mark_of(kind_of(p.row)))
    axes.margins(0.16, 0.12)
    line = Line2D([], [], color=COLOURS[0], linewidth=1.4, label="Pareto front")
    handles = [*mark_handles(kind_of(p.row) for p in points), line]
    plot.legend(handles=handles, loc="outside upper left", ncols=4, fontsize=8)


def _describe_scale(below: Sequence[Point]) -> str:
    caption = (
        "Means over seeds. The line is the Pareto front: no row that is as cheap scores higher. "
        "Rows that were trained elsewhere are left out."
    )
    if below:
        texts = []
        for p in below:
            texts.append(f"{p.row.label} ({number_text(p.score, 2)})")
        caption += f" Below the scale: {', '.join(texts)}."
    return caption


def _points(comparison: RecordedResults, target: Target) -> tuple[list[Point], str]:
    """Return cost and score of each row that has both, and the clock that costs are of."""
    scores = {}
    for row in comparison.rows:
        score = target.value(row)
        if score is not None:
            scores[row.key] = score
    scored = [row for row in comparison.rows if row.key in scores]
    clock = training_clock(scored)
    points = []
    for row in scored:
        cost = training_cost(row, clock)
        if cost is not None:
            points.append(Point(row, cost, scores[row.key]))
    return points, clock


def _corners(front: Sequence[Point], points: Sequence[Point]) -> list[tuple[float, float]]:
    """Return the corners of the front's steps: what it reaches at a cost is the best score of all
    that is as cheap.
    """
    costs = [*(p.cost for p in front), max(p.cost for p in points)]
    corners = []
    for p, start, end in zip(front, costs, costs[1:], strict=False):
        corners += [(start, p.score), (end, p.score)]
    return corners


def _devices(points: Sequence[Point]) -> list[str]:
    """Return the names of the devices that the rows' runs were made on."""
    names = set()
    for p in points:
        for run in p.row.finished:
            names.add(str(run.environment.get("device", "")))
    return sorted(names - {""})


def _choose_named(points: Sequence[Point], front: Sequence[Point]) -> list[Point]:
    """Of many points, return the front (of a long one some, with both its ends), and the best."""
    few = []
    for i in np.linspace(0, len(front) - 1, min(_FRONT, len(front))):
        few.append(front[round(i)])
    best = sorted(points, key=lambda p: -p.score)[:4]
    return [p for p in points if p in few or p in best]
