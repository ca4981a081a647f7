"""The figures of a study's space: where in it the good trials lie. Each returns None when there is nothing to draw."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from reports.figures.style import COLOURS, INK, finish, look, new, style
from studies.definition.space import Parameter, Space
from studies.definition.study import Study
from studies.show.findings import Sheet, scored, value_label

if TYPE_CHECKING:
    from optuna.trial import FrozenTrial

    from reports.document.blocks import Figure


def binned(study: Study, sheet: Sheet, *, log: bool) -> Figure | None:
    """max (full) and q75 (dashed) after binning by one number, a colour for each category."""
    groups = list(dict.fromkeys(row[0] for row in sheet.rows))
    groups = groups[:-1] if len(groups) > 1 else groups  # the line of all trials only where there is no other
    if not groups or len({row[1] for row in sheet.rows}) < 2:
        return None
    name = sheet.columns[1].removesuffix(" from")
    with style():
        plot = new(7.2, 3.2)
        axes = plot.add_subplot()
        for k, group in enumerate(groups):
            rows: list[Any] = [row for row in sheet.rows if row[0] == group]
            x = [_middle(row[1], row[2], log) for row in rows]
            colour = look(k)["color"]
            title = "" if group == "all" else f"{sheet.columns[0]} = {group}, "
            axes.plot(x, [r[3] for r in rows], "-", marker="o", markersize=4, color=colour, label=f"{title}max")
            axes.plot(x, [r[4] for r in rows], "--", marker="s", markersize=3, color=colour, label=f"{title}q75")
        if log:
            axes.set_xscale("log")
            axes.xaxis.set_major_formatter("{x:g}")  # our style reads no formulas, which log scales would write
            axes.xaxis.set_minor_formatter("")
        points: list[Any] = sorted({row[1:3] for row in sheet.rows})
        if all(low == high for low, high in points):
            axes.set_xticks([low for low, _ in points], [f"{low:g}" for low, _ in points])
            axes.minorticks_off()
        axes.set_xlabel(name)
        axes.set_ylabel(value_label(study))
        plot.legend(loc="outside right upper", fontsize=7.5)
        said = "; ".join(f"{r[0]} at {r[1]:.3g}: {r[3]:.2f}" for r in sheet.rows[:12])
        return finish(plot, sheet.key, f"Scores by {name}", "Maximum and upper quartile of the trials of each bin.",
                      f"Maximum by {name}: {said}.")  # fmt: skip


def _middle(low: float, high: float, log: bool) -> float:
    return math.sqrt(low * high) if log and low > 0 else (low + high) / 2


def heat(study: Study, sheet: Sheet) -> Figure | None:
    """The best trial of each cell of two numbers' bins."""
    rows: list[Any] = list(sheet.rows)
    seen = [row[4] for row in rows if row[4] is not None]
    xs, ys = sorted({row[0:2] for row in rows}), sorted({row[2:4] for row in rows})
    if len(xs) < 2 or len(ys) < 2 or not seen:
        return None
    a, b = (sheet.columns[i].removesuffix(" from") for i in (0, 2))
    grid = np.full((len(ys), len(xs)), np.nan)
    for row in rows:
        grid[ys.index(row[2:4]), xs.index(row[0:2])] = math.nan if row[4] is None else row[4]
    with style():
        plot = new(7.2, 0.9 + 0.42 * len(ys))
        plot.set_layout_engine("constrained", w_pad=0.12)  # small letters are a little wider at other resolutions
        axes = plot.add_subplot()
        image = axes.imshow(grid, cmap="cividis", origin="lower", aspect="auto")
        low, high = min(seen), max(seen)
        for (j, i), value in np.ndenumerate(grid):
            if not math.isnan(value):
                dark = value < (low + high) / 2
                axes.text(i, j, f"{value:.1f}", ha="center", va="center", fontsize=7.5, color="white" if dark else INK)
        axes.set_xticks(range(len(xs)), [_interval(x) for x in xs], fontsize=7.5)
        axes.set_yticks(range(len(ys)), [_interval(y) for y in ys], fontsize=7.5)
        axes.grid(visible=False)
        axes.set_xlabel(a)
        axes.set_ylabel(b)
        plot.colorbar(image, ax=axes, label=value_label(study)).outline.set_visible(False)
        return finish(plot, sheet.key, f"Scores by {a} and {b}", "The best trial of each cell; empty: none was there.",
                      f"Heat map of {len(seen)} cells from {low:.2f} to {high:.2f}.")  # fmt: skip


def _interval(pair: tuple[float, float]) -> str:
    low, high = pair

    def brief(v: float) -> str:
        return f"{v:.0f}" if v >= 100 else f"{v:.2g}"

    return f"{low:.3g}" if low == high else f"{brief(low)}–{brief(high)}"


def _places(p: Parameter, trials: Sequence[FrozenTrial]) -> tuple[list[float | None], list[tuple[float, str]]]:
    """Heights between 0 and 1 of the trials' values on an axis (None: not searched there), and its labels."""
    values = [t.params.get(p.name) for t in trials]
    if p.choices:
        last = max(1, len(p.choices) - 1)
        heights: dict[Any, float] = {c: i / last for i, c in enumerate(p.choices)}
        return [None if v is None else heights.get(v) for v in values], [(h, str(c)) for c, h in heights.items()]

    def height(v: float) -> float:
        if p.log:
            return math.log(v / p.low) / math.log(p.high / p.low)
        return (v - p.low) / (p.high - p.low)

    middle = math.sqrt(p.low * p.high) if p.log else (p.low + p.high) / 2
    ticks = [(0.0, f"{p.low:g}"), (0.5, f"{middle:.3g}"), (1.0, f"{p.high:g}")]
    return [None if v is None else height(float(v)) for v in values], ticks


def slices(study: Study, space: Space, trials: Sequence[FrozenTrial]) -> Figure | None:
    """Score against each parameter alone."""
    done = scored(trials)
    if not done:
        return None
    columns = min(3, len(space.parameters))
    height = math.ceil(len(space.parameters) / columns)
    with style():
        plot = new(7.2, 0.3 + 2.0 * height)
        grid = plot.subplots(height, columns, squeeze=False, sharey=True).ravel()
        for axes, p in zip(grid, space.parameters, strict=False):
            have = [t for t in done if p.name in t.params]
            places, ticks = _places(p, have)
            axes.plot([h for h in places if h is not None],
                      [100 * t.values[0] for t, h in zip(have, places, strict=True) if h is not None],
                      "o", color=COLOURS[0], markersize=3.5, alpha=0.7)  # fmt: skip
            axes.set_xticks([h for h, _ in ticks], [text for _, text in ticks], fontsize=7)
            axes.set_title(p.name, fontsize=8.5, fontweight="normal")
        for axes in grid[len(space.parameters) :]:
            axes.set_visible(False)
        plot.supylabel(value_label(study), fontsize=8.5)
        return finish(plot, "slices", "Score against each parameter", "One dot a trial; log scales where searched so.",
                      f"Dots of {len(done)} trials against {', '.join(space.names)}.")  # fmt: skip
