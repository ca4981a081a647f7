"""Cosines of sentence pairs by their gold score: one small panel a row, one ridge a range of gold
scores.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reports.document.blocks import Figure
from reports.document.table import number_text
from reports.figures.labels import row_name
from reports.figures.style import INK, INK_ON_LIGHT, finish, new, new_panels, style
from reports.load import RecordedResults, RecordedRow
from reports.targets import SOURCES, Target, rows_shown

_COLUMNS = 3
_HEIGHT = 1.2  # of a ridge: the highest reach into the one above
_PAIRS = {
    "test": "Test pairs",
    "all": "All pairs",
    "mixed": "Test pairs, or all pairs for runs of an earlier version,",
}
_FEW = 0.002  # share of the pairs below which the outermost bins are not drawn


@dataclass(frozen=True)
class Cosines:
    """Pairs by range of gold scores: (ranges, bins) counts by cosine, (ranges,) mean cosines, NaN
    without pairs.
    """

    edges: NDArray[np.float64]
    ranges: list[str]
    counts: NDArray[np.float64]
    means: NDArray[np.float64]


def pool_cosines(runs: Sequence[dict[str, Any]]) -> Cosines:
    """All pairs of some runs together, from what `harness.tasks.geometry.cosine_histograms` gave
    for each.

    Raises:
        KeyError, TypeError, ValueError: it is not that, or bins differ.
    """
    counts = _stack_buckets(runs, "counts")
    means = _stack_buckets(runs, "mean")
    edges = np.array([run["bins"] for run in runs], dtype=np.float64)
    fits = False
    if counts.ndim == 3:
        *_, bins = counts.shape
        fits = edges.shape == (len(runs), bins + 1)
    if not fits or np.ptp(edges, axis=0).any():
        raise ValueError(f"{counts.shape} counts for {edges.shape} edges")
    sizes = counts.sum(axis=2)
    with np.errstate(invalid="ignore"):
        total = np.nansum(sizes * means, axis=0)
        mean = total / sizes.sum(axis=0)
    ranges = []
    for bucket in runs[0]["buckets"]:
        ranges.append(f"{bucket['low']:g}–{bucket['high']:g}")
    return Cosines(edges[0], ranges, counts.sum(axis=0), mean)


def _stack_buckets(runs: Sequence[dict[str, Any]], key: str) -> NDArray[np.float64]:
    """(runs, ranges, ...) of one number of each range of gold scores."""
    found = []
    for run in runs:
        found.append([bucket[key] for bucket in run["buckets"]])
    return np.array(found, dtype=np.float64)


def histograms(
    comparison: RecordedResults,
    task: str,
    source: str,
    target: Target | None = None,
) -> Figure | None:
    """The cosines of the test pairs of a geometry task by gold score (non-contrastive paper,
    figure 4).
    """
    by_row, splits = _read_cosines(comparison, task)
    rows, others = rows_shown([row for row in comparison.rows if row.key in by_row], target)
    if not rows:
        return None
    import matplotlib as mpl

    parts = [by_row[row.key] for row in rows]
    ranges = parts[0].ranges
    places = np.linspace(0.12, 0.95, len(ranges))
    shades = list(mpl.colormaps["cividis"](places))
    columns = min(_COLUMNS, len(rows))
    lines = math.ceil(len(rows) / columns)
    width = 7.2
    if columns <= 2:
        width = 2.2 + 2 * columns
    with style():
        plot = new(width, 0.3 + 1.62 * lines)
        grid = new_panels(plot, len(rows), columns, sharex=True, sharey=True)
        for axes, row, part in zip(grid, rows, parts, strict=True):
            _draw_ridges(axes, part, shades)
            axes.set_title(row_name(row, comparison), fontsize=7.5)
        first = grid[0]
        first.set_yticks(range(len(ranges)), ranges)
        first.set_ylim(-0.15, len(ranges) - 1 + _HEIGHT + 0.1)
        first.set_xlim(_limits(parts))
        first.locator_params(axis="x", nbins=5)
        plot.supxlabel("cosine", fontsize=8.5)
        plot.supylabel("gold score", fontsize=8.5)
    said = "; ".join(_describe_means(row, by_row[row.key]) for row in rows)
    data = task.removeprefix("geometry:")
    pairs = _PAIRS["mixed"]
    if len(splits) == 1:
        pairs = _PAIRS[splits.pop()]
    return finish(
        plot,
        f"cosines-{source}-{data}",
        f"Cosines by gold score · {data}",
        f"{pairs} of {data} ({SOURCES.get(source, source)}), seeds of a row together. Each "
        "range of gold scores is scaled to its own height; the stroke is its mean. Good "
        "embeddings give higher ranges higher cosines, with little overlap; where all are near "
        f"1, the vectors lie in a narrow cone.{others}",
        f"Histograms of cosines for {len(rows)} rows by gold score, with the mean cosines of "
        f"the ranges {', '.join(ranges)}: {said}.",
    )


def _limits(parts: Sequence[Cosines]) -> tuple[float, float]:
    """Return the least and the largest cosine that are drawn: bins that hold few pairs of all rows
    are left out on both sides.
    """
    edges = parts[0].edges
    shares = np.zeros(len(edges) - 1)
    for part in parts:
        by_bin = part.counts.sum(axis=0)
        shares += by_bin / part.counts.sum()
    used = np.flatnonzero(shares > _FEW)
    first = edges[used[0]]
    last = edges[used[-1] + 1]
    left = math.floor(10 * first) / 10
    right = math.ceil(10 * last) / 10
    return left, right


def _read_cosines(
    comparison: RecordedResults, task: str
) -> tuple[dict[tuple[str, str], Cosines], set[str]]:
    """Return the cosines of each row that stored some, and the splits that they are of."""
    by_row = {}
    splits = set()
    for key, runs in comparison.figure_data.items():
        try:
            found = []
            for _, parts in runs:
                part = parts.get(task, {})
                if "cosines" in part:
                    found.append(part["cosines"])
            if found:
                by_row[key] = pool_cosines(found)
                splits |= {one.get("split", "all") for one in found}
        except (KeyError, TypeError, ValueError):
            ids = ", ".join(record.id for record, _ in runs)
            comparison.warnings.append(
                f"cosine histograms of {task} are damaged in one of the runs {ids}: left out"
            )
    return by_row, splits


def _describe_means(row: RecordedRow, part: Cosines) -> str:
    texts = []
    for mean in part.means:
        texts.append("no pairs" if math.isnan(mean) else number_text(mean, 2))
    return f"{row.label} {', '.join(texts)}"


def _draw_ridges(axes: Any, part: Cosines, shades: list[Any]) -> None:
    for y, (counts, mean, shade) in enumerate(zip(part.counts, part.means, shades, strict=True)):
        if not counts.any():
            continue
        used = np.flatnonzero(counts)
        first = used[0]
        last = used[-1] + 1
        heights = y + _HEIGHT * counts[first:last] / counts.max()
        layer = 10 - y  # lower ridges are in front of higher ones
        edges = part.edges[first : last + 1]
        axes.stairs(
            heights,
            edges,
            baseline=y,
            fill=True,
            facecolor=shade,
            edgecolor=INK,
            linewidth=0.6,
            zorder=layer,
        )
        for colour, width in (("white", 2.6), (INK_ON_LIGHT, 1.2)):
            axes.plot(
                [mean, mean],
                [y, y + 0.5],
                color=colour,
                linewidth=width,
                zorder=layer + 0.4,
            )
    axes.grid(axis="y", visible=False)
    axes.tick_params(axis="y", length=0)
    axes.tick_params(labelsize=7.5)
