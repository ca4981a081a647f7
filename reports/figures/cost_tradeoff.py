"""Accuracy against cost: seconds of training, and sentences encoded a second; the Pareto front drawn.

By the steadiest clock that the records have (`reports.stats.measured_cost`).
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
from reports.read.comparison_runs import Comparison, ResultRow
from reports.stats.measured_cost import CLOCKS, speeds, training_clock, training_cost
from reports.stats.targets import Target

_LABELS = 12  # dots that can all be named
_FRONT = 6  # of its dots, where there are too many
_SCALE = 0.5  # share of the best score below which a row would only squash the scale
_SAME = 0.1  # share by which speeds may differ and count as one: more than passes of one network do
_WIDE = 10  # ratio of speeds from which their axis is logarithmic


@dataclass(frozen=True)
class Point:
    row: ResultRow
    cost: float
    score: float


def pareto(points: Sequence[Point], *, less: bool, same: float = 0.0) -> list[Point]:
    """The points that no other one beats in score at the same or a lower cost, by cost.

    `less`: less of the cost is better; else more of it is (a speed). `same`: a share by which costs may differ and
    count as the same.
    """
    front: list[Point] = []
    for point in sorted(points, key=lambda p: (p.cost if less else -p.cost, -p.score)):
        if not front or point.score > front[-1].score:
            front.append(point)
    if not same:
        return front

    def as_cheap(p: Point, q: Point) -> bool:
        return p.cost <= q.cost * (1 + same) if less else p.cost >= q.cost * (1 - same)

    return [q for q in front if not any(p.score > q.score and as_cheap(p, q) for p in front)]


def tradeoff(comparison: Comparison, target: Target | None) -> Figure | None:
    """A row's score against what it cost, a panel for training and one for inference."""
    if target is None:
        return None
    scores = {row.key: score for row in comparison.rows if (score := target.value(row)) is not None}
    own = [scores[row.key] for row in comparison.rows if row.key in scores and row.supervision != "supervised"]
    floor = _SCALE * max(own, default=0.0)
    rows = [row for row in comparison.rows if row.key in scores and scores[row.key] >= floor]
    below = [
        f"{row.label} ({number_text(scores[row.key], 2)})"
        for row in comparison.rows
        if row.key in scores and row not in rows
    ]
    clock = training_clock(rows)
    training = [Point(r, cost, scores[r.key]) for r in rows if (cost := training_cost(r, clock)) is not None]
    shared = speeds(comparison)
    speed = [Point(r, shared[r.key].median, scores[r.key]) for r in rows if r.key in shared]
    unit = next((shared[p.row.key].unit for p in speed), "")
    unmeasured = [r.label for r in rows if r.key not in shared]
    panels = [
        (points, less)
        for points, less in ((training, True), (speed, False))
        if len(points) > 1 and any(p.cost > 0 for p in points)
    ]
    if not panels:
        return None
    from matplotlib.lines import Line2D

    said, unnamed = [], False
    with style():
        plot = new(7.2 if len(panels) > 1 else 4.8, 3.9)
        grid = plot.subplots(1, len(panels), sharey=True, squeeze=False)[0]
        fronts, lines = [], []
        for axes, (points, less) in zip(grid, panels, strict=True):
            # A model trained elsewhere had help that this panel knows nothing of: beside the front, not on it.
            own_rows = [p for p in points if p.row.supervision != "supervised"]
            front = pareto(own_rows, less=less, same=0.0 if less else _SAME)
            fronts.append(front)
            lines.append(_draw(axes, points, front, less=less))
            word = "training" if less else "sentences/s"
            best = ", ".join(f"{p.row.label} ({p.cost:,.0f}, {p.score:.2f})" for p in front)
            said.append(f"{word}: {best or 'none'}")
            axes.set_title("Training" if less else "Inference")
            axes.set_xlabel(CLOCKS[clock] if less else unit)
        grid[0].set_ylabel(target.short)
        handles = [
            *mark_handles(map(kind_of, rows)),
            Line2D([], [], color=COLOURS[0], linewidth=1.4, label="Pareto front"),
        ]
        plot.legend(handles=handles, loc="outside upper left", ncols=4, fontsize=8)
        for axes, (points, _), front, line in zip(grid, panels, fronts, lines, strict=True):
            named = points if len(points) <= _LABELS else _named(points, front)
            unnamed = unnamed or len(named) < len(points)
            labels = [row_name(p.row, comparison) if p in named else "" for p in points]
            place_labels(axes, [(p.cost, p.score) for p in points], labels, line)
        some = " Named: some of the front, the four best and the supervised rows." if unnamed else ""
        low = f" Far below the scale: {', '.join(below)}." if below else ""
        timed = ""
        if len(speed) > 1:
            lacking = f" Not measured so: {', '.join(unmeasured)}." if unmeasured else ""
            timed = (
                " Inference is measured once for an architecture, and its rows share the place; for the front, speeds "
                f"that differ by less than {100 * _SAME:.0f} % are one.{lacking}"
            )
        devices = sorted({str(r.environment.get("device", "")) for row in rows for r in row.finished} - {""})
        unlike = f" Runs on unlike devices ({', '.join(devices)}) are not comparable." if len(devices) > 1 else ""
        return finish(
            plot,
            "tradeoff",
            f"Accuracy against cost · {target.short}",
            f"{len(rows)} rows, means over seeds. The line is the Pareto front: nothing as cheap scores higher. "
            "Rows below it are beaten at their own price; supervised rows, trained elsewhere, are no part of it."
            f"{low}{some}{timed}{unlike}",
            f"Scatter of {target.short} against cost. On the front, with cost and score: {'; '.join(said)}.",
        )


def _draw(axes: Any, points: Sequence[Point], front: Sequence[Point], *, less: bool) -> list[tuple[float, float]]:
    costs = [p.cost for p in points if p.cost > 0]
    if less:  # rows that cost nothing are left of all others
        axes.set_xscale("symlog", linthresh=min(costs))
    elif max(costs) > _WIDE * min(costs):
        axes.set_xscale("log")
    plain(axes.xaxis)
    # Steps: what the front reaches at a cost is the best score of all that is as cheap.
    corners: list[tuple[float, float]] = []
    for p in front:
        corners += [(p.cost, corners[-1][1])] if corners else []
        corners.append((p.cost, p.score))
    if front:  # none where all rows were trained elsewhere
        corners.append(((max if less else min)(p.cost for p in points), front[-1].score))
        axes.plot(*zip(*corners, strict=True), color=COLOURS[0], linewidth=1.4, zorder=1)
    for p in points:
        axes.scatter(p.cost, p.score, color=COLOURS[0] if p in front else GRID, **mark_of(kind_of(p.row)))
    axes.margins(0.16, 0.12)
    return corners


def _named(points: Sequence[Point], front: Sequence[Point]) -> list[Point]:
    """Of many: the front (of a long one some, with both its ends), the best, and the supervised ones."""
    few = [front[round(i)] for i in np.linspace(0, len(front) - 1, min(_FRONT, len(front)))]
    best = sorted(points, key=lambda p: -p.score)[:4]
    return [p for p in points if p in few or p in best or p.row.supervision == "supervised"]
