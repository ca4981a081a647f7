"""Figures of training: dev score and collapse statistics, loss terms. Each is None when there is nothing to draw."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from reports.document.blocks import Figure
from reports.figures.labels import row_name, short
from reports.figures.style import finish, legend_below, look, new, new_panels, style
from reports.read.comparison_runs import Comparison, ResultRow
from reports.stats.shown_rows import rows_shown
from reports.stats.targets import Target

# Named numbers of a training line that are no part of the loss.
_NO_TERMS = ("step", "kind", "lr", "seconds", "epoch", "grad_norm", "temperature")

_PANELS = 18  # of losses
_POINTS = 60  # of a line in a small panel


def _series(lines: list[dict[str, Any]], kind: str, key: str) -> tuple[list[float], list[float]]:
    steps, values = [], []
    kinds = ("dev", "early") if kind == "dev" else (kind,)
    for line in lines:
        value = line.get(key)
        if line.get("kind") in kinds and isinstance(value, int | float) and math.isfinite(value):
            steps.append(float(line["step"]))
            values.append(float(value))
    return steps, values


def _thinned(runs: list[tuple[list[float], list[float]]]) -> list[tuple[list[float], list[float]]]:
    """Of long logs, means of equal runs of lines, each at its last step; the same runs for all seeds."""
    size = math.ceil(max(len(steps) for steps, _ in runs) / _POINTS)
    if size < 2:
        return runs
    return [
        (
            [steps[i : i + size][-1] for i in range(0, len(steps), size)],
            [float(np.mean(values[i : i + size])) for i in range(0, len(values), size)],
        )
        for steps, values in runs
    ]


def _long(comparison: Comparison, kind: str) -> str:
    longest = max(
        sum(line.get("kind") == kind for line in lines)
        for logs in comparison.training_logs.values()
        for _, lines in logs
    )
    return " Long logs are drawn as means of consecutive lines." if longest > _POINTS else ""


def _draw_seeds(axes: Any, runs: list[tuple[list[float], list[float]]], look_: dict[str, Any], label: str) -> bool:
    """Seeds as thin lines, their mean over the steps that all share as a thick one."""
    runs = [run for run in runs if run[0]]
    if not runs:
        return False
    colour, dash = look_["color"], look_["linestyle"]
    few = {"marker": look_["marker"], "markersize": 3.5}
    for steps, values in runs if len(runs) > 1 else ():
        axes.plot(steps, values, color=colour, linestyle=dash, linewidth=0.7, alpha=0.45)
    common = sorted(set.intersection(*(set(steps) for steps, _ in runs)))
    mean = [float(np.mean([v[s.index(step)] for s, v in runs])) for step in common]
    axes.plot(
        common, mean, color=colour, linestyle=dash, linewidth=1.9, label=label, **(few if len(common) <= 25 else {})
    )
    return True


def development(comparison: Comparison, target: Target | None = None) -> Figure | None:
    """Dev score, effective rank and spread of the embeddings over training: what learns and what collapses."""
    logs = comparison.training_logs
    rows, others = rows_shown([row for row in comparison.rows if row.key in logs], target)
    panels: list[tuple[str, str, Callable[[float], float]]] = [
        ("spearman", "Dev Spearman ×100", lambda v: 100 * v),
        ("effective_rank", "Effective rank", float),
        ("std", "Spread (std)", float),
    ]
    have = [p for p in panels if any(_series(lines, "dev", p[0])[0] for row in rows for _, lines in logs[row.key])]
    if not have:
        return None
    with style():
        plot = new(7.2, 2.7 + 0.17 * math.ceil(len(rows) / 4))
        grid = plot.subplots(1, len(have), width_ratios=[1.5, *[1] * (len(have) - 1)], squeeze=False)[0]
        for axes, (key, title, convert) in zip(grid, have, strict=True):
            for i, row in enumerate(rows):
                thinned = _thinned([_series(lines, "dev", key) for _, lines in logs[row.key]])
                runs = [(s, [convert(x) for x in v]) for s, v in thinned]
                _draw_seeds(axes, runs, look(i), row_name(row, comparison))
            axes.set_title(title)
            axes.set_xlabel("step")
            axes.locator_params(axis="x", nbins=5 if axes is grid[0] else 3, integer=True)
        handles, labels = grid[0].get_legend_handles_labels()
        legend_below(plot, handles, labels)
        names = ", ".join(row.label for row in rows)
        return finish(
            plot,
            "development",
            "Dev score and collapse statistics during training",
            "Thick: mean over seeds; thin: single seeds. Points at 1, 2, 4, 8, ... training steps select nothing. "
            f"Effective rank and spread that fall towards zero show a collapse.{_long(comparison, 'dev')}{others}",
            f"Line plots over training steps of {', '.join(title for _, title, _ in have)} for {names}.",
        )


def losses(comparison: Comparison, target: Target | None = None) -> Figure | None:
    """Every loss term of every row in its own small panel: their scales have nothing in common."""
    logs = comparison.training_logs
    panels: list[tuple[ResultRow, str, int]] = []
    for i, row in enumerate(r for r in comparison.rows if r.key in logs):
        named = dict.fromkeys(
            k for _, lines in logs[row.key] for line in lines if line.get("kind") == "train" for k in line
        )
        terms = [k for k in named if k not in _NO_TERMS]
        # "loss" alone when a method has one term only: the term repeats it.
        panels += [(row, term, i) for term in (["loss"] if len(terms) <= 2 and "loss" in terms else terms)]
    panels = [p for p in panels if any(_series(lines, "train", p[1])[0] for _, lines in logs[p[0].key])]
    if not panels:
        return None
    first = {row.key for row in rows_shown(list({row.key: row for row, *_ in panels}.values()), target)[0]}
    panels.sort(key=lambda panel: panel[0].key not in first)  # where there is no room for all
    left_out = dict.fromkeys(row.label for row, *_ in panels[_PANELS:])
    others = (
        f" Room for {_PANELS} of {len(panels)} panels; not drawn: terms of {', '.join(left_out)}." if left_out else ""
    )
    panels = panels[:_PANELS]
    columns = min(3, len(panels))
    with style():
        plot = new(7.2, 0.35 + 1.75 * math.ceil(len(panels) / columns))
        grid = new_panels(plot, len(panels), columns)
        for axes, (row, term, i) in zip(grid, panels, strict=True):
            runs = _thinned([_series(lines, "train", term) for _, lines in logs[row.key]])
            look_ = look(i) | {"marker": ""}
            _draw_seeds(axes, runs, look_, "")
            axes.set_title(f"{row_name(row, comparison)}\n{short(term)}", fontsize=8, fontweight="normal")
            axes.locator_params(axis="x", nbins=4, integer=True)
            axes.locator_params(axis="y", nbins=4)
            axes.tick_params(labelsize=7.5)
        plot.supxlabel("step", fontsize=8.5)
        said = "; ".join(f"{row.label} {term}" for row, term, _ in panels)
        return finish(
            plot,
            "losses",
            "Loss terms",
            "Each term on its own scale. Thick: mean over seeds; thin: single seeds. Terms that level off have "
            f"converged; one that alone goes to zero may be a collapse."
            f"{_long(comparison, 'train')}{others}",
            f"Small line plots over training steps: {said}.",
        )
