"""The figures of a study. Each returns None when there is nothing to draw.

They show pruned trials, the best so far in our units, and the maxima and quartiles that papers print. Contours,
parallel coordinates and other views are those of optuna-dashboard, which opens the same storage.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from typing import TYPE_CHECKING, Any

import numpy as np

from reports.figures.style import COLOURS, GRID, MUTED, finish, new, style
from reports.stats.search import expected_maximum
from studies.definition.space import Space
from studies.definition.study import Study
from studies.show.findings import Sheet, scored, value_label
from studies.show.space_figures import binned, heat, slices

if TYPE_CHECKING:
    import optuna
    from optuna.trial import FrozenTrial

    from reports.document.blocks import Figure


def history(study: Study, trials: Sequence[FrozenTrial]) -> Figure | None:
    """Values in the order of the trials, and the best so far."""
    order = sorted(trials, key=lambda t: t.number)
    valued = {t.number for t in scored(order)}
    done = [(i, 100 * t.values[0]) for i, t in enumerate(order, 1) if t.number in valued]
    if not done:
        return None
    cut = [(i, 100 * t.intermediate_values[t.last_step]) for i, t in enumerate(order, 1)
           if t.state.name == "PRUNED" and t.last_step is not None]  # fmt: skip
    with style():
        plot = new(7.2, 3.0)
        axes = plot.add_subplot()
        axes.step(*zip(*_steps(done), strict=True), where="post", color=COLOURS[1], label="best so far")
        axes.plot(*zip(*done, strict=True), "o", color=COLOURS[0], markersize=4, label="trial")
        if cut:
            axes.plot(*zip(*cut, strict=True), "x", color=MUTED, markersize=5, label="pruned, at its last score")
        axes.set_xlabel("trial")
        axes.set_ylabel(value_label(study))
        axes.locator_params(axis="x", integer=True)
        plot.legend(loc="outside upper left", ncols=3, fontsize=8)
        value = max(v for _, v in done)
        return finish(plot, "history", "Optimisation history", "Trials in the order in which they were begun.",
                      f"Values of {len(done)} trials; the best is {value:.2f}.")  # fmt: skip


def _steps(done: list[tuple[int, float]]) -> list[tuple[int, float]]:
    return list(zip([i for i, _ in done], accumulate((v for _, v in done), max), strict=True))


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


def expected(study: Study, trials: Sequence[FrozenTrial]) -> Figure | None:
    """Expected validation performance against the number of trials (Dodge et al., EMNLP 2019)."""
    values = [t.values[0] for t in scored(trials)]
    if len(values) < 2:
        return None
    budgets = list(range(1, len(values) + 1))
    with style():
        plot = new(7.2, 2.8)
        axes = plot.add_subplot()
        axes.plot(budgets, 100 * expected_maximum(values, budgets), color=COLOURS[0])
        axes.axhline(100 * max(values), color=GRID, linewidth=1)
        axes.set_xlabel("trials")
        axes.set_ylabel(value_label(study))
        one, half = 100 * expected_maximum(values, [1, max(1, len(values) // 2)])
        said = f"One trial: {one:.2f}; half of them: {half:.2f}; best of all: {100 * max(values):.2f}."
        return finish(plot, "expected", "Expected best score by budget",
                      "Mean of the best of n of these trials, over sets of n (Dodge et al. 2019).", said)  # fmt: skip


def importances(search: optuna.Study) -> dict[str, float]:
    """Importance of each parameter by Optuna's default method (PED-ANOVA); empty where it cannot be computed."""
    import warnings

    import optuna

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return dict(optuna.importance.get_param_importances(search))
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
    search: optuna.Study, study: Study, space: Space, trials: Sequence[FrozenTrial], sheets: Sequence[Sheet]
) -> list[Figure]:
    """Every figure there is something to draw for."""
    figures = [history(study, trials), development(study, trials), expected(study, trials)]
    for sheet in sheets:
        if sheet.key.startswith("binned-"):
            low = [float(row[1]) for row in sheet.rows]  # type: ignore[arg-type]
            figures.append(binned(study, sheet, log=bool(low) and min(low) > 0 and max(low) / min(low) >= 8))
        elif sheet.key.startswith("heat-"):
            figures.append(heat(study, sheet))
    figures += [slices(study, space, trials), importance(importances(search))]
    return [figure for figure in figures if figure is not None]
