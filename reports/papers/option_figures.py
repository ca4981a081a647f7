"""Scores by the options of a method: ablations over our runs, and scans over the trials of studies.

A figure is None if nothing was measured that it could show. Only runs of one base model, text and
number of training steps are shown together.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from reports.document.blocks import Figure
from reports.figures.style import COLOURS, INK, finish, new, style
from reports.figures.trials import Points, draw_best, draw_by_bin, draw_legend
from reports.load import RecordedRow
from reports.papers.definition import PaperFigure, PaperRow
from reports.papers.paper_results import PaperResults
from reports.records.run_library import ScoredTrial, TrialSetting, matches
from reports.results import base_name
from reports.stats.estimate import bins, mean_sd

_Scored = list[tuple[RecordedRow, float]]  # rows with their mean score
_Levels = list[tuple[Any, _Scored]]  # level of a factor -> the rows that have it
_Panels = list[tuple[str, str, _Levels]]  # title, label of the axis, levels
_Named = list[tuple[str, list[ScoredTrial]]]  # name of a row of the paper, its trials
_ScanPanel = tuple[Any, _Named, str, str]  # axes, rows, option, title
_BINS = 5
_LISTED = 10  # values that are shown one by one, as those of a grid


# --- ablations
# --------------------------------------------------------------------------------------------------------


def ablation(paper: PaperResults, figure: PaperFigure) -> Figure | None:
    """A figure of kind "levels" (every factor, whatever else differs), "additions" (rows with one
    of the factors next to rows with none) or "amounts" (the levels of one factor by the amount of
    text).
    """
    every = [row for row in paper.library.find(figure.method) if row.finished]
    rows = [row for row in every if matches(row.records[0], figure.where)]
    for key in (
        figure.same if every else ()
    ):  # the most frequent value: others would mix with the factor
        values = [_option(row, key) for row in every]
        usual = max(sorted(set(values), key=str), key=values.count)
        rows = [row for row in rows if _option(row, key) == usual]
    found = _scored_rows(paper, figure, rows)
    if found is None:
        return None
    make = {"levels": _level_panels, "additions": _added_panels, "amounts": _amount_panels}[
        figure.kind
    ]
    panels = make(figure, found[1])
    if panels:
        return _draw_strips(figure, *found, panels)
    return None


def _scored_rows(
    paper: PaperResults,
    figure: PaperFigure,
    rows: Sequence[RecordedRow],
) -> tuple[str, _Scored] | None:
    """The title of a score and the rows that have it: of the base model and text (no rehearsal
    where there is a run) and of the number of training steps with most rows.

    Additions need rows that have one. Different amounts of a text belong together, each with its
    most frequent number of training steps.
    """
    groups: dict[tuple[str, str, bool], dict[tuple[int, int], list[RecordedRow]]] = {}
    for row in rows:
        place = row.base_model, str((row.finished[0].corpus or {}).get("uri")), row.rehearsal
        groups.setdefault(place, {}).setdefault((_entries(row), _steps(row)), []).append(row)

    def count_needed(members: Sequence[RecordedRow]) -> int:
        return sum(figure.kind != "additions" or bool(_factors_of(row, figure)) for row in members)

    best: list[RecordedRow] = []
    for _, budgets in sorted(groups.items()):
        order = sorted(budgets, key=lambda b, own=budgets: (count_needed(own[b]), len(own[b]), b))  # type: ignore[misc]
        usual = {entries: (entries, steps) for entries, steps in order}
        if figure.kind == "amounts":
            chosen = sorted(usual.values())
        else:
            chosen = order[-1:]
        members = []
        for budget in chosen:
            members.extend(budgets[budget])
        best = max(
            best,
            members,
            key=lambda m: (bool(m) and not m[0].rehearsal, count_needed(m), len(m)),
        )
    scored = {}
    for column in paper.columns(figure):
        scored[column.title] = [
            (row, mean_sd(m.values)[0]) for row in best if (m := paper.measure(row, column)).by_seed
        ]
    title = max(scored, key=lambda name: len(scored[name]))
    if scored[title]:
        return (title, scored[title])
    return None


def _level_panels(figure: PaperFigure, rows: _Scored) -> _Panels:
    panels = []
    for key, axis in figure.factors.items():
        panels.append((key, axis, _by_level(rows, partial(_option, key=key))))
    return [(_title(key), axis, levels) for key, axis, levels in panels if len(levels) > 1]


def _added_panels(figure: PaperFigure, rows: _Scored) -> _Panels:
    plain = [(row, s) for row, s in rows if not _factors_of(row, figure)]
    if plain:
        none: _Levels = [("none", plain)]
    else:
        none = []
    panels = []
    for key, axis in figure.factors.items():
        if own := [(row, s) for row, s in rows if _factors_of(row, figure) == [key]]:
            panels.append((_title(key), axis, [*none, *_by_level(own, partial(_option, key=key))]))
    return panels


def _draw_strips(figure: PaperFigure, score: str, rows: _Scored, panels: _Panels) -> Figure:
    """A panel per factor: each configuration as a dot, the mean of each level as a bar."""
    with style():
        plot = new(7.2 if len(panels) > 1 or figure.kind == "levels" else 4.2, 2.9)
        grid = plot.subplots(1, len(panels), sharey=True, squeeze=False)[0]
        for axes, (title, axis, levels) in zip(grid, panels, strict=True):
            for i, (_, members) in enumerate(levels):
                for k, (_, value) in enumerate(members):
                    x = float(i)
                    if len(members) > 1:
                        x += 0.24 * (k / (len(members) - 1) - 0.5)
                    axes.plot(
                        [x],
                        [value],
                        color=COLOURS[0],
                        marker="o",
                        markersize=4.5,
                        linestyle="",
                        alpha=0.75,
                    )
                axes.plot(
                    [i - 0.28, i + 0.28],
                    [_mean(members)] * 2,
                    color=INK,
                    linewidth=1.6,
                    solid_capstyle="butt",
                )
            axes.set_xticks(range(len(levels)), [str(level) for level, _ in levels], fontsize=7.5)
            axes.set_xlim(-0.6, len(levels) - 0.4)
            axes.set_title(title)
            axes.set_xlabel(axis)
            axes.grid(axis="x", visible=False)
        grid[0].set_ylabel(score.replace(" (", "\n("), fontsize=8)
        means = (f"{title}: {_means(levels)}" for title, _, levels in panels)
        caption = "A dot: one configuration, mean over its seeds; a bar: the mean of a level."
        if figure.kind == "amounts":
            caption += ""
        else:
            caption += " All had the same number of training steps."
        return finish(
            plot,
            figure.key,
            figure.title,
            f"{score}, from {base_name(rows[0][0].base_model)}. {caption}",
            f"Dots by level of each factor. {'; '.join(means)}.",
        )


def _amount_panels(figure: PaperFigure, rows: _Scored) -> _Panels:
    """A panel per level of one factor: its scores by the amount of text."""
    levels = _by_level(rows, partial(_option, key=next(iter(figure.factors))))
    sizes = {_entries(row) for row, _ in rows}
    corpus = rows[0][0].finished[0].corpus or {}
    unit = str(corpus.get("kind") or "entries")
    panels = []
    for level, members in levels if len(levels) > 1 or len(sizes) > 1 else []:
        by_size = _by_level(members, lambda row: (_entries(row), _steps(row)))
        named = []
        for (entries, steps), same in by_size:
            named.append((f"{entries:,}\n({steps:,} steps)", same))
        panels.append((str(level), f"{unit} (training steps)", named))
    return panels


def _mean(rows: _Scored) -> float:
    return mean_sd([score for _, score in rows])[0]


def _means(levels: _Levels) -> str:
    texts = []
    for level, members in levels:
        texts.append(f"{str(level).replace(chr(10), ' ')}: {_mean(members):.2f}")
    return ", ".join(texts)


def _title(key: str) -> str:
    """The title of a factor's panel: the name of its (first) option."""
    return key.partition("+")[0].replace("_", " ").capitalize()


