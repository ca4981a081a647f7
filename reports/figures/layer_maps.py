"""Which layer, pooled how: the scores of the `layers` tasks as a table and as heat maps."""

from __future__ import annotations

import math

from reports.document.blocks import Figure
from reports.document.table import MINUS
from reports.figures.labels import row_name, short
from reports.figures.style import INK, add_bar, finish, new, new_panels, style
from reports.read.comparison_runs import Comparison
from reports.stats.layer_grids import LayerGrid, pairs_text, shared_name
from reports.stats.shown_rows import rows_shown
from reports.stats.targets import Target

_FEW = 7  # layers up to which a cell has room for a decimal


def layer_map(comparison: Comparison, grid: LayerGrid, target: Target | None = None) -> Figure | None:
    """Layer by pooling as a heat map for each row (self-guided contrastive learning, figure 1)."""
    alike = grid.rows(comparison)
    rows, others = rows_shown([members[0] for members in alike.values()], target)
    if not rows:
        return None
    values = {
        (row.key, layer, pooling): value
        for row in rows
        for layer in grid.layers
        for pooling in grid.poolings
        if (value := grid.mean(row, layer, pooling)) is not None
    }
    named = {
        row.key: shared_name(alike[row.key], 3) if len(alike[row.key]) > 1 else row_name(row, comparison)
        for row in rows
    }
    # The cls of the embeddings is the same for every sentence: its zero would take half of the scale.
    scale = [v for (_, layer, pooling), v in values.items() if (layer, pooling) != (0, "cls")] or [0.0]
    low, high = min(scale), max(scale)
    digits = 1 if len(grid.layers) <= _FEW else 0
    columns = min(3 if len(grid.layers) <= _FEW else 2, len(rows))
    lines = math.ceil(len(rows) / columns)
    said = []
    with style():
        plot = new(7.2 if columns > 1 else 4.6, 0.75 + (0.62 + 0.19 * len(grid.poolings)) * lines)
        panels = new_panels(plot, len(rows), columns, sharex=True, sharey=True)
        mappable = None
        for axes, row in zip(panels, rows, strict=True):
            table = [[values.get((row.key, k, p), math.nan) for k in grid.layers] for p in grid.poolings]
            mappable = axes.pcolormesh(table, cmap="cividis", vmin=low, vmax=max(high, low + 1e-9), edgecolors="none")
            best = max(values[key] for key in values if key[0] == row.key)
            for y, line in enumerate(table):
                for x, value in enumerate(line):
                    if math.isnan(value):
                        continue
                    dark = (value - low) / max(high - low, 1e-9) < 0.55
                    axes.text(
                        x + 0.5,
                        y + 0.48,
                        f"{value:.{digits}f}".replace("-", MINUS),
                        ha="center",
                        va="center",
                        fontsize=6.5,
                        fontweight="bold" if value == best else "normal",
                        color="white" if dark else "#1d232c",
                    )
                    if value == best:
                        box = [[x, x + 1, x + 1, x, x], [y, y, y + 1, y + 1, y]]
                        axes.plot(*box, color=INK, linewidth=1.6, clip_on=False, zorder=5)
                        said.append(f"{named[row.key]}: layer {grid.layers[x]}, {grid.poolings[y]}, {value:.2f}")
            axes.set_title(short(named[row.key]), fontsize=7.5)
            axes.set_xticks([x + 0.5 for x in range(len(grid.layers))], [str(k) for k in grid.layers])
            axes.set_yticks([y + 0.5 for y in range(len(grid.poolings))], grid.poolings)
            axes.grid(visible=False)
            axes.tick_params(length=0, labelsize=7.5)
            for side in axes.spines.values():
                side.set_visible(False)
        panels[0].invert_yaxis()
        add_bar(plot, mappable, list(panels), "Spearman ×100", 30 if lines > 2 else 14)
        plot.supxlabel("layer (0: embeddings)", fontsize=8.5)
        return finish(
            plot,
            f"layers-{grid.source}-{grid.pairs}",
            f"Layer and pooling · {grid.pairs}",
            f"{pairs_text(grid, rows)}: Spearman ×100, means over seeds, light is high; the frame marks the best of a "
            f"row. Where it is not the last layer, the usual vector of the model is not its best one.{others}",
            f"Heat maps of layers by poolings. Best: {'; '.join(said)}.",
        )
