"""Cosines of sentence pairs by their gold score: one small panel a row, one ridge a range of gold scores."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reports.document.blocks import Figure
from reports.document.table import number_text
from reports.figures.labels import row_name
from reports.figures.style import INK, finish, new, new_panels, style
from reports.read.comparison_runs import Comparison
from reports.stats.shown_rows import rows_shown
from reports.stats.targets import SOURCES, Target

_COLUMNS = 4
_NARROW = 21  # letters of a name that fit above one of four panels
_HEIGHT = 1.2  # of a ridge: the highest reach into the one above
_EDGE = 0.002  # share of pairs that may fall outside the drawn range on either side


@dataclass(frozen=True)
class Cosines:
    """Counts (ranges, bins) of pairs by gold score and cosine; `means` are of the cosines, NaN without pairs."""

    edges: NDArray[np.float64]
    ranges: tuple[tuple[float, float], ...]
    counts: NDArray[np.float64]
    means: tuple[float, ...]

    @classmethod
    def of(cls, data: dict[str, Any]) -> Cosines:
        """From what `harness.tasks.geometry.cosine_histograms` made.

        Raises:
            KeyError, TypeError, ValueError: it is not that.
        """
        edges = np.asarray(data["bins"], dtype=np.float64)
        buckets = data["buckets"]
        counts = np.asarray([bucket["counts"] for bucket in buckets], dtype=np.float64)
        if edges.ndim != 1 or counts.shape != (len(buckets), len(edges) - 1):
            raise ValueError(f"{counts.shape} counts for {edges.shape} edges")
        ranges = tuple((float(bucket["low"]), float(bucket["high"])) for bucket in buckets)
        return cls(edges, ranges, counts, tuple(math.nan if b["mean"] is None else float(b["mean"]) for b in buckets))

    def plus(self, other: Cosines) -> Cosines:
        """Both together.

        Raises:
            ValueError: other bins or ranges.
        """
        if not np.array_equal(self.edges, other.edges) or self.ranges != other.ranges:
            raise ValueError("histograms with unlike bins")
        sums = [
            np.nansum([n * m for n, m in parts]) / total if (total := sum(n for n, _ in parts)) else math.nan
            for parts in (
                ((a, x), (b, y)) for a, x, b, y in zip(self.sizes, self.means, other.sizes, other.means, strict=True)
            )
        ]
        return Cosines(self.edges, self.ranges, self.counts + other.counts, tuple(float(m) for m in sums))

    @property
    def sizes(self) -> list[int]:
        """Pairs in each range."""
        return [int(n) for n in self.counts.sum(axis=1)]

    @property
    def inside(self) -> tuple[float, float]:
        """The range of cosines that holds nearly all pairs."""
        below = np.cumsum(self.counts.sum(axis=0)) / max(1.0, float(self.counts.sum()))
        first, last = int(np.searchsorted(below, _EDGE)), int(np.searchsorted(below, 1 - _EDGE))
        return float(self.edges[first]), float(self.edges[min(last, len(self.edges) - 2) + 1])


def _collect(comparison: Comparison, task: str) -> dict[tuple[str, str], tuple[Cosines, int]]:
    """Row key -> the histograms of its seeds together, and how many seeds."""
    by_row: dict[tuple[str, str], tuple[Cosines, int]] = {}
    for key, runs in comparison.figure_data.items():
        for record, parts in runs:
            data = parts.get(task, {}).get("cosines")
            if data is None:
                continue
            try:
                one = Cosines.of(data)
                before = by_row.get(key)
                by_row[key] = (one, 1) if before is None else (before[0].plus(one), before[1] + 1)
            except (KeyError, TypeError, ValueError):
                comparison.warnings.append(f"cosine histograms of run {record.id} ({task}) are damaged: left out")
    return by_row


def histograms(comparison: Comparison, task: str, source: str, target: Target | None = None) -> Figure | None:
    """The cosines of all pairs of a geometry task by gold score (non-contrastive paper, figure 4)."""
    by_row = _collect(comparison, task)
    rows, others = rows_shown([row for row in comparison.rows if row.key in by_row], target)
    if not rows:
        return None
    import matplotlib as mpl

    parts = [by_row[row.key][0] for row in rows]
    ranges = parts[0].ranges
    low = max(-1.0, math.floor(10 * min(p.inside[0] for p in parts)) / 10)
    high = min(1.0, math.ceil(10 * max(p.inside[1] for p in parts)) / 10)
    shades = [mpl.colormaps["cividis"](x) for x in np.linspace(0.12, 0.95, len(ranges))]
    names = [row_name(row, comparison) for row in rows]
    columns = min(_COLUMNS if max(map(len, names)) <= _NARROW else _COLUMNS - 1, len(rows))
    lines = math.ceil(len(rows) / columns)
    with style():
        plot = new(7.2 if columns > 2 else 2.2 + 2 * columns, 0.3 + 1.62 * lines)
        grid = new_panels(plot, len(rows), columns, sharex=True, sharey=True)
        for axes, name, part in zip(grid, names, parts, strict=True):
            _ridges(axes, part, shades)
            axes.set_title(name, fontsize=7.5)
        grid[0].set_yticks(range(len(ranges)), [f"{a:g}–{b:g}" for a, b in ranges])
        grid[0].set_ylim(-0.15, len(ranges) - 1 + _HEIGHT + 0.1)
        grid[0].set_xlim(low, high)
        grid[0].locator_params(axis="x", nbins=5)
        plot.supxlabel("cosine", fontsize=8.5)
        plot.supylabel("gold score", fontsize=8.5)
        data = task.removeprefix("geometry:")
        seeds = sorted({by_row[row.key][1] for row in rows})
        sizes = [n // by_row[rows[0].key][1] for n in parts[0].sizes]
        pairs = ", ".join(f"{a:g}–{b:g}: {n:,}" for (a, b), n in zip(ranges, sizes, strict=True))
        together = "" if seeds == [1] else " Seeds of a row together."
        said = "; ".join(
            f"{row.label} {', '.join('no pairs' if math.isnan(m) else number_text(m, 2) for m in part.means)}"
            for row, part in zip(rows, parts, strict=True)
        )
        return finish(
            plot,
            f"cosines-{source}-{data}",
            f"Cosines by gold score · {data}",
            f"{data} ({SOURCES.get(source, source)}), {sum(sizes):,} pairs{_which(comparison, task, source)} ({pairs})."
            f"{together} Each ridge is scaled "
            "to its own height; the stroke marks its mean. Good embeddings climb to the right from the lowest range to "
            f"the highest without overlap; ridges piled up at the right edge show a narrow cone.{others}",
            f"Histograms of cosines for {len(rows)} rows, a ridge for each range of gold scores. Mean cosine from the "
            f"lowest range to the highest: {said}.",
        )


def _which(comparison: Comparison, task: str, source: str) -> str:
    """Which pairs these are: the space is looked at on every split, the scores in the tables are of the test pairs."""
    splits = {s.split for r in comparison.records for s in r.scores if (s.task, s.source) == (task, source)}
    if splits != {"all"}:
        return ""
    data = task.removeprefix("geometry:")
    scored = {
        s.n for r in comparison.records for s in r.scores if (s.task, s.source, s.split) == (data, source, "test")
    }
    return f" of all its splits, of which scores are on {scored.pop():,}" if len(scored) == 1 else " of all its splits"


def _ridges(axes: Any, part: Cosines, shades: list[Any]) -> None:
    for y, (counts, mean, shade) in enumerate(zip(part.counts, part.means, shades, strict=True)):
        if not counts.any():
            continue
        used = np.flatnonzero(counts)
        first, last = used[0], used[-1] + 1
        heights = y + _HEIGHT * counts[first:last] / counts.max()
        layer = 10 - y  # lower ridges stand before higher ones
        edges = part.edges[first : last + 1]
        axes.stairs(heights, edges, baseline=y, fill=True, facecolor=shade, edgecolor=INK, linewidth=0.6, zorder=layer)
        for colour, width in (("white", 2.6), ("#1d232c", 1.2)):
            axes.plot([mean, mean], [y, y + 0.5], color=colour, linewidth=width, zorder=layer + 0.4)
    axes.grid(axis="y", visible=False)
    axes.tick_params(axis="y", length=0)
    axes.tick_params(labelsize=7.5)