def _by_level(rows: _Scored, level: Callable[[RecordedRow], Any]) -> _Levels:
    by_level: dict[Any, _Scored] = {}
    for row, score in rows:
        by_level.setdefault(level(row), []).append((row, score))
    return sorted(by_level.items(), key=lambda item: (isinstance(item[0], str), item[0]))


def _option(row: RecordedRow, key: str) -> Any:
    """The level of a factor; of several options together (A+B) as one text."""
    values = []
    for one in key.split("+"):
        values.append(row.records[0].config.get(one))
    if len(values) == 1:
        return values[0]
    return "\n".join(map(str, values))


def _factors_of(row: RecordedRow, figure: PaperFigure) -> list[str]:
    """The factors that a row has."""
    return [key for key in figure.factors if _option(row, key.partition("+")[0])]


def _entries(row: RecordedRow) -> int:
    return int((row.finished[0].corpus or {}).get("count") or 0)


def _steps(row: RecordedRow) -> int:
    return int(row.finished[0].training.get("planned_steps") or 0)


# --- scans
# ------------------------------------------------------------------------------------------------------------


def scan(paper: PaperResults, figure: PaperFigure) -> Figure | None:
    """Maximum and upper quartile of a study's trials by one option, with a panel for each group of
    its rows ("METHOD, GROUP VALUE" in their labels); or by two options, a panel each, and the best
    trial by both.

    Of one setting (base model, dev set, training text, training steps): STS-B dev where a study has
    it, then the one with most trials. None where no setting has two values of each option.
    """
    keys = list(figure.factors)
    found = _find_trials(paper, figure, keys)
    if found is None:
        return None
    setting, trials = found
    groups = _group_trials(paper, figure, trials)
    with style():
        plot = new(7.2, 3.0)
        if len(keys) == 1:
            panels = _panels_of_groups(plot, groups, keys[0])
        else:
            panels = _panels_of_two(plot, groups, figure, trials)
        lines = []
        for axes, members, key, title in panels:
            lines.append(_draw_panel(axes, members, key))
            axes.set(xlabel=figure.factors[key], title=title or f"By {figure.factors[key]}")
        plot.axes[0].set_ylabel(f"{setting.dev_task} dev Spearman ×100")
        draw_legend(plot)
        where = f"{base_name(setting.base_model)}, {paper.library.setting_names[setting]}"
        caption = _describe_scan(figure, trials, where)
        values = []
        for own in lines:
            for label, some in own.items():
                values.append(_describe_points(label, some))
        alt = f"Maximum and upper quartile by value. {'; '.join(values)}."
        return finish(plot, figure.key, figure.title, caption, alt)


