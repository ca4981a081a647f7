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
from reports.papers.conditions import format_value
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
_Budgets = dict[tuple[int, int], list[RecordedRow]]  # amount of text, training steps -> rows
_BINS = 5
_LISTED = 10  # values that are shown one by one, as those of a grid


# --- ablations
# --------------------------------------------------------------------------------------------------------


def ablation(paper: PaperResults, figure: PaperFigure) -> Figure | None:
    """A figure of kind "levels" (every factor, whatever else differs), "additions" (rows with one
    of the factors next to rows with none) or "amounts" (the levels of one factor by the amount of
    text).
    """
    found = _find_scored_rows(paper, figure, _select_rows(paper, figure))
    if found is None:
        return None
    title, scored = found
    if figure.kind == "levels":
        panels = _level_panels(figure, scored)
    elif figure.kind == "additions":
        panels = _panels_of_additions(figure, scored)
    else:
        panels = _amount_panels(figure, scored)
    if not panels:
        return None
    return _draw_strips(figure, title, scored, panels)


def _select_rows(paper: PaperResults, figure: PaperFigure) -> list[RecordedRow]:
    """Return the rows of the figure's method and settings; of its options that are to be the same,
    those with the most frequent value, since others would mix with the factor.
    """
    every = [row for row in paper.library.find(figure.method) if row.finished]
    rows = [row for row in every if matches(row.records[0], figure.where)]
    if not every:
        return []
    for key in figure.same:
        values = [_option(row, key) for row in every]
        distinct = sorted(set(values), key=str)
        usual = max(distinct, key=values.count)
        rows = [row for row in rows if _option(row, key) == usual]
    return rows


def _find_scored_rows(
    paper: PaperResults,
    figure: PaperFigure,
    rows: Sequence[RecordedRow],
) -> tuple[str, _Scored] | None:
    """The title of a score and the rows that have it: of the base model and text (no rehearsal
    where there is a run) and of the number of training steps with most rows.

    Additions need rows that have one. Different amounts of a text belong together, each with its
    most frequent number of training steps.
    """
    groups: dict[tuple[str, str, bool], _Budgets] = {}
    for row in rows:
        corpus = row.finished[0].corpus or {}
        group = row.base_model, str(corpus.get("uri")), row.rehearsal
        budget = _entries(row), _steps(row)
        budgets = groups.setdefault(group, {})
        budgets.setdefault(budget, []).append(row)

    def rank(members: Sequence[RecordedRow]) -> tuple[bool, int, int]:
        is_run = bool(members) and not members[0].rehearsal
        return is_run, _count_needed(figure, members), len(members)

    best: list[RecordedRow] = []
    for _, budgets in sorted(groups.items()):
        members = _choose_budgets(figure, budgets)
        best = max(best, members, key=rank)

    title = ""
    most: _Scored | None = None
    for column in paper.columns(figure):
        scored = []
        for row in best:
            measured = paper.measure(row, column)
            if measured.by_seed:
                mean, _ = mean_sd(measured.values)
                scored.append((row, mean))
        if most is None or len(scored) > len(most):
            title = column.title
            most = scored
    if not most:
        return None
    return title, most


def _choose_budgets(figure: PaperFigure, budgets: _Budgets) -> list[RecordedRow]:
    """Return the rows of the number of training steps with most rows; of "amounts" those of each
    amount of text.
    """

    def rank(budget: tuple[int, int]) -> tuple[int, int, tuple[int, int]]:
        members = budgets[budget]
        return _count_needed(figure, members), len(members), budget

    order = sorted(budgets, key=rank)
    if figure.kind == "amounts":
        usual = {}
        for budget in order:
            entries, _ = budget
            usual[entries] = budget
        chosen = sorted(usual.values())
    else:
        chosen = order[-1:]
    members = []
    for budget in chosen:
        members.extend(budgets[budget])
    return members


def _count_needed(figure: PaperFigure, rows: Sequence[RecordedRow]) -> int:
    """Return how many rows a figure can show: of "additions" those that have one."""
    if figure.kind != "additions":
        return len(rows)
    count = 0
    for row in rows:
        if _factors_of(row, figure):
            count += 1
    return count


def _level_panels(figure: PaperFigure, rows: _Scored) -> _Panels:
    panels = []
    for key, axis in figure.factors.items():
        levels = _by_level(rows, partial(_option, key=key))
        if len(levels) > 1:
            panels.append((_title(key), axis, levels))
    return panels


