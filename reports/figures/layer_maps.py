"""The scores of the `layers` tasks as heat maps: which layer, pooled how."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from reports.document.blocks import Figure
from reports.figures.labels import row_name, short
from reports.figures.style import INK, add_bar, draw_heat_map, finish, new, new_panels, style
from reports.load import RecordedResults, RecordedRow
from reports.records.layer_grids import LayerGrid, join_labels, pairs_text
from reports.targets import Target, rows_shown

if TYPE_CHECKING:
    from matplotlib.patches import Rectangle

_FEW = 7  # layers up to which a cell has room for a decimal


def layer_map(
    comparison: RecordedResults,
    grid: LayerGrid,
    target: Target | None = None,
) -> Figure | None:
    """Layer by pooling as a heat map for each row (self-guided contrastive learning, figure 1)."""
    alike = grid.rows(comparison)
    rows, others = rows_shown([members[0] for members in alike.values()], target)
    if not rows:
        return None
    values = np.array([_means_of(row, grid) for row in rows], dtype=np.float64)
    limits = _limits_of_colours(values, grid)
    few = len(grid.layers) <= _FEW
    columns = min(3 if few else 2, len(rows))
    lines = math.ceil(len(rows) / columns)
    best = []
    with style():
        width = 7.2 if columns > 1 else 4.6
        height = 0.75 + (0.62 + 0.19 * len(grid.poolings)) * lines
        plot = new(width, height)
        panels = new_panels(plot, len(rows), columns, sharex=True, sharey=True)
        for axes, row, table in zip(panels, rows, values, strict=True):
            name = row_name(row, comparison)
            same = alike[row.key]
            if len(same) > 1:
                name = join_labels(same, 3)
            mesh = draw_heat_map(
                axes,
                table,
                grid.layers,
                grid.poolings,
                limits,
                digits=1 if few else 0,
            )
            y, x = np.unravel_index(np.nanargmax(table), table.shape)
            axes.add_patch(_frame_of(int(x), int(y)))
            place = f"layer {grid.layers[x]}, {grid.poolings[y]}"
            best.append(f"{name}: {place}, {table[y, x]:.2f}")
            axes.set_title(short(name), fontsize=7.5)
        panels[0].invert_yaxis()
        add_bar(plot, mesh, list(panels), "Spearman ×100", 30 if lines > 2 else 14)
        plot.supxlabel("layer (0: embeddings)", fontsize=8.5)
    without = _describe_missing(comparison, f"layers:{grid.pairs}")
    return finish(
        plot,
        f"layers-{grid.source}-{grid.pairs}",
        f"Layer and pooling · {grid.pairs}",
        f"{pairs_text(grid, rows)}: mean over seeds. The frame marks the best layer and pooling of a row, without what "
        f"a model has after its pooling (a projection, a whitening).{others}{without}",
        f"Heat maps of layers by poolings. Best: {'; '.join(best)}.",
    )


def _frame_of(x: int, y: int) -> Rectangle:
    """Return the frame of one cell of a heat map."""
    from matplotlib.patches import Rectangle

    corner = (x - 0.5, y - 0.5)
    return Rectangle(corner, 1, 1, fill=False, edgecolor=INK, linewidth=1.6, clip_on=False)


def _means_of(row: RecordedRow, grid: LayerGrid) -> list[list[float | None]]:
    """Return the scores of a row, (poolings, layers); None where a model has no such layer."""
    table = []
    for pooling in grid.poolings:
        table.append([grid.mean(row, layer, pooling) for layer in grid.layers])
    return table


def _limits_of_colours(values: NDArray[np.float64], grid: LayerGrid) -> tuple[float, float]:
    """Return the least and the largest score of the scale; values: (rows, poolings, layers)."""
    scale = values.copy()
    if 0 in grid.layers and "cls" in grid.poolings:
        # A constant vector: its zero would take half of the scale.
        scale[:, grid.poolings.index("cls"), grid.layers.index(0)] = np.nan
    if np.isnan(scale).all():
        return 0.0, 1.0
    return float(np.nanmin(scale)), float(np.nanmax(scale))


def _describe_missing(comparison: RecordedResults, task: str) -> str:
    """Say which rows have no such scores, and why."""
    texts = []
    for row in comparison.rows:
        texts += [f"{row.label} ({reason})" for reason in row.reasons(task, named=False)]
    if texts:
        return f" Without these scores: {', '.join(dict.fromkeys(texts))}."
    return ""
