"""The figures of a study. Each returns None when there is nothing to draw."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np

from reports.figures.style import COLOURS, GRID, INK, MUTED, finish, look, new, style
from reports.stats.search import expected_maximum
from studies.definition import Study
from studies.show.findings import Sheet, objective_names, scored
from studies.space import Parameter, Space

if TYPE_CHECKING:
    import optuna
    from optuna.trial import FrozenTrial

    from reports.document.blocks import Figure


def _y(study: Study) -> str:
    return f"{objective_names(study)[0]} ×100"


def history(study: Study, trials: Sequence[FrozenTrial]) -> Figure | None:
    """Values in the order of the trials, and the best so far."""
    order = sorted(trials, key=lambda t: t.number)
    valued = {t.number for t in scored(order)}
    done = [(i, 100 * t.values[0]) for i, t in enumerate(order, 1) if t.number in valued]
    if not done:
        return None
    cut = [(i, 100 * t.intermediate_values[t.last_step]) for i, t in enumerate(order, 1)
           if t.state.name == "PRUNED" and t.last_step is not None]  # fmt: skip
    best = np.maximum.accumulate if study.signs[0] == "maximize" else np.minimum.accumulate
    with style():
        plot = new(7.2, 3.0)
        axes = plot.add_subplot()
        axes.step(*zip(*_steps(done, best), strict=True), where="post", color=COLOURS[1], label="best so far")
        axes.plot(*zip(*done, strict=True), "o", color=COLOURS[0], markersize=4, label="trial")
        if cut:
            axes.plot(*zip(*cut, strict=True), "x", color=MUTED, markersize=5, label="pruned, at its last score")
        axes.set_xlabel("trial")
        axes.set_ylabel(_y(study))
        axes.locator_params(axis="x", integer=True)
        plot.legend(loc="outside upper left", ncols=3, fontsize=8)
        value = best([v for _, v in done])[-1]
        return finish(plot, "history", "Optimisation history", "Trials in the order in which they were begun.",
                      f"Values of {len(done)} trials; the best is {value:.2f}.")  # fmt: skip


def _steps(done: list[tuple[int, float]], best: Any) -> list[tuple[int, float]]:
    return list(zip([i for i, _ in done], best([v for _, v in done]).tolist(), strict=True))


def development(study: Study, trials: Sequence[FrozenTrial]) -> Figure | None:
    """Dev scores of all trials during training; pruned ones end early."""
    lines = [t for t in trials if len(t.intermediate_values) > 1]
    if not lines:
        return None
    with style():
        plot = new(7.2, 3.0)
        axes = plot.add_subplot()
        for t in lines:
            steps = sorted(t.intermediate_values)
            values = [100 * t.intermediate_values[s] for s in steps]
            pruned = t.state.name == "PRUNED"
            axes.plot(steps, values, color=MUTED if pruned else COLOURS[0], linewidth=0.8, alpha=0.6)
            if pruned:
                axes.plot(steps[-1:], values[-1:], "x", color=COLOURS[1], markersize=5)
        axes.set_xlabel("update")
        axes.set_ylabel(f"{study.dev.task} dev Spearman ×100")
        count = sum(t.state.name == "PRUNED" for t in lines)
        return finish(plot, "development", "Dev scores during training", "One line a trial; crosses: pruned there.",
                      f"{len(lines)} lines of dev scores over updates, {count} of them pruned.")  # fmt: skip


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
        axes.set_ylabel(_y(study))
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
        plot.colorbar(image, ax=axes, label=_y(study)).outline.set_visible(False)
        return finish(plot, sheet.key, f"Scores by {a} and {b}", "The best trial of each cell; empty: none was there.",
                      f"Heat map of {len(seen)} cells from {low:.2f} to {high:.2f}.")  # fmt: skip


def contour(study: Study, space: Space, trials: Sequence[FrozenTrial], a: str, b: str) -> Figure | None:
    """The score as a landscape over two parameters: linear between the trials (Delaunay), which are the dots.

    Where several trials share a place, the best of them counts; other parameters vary freely from dot to dot.
    """
    from matplotlib.tri import Triangulation

    have = [t for t in scored(trials) if a in t.params and b in t.params]
    (xs, x_ticks), (ys, y_ticks) = _places(space[a], have), _places(space[b], have)
    better = max if study.signs[0] == "maximize" else min
    best: dict[tuple[float, float], float] = {}
    for t, x, y in zip(have, xs, ys, strict=True):
        if x is not None and y is not None:
            best[x, y] = better(best.get((x, y), 100 * t.values[0]), 100 * t.values[0])
    places, values = np.array(list(best)), np.array(list(best.values()))
    if len(best) < 4 or np.linalg.matrix_rank(np.cov(places.T), tol=1e-9) < 2 or np.ptp(values) == 0:
        return None  # on a line, or flat
    with style():
        plot = new(7.2, 3.6)
        axes = plot.add_subplot()
        mesh = Triangulation(places[:, 0], places[:, 1])
        image = axes.tricontourf(mesh, values, levels=10, cmap="cividis")
        axes.tricontour(mesh, values, levels=list(image.levels), colors=INK, linewidths=0.3)
        axes.scatter(places[:, 0], places[:, 1], s=16, color="white", edgecolors=INK, linewidths=0.7, zorder=3)
        for axis, ticks, name in ((axes.xaxis, x_ticks, a), (axes.yaxis, y_ticks, b)):
            axis.set_ticks([height for height, _ in ticks], [text for _, text in ticks], fontsize=7.5)
            axis.set_label_text(name)
        axes.grid(visible=False)
        axes.set(xlim=(-0.02, 1.02), ylim=(-0.04, 1.04))  # the whole space, not just where trials are
        plot.colorbar(image, ax=axes, label=_y(study)).outline.set_visible(False)
        return finish(plot, f"contour-{a}-{b}", f"Landscape of {a} and {b}",
                      "Linear between the trials (dots); outside them nothing is known.",
                      f"Contours over {len(best)} places, from {values.min():.2f} to {values.max():.2f}.")  # fmt: skip


def _interval(pair: tuple[float, float]) -> str:
    low, high = pair

    def brief(v: float) -> str:
        return f"{v:.0f}" if v >= 100 else f"{v:.2g}"

    return f"{low:.3g}" if low == high else f"{brief(low)}–{brief(high)}"


def expected(study: Study, trials: Sequence[FrozenTrial]) -> Figure | None:
    """Expected validation performance against the number of trials (Dodge et al., EMNLP 2019)."""
    values = [t.values[0] for t in scored(trials)]
    if len(values) < 2 or study.signs[0] != "maximize":
        return None
    budgets = list(range(1, len(values) + 1))
    with style():
        plot = new(7.2, 2.8)
        axes = plot.add_subplot()
        axes.plot(budgets, 100 * expected_maximum(values, budgets), color=COLOURS[0])
        axes.axhline(100 * max(values), color=GRID, linewidth=1)
        axes.set_xlabel("trials")
        axes.set_ylabel(_y(study))
        one, half = 100 * expected_maximum(values, [1, max(1, len(values) // 2)])
        said = f"One trial: {one:.2f}; half of them: {half:.2f}; best of all: {100 * max(values):.2f}."
        return finish(plot, "expected", "Expected best score by budget",
                      "Mean of the best of n trials drawn at random from these (Dodge et al. 2019).", said)  # fmt: skip


def parallel(study: Study, space: Space, trials: Sequence[FrozenTrial]) -> Figure | None:
    """Parallel coordinates: one line a trial through its values, the colour its score."""
    done = sorted(scored(trials), key=lambda t: t.values[0])
    if len(done) < 2 or len(space.parameters) < 2:
        return None
    places = [_places(p, done) for p in space.parameters]
    scores = np.array([100 * t.values[0] for t in done])
    spread = float(scores.max() - scores.min()) or 1.0
    with style():
        from matplotlib import colormaps
        from matplotlib.cm import ScalarMappable
        from matplotlib.colors import Normalize

        plot = new(7.2, 3.4)
        axes = plot.add_subplot()
        colours = colormaps["cividis"]
        for k in range(len(done)):
            points = [(i, places[i][0][k]) for i in range(len(places)) if places[i][0][k] is not None]
            colour = colours(float((scores[k] - scores.min()) / spread))
            axes.plot(*zip(*points, strict=True), color=colour, linewidth=0.7 + 1.1 * (k / len(done)), alpha=0.8)
        for i, (_, ticks) in enumerate(places):
            axes.axvline(i, color=MUTED, linewidth=0.7)
            for height, text in ticks:
                axes.annotate(text, (i, height), xytext=(3, 0), textcoords="offset points", fontsize=7, va="center")
        axes.set_xticks(range(len(places)), space.names, fontsize=8)
        axes.set_xlim(-0.1, len(places) - 0.7)
        axes.set_yticks([])
        axes.grid(visible=False)
        bar = plot.colorbar(ScalarMappable(Normalize(scores.min(), scores.max()), colours), ax=axes, label=_y(study))
        bar.outline.set_visible(False)
        best = ", ".join(f"{k} = {v}" for k, v in done[-1].params.items())
        return finish(plot, "parallel", "Parallel coordinates", "One line a trial; best trials drawn last.",
                      f"{len(done)} lines through {', '.join(space.names)}; the best: {best}.")  # fmt: skip


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
        plot.supylabel(_y(study), fontsize=8.5)
        return finish(plot, "slices", "Score against each parameter", "One dot a trial; log scales where searched so.",
                      f"Dots of {len(done)} trials against {', '.join(space.names)}.")  # fmt: skip


def importances(found: optuna.Study) -> dict[str, float]:
    """Importance of each parameter by Optuna's default method (PED-ANOVA); empty where it cannot be told."""
    import warnings

    import optuna

    if len(found.directions) > 1:
        return {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return dict(optuna.importance.get_param_importances(found))
        except (ValueError, RuntimeError):  # too few trials, or a space whose conditions leave nothing in common
            return {}


def importance(values: dict[str, float]) -> Figure | None:
    """Bars of the parameters' importances."""
    if not values:
        return None
    names = list(values)[::-1]
    with style():
        plot = new(7.2, 0.8 + 0.32 * len(names))
        axes = plot.add_subplot()
        axes.barh(names, [values[n] for n in names], color=COLOURS[0], height=0.6)
        axes.grid(axis="y", visible=False)
        axes.set_xlabel("importance (PED-ANOVA, sums to 1)")
        said = ", ".join(f"{n} {values[n]:.2f}" for n in reversed(names))
        return finish(plot, "importance", "Importance of the parameters",
                      "How well each parameter alone tells the better trials from the rest.", f"{said}.")  # fmt: skip


def all_figures(
    found: optuna.Study, study: Study, space: Space, trials: Sequence[FrozenTrial], sheets: Sequence[Sheet]
) -> list[Figure]:
    """Every figure there is something to draw for."""
    figures = [history(study, trials), development(study, trials), expected(study, trials)]
    for sheet in sheets:
        if sheet.key.startswith("binned-"):
            low = [float(row[1]) for row in sheet.rows]  # type: ignore[arg-type]
            figures.append(binned(study, sheet, log=bool(low) and min(low) > 0 and max(low) / min(low) >= 8))
        elif sheet.key.startswith("heat-"):
            figures.append(heat(study, sheet))
            pairs = combinations((p.name for p in space.parameters if p.numeric), 2)
            figures += [contour(study, space, trials, a, b) for a, b in pairs if sheet.key == f"heat-{a}-{b}"]
    figures += [parallel(study, space, trials), slices(study, space, trials), importance(importances(found))]
    return [figure for figure in figures if figure is not None]