def _panels_of_additions(figure: PaperFigure, rows: _Scored) -> _Panels:
    plain: _Scored = []
    by_factor: dict[str, _Scored] = {}
    for row, score in rows:
        factors = _factors_of(row, figure)
        if not factors:
            plain.append((row, score))
        elif len(factors) == 1:
            by_factor.setdefault(factors[0], []).append((row, score))
    panels = []
    for key, axis in figure.factors.items():
        if key in by_factor:
            levels = _by_level(by_factor[key], partial(_option, key=key))
            if plain:
                levels.insert(0, ("none", plain))
            panels.append((_title(key), axis, levels))
    return panels


def _draw_strips(figure: PaperFigure, score: str, rows: _Scored, panels: _Panels) -> Figure:
    """A panel per factor: each configuration as a dot, the mean of each level as a bar."""
    first, _ = rows[0]
    caption = f"{score}, from {base_name(first.base_model)}."
    caption += " A dot: one configuration, mean over its seeds; a bar: the mean of a level."
    if figure.kind != "amounts":
        caption += " All had the same number of training steps."
    width = 4.2
    if len(panels) > 1 or figure.kind == "levels":
        width = 7.2
    means = []
    with style():
        plot = new(width, 2.9)
        (grid,) = plot.subplots(1, len(panels), sharey=True, squeeze=False)
        for axes, (title, axis, levels) in zip(grid, panels, strict=True):
            names = []
            for i, (level, members) in enumerate(levels):
                _draw_level(axes, i, members)
                names.append(str(level))
            axes.set_xticks(range(len(levels)), names, fontsize=7.5)
            axes.set_xlim(-0.6, len(levels) - 0.4)
            axes.set_title(title)
            axes.set_xlabel(axis)
            axes.grid(axis="x", visible=False)
            means.append(f"{title}: {_means(levels)}")
        grid[0].set_ylabel(score.replace(" (", "\n("), fontsize=8)
        alt = f"Dots by level of each factor. {'; '.join(means)}."
        return finish(plot, figure.key, figure.title, caption, alt)


def _draw_level(axes: Any, place: int, members: _Scored) -> None:
    """Draw the configurations of a level as dots side by side, and their mean as a bar."""
    for k, (_, value) in enumerate(members):
        x = float(place)
        if len(members) > 1:
            share = k / (len(members) - 1)
            x += 0.24 * (share - 0.5)
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
        [place - 0.28, place + 0.28],
        [_mean(members)] * 2,
        color=INK,
        linewidth=1.6,
        solid_capstyle="butt",
    )


def _amount_panels(figure: PaperFigure, rows: _Scored) -> _Panels:
    """A panel per level of one factor: its scores by the amount of text."""
    factor = next(iter(figure.factors))
    levels = _by_level(rows, partial(_option, key=factor))
    sizes = {_entries(row) for row, _ in rows}
    if len(levels) < 2 and len(sizes) < 2:
        return []
    first, _ = rows[0]
    corpus = first.finished[0].corpus or {}
    unit = str(corpus.get("kind") or "entries")
    panels = []
    for level, members in levels:
        by_size = _by_level(members, lambda row: (_entries(row), _steps(row)))
        named: _Levels = []
        for (entries, steps), same in by_size:
            size = f"{entries:,}\n({steps:,} steps)"
            named.append((size, same))
        axis = f"{unit} (training steps)"
        panels.append((str(level), axis, named))
    return panels


def _mean(rows: _Scored) -> float:
    mean, _ = mean_sd([score for _, score in rows])
    return mean


def _means(levels: _Levels) -> str:
    texts = []
    for level, members in levels:
        name = str(level).replace("\n", " ")
        texts.append(f"{name}: {_mean(members):.2f}")
    return ", ".join(texts)


def _title(key: str) -> str:
    """The title of a factor's panel: the name of its (first) option."""
    first, _, _ = key.partition("+")
    return first.replace("_", " ").capitalize()


def _by_level(rows: _Scored, level: Callable[[RecordedRow], Any]) -> _Levels:
    by_level: dict[Any, _Scored] = {}
    for row, score in rows:
        by_level.setdefault(level(row), []).append((row, score))

    def order(item: tuple[Any, _Scored]) -> tuple[bool, Any]:
        """Numbers come before texts."""
        value, _ = item
        return isinstance(value, str), value

    return sorted(by_level.items(), key=order)


def _option(row: RecordedRow, key: str) -> Any:
    """The level of a factor: a number or a text; of several options together (A+B) as one text."""
    config = row.records[0].config
    values = [config.get(one) for one in key.split("+")]
    if len(values) > 1:
        return "\n".join(map(str, values))
    (value,) = values
    if isinstance(value, int | float):
        return value
    return format_value(value)


