"""Alignment against uniformity, a dot for each row or published point, coloured by a score."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from reports.document.blocks import Figure
from reports.figures.labels import kind_of, mark_handles, mark_of, place_labels, row_name
from reports.figures.style import MUTED, add_bar, finish, new, style
from reports.load import RecordedResults
from reports.stats.estimate import mean_sd
from reports.targets import Target, rows_shown

_NAMED = 16  # dots of a scatter that have room for their names


@dataclass(frozen=True)
class Dot:
    """A row, or a point that a paper publishes.

    Attributes:
        name: next to the dot; "" where there is no room.
        label: in the text for those who do not see the figure.
        score: NaN where it is not known.
        kind: "untrained", "trained" or "supervised".
        published: drawn as a ring.
    """

    name: str
    label: str
    uniformity: float
    alignment: float
    score: float
    kind: str
    published: bool = False


def scatter(
    comparison: RecordedResults,
    task: str,
    source: str,
    target: Target | None,
) -> Figure | None:
    """The rows of a comparison on one data set; supervised rows as stars, untrained ones as
    squares.
    """
    dots = []
    named, others = rows_shown(comparison.rows, target, _NAMED)
    for row in comparison.rows:
        a = row.scores(task, source, "alignment")
        u = row.scores(task, source, "uniformity")
        if a and u:
            alignment = mean_sd([s.value for _, s in a])[0]
            uniformity = mean_sd([s.value for _, s in u])[0]
            score = target.value(row) if target else None
            if row in named:
                name = row_name(row, comparison)
            else:
                name = ""
            score = math.nan if score is None else score
            dots.append(Dot(name, row.label, uniformity, alignment, score, kind_of(row)))
    data = task.removeprefix("geometry:")
    title = f"Alignment and uniformity · {data}"
    caption = f"Means over seeds; the lower left corner is best.{others.replace('not drawn', 'not named')}"
    return draw_dots(
        dots,
        f"geometry-{source}-{data}",
        title,
        caption,
        target.short if target else "",
    )


def _look_of(dot: Dot, colour: Any) -> dict[str, Any]:
    """Return how a dot is drawn: a published one hollow; `colour`: None where its score is not
    known.
    """
    look = mark_of(dot.kind)
    if dot.published:
        edge = MUTED if colour is None else [colour]
        return look | {"c": "none", "edgecolors": edge, "linewidths": 2.0}
    if colour is None:
        return look | {"c": "white"}
    return look | {"c": [colour]}


def draw_dots(
    dots: Sequence[Dot],
    key: str,
    title: str,
    caption: str,
    score: str,
) -> Figure | None:
    """The figure; None without a dot. `score`: what the colours show."""
    if not dots:
        return None
    from matplotlib import colormaps
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import Normalize

    known = [d.score for d in dots if not math.isnan(d.score)]
    low = min(known, default=0)
    high = max(known, default=1)
    shade = Normalize(low, high if high > low else low + 1)
    cmap = colormaps["cividis"]
    with style():
        plot = new(7.2, 4.6)
        axes = plot.add_subplot()
        for d in dots:
            if math.isnan(d.score):
                colour = None
            else:
                colour = cmap(shade(d.score))
            axes.scatter(d.uniformity, d.alignment, **_look_of(d, colour))
        axes.set_xlabel("uniformity (lower: more even)")
        axes.set_ylabel("alignment (lower: closer pairs)")
        axes.margins(0.16)
        if len(handles := mark_handles(d.kind for d in dots)) > 1:
            plot.legend(handles=handles, loc="outside upper left", ncols=3, fontsize=8)
        if known and score:
            add_bar(plot, ScalarMappable(shade, cmap), axes, score)
            caption += f" Colour: {score}, light is high"
            if len(known) < len(dots):
                caption += "; white or grey: not known"
            caption += "."
        places = []
        texts = []
        for d in dots:
            places.append((d.uniformity, d.alignment))
            numbers = f"uniformity {d.uniformity:.2f}, alignment {d.alignment:.2f}"
            texts.append(f"{d.label}: {numbers}")
        place_labels(axes, places, [d.name for d in dots])
        said = "; ".join(texts)
        return finish(plot, key, title, caption, f"Scatter of {len(dots)} points. {said}.")
