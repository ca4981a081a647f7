"""Names of rows inside figures, and places for them where they overlap nothing."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

from harness.files.printable import one_line
from reports.figures.style import GRID, INK, MUTED, settle
from reports.load import RecordedRow
from reports.results import ResultRow, Results, base_name

if TYPE_CHECKING:
    from matplotlib.transforms import Bbox

_LABEL = 28  # longest row label inside a figure; the tables carry the whole


def short(label: str) -> str:
    label = one_line(label)
    if len(label) <= _LABEL:
        return label
    return label[: _LABEL - 1] + "…"


def row_name(row: ResultRow, results: Results) -> str:
    """A row's label as figures show it, with its base model where the label alone is ambiguous."""
    twins = sum(other.label == row.label for other in results.rows)
    if twins > 1:
        return short(f"{row.label} · {base_name(row.base_model)}")
    return short(row.label)


_MARKS = {
    "untrained": ("s", 50),
    "trained": ("o", 55),
    "supervised": ("*", 140),
}  # kind of row -> marker, its area


def kind_of(row: RecordedRow) -> str:
    """The kind of a row that its mark shows: "untrained", "trained" or "supervised"."""
    if row.supervision in _MARKS:
        return row.supervision
    return "trained"


def mark_of(kind: str) -> dict[str, Any]:
    """How a scatter shows a kind of row: a square if nothing was trained, a star if labels were
    used, else a dot.
    """
    marker, area = _MARKS[kind]
    return {
        "marker": marker,
        "s": area,
        "edgecolors": INK,
        "linewidths": 0.8,
        "zorder": 3,
    }


def mark_handles(kinds: Iterable[str]) -> list[Any]:
    """The marks of some kinds of rows for a legend."""
    from matplotlib.lines import Line2D

    there = set(kinds)
    shared: dict[str, Any] = {"linestyle": "", "markerfacecolor": GRID, "markeredgecolor": INK}
    found = []
    for kind, (marker, area) in _MARKS.items():
        if kind in there:
            found.append(
                Line2D(
                    [],
                    [],
                    marker=marker,
                    markersize=area**0.5,
                    label=kind,
                    **shared,
                )
            )
    return found


# Offsets in points around a dot, nearest first: right, left, corners, above, below; then the same
# farther out.
_AROUND = (
    (7, 0, "left"),
    (-7, 0, "right"),
    (5, 8, "left"),
    (5, -8, "left"),
    (-5, 8, "right"),
    (-5, -8, "right"),
    (0, 11, "center"),
    (0, -11, "center"),
)


_SHARE = {
    "left": 0.0,
    "center": 0.5,
    "right": 1.0,
}  # of a label's width that lies left of where it is anchored


Points = Sequence[tuple[float, float]]


def place_labels(axes: Any, points: Points, labels: Sequence[str], line: Points = ()) -> None:
    """Write each label at the nearest place around its dot that covers no dot and no earlier label;
    "" is none.

    `line`: corners of a line of horizontal and vertical parts that is not to be covered either.

    Call last: the layout is fixed here, since places are measured in it. Labels away from their
    points get a line.
    """
    plot = axes.figure
    settle(plot)
    renderer = plot.canvas.get_renderer()
    area = axes.get_window_extent(renderer)
    unit = plot.dpi / 72  # pixels a point
    dots = axes.transData.transform(points)
    taken = []
    for dot in dots:
        taken.append(_box_around(dot, dot, 5 * unit))
    if line:
        for start, end in pairwise(axes.transData.transform(line)):
            taken.append(_box_around(start, end, unit))
    # Crowded dots first would be better still; top to bottom keeps the outcome easy to foresee.
    named = [i for i, label in enumerate(labels) if label]
    named.sort(key=lambda i: (-points[i][1], points[i][0]))
    for i in named:
        text = axes.annotate(
            labels[i],
            points[i],
            xytext=(0, 0),
            textcoords="offset points",
            va="center",
            fontsize=8,
        )
        size = text.get_window_extent(renderer)
        places: list[tuple[int, int, _Place]] = []
        for place in _places_around(dots[i], size, unit):
            covered = sum(place.box.overlaps(other) for other in taken)
            cost = covered + 3 * _leaves(place.box, area)
            places.append((cost, len(places), place))
        _, rank, best = min(places, key=lambda one: one[:2])
        text.xyann = best.offset
        text.set_horizontalalignment(best.side)
        taken.append(best.box)
        if rank >= len(_AROUND):
            x, _ = dots[i]
            near = min(max(x, best.box.x0), best.box.x1)
            middle = (best.box.y0 + best.box.y1) / 2
            end = axes.transData.inverted().transform((near, middle))
            _draw_leader(axes, points[i], end)


class _Place(NamedTuple):
    """A place of a label: its offset from the dot in points, the side on which it is anchored, and
    its box in pixels.
    """

    offset: tuple[float, float]
    side: str
    box: Bbox


def _places_around(dot: Sequence[float], size: Bbox, unit: float) -> Iterator[_Place]:
    """Yield the places around a dot (in pixels) for a label of a size, the nearest first."""
    x, y = dot
    half = size.height / 2
    for far in (1.0, 2.0, 3.2, 4.5):
        for dx, dy, side in _AROUND:
            left = x + dx * far * unit - _SHARE[side] * size.width
            middle = y + dy * far * unit
            start = (left, middle - half)
            end = (left + size.width, middle + half)
            yield _Place((dx * far, dy * far), side, _box_around(start, end, 0))


def _box_around(start: Any, end: Any, margin: float) -> Bbox:
    """Return the box around two points, in pixels."""
    from matplotlib.transforms import Bbox

    (x0, y0), (x1, y1) = start, end
    return Bbox.from_extents(
        min(x0, x1) - margin,
        min(y0, y1) - margin,
        max(x0, x1) + margin,
        max(y0, y1) + margin,
    )


def _leaves(box: Bbox, area: Bbox) -> bool:
    """True if a part of the box lies outside of the area."""
    outside_across = box.x0 < area.x0 or box.x1 > area.x1
    outside_up = box.y0 < area.y0 or box.y1 > area.y1
    return bool(outside_across or outside_up)


def _draw_leader(axes: Any, start: Any, end: Any) -> None:
    """Draw the line from a dot to its label, which does not change the scales."""
    axes.plot(
        [start[0], end[0]],
        [start[1], end[1]],
        color=MUTED,
        linewidth=0.6,
        zorder=2,
        scalex=False,
        scaley=False,
    )