def _factors_of(row: RecordedRow, figure: PaperFigure) -> list[str]:
    """The factors that a row has."""
    found = []
    config = row.records[0].config
    for key in figure.factors:
        first, _, _ = key.partition("+")
        if config.get(first):
            found.append(key)
    return found


def _entries(row: RecordedRow) -> int:
    corpus = row.finished[0].corpus or {}
    return int(corpus.get("count") or 0)


def _steps(row: RecordedRow) -> int:
    training = row.finished[0].training
    return int(training.get("planned_steps") or 0)


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
            name = figure.factors[key]
            axes.set(xlabel=name, title=title or f"By {name}")
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
            group = ""
            if comma:
                group, _, _ = name.partition(" ")
            groups.setdefault(group, []).append((name, own))
    return groups


def _panels_of_groups(plot: Any, groups: Mapping[str, _Named], key: str) -> list[_ScanPanel]:
    """Return a panel for each group."""
    (grid,) = plot.subplots(1, len(groups), sharey=True, squeeze=False)
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
    scored = []
    by_first = []
    by_second = []
    for trial in trials:
        a = _value(trial, first)
        b = _value(trial, second)
        by_first.append(a)
        by_second.append(b)
        scored.append((a, b, 100 * trial.value))
    draw_best(right, scored, _intervals(by_first), _intervals(by_second))
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
    values = []
    for label, own in members:
        points = []
        for trial in own:
            value = _value(trial, key)
            values.append(value)
            points.append((value, 100 * trial.value))
        by_row[label] = points
    return draw_by_bin(axes, by_row, _intervals(values), log=True)


def _describe_scan(figure: PaperFigure, trials: Sequence[ScoredTrial], where: str) -> str:
    what = "value"
    if any(_count_values(trials, key) > _LISTED for key in figure.factors):
        what = "value, or fifth of the range on a log scale"
    text = (
        f"Maximum (full) and upper quartile (dashed) of the trials of each {what}, whatever their "
        "other options."
    )
    if len(figure.factors) > 1:
        text += " Right: the best trial of each cell."
    config = trials[0].runs[0].config
    for key in figure.same:
        text += f" {key}: {config.get(key)}."
    names = {trial.study for trial in trials}
    studies = ", ".join(sorted(names))
    return f"{text} {len(trials)} trials from {where} (studies: {studies})."


def _count_values(trials: Sequence[ScoredTrial], key: str) -> int:
    """Return how many values of an option some trials have."""
    return len({_value(trial, key) for trial in trials})


def _describe_points(label: str, points: Points) -> str:
    texts = []
    for x, best, upper, n in points:
        texts.append(f"{x:.2g}: {best:.2f} and {upper:.2f} of {n}")
    return f"{label}: {', '.join(texts)}"


def _rows_of_studies(paper: PaperResults, figure: PaperFigure) -> list[PaperRow]:
    """The rows of the figure's method in tables of studies."""
    found = []
    for table in paper.definition.tables:
        if table.studies:
            found += [row for row in table.rows if row.method == figure.method]
    return found


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
        for trial in paper.trials_of(row):
            known[id(trial)] = trial
    alike: dict[tuple[TrialSetting, tuple[str, ...]], list[ScoredTrial]] = {}
    for trial in known.values():
        run = trial.runs[0]
        if matches(run, figure.where) and all(_value(trial, key) > 0 for key in keys):
            shared = tuple(str(run.config.get(key)) for key in figure.same)
            alike.setdefault((trial.setting, shared), []).append(trial)
    found = []
    for (setting, _), trials in alike.items():
        if all(_count_values(trials, key) > 1 for key in keys):
            found.append((setting, trials))
    order = paper.library.settings

    def rank(one: tuple[TrialSetting, list[ScoredTrial]]) -> tuple[bool, int, int]:
        setting, trials = one
        return setting.dev_task != "STS-B", -len(trials), order.index(setting)

    return min(found, key=rank, default=None)


def _value(trial: ScoredTrial, key: str) -> float:
    value = trial.runs[0].config.get(key)
    if isinstance(value, int | float):
        return float(value)
    return math.nan


def _intervals(values: Sequence[float]) -> list[tuple[float, float]]:
    """One per value where they are few, else fifths of the range on a log scale."""
    few = len(set(values)) <= _LISTED
    return bins(values, log=True, count=_LISTED if few else _BINS, listed=few)