def _group_trials(
    paper: PaperResults,
    figure: PaperFigure,
    trials: Sequence[ScoredTrial],
) -> dict[str, _Named]:
    """Return the trials of each row of the method's studies, by the group of the row."""
    chosen = {id(trial) for trial in trials}
    groups: dict[str, _Named] = {}
    for row in _rows_of_studies(paper, figure):
        own = [trial for trial in paper.trials_of(row) if id(trial) in chosen]
        if own:
            _, comma, name = row.label.rpartition(", ")
            if comma:
                group = name.partition(" ")[0]
            else:
                group = ""
            groups.setdefault(group, []).append((name, own))
    return groups


def _panels_of_groups(plot: Any, groups: Mapping[str, _Named], key: str) -> list[_ScanPanel]:
    """Return a panel for each group."""
    grid = plot.subplots(1, len(groups), sharey=True, squeeze=False)[0]
    panels = []
    for axes, (group, rows) in zip(grid, groups.items(), strict=True):
        panels.append((axes, rows, key, group))
    return panels


def _panels_of_two(
    plot: Any,
    groups: Mapping[str, _Named],
    figure: PaperFigure,
    trials: Sequence[ScoredTrial],
) -> list[_ScanPanel]:
    """Return a panel for each of two options; draw the best trials by both into a third one."""
    first, second = figure.factors
    left, middle, right = plot.subplots(1, 3, width_ratios=(1, 1, 1.15))
    middle.sharey(left)
    middle.tick_params(labelleft=False)
    across = _intervals([_value(trial, first) for trial in trials])
    up = _intervals([_value(trial, second) for trial in trials])
    best = []
    for t in trials:
        best.append((_value(t, first), _value(t, second), 100 * t.value))
    draw_best(right, best, across, up)
    right.set(
        xlabel=figure.factors[first],
        ylabel=figure.factors[second],
        title="By both: best trial",
    )
    rows = []
    for members in groups.values():
        rows.extend(members)
    return [(left, rows, first, ""), (middle, rows, second, "")]


