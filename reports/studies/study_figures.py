"""The figures of a study. Each returns None when there is nothing to draw.

They show pruned trials, the best so far in our units, and the maxima and quartiles that papers
print. Dev scores during training, slices, contours and other views are those of optuna-dashboard,
which opens the same storage.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from reports.figures.style import COLOURS, GRID, MUTED, finish, new, style
from reports.figures.trials import Points, draw_by_bin, draw_legend
from reports.stats.estimate import bins, expected_maximum
from reports.studies.findings import select_scored, value_label
from studies.definition.space import Parameter, Space
from studies.definition.study import Study

if TYPE_CHECKING:
    import optuna
    from optuna.trial import FrozenTrial

    from reports.document.blocks import Figure


def history(study: Study, trials: Sequence[FrozenTrial]) -> Figure | None:
    """Values in the order of the trials, and the best so far."""
    order = sorted(trials, key=lambda t: t.number)
    valued = {t.number for t in select_scored(order)}
    done = []
    for i, t in enumerate(order, 1):
        if t.number in valued:
            done.append((i, 100 * t.values[0]))
    if not done:
        return None
    cut = []
    for i, t in enumerate(order, 1):
        if t.state.name == "PRUNED" and t.last_step is not None:
            cut.append((i, 100 * t.intermediate_values[t.last_step]))
    best = np.maximum.accumulate([value for _, value in done])
    with style():
        plot = new(7.2, 3.0)
        axes = plot.add_subplot()
        axes.step(
            [i for i, _ in done],
            best,
            where="post",
            color=COLOURS[1],
            label="best so far",
        )
        axes.plot(
            *zip(*done, strict=True),
            "o",
            color=COLOURS[0],
            markersize=4,
            label="trial",
        )
        if cut:
            axes.plot(
                *zip(*cut, strict=True),
                "x",
                color=MUTED,
                markersize=5,
                label="pruned, at its last score",
            )
        axes.set_xlabel("trial")
        axes.set_ylabel(value_label(study))
        axes.locator_params(axis="x", integer=True)
        plot.legend(loc="outside upper left", ncols=3, fontsize=8)
        return finish(
            plot,
            "history",
            "Optimisation history",
            "Trials in the order in which they were begun.",
            f"Values of {len(done)} trials; the best is {best[-1]:.2f}.",
        )


def expected_performance(study: Study, trials: Sequence[FrozenTrial]) -> Figure | None:
    """Expected validation performance against the number of trials (Dodge et al., EMNLP 2019)."""
    values = [t.values[0] for t in select_scored(trials)]
    if len(values) < 2:
        return None
    budgets = list(range(1, len(values) + 1))
    curve = 100 * expected_maximum(values, budgets)
    with style():
        plot = new(7.2, 2.8)
        axes = plot.add_subplot()
        axes.plot(budgets, curve, color=COLOURS[0])
        axes.axhline(100 * max(values), color=GRID, linewidth=1)
        axes.set_xlabel("trials")
        axes.set_ylabel(value_label(study))
        half = curve[max(1, len(values) // 2) - 1]
        best = 100 * max(values)
        said = f"One trial: {curve[0]:.2f}; half of them: {half:.2f}; best of all: {best:.2f}."
        return finish(
            plot,
            "expected",
            "Expected best score by budget",
            "Mean of the best of n of these trials, over sets of n (Dodge et al. 2019).",
            said,
        )


def importance(search: optuna.Study) -> Figure | None:
    """Bars of the parameters' importances by Optuna's default method (PED-ANOVA), where it can be
    computed.
    """
    import warnings

    import optuna

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            values = optuna.importance.get_param_importances(search)
        except (
            ValueError,
            RuntimeError,
        ):  # too few trials, or a space whose conditions leave nothing in common
            return None
    if not values:
        return None
    names = list(values)[::-1]
    with style():
        plot = new(7.2, 0.8 + 0.32 * len(names))
        axes = plot.add_subplot()
        axes.barh(
            names,
            [values[n] for n in names],
            color=COLOURS[0],
            height=0.6,
        )
        axes.grid(axis="y", visible=False)
        axes.set_xlabel("importance (PED-ANOVA, sums to 1)")
        said = ", ".join(f"{n} {values[n]:.2f}" for n in reversed(names))
        return finish(
            plot,
            "importance",
            "Importance of the parameters",
            "How well each parameter alone tells the better trials from the rest.",
            f"{said}.",
        )


def by_parameter(
    study: Study,
    space: Space,
    trials: Sequence[FrozenTrial],
    parameter: Parameter,
) -> Figure | None:
    """The best trial and the upper quartile by one number, a colour for each value of `by`."""
    name = parameter.name
    by = study.by
    have = [t for t in select_scored(trials) if name in t.params]
    values = [float(t.params[name]) for t in have]
    # A logarithmic scale where it was searched so, or where positive values are over a factor of
    # ten apart.
    if not values:
        return None
    low = min(values)
    is_wide = parameter.log or max(values) > 10 * low
    log = low > 0 and is_wide
    intervals = bins(values, log=log, listed=parameter.finite)
    if len(intervals) < 2:
        return None
    groups: dict[str, list[tuple[float, float]]] = {}
    for group, some in _groups_by(by, space, have).items():
        groups[group] = []
        for trial in some:
            groups[group].append((float(trial.params[name]), 100 * trial.values[0]))
    with style():
        plot = new(7.2, 3.2)
        axes = plot.add_subplot()
        lines = draw_by_bin(axes, groups, intervals, log=log)
        axes.set_xlabel(name)
        axes.set_ylabel(value_label(study))
        draw_legend(plot)
        said = "; ".join(_describe_line(group, points) for group, points in lines.items())
        return finish(
            plot,
            f"binned-{name}",
            f"Scores by {name}",
            "Best and upper quartile of the trials of each bin.",
            f"Best and upper quartile by {name}. {said}.",
        )


def _groups_by(
    by: str | None,
    space: Space,
    trials: list[FrozenTrial],
) -> dict[str, list[FrozenTrial]]:
    """Return the trials by the value of the parameter `by`, where there is one."""
    if not by:
        return {"trials": trials}
    groups = {}
    for value in space[by].values():
        groups[f"{by} = {value}"] = [t for t in trials if t.params.get(by) == value]
    return groups


def _describe_line(group: str, points: Points) -> str:
    texts = []
    for x, best, upper, n in points:
        texts.append(f"{x:.3g}: {best:.2f} and {upper:.2f} of {n}")
    return f"{group}: {', '.join(texts)}"


def all_figures(
    search: optuna.Study,
    study: Study,
    space: Space,
    trials: Sequence[FrozenTrial],
) -> tuple[list[Figure], list[Figure]]:
    """The figures of the search, and those of the parameters; what has nothing to draw is left out."""
    numbers = [p for p in space.parameters if p.numeric and p.name != study.by]
    of_search = [history(study, trials), expected_performance(study, trials)]
    of_parameters = [importance(search), *(by_parameter(study, space, trials, p) for p in numbers)]
    return [f for f in of_search if f is not None], [f for f in of_parameters if f is not None]
