"""What the scans of hyperparameters show: scores by lambda of Barlow Twins and VICReg (Farina and Pappadopulo, 2024).

Each figure is of one setting (base model, dev set, training text, updates): STS-B dev where a study has it, then the
one with most trials of the method. None where no setting has two values of what it is drawn by.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from reports.document.blocks import Figure
from reports.figures.style import COLOURS, INK, MARKERS, finish, new, style
from reports.papers.definition import PaperRow
from reports.papers.matching import Matching
from reports.read.comparison_runs import base_name
from reports.read.run_library import ScoredTrial, TrialSetting

_Lines = dict[str, list[tuple[float, float, float, int]]]  # label -> (place, maximum, upper quartile, trials)
_BINS = 5
_LISTED = 10  # values that are shown one by one, as those of a grid


def barlow_twins(matching: Matching) -> Figure | None:
    """Its Figure 1: maximum and upper quartile by the weight of redundancy reduction, a panel for each augmentation."""
    field = "off_diagonal_weight"
    found = _setting(matching, "barlow_twins", (field,))
    if found is None:
        return None
    setting, trials = found
    panels = _by_view(matching, "barlow_twins", trials)
    lines = {view: _lines(rows, field) for view, rows in panels.items()}
    with style():
        plot = new(7.2, 3.0)
        grid = plot.subplots(1, len(lines), sharey=True, squeeze=False)[0]
        for axes, (view, own) in zip(grid, lines.items(), strict=True):
            _draw(axes, own, f"Views: {view}", "λ_BT")
        _finish_lines(plot, grid[0], setting)
        return finish(
            plot, "scan-barlow-twins", "Barlow Twins: scores by λ_BT (Figure 1)",
            _caption(matching, setting, trials, f"{_each(trials, field)}, whatever their learning rate."),
            _said(own for own in lines.values()),
        )  # fmt: skip


def vicreg(matching: Matching) -> Figure | None:
    """Its Figure 2: the same by the weights of covariance and variance, and the best trial of both together."""
    fields = ("covariance_weight", "variance_weight")
    found = _setting(matching, "vicreg", fields)
    if found is None:
        return None
    setting, trials = found
    rows = [row for members in _by_view(matching, "vicreg", trials).values() for row in members]
    named = trials[0].runs[0].config.get("scaling")
    scaling = f' Weights in the scaling "{named}".' if named else ""
    with style():
        plot = new(7.2, 3.0)
        left, middle, right = plot.subplots(1, 3, width_ratios=(1, 1, 1.15))
        middle.sharey(left)
        both = [_lines(rows, field) for field in fields]
        for axes, own, name in zip((left, middle), both, ("λ_C", "λ_V"), strict=True):
            _draw(axes, own, f"By {name}", name)
        middle.tick_params(labelleft=False)
        _heat(right, trials, *fields)
        _finish_lines(plot, left, setting)
        return finish(
            plot, "scan-vicreg", "VICReg: scores by λ_C and λ_V (Figure 2)",
            _caption(matching, setting, trials, f"{_each(trials, *fields)}; right: the best trial of each cell, of any "
                     f"augmentation.{scaling}"),
            _said(both),
        )  # fmt: skip


def _setting(matching: Matching, method: str, fields: Sequence[str]) -> tuple[TrialSetting, list[ScoredTrial]] | None:
    """The setting with most trials of the method, STS-B dev first, of those that differ in all these fields.

    VICReg's weights mean other things in the code's scaling than in the paper's: only trials of one are taken.
    """
    specs = [row for row in _rows(matching) if row.method == method]
    known = {id(t): t for spec in specs for t in matching.trials_of(spec)}
    groups: dict[tuple[TrialSetting, str], list[ScoredTrial]] = {}
    for t in known.values():
        if all(_value(t, field) > 0 for field in fields):
            groups.setdefault((t.setting, str(t.runs[0].config.get("scaling"))), []).append(t)
    found = [
        (setting, trials)
        for (setting, _), trials in groups.items()
        if all(len({_value(t, field) for t in trials}) > 1 for field in fields)
    ]
    order = matching.library.settings
    return min(found, key=lambda f: (f[0].dev_task != "STS-B", -len(f[1]), order.index(f[0])), default=None)


def _rows(matching: Matching) -> list[PaperRow]:
    return [row for table in matching.definition.tables if table.kind == "study" for row in table.rows]


def _by_view(
    matching: Matching, method: str, trials: Sequence[ScoredTrial]
) -> dict[str, list[tuple[str, list[ScoredTrial]]]]:
    """Kind of augmentation -> (its strength, those of the trials) of each row of the paper's table that has any."""
    kept = {id(t) for t in trials}
    found: dict[str, list[tuple[str, list[ScoredTrial]]]] = {}
    for spec in _rows(matching):
        own = [t for t in matching.trials_of(spec) if id(t) in kept] if spec.method == method else []
        if own:
            view = str(spec.where.get("view", ""))
            found.setdefault(view, []).append((f"{view} {spec.where.get(view, '')}".strip(), own))
    return found


