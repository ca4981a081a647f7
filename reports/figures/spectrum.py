"""The spectrum of the embeddings: how fast the singular values fall, a line for each row."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from reports.document.blocks import Figure
from reports.figures.labels import row_name
from reports.figures.style import finish, legend_below, look, new, plain, style
from reports.read.comparison_runs import Comparison
from reports.stats.shown_rows import rows_shown
from reports.stats.targets import Target

_POINTS = 80  # of a line: more cannot be seen
_LOWEST = 1e-5  # share of the largest value below which nothing is drawn


def _mean_log(spectra: list[list[float]]) -> NDArray[np.float64] | None:
    """Mean over seeds of the logarithm of the values relative to the largest; None where there is no spread.

    Raises:
        TypeError, ValueError: no numbers, or spectra of unlike length.
    """
    values = np.asarray(spectra, dtype=np.float64)
    if values.ndim != 2 or not np.isfinite(values).all():
        raise ValueError("spectra of unlike length")
    values = values[values[:, 0] > 0]
    if not len(values):
        return None
    with np.errstate(divide="ignore"):
        logs: NDArray[np.float64] = np.log10(np.clip(values / values[:, :1], 1e-12, None)).mean(axis=0)
    return logs


def spectrum(comparison: Comparison, target: Target | None = None) -> Figure | None:
    """Singular values of the centred embeddings, a panel for each data set of the geometry tasks."""
    panels: list[tuple[str, str, dict[tuple[str, str], NDArray[np.float64]]]] = []
    for task, source in comparison.columns("geometry"):
        lines: dict[tuple[str, str], NDArray[np.float64]] = {}
        for key, runs in comparison.figure_data.items():
            spectra = [part["spectrum"] for _, parts in runs if "spectrum" in (part := parts.get(task, {}))]
            try:
                if spectra and (line := _mean_log(spectra)) is not None:
                    lines[key] = line
            except (TypeError, ValueError):
                comparison.warnings.append(f"spectra of {key[1]} ({task}) are damaged: left out")
        if lines:
            panels.append((task, source, lines))
    rows, others = rows_shown([row for row in comparison.rows if any(row.key in lines for *_, lines in panels)], target)
    if not rows:
        return None
    with style():
        plot = new(7.2, 2.9 + 0.17 * math.ceil(len(rows) / 4))
        grid = plot.subplots(1, len(panels), sharey=True, squeeze=False)[0]
        said = []
        for axes, (task, source, lines) in zip(grid, panels, strict=True):
            for i, row in enumerate(rows):
                if (line := lines.get(row.key)) is None:
                    continue
                place = np.unique(np.linspace(0, len(line) - 1, min(_POINTS, len(line))).round().astype(int))
                place = place[line[place] >= math.log10(_LOWEST)]
                axes.plot(
                    place + 1, 10.0 ** line[place], label=row_name(row, comparison), linewidth=1.5,
                    markevery=(i, 16), markersize=3.5, **look(i),
                )  # fmt: skip
                half = int((line >= -1).sum())
                said.append(f"{task.removeprefix('geometry:')}, {row.label}: {half} of {len(line)}")
            axes.set_yscale("log")
            plain(axes.yaxis)
            sizes = {s.n for row in rows for _, s in row.scores(task, source, "effective_rank")}
            axes.set_xlabel(f"index (n = {max(sizes):,})" if sizes else "index", fontsize=8.5)
            axes.set_title(task.removeprefix("geometry:"), fontsize=8)
            axes.locator_params(axis="x", nbins=6, integer=True)
        grid[0].set_ylabel("share of the largest")
        handles = {
            label: handle for axes in grid for handle, label in zip(*axes.get_legend_handles_labels(), strict=True)
        }
        legend_below(plot, handles.values(), handles)
        return finish(
            plot,
            "spectrum",
            "Spectrum of the embeddings",
            "Singular values of the centred vectors of n sentences relative to the largest, log scale, mean over "
            "seeds. A flat line uses all directions; a steep one lives in few; a cliff shows lost dimensions."
            f"{others}",
            f"Falling lines. Singular values of at least a tenth of the largest: {'; '.join(said)}.",
        )
