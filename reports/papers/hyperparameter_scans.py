"""What the scans of hyperparameters show: scores of a study's trials by the options that it searched.

What is drawn comes from the paper's definition (`reports.papers.figure_spec`). Each figure is of one setting (base
model, dev set, training text, updates): STS-B dev where a study has it, then the one with most trials of the method.
None where no setting has two values of what it is drawn by.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from reports.document.blocks import Figure
from reports.figures.style import COLOURS, INK, MARKERS, finish, new, style
from reports.papers.definition import PaperRow
from reports.papers.figure_spec import Factor, PaperFigure
from reports.papers.matching import Matching
from reports.read.comparison_runs import base_name
from reports.read.run_library import ScoredTrial, TrialSetting, matches
from reports.stats.search import bin_of, bins, quartile

_Lines = dict[str, list[tuple[float, float, float, int]]]  # label -> (place, maximum, upper quartile, trials)
_BINS = 5
_LISTED = 10  # values that are shown one by one, as those of a grid


def scan(matching: Matching, figure: PaperFigure) -> Figure | None:
    """Maximum and upper quartile of a study's trials by one option, a panel for each group of its rows; or by two
    options, a panel each, beside the best trial of both together."""
    fields = [factor.key for factor in figure.factors]
    scanned = _scanned(matching, figure, fields)
    if scanned is None:
        return None
    setting, trials = scanned
    groups = _groups(matching, figure, trials)
    draw = _by_group if len(fields) == 1 else _by_both
    with style():
        plot = new(7.2, 3.0)
        lines = draw(plot, groups, trials, figure)
        _finish_lines(plot, plot.axes[0], setting)
        shared = {key: trials[0].runs[0].config.get(key) for key in figure.within}
        within = "".join(f" {figure.within[key].format(value)}" for key, value in shared.items() if value)
        caption = f"{_each(trials, *fields)}{figure.caption or '.'}{within}"
        return finish(plot, figure.key, figure.title, _caption(matching, setting, trials, caption), _said(lines))


_Groups = dict[str, list[tuple[str, list[ScoredTrial]]]]  # group -> (name of a row of the paper, its trials)


def _by_group(plot: Any, groups: _Groups, _: Sequence[ScoredTrial], figure: PaperFigure) -> list[_Lines]:
    factor = figure.factors[0]
    lines = {group: _lines(rows, factor.key) for group, rows in groups.items()}
    grid = plot.subplots(1, len(lines), sharey=True, squeeze=False)[0]
    for axes, (group, own) in zip(grid, lines.items(), strict=True):
        _draw(axes, own, factor.title.replace("{}", group), factor.axis)
    return list(lines.values())


def _by_both(plot: Any, groups: _Groups, trials: Sequence[ScoredTrial], figure: PaperFigure) -> list[_Lines]:
    rows = [row for members in groups.values() for row in members]
    left, middle, right = plot.subplots(1, 3, width_ratios=(1, 1, 1.15))
    middle.sharey(left)
    both = [_lines(rows, factor.key) for factor in figure.factors]
    for axes, own, factor in zip((left, middle), both, figure.factors, strict=True):
        _draw(axes, own, factor.title, factor.axis)
    middle.tick_params(labelleft=False)
    _heat(right, trials, *figure.factors)
    return both


def _scanned(
    matching: Matching, figure: PaperFigure, fields: Sequence[str]
) -> tuple[TrialSetting, list[ScoredTrial]] | None:
    """The setting with most trials of the method, STS-B dev first, of those that differ in all these fields and share
    the options that the figure is drawn `within`."""
    specs = [row for row in _rows(matching) if row.method == figure.method]
    known = {id(t): t for spec in specs for t in matching.trials_of(spec) if matches(t.runs[0], figure.where)}
    alike: dict[tuple[TrialSetting, tuple[str, ...]], list[ScoredTrial]] = {}
    for t in known.values():
        if all(_value(t, field) > 0 for field in fields):
            shared = tuple(str(t.runs[0].config.get(key)) for key in figure.within)
            alike.setdefault((t.setting, shared), []).append(t)
    differing = [
        (setting, trials)
        for (setting, _), trials in alike.items()
        if all(len({_value(t, field) for t in trials}) > 1 for field in fields)
    ]
    order = matching.library.settings
    return min(differing, key=lambda f: (f[0].dev_task != "STS-B", -len(f[1]), order.index(f[0])), default=None)


def _rows(matching: Matching) -> list[PaperRow]:
    return [row for table in matching.definition.tables if table.kind == "study" for row in table.rows]


def _groups(matching: Matching, figure: PaperFigure, trials: Sequence[ScoredTrial]) -> _Groups:
    """The rows of the paper's tables that have any of the trials, by the value of the option `by`; a row is named by
    that value and by the option which is called so, as in "shuffle 0.3" of view = "shuffle", shuffle = 0.3."""
    kept = {id(t) for t in trials}
    groups: _Groups = {}
    for spec in _rows(matching):
        own = [t for t in matching.trials_of(spec) if id(t) in kept] if spec.method == figure.method else []
        if own:
            group = str(spec.where.get(figure.by, ""))
            name = f"{group} {spec.where.get(group, '')}".strip() or spec.label
            groups.setdefault(group, []).append((name, own))
    return groups


def _value(trial: ScoredTrial, field: str) -> float:
    value = trial.runs[0].config.get(field)
    return float(value) if isinstance(value, int | float) else math.nan


def _lines(rows: Sequence[tuple[str, list[ScoredTrial]]], field: str) -> _Lines:
    values = [_value(t, field) for _, trials in rows for t in trials]
    intervals = _intervals(values)
    lines: _Lines = {}
    for label, trials in rows:
        for i, (low, high) in enumerate(intervals):
            scores = [100 * t.value for t in trials if bin_of(_value(t, field), intervals) == i]
            if scores:
                place = math.sqrt(low * high)
                lines.setdefault(label, []).append((place, max(scores), quartile(scores, 0.75), len(scores)))
    return lines


def _intervals(values: Sequence[float]) -> list[tuple[float, float]]:
    """One a value where they are few, else fifths of the range on a log scale."""
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


def _heat(axes: Any, trials: Sequence[ScoredTrial], a: Factor, b: Factor) -> None:
    """The best trial of each cell of two numbers' values or fifths."""
    across, up = (_intervals([_value(t, field) for t in trials]) for field in (a.key, b.key))
    grid = np.full((len(up), len(across)), np.nan)
    for t in trials:
        place = bin_of(_value(t, b.key), up), bin_of(_value(t, a.key), across)
        grid[place] = np.fmax(grid[place], 100 * t.value)
    low, high = np.nanmin(grid), np.nanmax(grid)
    axes.imshow(grid, cmap="cividis", origin="lower", aspect="auto")
    for (j, i), value in np.ndenumerate(grid):
        if not math.isnan(value):
            colour = "white" if value < (low + high) / 2 else INK
            axes.text(i, j, f"{value:.1f}", ha="center", va="center", fontsize=7, color=colour)
    for axis, intervals, name in ((axes.xaxis, across, a.axis), (axes.yaxis, up, b.axis)):
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