def _value(trial: ScoredTrial, field: str) -> float:
    value = trial.runs[0].config.get(field)
    return float(value) if isinstance(value, int | float) else math.nan


def _lines(rows: Sequence[tuple[str, list[ScoredTrial]]], field: str) -> _Lines:
    from reports.stats.search import bin_of, quartile

    values = [_value(t, field) for _, trials in rows for t in trials]
    intervals = _intervals(values)
    found: _Lines = {}
    for label, trials in rows:
        for i, (low, high) in enumerate(intervals):
            scores = [100 * t.value for t in trials if bin_of(_value(t, field), intervals) == i]
            if scores:
                place = math.sqrt(low * high)
                found.setdefault(label, []).append((place, max(scores), quartile(scores, 0.75), len(scores)))
    return found


def _intervals(values: Sequence[float]) -> list[tuple[float, float]]:
    """One a value where they are few, else fifths of the range on a log scale."""
    from reports.stats.search import bins

    few = len(set(values)) <= _LISTED
    return bins(values, log=True, count=_LISTED if few else _BINS, listed=few)


def _each(trials: Sequence[ScoredTrial], *fields: str) -> str:
    few = all(len({_value(t, field) for t in trials}) <= _LISTED for field in fields)
    places = "value" if few else "value, or fifth of the range on a log scale"
    return f"Maximum (full) and upper quartile (dashed) of the trials of each {places}"


def _draw(axes: Any, lines: _Lines, title: str, name: str) -> None:
    for k, (label, points) in enumerate(lines.items()):
        x = [p[0] for p in points]
        shared = {"color": COLOURS[k % len(COLOURS)], "marker": MARKERS[k % len(MARKERS)]}
        axes.plot(x, [p[1] for p in points], linestyle="-", markersize=4.5, label=label, **shared)
        axes.plot(x, [p[2] for p in points], linestyle="--", markersize=3, **shared)
    axes.set_xscale("log")
    places = sorted({p[0] for points in lines.values() for p in points})
    slanted = {"rotation": 45, "ha": "right", "rotation_mode": "anchor"} if len(places) > 4 else {}
    axes.set_xticks(places, [_short(x) for x in places], fontsize=7, **slanted)
    axes.minorticks_off()
    axes.set_title(title)
    axes.set_xlabel(name)


def _short(x: float) -> str:
    return f"{x:,.0f}" if x >= 10 else f"{x:.2g}"


def _finish_lines(plot: Any, first: Any, setting: TrialSetting) -> None:
    from matplotlib.lines import Line2D

    first.set_ylabel(f"{setting.dev_task} dev Spearman ×100")
    named: dict[str, Any] = {}
    for axes in plot.axes:
        named |= {label: handle for handle, label in zip(*axes.get_legend_handles_labels(), strict=True)}
    named["maximum"] = Line2D([], [], color=INK, linestyle="-")
    named["upper quartile"] = Line2D([], [], color=INK, linestyle="--")
    plot.legend(list(named.values()), list(named), loc="outside lower center", ncols=min(len(named), 5), fontsize=8)


def _heat(axes: Any, trials: Sequence[ScoredTrial], a: str, b: str) -> None:
    """The best trial of each cell of two numbers' values or fifths."""
    from reports.stats.search import bin_of

    across, up = (_intervals([_value(t, field) for t in trials]) for field in (a, b))
    grid = np.full((len(up), len(across)), np.nan)
    for t in trials:
        place = bin_of(_value(t, b), up), bin_of(_value(t, a), across)
        grid[place] = np.fmax(grid[place], 100 * t.value)
    low, high = np.nanmin(grid), np.nanmax(grid)
    axes.imshow(grid, cmap="cividis", origin="lower", aspect="auto")
    for (j, i), value in np.ndenumerate(grid):
        if not math.isnan(value):
            colour = "white" if value < (low + high) / 2 else INK
            axes.text(i, j, f"{value:.1f}", ha="center", va="center", fontsize=7, color=colour)
    for axis, intervals, name in ((axes.xaxis, across, "λ_C"), (axes.yaxis, up, "λ_V")):
        axis.set_ticks(range(len(intervals)), [_short(math.sqrt(x * y)) for x, y in intervals], fontsize=7)
        axis.set_label_text(name)
    axes.set_title("By both: best trial")
    axes.grid(visible=False)


def _caption(matching: Matching, setting: TrialSetting, trials: Sequence[ScoredTrial], text: str) -> str:
    """Where the figure comes from, in words: the embedded suite is not STS-B, nor a small model the paper's."""
    studies = ", ".join(sorted({t.study for t in trials}))
    where = f"{base_name(setting.base_model)}, {matching.library.setting_names[setting]}"
    return f"{text} {len(trials)} trials from {where} (studies: {studies})."


def _said(lines: Any) -> str:
    parts = [
        f"{label}: " + ", ".join(f"{x:.2g}: {best:.2f} and {upper:.2f} of {n}" for x, best, upper, n in points)
        for own in lines
        for label, points in own.items()
    ]
    return f"Maximum and upper quartile by weight. {'; '.join(parts)}."
