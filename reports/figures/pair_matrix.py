"""Every row against every other, as a matrix: how large the differences are, and which are more than chance."""

from __future__ import annotations

from typing import Any

import numpy as np

from reports.document.blocks import Figure
from reports.figures.labels import row_name
from reports.figures.style import COLOURS, INK, MUTED, add_bar, finish, new, style
from reports.read.comparison_runs import Comparison
from reports.stats.significance import NOT_JUDGED
from reports.stats.verdicts import Block

_NUMBERS = 14  # rows up to which a number has room in its square
_MOST = 40
_SEPARATED = ("better", "worse")


def pair_matrix(comparison: Comparison, block: Block, base: str) -> Figure | None:
    """Row minus column by the block's target, best row first; None with more rows than can be read.

    `base`: the base model's name where there are several, else "".
    """
    rows = block.rows
    if not 2 < len(rows) <= _MOST:
        return None
    found = block.differences
    values = np.zeros((len(rows), len(rows)))
    verdicts: dict[tuple[int, int], str] = {}
    for (i, j), d in found.items():
        values[i, j], values[j, i] = 100 * d.estimate.value, -100 * d.estimate.value
        verdicts[i, j] = verdicts[j, i] = d.verdict
    names = [row_name(row, comparison) for row in rows]
    separated = [f"{names[i]} and {names[j]}" for (i, j), d in found.items() if d.verdict in _SEPARATED]
    with style():
        size = 1.9 + (0.42 if len(rows) <= _NUMBERS else 0.2) * len(rows)
        plot = new(7.2, min(size, 7.2))
        axes = plot.add_subplot()
        mesh = _squares(axes, values, verdicts)
        axes.set_xticks(np.arange(len(rows)) + 0.5, [str(i + 1) for i in range(len(rows))])
        axes.set_yticks(np.arange(len(rows)) + 0.5, [f"{name}  {i + 1}" for i, name in enumerate(names)])
        axes.invert_yaxis()
        axes.grid(visible=False)
        axes.tick_params(length=0, labelsize=8 if len(rows) <= 24 else 6.5)
        for side in axes.spines.values():
            side.set_visible(False)
        add_bar(plot, mesh, axes, f"row minus column, points of {block.target.unit}")
        listed = "; ".join(separated[:20]) + (f"; and {len(separated) - 20} more" if len(separated) > 20 else "")
        return finish(
            plot,
            f"pairs{f'-{base}' if base else ''}",
            f"Every row against every other{f' · {base}' if base else ''}",
            f"By {block.target.title}: row minus column, best row first. Full squares with a frame: more than chance "
            "at 0.05, corrected for all pairs of the figure's rows; half as wide: not separable; dots: a row with one "
            "seed, not judged.",
            f"A matrix of {len(rows)} rows. Separated: {listed or 'none'}.",
        )


def _squares(axes: Any, values: Any, verdicts: dict[tuple[int, int], str]) -> Any:
    """A square for each pair; what is drawn gives the colours' scale."""
    from matplotlib.collections import PatchCollection
    from matplotlib.colors import LinearSegmentedColormap, Normalize
    from matplotlib.patches import Rectangle

    colours = LinearSegmentedColormap.from_list("differences", [COLOURS[1], "#f4f4f2", COLOURS[0]])
    widest = max(float(np.abs(values).max()), 1e-9)
    count = len(values)
    squares, shades, edges = [], [], []
    for (i, j), verdict in verdicts.items():
        if verdict == NOT_JUDGED:
            axes.plot([j + 0.5], [i + 0.5], ".", color=MUTED, markersize=3)
            continue
        half = 0.47 if verdict in _SEPARATED else 0.25
        squares.append(Rectangle((j + 0.5 - half, i + 0.5 - half), 2 * half, 2 * half))
        shades.append(values[i, j])
        edges.append(INK if verdict in _SEPARATED else "none")
        if count <= _NUMBERS:
            dark = abs(values[i, j]) > 0.6 * widest
            text = f"{values[i, j]:+.1f}".replace("-", "\u2212")
            if verdict in _SEPARATED:
                axes.text(
                    j + 0.5, i + 0.5, text, ha="center", va="center", fontsize=6.5, color="white" if dark else INK
                )
    drawn = PatchCollection(squares, cmap=colours, norm=Normalize(-widest, widest), edgecolors=edges, linewidths=0.8)
    drawn.set_array(np.array(shades))
    axes.add_collection(drawn)
    axes.set_xlim(0, count)
    axes.set_ylim(0, count)
    return drawn
