"""Ablations of a method: the score by the levels of its options, by the amount of text, by what is added to it.

What is drawn comes from the paper's definition (`reports.papers.figure_spec`). Each is None when nothing was measured
that it could show. Only runs of one base model, text and length stand together.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from harness.results.record import Record
from reports.document.blocks import Figure
from reports.figures.style import COLOURS, INK, finish, look, new, style
from reports.papers.figure_spec import Factor, PaperFigure
from reports.papers.matching import Matching
from reports.read.comparison_runs import ResultRow, base_name
from reports.read.configuration import default_of
from reports.read.run_library import matches
from reports.stats.estimate import mean_sd

_Scored = list[tuple[ResultRow, float]]  # rows with their mean score
_Level = tuple[Any, _Scored]  # level of a factor -> the rows that have it
_Panel = tuple[Sequence[_Level], str, str]  # levels as shown, title, axis


def levels(matching: Matching, figure: PaperFigure) -> Figure | None:
    """The score by the levels of each factor, whatever else differs between the runs."""
    ablation = _ablation(matching, figure, lambda record: True)
    if ablation is None:
        return None
    score, rows = ablation
    panels = [
        (_shown(by_level, factor), factor.title, factor.axis)
        for factor in figure.factors
        if len(by_level := _by_level(rows, _option_of(factor.key))) > 1
    ]
    caption = (
        "A dot: one configuration, mean over its seeds; a bar: the mean of a level over whatever else differs between "
        "its runs."
    )
    return _strips(figure, score, rows, panels, caption) if panels else None


def additions(matching: Matching, figure: PaperFigure) -> Figure | None:
    """Rows that have one of the factors beside those that have none of them."""
    shared = _usual(matching, figure)
    ablation = _ablation(matching, figure, lambda r: _has(r, shared), needs=lambda row: bool(_added(row, figure)))
    if ablation is None:
        return None
    score, rows = ablation
    plain = [(row, s) for row, s in rows if not _added(row, figure)]
    panels = []
    for factor in figure.factors:
        own = [(row, s) for row, s in rows if _added(row, figure) == [factor.key]]
        if own:
            by_level = _by_level([*own, *plain], lambda row, f=factor: _addition(row, f))  # type: ignore[misc]
            named = [(_addition_name(level, factor), members) for level, members in by_level]
            panels.append((named, factor.title, factor.axis))
    caption = (
        "A dot: one configuration, mean over its seeds; a bar: the mean of a level. All made the same number of "
        "updates."
    )
    return _strips(figure, score, rows, panels, caption, single=4.2) if panels else None


def amounts(matching: Matching, figure: PaperFigure) -> Figure | None:
    """What the levels of one factor contribute, and the score by the amount of text."""
    shared = _usual(matching, figure)
    ablation = _ablation(matching, figure, lambda r: _has(r, shared), by_amount=True)
    if ablation is None:
        return None
    score, rows = ablation
    factor = figure.factors[0]
    option = _option_of(factor.key)
    sizes = sorted({_entries(row) for row, _ in rows})
    known = list(factor.labels) or [level for level, _ in _by_level(rows, option)]
    present = [level for level in known if any(option(row) == level for row, _ in rows)]
    if len(present) < 2 and len(sizes) < 2:
        return None
    names = {level: factor.labels.get(str(level), str(level)) for level in present}
    unit = str((rows[0][0].finished[0].corpus or {}).get("kind") or "entries")
    with style():
        plot = new(7.2 if len(sizes) > 1 else 4.6, 2.9)
        grid = plot.subplots(1, 2 if len(sizes) > 1 else 1, sharey=True, squeeze=False)[0]
        most = sizes[-1]
        values = {o: [s for row, s in rows if option(row) == o and _entries(row) == most] for o in present}
        for i, members in enumerate(values.values()):
            if members:
                grid[0].bar([i], [mean_sd(members)[0]], width=0.62, color=COLOURS[i], edgecolor=INK, linewidth=0.6)
                grid[0].plot([i] * len(members), members, "o", color=INK, markersize=3.5)
        lowest = min(s for _, s in rows)
        grid[0].set_ylim(bottom=max(0, lowest - 0.25 * lowest))
        grid[0].set_xticks(range(len(present)), [names[level] for level in present])
        grid[0].set_title(f"{factor.title}, {most:,} {unit}")
        grid[0].set_ylabel(score.replace(" (", "\n("), fontsize=8)
        grid[0].grid(axis="x", visible=False)
        if len(sizes) > 1:
            for i, level in enumerate(present):
                own = [(row, s) for row, s in rows if option(row) == level]
                line = [(amount, mean_sd([s for _, s in same])[0]) for amount, same in _by_level(own, _entries)]
                grid[1].plot([x for x, _ in line], [y for _, y in line], label=names[level], **look(i))
            grid[1].set_title("Amount of text")
            grid[1].set_xlabel(unit)
            updates = {_entries(row): _updates(row) for row, _ in rows}
            grid[1].set_xticks(sizes, [f"{size:,}\n({updates[size]:,} updates)" for size in sizes], fontsize=7.5)
            plot.legend(loc="outside lower center", ncols=3, fontsize=8)
        said = "; ".join(f"{names[level]} {mean_sd(v)[0]:.2f}" for level, v in values.items() if v)
        return finish(
            plot, figure.key, figure.title,
            f"{score}, from {base_name(rows[0][0].base_model)}. Bars: mean of the runs (dots). The axis does not "
            "begin at 0.",
            f"{figure.alt or f'Bars by {factor.axis}'}: {said}.",
        )  # fmt: skip


def _ablation(
    matching: Matching,
    figure: PaperFigure,
    keep: Callable[[Record], bool],
    *,
    by_amount: bool = False,
    needs: Callable[[ResultRow], bool] = lambda _: True,
) -> tuple[str, _Scored] | None:
    """The rows of the figure's method that `keep` takes, of one base model, text and number of updates, with one score
    each: those with most rows that the figure `needs`.

    `by_amount`: different amounts of that text belong together, each with the number of updates that most of it had.
    """
    budgets: dict[tuple[str, str, bool], dict[tuple[int, int], list[ResultRow]]] = {}
    for row in matching.library.find(figure.method):
        if row.finished and matches(row.records[0], figure.where) and keep(row.records[0]):
            place = row.base_model, str((row.finished[0].corpus or {}).get("uri")), row.rehearsal
            budgets.setdefault(place, {}).setdefault((_entries(row), _updates(row)), []).append(row)

    def merit(budget: tuple[int, int]) -> tuple[int, int, tuple[int, int]]:
        return sum(map(needs, own[budget])), len(own[budget]), budget

    def worth(rows: list[ResultRow]) -> tuple[bool, int, int]:
        real = bool(rows) and not rows[0].rehearsal  # no rehearsal where there is a run
        return real, sum(map(needs, rows)), len(rows)

    best: list[ResultRow] = []
    for _, own in sorted(budgets.items()):
        if by_amount:
            chosen = [max((b for b in own if b[0] == amount), key=merit) for amount in sorted({a for a, _ in own})]
        else:
            chosen = [max(own, key=merit)]
        rows = [row for budget in chosen for row in own[budget]]
        best = max(best, rows, key=worth)
    scored = {
        column.title: [(row, mean_sd(m.values)[0]) for row in best if (m := matching.measure(row, column)).by_seed]
        for column in matching.column_set(figure.columns)
    }
    title = max(scored, key=lambda name: len(scored[name]))
    return (title, scored[title]) if scored[title] else None


def _strips(
    figure: PaperFigure, score: str, rows: _Scored, panels: Sequence[_Panel], caption: str, *, single: float = 7.2
) -> Figure:
    """A panel for each factor: dots by level. `single`: width of one panel alone, in inches."""
    with style():
        plot = new(7.2 if len(panels) > 1 else single, 2.9)
        grid = plot.subplots(1, len(panels), sharey=True, squeeze=False)[0]
        for axes, (by_level, title, axis) in zip(grid, panels, strict=True):
            _strip(axes, by_level, title, axis)
        grid[0].set_ylabel(score.replace(" (", "\n("), fontsize=8)
        return finish(
            plot, figure.key, figure.title, f"{score}, from {base_name(rows[0][0].base_model)}. {caption}",
            f"{figure.alt or 'Dots by level of each factor.'} {_means(panels)}.",
        )  # fmt: skip


def _strip(axes: Any, by_level: Sequence[_Level], title: str, axis: str) -> None:
    """Every configuration as a dot, the mean of each level as a bar."""
    for i, (_, members) in enumerate(by_level):
        values = [score for _, score in members]
        for k, value in enumerate(values):
            shift = 0.0 if len(values) == 1 else 0.24 * (k / (len(values) - 1) - 0.5)
            axes.plot([i + shift], [value], color=COLOURS[0], marker="o", markersize=4.5, linestyle="", alpha=0.75)
        mean = mean_sd(values)[0]
        axes.plot([i - 0.28, i + 0.28], [mean, mean], color=INK, linewidth=1.6, solid_capstyle="butt")
    axes.set_xticks(range(len(by_level)), [str(level) for level, _ in by_level], fontsize=7.5)
    axes.set_xlim(-0.6, len(by_level) - 0.4)
    axes.set_title(title)
    axes.set_xlabel(axis)
    axes.grid(axis="x", visible=False)


def _means(panels: Sequence[_Panel]) -> str:
    return "; ".join(
        f"{title}: " + ", ".join(f"{_line(level)}: {mean_sd([s for _, s in m])[0]:.2f}" for level, m in by_level)
        for by_level, title, _ in panels
    )


def _line(level: Any) -> str:
    return str(level).replace("\n", " ")


def _by_level(rows: _Scored, level: Callable[[ResultRow], Any]) -> list[_Level]:
    by_level: dict[Any, _Scored] = {}
    for row, score in rows:
        by_level.setdefault(level(row), []).append((row, score))
    return sorted(by_level.items(), key=lambda item: (isinstance(item[0], str), item[0]))


def _shown(by_level: Sequence[_Level], factor: Factor) -> list[_Level]:
    return [(factor.labels.get(str(level), level), members) for level, members in by_level]


def _added(row: ResultRow, figure: PaperFigure) -> list[str]:
    """The factors that a row has."""
    return [factor.key for factor in figure.factors if _option(row.records[0], factor.key)]


def _addition(row: ResultRow, factor: Factor) -> tuple[Any, str]:
    level = _option(row.records[0], factor.key) or 0
    return level, str(_option(row.records[0], factor.beside)) if level and factor.beside else ""


def _addition_name(level: tuple[Any, str], factor: Factor) -> Any:
    value, beside = level
    if not value:
        return "none"
    return f"{value}\n{factor.labels.get(beside, beside)}" if beside else value


def _option_of(key: str) -> Callable[[ResultRow], Any]:
    return lambda row: _option(row.records[0], key)


def _option(record: Record, key: str) -> Any:
    return record.config[key] if key in record.config else default_of(record.method, key)


def _has(record: Record, settings: dict[str, Any]) -> bool:
    return all(_option(record, key) == value for key, value in settings.items())


def _usual(matching: Matching, figure: PaperFigure) -> dict[str, Any]:
    """The values that most rows of the method share of the options `same`, so that these do not mix with the factor."""
    rows = [row for row in matching.library.find(figure.method) if row.finished]
    usual: dict[str, Any] = {}
    for key in figure.same:
        values = [_option(row.records[0], key) for row in rows]
        if values:
            usual[key] = max(sorted(set(values), key=str), key=values.count)
    return usual


def _entries(row: ResultRow) -> int:
    return int((row.finished[0].corpus or {}).get("count") or 0)


def _updates(row: ResultRow) -> int:
    return int(row.finished[0].training.get("planned_steps") or 0)