def _draw_panel(axes: Any, members: _Named, key: str) -> dict[str, Points]:
    """Draw the trials of some rows by an option; return what was drawn of each."""
    by_row = {}
    for label, own in members:
        by_row[label] = [(_value(trial, key), 100 * trial.value) for trial in own]
    intervals = _intervals([value for points in by_row.values() for value, _ in points])
    return draw_by_bin(axes, by_row, intervals, log=True)


def _describe_scan(figure: PaperFigure, trials: Sequence[ScoredTrial], where: str) -> str:
    keys = list(figure.factors)
    few = all(len({_value(trial, key) for trial in trials}) <= _LISTED for key in keys)
    what = "value" if few else "value, or fifth of the range on a log scale"
    if len(keys) == 1:
        right = ""
    else:
        right = " Right: the best trial of each cell."
    texts = []
    for key in figure.same:
        texts.append(f" {key}: {trials[0].runs[0].config.get(key)}.")
    shared = "".join(texts)
    studies = ", ".join(sorted({trial.study for trial in trials}))
    return (
        f"Maximum (full) and upper quartile (dashed) of the trials of each {what}, whatever their "
        f"other options.{right}{shared} {len(trials)} trials from {where} (studies: {studies})."
    )


def _describe_points(label: str, points: Points) -> str:
    texts = []
    for x, best, upper, n in points:
        texts.append(f"{x:.2g}: {best:.2f} and {upper:.2f} of {n}")
    return f"{label}: {', '.join(texts)}"


def _rows_of_studies(paper: PaperResults, figure: PaperFigure) -> list[PaperRow]:
    """The rows of the figure's method in tables of studies."""
    tables = [table for table in paper.definition.tables if table.studies]
    return [row for table in tables for row in table.rows if row.method == figure.method]


def _find_trials(
    paper: PaperResults,
    figure: PaperFigure,
    keys: Sequence[str],
) -> tuple[TrialSetting, list[ScoredTrial]] | None:
    """The setting with most trials of the method, STS-B dev first, of those with two values of each
    option and one value of each option in `same`.
    """
    known = {}
    for row in _rows_of_studies(paper, figure):
        for t in paper.trials_of(row):
            known[id(t)] = t
    alike: dict[tuple[TrialSetting, tuple[str, ...]], list[ScoredTrial]] = {}
    for t in known.values():
        if matches(t.runs[0], figure.where) and all(_value(t, key) > 0 for key in keys):
            shared = tuple(str(t.runs[0].config.get(key)) for key in figure.same)
            alike.setdefault((t.setting, shared), []).append(t)
    found = []
    for (setting, _), trials in alike.items():
        if all(len({_value(t, key) for t in trials}) > 1 for key in keys):
            found.append((setting, trials))
    order = paper.library.settings
    return min(
        found,
        key=lambda f: (f[0].dev_task != "STS-B", -len(f[1]), order.index(f[0])),
        default=None,
    )


def _value(trial: ScoredTrial, key: str) -> float:
    value = trial.runs[0].config.get(key)
    if isinstance(value, int | float):
        return float(value)
    return math.nan


def _intervals(values: Sequence[float]) -> list[tuple[float, float]]:
    """One per value where they are few, else fifths of the range on a log scale."""
    few = len(set(values)) <= _LISTED
    return bins(values, log=True, count=_LISTED if few else _BINS, listed=few)
