"""Ablations of a method: the score by the levels of its options, by the amount of text, by what is added to it.

Each figure is None when nothing was measured that it could show. Only runs of one base model, text and number of
training steps are shown together.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from reports.document.blocks import Figure
from reports.figures.style import COLOURS, INK, finish, new, style
from reports.papers.definition import PaperFigure
from reports.papers.matching import Matching
from reports.read.comparison_runs import ResultRow, base_name
from reports.read.configuration import default_of
from reports.read.run_library import matches
from reports.stats.estimate import mean_sd

_Scored = list[tuple[ResultRow, float]]  # rows with their mean score
_Levels = list[tuple[Any, _Scored]]  # level of a factor -> the rows that have it
_Panels = list[tuple[str, str, _Levels]]  # title, label of the axis, levels


def ablation(matching: Matching, figure: PaperFigure) -> Figure | None:
    """A figure of kind "levels" (every factor, whatever else differs), "additions" (rows with one of the factors next
    to rows with none) or "amounts" (the levels of one factor by the amount of text)."""
    rows = [row for row in matching.library.find(figure.method) if row.finished]
    shared = _usual_values(rows, figure.same)
    rows = [row for row in rows if matches(row.records[0], figure.where)]
    rows = [row for row in rows if all(_option(row, key) == value for key, value in shared.items())]
    found = _scored_rows(matching, figure, rows)
    if found is None:
        return None
    make = {"levels": _level_panels, "additions": _added_panels, "amounts": _amount_panels}[figure.kind]
    panels = make(figure, found[1])
    return _draw_strips(figure, *found, panels) if panels else None


def _scored_rows(matching: Matching, figure: PaperFigure, rows: Sequence[ResultRow]) -> tuple[str, _Scored] | None:
    """The title of a score and the rows that have it: of the base model and text (no rehearsal where there is a run)
    and of the number of training steps with most rows.

    Additions need rows that have one. Different amounts of a text belong together, each with its most frequent number
    of training steps.
    """
    groups: dict[tuple[str, str, bool], dict[tuple[int, int], list[ResultRow]]] = {}
    for row in rows:
        place = row.base_model, str((row.finished[0].corpus or {}).get("uri")), row.rehearsal
        groups.setdefault(place, {}).setdefault((_entries(row), _steps(row)), []).append(row)

    def needed(members: Sequence[ResultRow]) -> int:
        return sum(figure.kind != "additions" or bool(_added(row, figure)) for row in members)

    best: list[ResultRow] = []
    for _, budgets in sorted(groups.items()):
        order = sorted(budgets, key=lambda b, own=budgets: (needed(own[b]), len(own[b]), b))  # type: ignore[misc]
        chosen = list({entries: (entries, steps) for entries, steps in order}.values())
        chosen = sorted(chosen) if figure.kind == "amounts" else order[-1:]
        members = [row for budget in chosen for row in budgets[budget]]
        best = max(best, members, key=lambda m: (bool(m) and not m[0].rehearsal, needed(m), len(m)))
    scored = {
        column.title: [(row, mean_sd(m.values)[0]) for row in best if (m := matching.measure(row, column)).by_seed]
        for column in matching.columns(figure)
    }
    title = max(scored, key=lambda name: len(scored[name]))
    return (title, scored[title]) if scored[title] else None


def _level_panels(figure: PaperFigure, rows: _Scored) -> _Panels:
    panels = [(key, axis, _by_level(rows, _reader(key))) for key, axis in figure.factors.items()]
    return [(_title(key), axis, levels) for key, axis, levels in panels if len(levels) > 1]


def _added_panels(figure: PaperFigure, rows: _Scored) -> _Panels:
    plain = [(row, s) for row, s in rows if not _added(row, figure)]
    panels = []
    for key, axis in figure.factors.items():
        own = [(row, s) for row, s in rows if _added(row, figure) == [key]]
        levels = [("none", plain), *_by_level(own, _reader(key))] if plain else _by_level(own, _reader(key))
        panels += [(_title(key), axis, levels)] if own else []
    return panels


def _draw_strips(figure: PaperFigure, score: str, rows: _Scored, panels: _Panels) -> Figure:
    """A panel per factor: each configuration as a dot, the mean of each level as a bar."""
    with style():
        plot = new(7.2 if len(panels) > 1 or figure.kind == "levels" else 4.2, 2.9)
        grid = plot.subplots(1, len(panels), sharey=True, squeeze=False)[0]
        for axes, (title, axis, levels) in zip(grid, panels, strict=True):
            for i, (_, members) in enumerate(levels):
                for k, (_, value) in enumerate(members):
                    x = i if len(members) == 1 else i + 0.24 * (k / (len(members) - 1) - 0.5)
                    axes.plot([x], [value], color=COLOURS[0], marker="o", markersize=4.5, linestyle="", alpha=0.75)
                axes.plot([i - 0.28, i + 0.28], [_mean(members)] * 2, color=INK, linewidth=1.6, solid_capstyle="butt")
            axes.set_xticks(range(len(levels)), [str(level) for level, _ in levels], fontsize=7.5)
            axes.set_xlim(-0.6, len(levels) - 0.4)
            axes.set_title(title)
            axes.set_xlabel(axis)
            axes.grid(axis="x", visible=False)
        grid[0].set_ylabel(score.replace(" (", "\n("), fontsize=8)
        means = (f"{title}: {_means(levels)}" for title, _, levels in panels)
        caption = "A dot: one configuration, mean over its seeds; a bar: the mean of a level."
        caption += "" if figure.kind == "amounts" else " All had the same number of training steps."
        return finish(
            plot, figure.key, figure.title, f"{score}, from {base_name(rows[0][0].base_model)}. {caption}",
            f"Dots by level of each factor. {'; '.join(means)}.",
        )  # fmt: skip


def _amount_panels(figure: PaperFigure, rows: _Scored) -> _Panels:
    """A panel per level of one factor: its scores by the amount of text."""
    levels, sizes = _by_level(rows, _reader(next(iter(figure.factors)))), {_entries(row) for row, _ in rows}
    unit = str((rows[0][0].finished[0].corpus or {}).get("kind") or "entries")
    panels = []
    for level, members in levels if len(levels) > 1 or len(sizes) > 1 else []:
        by_size = _by_level(members, lambda row: (_entries(row), _steps(row)))
        named = [(f"{entries:,}\n({steps:,} steps)", same) for (entries, steps), same in by_size]
        panels.append((str(level), f"{unit} (training steps)", named))
    return panels


def _mean(rows: _Scored) -> float:
    return mean_sd([score for _, score in rows])[0]


def _means(levels: _Levels) -> str:
    return ", ".join(f"{str(level).replace(chr(10), ' ')}: {_mean(members):.2f}" for level, members in levels)


def _title(key: str) -> str:
    """The title of a factor's panel: the name of its (first) option."""
    return key.partition("+")[0].replace("_", " ").capitalize()


