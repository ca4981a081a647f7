"""Figures of training: dev score and collapse statistics, loss terms. Each is None when there is
nothing to draw.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np

from harness.results.flat import NO_TERMS
from reports.document.blocks import Figure
from reports.figures.labels import row_name, short
from reports.figures.style import finish, legend_below, look, new, new_panels, style
from reports.load import RecordedResults, RecordedRow
from reports.targets import Target, rows_shown

if TYPE_CHECKING:
    import pandas as pd

_DEV = {"spearman": "Dev Spearman ×100", "effective_rank": "Effective rank", "std": "Spread (std)"}
_PANELS = 18  # of losses
_POINTS = 60  # of a line: longer logs are drawn as means of consecutive lines
_LINES = 20  # of seeds of a row; more are drawn as a band

Logs = Sequence[tuple[int, list[dict[str, Any]]]]


def _curves(logs: Logs, kinds: tuple[str, ...], key: str) -> pd.DataFrame:
    """One number of the training logs of a row: a line for each step, a column for each seed that
    logged it.
    """
    import pandas as pd

    by_seed: dict[int, dict[int, float]] = {}
    for seed, lines in logs:
        by_step = {}
        for line in lines:
            if line.get("kind") in kinds:
                by_step[line["step"]] = _finite_or_nan(line.get(key))
        by_seed[seed] = by_step
    steps = sorted(set().union(*by_seed.values()))
    place = {step: i for i, step in enumerate(steps)}
    values = np.full((len(steps), len(by_seed)), math.nan)
    for column, by_step in zip(values.T, by_seed.values(), strict=True):
        for step, value in by_step.items():
            column[place[step]] = value
    frame = pd.DataFrame(values, index=steps, columns=list(by_seed))
    frame = frame.dropna(how="all")
    frame = frame.dropna(axis=1, how="all")

    lines_of_point = max(1, math.ceil(len(frame) / _POINTS))
    part = np.arange(len(frame)) // lines_of_point
    last = np.flatnonzero(np.diff(part, append=-1))
    means = frame.groupby(part).mean()
    curves: pd.DataFrame = means.set_axis(frame.index[last])
    return curves


def _finite_or_nan(value: object) -> float:
    """Return a finite number as it is, and NaN for anything else."""
    try:
        number = float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        return math.nan
    return number if math.isfinite(number) else math.nan


def _draw_seeds(axes: Any, curves: pd.DataFrame, look_: dict[str, Any], label: str = "") -> None:
    """Seeds as thin lines, or many as a band; their mean over the steps that all share as a thick
    line.
    """
    colour = {"color": look_["color"], "linestyle": look_["linestyle"]}
    count = curves.shape[1]
    if count > _LINES:
        low = curves.min(axis=1)
        high = curves.max(axis=1)
        axes.fill_between(curves.index, low, high, color=look_["color"], alpha=0.2, linewidth=0)
    elif count > 1:
        for seed in curves.columns:
            axes.plot(curves[seed].dropna(), **colour, linewidth=0.7, alpha=0.45)
    mean = curves.dropna().mean(axis=1)
    few = {}
    if label and len(mean) <= 25:
        few = {"marker": look_["marker"], "markersize": 3.5}
    axes.plot(mean, **colour, linewidth=1.9, label=label, **few)


def _describe_lines(every: Iterable[pd.DataFrame]) -> str:
    """Return what thick and thin lines and bands are, a sentence."""
    counts = [curves.shape[1] for curves in every]
    parts = ["Thick: mean over seeds"]
    if min(counts) <= _LINES:
        parts.append("thin: single seeds")
    if max(counts) > _LINES:
        parts.append(f"band: from the least to the most of more than {_LINES} seeds")
    return "; ".join(parts) + "."


def development(comparison: RecordedResults, target: Target | None = None) -> Figure | None:
    """Dev score, effective rank and spread of the embeddings over training: what learns and what
    collapses.
    """
    logs = comparison.training_logs
    rows, others = rows_shown([row for row in comparison.rows if row.key in logs], target)
    curves = {}
    for key in _DEV:
        by_row = [_curves(logs[row.key], ("dev", "early"), key) for row in rows]
        if any(one.size for one in by_row):
            curves[key] = by_row
    if not curves:
        return None
    lines_of_legend = math.ceil(len(rows) / 4)
    widths = [1.5] + [1.0] * (len(curves) - 1)
    with style():
        plot = new(7.2, 2.7 + 0.17 * lines_of_legend)
        (grid,) = plot.subplots(1, len(curves), width_ratios=widths, squeeze=False)
        for axes, (key, by_row) in zip(grid, curves.items(), strict=True):
            for i, (row, one) in enumerate(zip(rows, by_row, strict=True)):
                shown = one
                if key == "spearman":
                    shown = 100 * one
                name = row_name(row, comparison)
                _draw_seeds(axes, shown, look(i), name)
            most_ticks = 3
            if axes is grid[0]:
                most_ticks = 5
            axes.set_title(_DEV[key])
            axes.set_xlabel("step")
            axes.locator_params(axis="x", nbins=most_ticks, integer=True)
        legend_below(plot, *grid[0].get_legend_handles_labels())
    names = ", ".join(row.label for row in rows)
    drawn = ", ".join(_DEV[key] for key in curves)
    lines = _describe_lines(chain(*curves.values()))
    return finish(
        plot,
        "development",
        "Dev score and collapse statistics during training",
        f"{lines} Points at 1, 2, 4, 8, ... training steps select nothing. Effective rank and "
        f"spread that fall towards zero show a collapse.{others}",
        f"Line plots over training steps of {drawn} for {names}.",
    )


_LossPanel = tuple[RecordedRow, str, int, "pd.DataFrame"]
"""Row, loss term, number of the row, curves of its seeds."""


def _panels_of_losses(comparison: RecordedResults) -> list[_LossPanel]:
    logs = comparison.training_logs
    panels: list[_LossPanel] = []
    rows = [row for row in comparison.rows if row.key in logs]
    for i, row in enumerate(rows):
        terms: dict[str, None] = {}
        for _, lines in logs[row.key]:
            for line in lines:
                if line.get("kind") == "train":
                    terms |= dict.fromkeys(line)
        names = [key for key in terms if key not in NO_TERMS]
        # "loss" alone when a method has one term only: the term repeats it.
        if len(names) <= 2 and "loss" in names:
            names = ["loss"]
        for name in names:
            curves = _curves(logs[row.key], ("train",), name)
            if curves.size:
                panels.append((row, name, i, curves))
    return panels


def losses(comparison: RecordedResults, target: Target | None = None) -> Figure | None:
    """Every loss term of every row in its own small panel: their scales have nothing in common."""
    panels = _panels_of_losses(comparison)
    if not panels:
        return None
    drawn = {row.key: row for row, *_ in panels}
    best, _ = rows_shown(list(drawn.values()), target)
    first = {row.key for row in best}
    panels.sort(key=lambda panel: panel[0].key not in first)  # where there is no room for all
    left_out = dict.fromkeys(row.label for row, *_ in panels[_PANELS:])
    others = ""
    if left_out:
        labels = ", ".join(left_out)
        others = f" {_PANELS} of {len(panels)} terms; not drawn: terms of {labels}."
    panels = panels[:_PANELS]
    columns = min(3, len(panels))
    lines_of_panels = math.ceil(len(panels) / columns)
    with style():
        plot = new(7.2, 0.35 + 1.75 * lines_of_panels)
        every = new_panels(plot, len(panels), columns)
        for axes, (row, term, i, curves) in zip(every, panels, strict=True):
            _draw_seeds(axes, curves, look(i))
            title = f"{row_name(row, comparison)}\n{short(term)}"
            axes.set_title(title, fontsize=8, fontweight="normal")
            axes.locator_params(axis="x", nbins=4, integer=True)
            axes.locator_params(axis="y", nbins=4)
            axes.tick_params(labelsize=7.5)
        plot.supxlabel("step", fontsize=8.5)
    said = "; ".join(f"{row.label} {term}" for row, term, *_ in panels)
    lines = _describe_lines(curves for *_, curves in panels)
    return finish(
        plot,
        "losses",
        "Loss terms",
        f"Each term on its own scale. {lines} Terms that level off have converged.{others}",
        f"Small line plots over training steps: {said}.",
    )
