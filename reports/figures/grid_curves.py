"""A curve of the score by each option that rows of one method differ in alone, as those of a
`grid` of one number do.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Sequence
from typing import Any

from reports.document.blocks import Figure, slug
from reports.document.table import number_text
from reports.figures.style import finish, look, new, plain, style
from reports.load import RecordedResults, RecordedRow
from reports.results import base_name
from reports.stats.estimate import Interval, mean_sd, predict
from reports.targets import Target

FEWEST = 3  # values: two are a line in any case
_WIDE = 20.0  # times the least value: a logarithmic axis from there on

Curve = list[tuple[float, RecordedRow]]


def grid_curves(comparison: RecordedResults, target: Target | None) -> Iterator[Figure]:
    """Yield a figure for each option that has a curve; rows that are alike in all else are one."""
    if target is None:
        return
    rows = [row for row in comparison.rows if row.finished and not row.source]
    for option, curves in find_curves(rows).items():
        yield _draw(option, curves, target)


def find_curves(rows: Sequence[RecordedRow]) -> dict[str, list[Curve]]:
    """Return option -> its curves: rows with different numbers of it, and all else alike.

    A row without the option's number (empty) is in none.
    """
    options = dict.fromkeys(key for row in rows for key in row.records[0].config)
    found: dict[str, list[Curve]] = {}
    for option in options:
        curves = _find_curves_of(option, rows)
        if curves:
            found[option] = curves
    return found


def _find_curves_of(option: str, rows: Sequence[RecordedRow]) -> list[Curve]:
    groups: dict[str, dict[float, RecordedRow]] = {}
    for row in rows:
        value = row.records[0].config.get(option)
        if isinstance(value, int | float) and not isinstance(value, bool):
            by_value = groups.setdefault(_all_else(row, option), {})
            by_value.setdefault(float(value), row)
    curves = []
    for by_value in groups.values():
        if len(by_value) >= FEWEST:
            curves.append(sorted(by_value.items()))
    return curves


def _all_else(row: RecordedRow, option: str) -> str:
    """Return what a row is but for an option."""
    spec = row.records[0].spec
    config = dict(spec.config)
    config.pop(option, None)
    corpus = spec.corpus or {}
    what: list[Any] = [
        spec.method,
        row.base_model,
        corpus.get("sha256"),
        spec.max_steps,
        config,
    ]
    return json.dumps(what, sort_keys=True, default=str)


def _draw(option: str, curves: list[Curve], target: Target) -> Figure:
    """Draw mean and interval of each value, a line for each curve."""
    values = sorted({value for curve in curves for value, _ in curve})
    with style():
        plot = new(4.6, 3.0)
        axes = plot.add_subplot()
        lines = []
        for number, curve in enumerate(curves):
            points = []
            for value, row in curve:
                found = _interval(row, target)
                if found is not None:
                    points.append((value, found))
            label = _name(curve)
            _draw_curve(axes, points, number, label)
            described = ", ".join(map(_describe, points))
            lines.append(f"{label}: {described}")
        least = values[0]
        most = values[-1]
        if least > 0 and most >= _WIDE * least:
            axes.set_xscale("log")
            plain(axes.xaxis)
        ticks = [f"{value:g}" for value in values]
        axes.set_xticks(values, ticks)
        axes.minorticks_off()
        axes.set(xlabel=option.replace("_", " "), ylabel=target.short)
        if len(curves) > 1:
            plot.legend(loc="outside upper left", ncols=2, fontsize=8)
        caption = (
            "Mean over seeds, with the 95 % interval of the mean where there are two seeds or "
            "more; all else is alike."
        )
        return finish(
            plot,
            f"grid-{slug(option)}",
            f"{target.short} by {option}",
            caption,
            f"{target.short} by {option}. {'; '.join(lines)}.",
        )


def _draw_curve(axes: Any, points: list[tuple[float, Interval]], number: int, label: str) -> None:
    x = []
    y = []
    below = []
    above = []
    for value, found in points:
        x.append(value)
        y.append(found.value)
        below.append(found.value - found.low)
        above.append(found.high - found.value)
    axes.errorbar(
        x,
        y,
        yerr=[below, above],
        capsize=3,
        markersize=5,
        linewidth=1.4,
        label=label,
        **look(number),
    )


def _interval(row: RecordedRow, target: Target) -> Interval | None:
    """Return the mean of a row over seeds, in points, and where the true mean is expected."""
    by_seed = []
    for run in row.finished:
        value = target.value_of_run(run)
        if value is not None:
            by_seed.append(value)
    if not by_seed:
        return None
    mean, sd = mean_sd(by_seed)
    if sd is None:
        return Interval(mean, mean, mean)
    return predict(mean, [by_seed], runs=math.inf)


def _name(curve: Curve) -> str:
    """Return what the labels of a curve's rows have in common."""
    labels = [row.label for _, row in curve]
    common = labels[0]
    while not all(label.startswith(common) for label in labels):
        common = common[:-1]
    common = common.partition(" · ")[0].strip(" ·,=(")
    _, first = curve[0]
    name = common or first.records[0].method
    return f"{name}, {base_name(first.base_model)}"


def _describe(point: tuple[float, Interval]) -> str:
    value, found = point
    low = number_text(found.low, 2)
    high = number_text(found.high, 2)
    return f"{value:g}: {number_text(found.value, 2)} [{low}, {high}]"