def _by_level(rows: _Scored, level: Callable[[ResultRow], Any]) -> _Levels:
    by_level: dict[Any, _Scored] = {}
    for row, score in rows:
        by_level.setdefault(level(row), []).append((row, score))
    return sorted(by_level.items(), key=lambda item: (isinstance(item[0], str), item[0]))


def _option(row: ResultRow, key: str) -> Any:
    record = row.records[0]
    return record.config[key] if key in record.config else default_of(record.method, key)


def _reader(key: str) -> Callable[[ResultRow], Any]:
    """The level of a factor; of several options together (A+B) as one text."""
    if "+" not in key:
        return lambda row: _option(row, key)
    return lambda row: "\n".join(str(_option(row, one)) for one in key.split("+"))


def _added(row: ResultRow, figure: PaperFigure) -> list[str]:
    """The factors that a row has."""
    return [key for key in figure.factors if _option(row, key.partition("+")[0])]


def _usual_values(rows: Sequence[ResultRow], keys: Sequence[str]) -> dict[str, Any]:
    """The most frequent value of each option, so that other values do not mix with the factor."""
    usual: dict[str, Any] = {}
    for key in keys if rows else ():
        values = [_option(row, key) for row in rows]
        usual[key] = max(sorted(set(values), key=str), key=values.count)
    return usual


def _entries(row: ResultRow) -> int:
    return int((row.finished[0].corpus or {}).get("count") or 0)


def _steps(row: ResultRow) -> int:
    return int(row.finished[0].training.get("planned_steps") or 0)
