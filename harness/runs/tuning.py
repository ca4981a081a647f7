"""`harness compare --tune TRIALS`: every row searched under one budget, then trained on seeds that chose nothing.

The searches are studies (`studies.tune`); this module checks the budget, and adds the winners as rows of their own.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, replace
from typing import Any

from harness.errors import InputError
from harness.files.toml_text import inline
from harness.runs.experiment import Experiment


@dataclass(frozen=True)
class Budget:
    """The search budget of every row.

    >>> Budget(trials=8).seeds
    (101,)
    """

    trials: int
    steps: int | None = None  # upper bound on the training steps of a trial; default: those of the comparison
    seeds: tuple[int, ...] = (101,)  # none of them may be one of the comparison's


@dataclass(frozen=True)
class RowSearch:
    """The result of the search of one row; without `values` there is no tuned row, and `reason` says why."""

    row: str
    study: str = ""
    trials: int = 0  # with a result
    runs: int = 0  # a configuration that is proposed twice is trained once
    seconds: float = 0.0  # training and dev evaluations of these runs
    values: dict[str, Any] = field(default_factory=dict)  # the best configuration, as far as it was searched
    reason: str = ""

    @property
    def label(self) -> str:
        """The tuned row's label."""
        return f"{self.row} · tuned"


def requested_budget(typed: Budget | None, experiment: Experiment) -> Budget | None:
    """The budget of `--tune`, or the file's budget of equal trials; None where rows are not searched.

    Raises:
        InputError: both are given, and differ.
    """
    of_file = experiment.budget
    if of_file.trials is None:
        return typed
    if typed is None:
        return Budget(of_file.trials, of_file.updates)
    if typed.trials != of_file.trials:
        raise InputError(
            f"--tune {typed.trials}: the file's budget is {of_file.trials} trials a row; leave --tune out, or give "
            f"--set budget.trials={typed.trials} instead"
        )
    return replace(typed, steps=typed.steps or of_file.updates)


def check_budget(budget: Budget, experiment: Experiment) -> Budget:
    """The budget with the training steps of a trial.

    Raises:
        InputError: it does not suit the experiment.
    """
    if budget.trials < 1:
        raise InputError(f"--tune {budget.trials}: expected 1 or more trials a row")
    if budget.steps is not None and budget.steps < 1:
        raise InputError(f"--tune-steps {budget.steps}: expected 1 or more training steps")
    both = sorted(set(budget.seeds) & set(experiment.seeds))
    if both:
        raise InputError(
            f"--tune: seed {both[0]} would be searched on and reported; give the search other seeds than "
            f"the comparison's {experiment.seeds} with --tune-seeds"
        )
    if experiment.dev is None:
        raise InputError("--tune: the experiment has no dev set to search on; give it a table [dev]")
    if experiment.blocks or any(entry.base_models or entry.seeds or entry.max_steps for entry in experiment.methods):
        raise InputError(
            "--tune: searches rows that share base models, seeds and max_steps; "
            "this file has blocks, or rows with own ones"
        )
    if len(experiment.base_models) > 1:
        raise InputError("--tune: searches on one base model at a time; choose it with --set 'base_models=[\"NAME\"]'")
    steps = budget.steps or experiment.max_steps or experiment.budget.updates
    if steps is None:
        raise InputError(
            "--tune: every row's trials need the same number of training steps; give max_steps or --tune-steps"
        )
    return replace(budget, steps=steps)


@dataclass(frozen=True)
class Tuning:
    """A budget, and the search of each row of an experiment."""

    budget: Budget
    rows: list[RowSearch]

    def with_winners(self, experiment: Experiment) -> Experiment:
        """The experiment with each tuned row after its untuned one."""
        rows = []
        for entry, search in zip(experiment.methods, self.rows, strict=True):
            rows.append(entry)
            if search.values:
                update = {"name": search.label, "config": {**entry.config, **search.values}}
                rows.append(entry.model_copy(update=update))
        return experiment.model_copy(update={"methods": rows})

    @property
    def ended(self) -> Tuning:
        """The same without the winners of searches that have trials left."""
        rows = [search if search.trials >= self.budget.trials else replace(search, values={}) for search in self.rows]
        return replace(self, rows=rows)

    def overrides(self, label: str) -> list[str]:
        """Values of `--set` that give the untuned row the tuned values; empty for other rows."""
        return [
            f"methods.{number}.config.{key}={inline(value).as_string()}"
            for number, search in enumerate(self.rows, 1)
            if search.label == label
            for key, value in search.values.items()
        ]

    def describe(self) -> dict[str, Any]:
        """As the comparison's file stores it under "tuned"."""
        rows = [{"label": search.label, **asdict(search)} for search in self.rows]
        return {**asdict(self.budget), "seeds": list(self.budget.seeds), "rows": rows}

    def table(self) -> tuple[str, list[str], list[list[str]]]:
        """Title, columns and cells for the terminal."""
        b = self.budget
        title = f"Tuning: {b.trials} trials of {b.steps} training steps per row, seeds {', '.join(map(str, b.seeds))}"
        lines = []
        for f in self.rows:
            values = ", ".join(f"{k} {v:.3g}" if isinstance(v, float) else f"{k} {v}" for k, v in f.values.items())
            numbers = [str(f.trials), str(f.runs), f"{f.seconds:.1f}"] if f.study else ["", "", ""]
            lines.append([f.row, *numbers, values or f.reason])
        return title, ["Row", "Trials", "Runs", "Search seconds", "Best configuration"], lines
