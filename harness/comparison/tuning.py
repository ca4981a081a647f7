"""`harness compare --tune TRIALS`: every row searched under one budget, then trained on seeds that chose nothing.

The search is a plugin's (entry points `harness.tuners`): it is called once with all rows and returns what it found.
This file checks the budget, puts the winners beside the rows that they come from, and keeps how they were found in the
comparison's manifest, for the report.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Protocol

from harness import registry
from harness.comparison.experiment import Experiment
from harness.errors import InputError
from harness.files.toml_text import inline


@dataclass(frozen=True)
class Budget:
    """What every row gets.

    >>> Budget(trials=8).seeds
    (101,)
    """

    trials: int
    steps: int | None = None  # upper bound on the updates of a trial; None: those of the comparison
    seeds: tuple[int, ...] = (101,)  # none of them is one of the comparison's


@dataclass(frozen=True)
class RowSearch:
    """What the search of one row came to; without `values` there is no tuned row, and `reason` says why."""

    row: str
    study: str = ""
    trials: int = 0  # with a result
    runs: int = 0  # different ones among them: a configuration that is proposed twice is trained once
    seconds: float = 0.0  # training and dev evaluations of these runs
    values: dict[str, Any] = field(default_factory=dict)  # the best configuration, as far as it was searched
    reason: str = ""

    @property
    def label(self) -> str:
        """The tuned row's label."""
        return f"{self.row} · tuned"


class Tuner(Protocol):
    """A plugin of `harness.tuners`. It goes on where an earlier call stopped."""

    def __call__(
        self,
        experiment: Experiment,
        budget: Budget,
        workdir: Path,
        *,
        tracked: bool,
        tracking_uri: str | None,
        quiet: bool,
        dry: bool,
    ) -> list[RowSearch]:
        """Search every row of the experiment, on its dev set; one answer a row, in their order.

        `dry`: trains and writes nothing; the answers are what earlier calls found so far.
        """


def asked_budget(typed: Budget | None, experiment: Experiment) -> Budget | None:
    """What `--tune` asks for, or the file's budget of equal trials; None where rows are not searched.

    Raises:
        InputError: both do, and differ.
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


def checked_budget(budget: Budget, experiment: Experiment) -> Budget:
    """The budget with the updates of a trial settled.

    Raises:
        InputError: it cannot be used with this experiment.
    """
    if budget.trials < 1:
        raise InputError(f"--tune {budget.trials}: expected 1 or more trials a row")
    if budget.steps is not None and budget.steps < 1:
        raise InputError(f"--tune-steps {budget.steps}: expected 1 or more updates")
    both = sorted(set(budget.seeds) & set(experiment.seeds))
    if both:
        raise InputError(
            f"--tune: seed {both[0]} would search and be reported; give the search others than the "
            f"comparison's {experiment.seeds} with --tune-seeds"
        )
    if experiment.dev is None:
        raise InputError("--tune: the experiment has no dev set to search on; give it a table [dev]")
    if experiment.blocks or any(entry.base_models or entry.seeds or entry.max_steps for entry in experiment.methods):
        raise InputError(
            "--tune: searches rows that have base models, seeds and updates in common; this file has parts"
        )
    if len(experiment.base_models) > 1:
        raise InputError("--tune: searches on one base model at a time; choose it with --set 'base_models=[\"NAME\"]'")
    steps = budget.steps or experiment.max_steps or experiment.budget.updates
    if steps is None:
        raise InputError("--tune: every row's trials need the same number of updates; give max_steps or --tune-steps")
    if not registry.names(registry.TUNERS):
        raise InputError(f"--tune: no tuner is installed (entry points {registry.TUNERS.entry_points})")
    return replace(budget, steps=steps)


@dataclass(frozen=True)
class Tuning:
    """A budget, and what it found for each row of an experiment."""

    budget: Budget
    rows: list[RowSearch]

    def with_winners(self, experiment: Experiment) -> Experiment:
        """The experiment with each tuned row after the row that it comes from."""
        rows = []
        for entry, search in zip(experiment.methods, self.rows, strict=True):
            rows.append(entry)
            if search.values:
                update = {"name": search.label, "config": {**entry.config, **search.values}}
                rows.append(entry.model_copy(update=update))
        return experiment.model_copy(update={"methods": rows})

    @property
    def ended(self) -> Tuning:
        """The same without the winners of searches that have trials left: another may win yet."""
        rows = [search if search.trials >= self.budget.trials else replace(search, values={}) for search in self.rows]
        return replace(self, rows=rows)

    def overrides(self, label: str) -> list[str]:
        """What makes the row that a tuned row comes from the same runs, as values of `--set`; empty for other rows."""
        return [
            f"methods.{number}.config.{key}={inline(value).as_string()}"
            for number, search in enumerate(self.rows, 1)
            if search.label == label
            for key, value in search.values.items()
        ]

    def manifest(self) -> dict[str, Any]:
        """As the comparison's manifest keeps it under "tuned"."""
        rows = [{"label": search.label, **asdict(search)} for search in self.rows]
        return {**asdict(self.budget), "seeds": list(self.budget.seeds), "rows": rows}

    def table(self) -> tuple[str, list[str], list[list[str]]]:
        """Title, columns and cells of what a terminal shows."""
        b = self.budget
        title = f"Tuning: {b.trials} trials of {b.steps} updates a row, seeds {', '.join(map(str, b.seeds))}"
        lines = []
        for f in self.rows:
            values = ", ".join(f"{k} {v:.3g}" if isinstance(v, float) else f"{k} {v}" for k, v in f.values.items())
            numbers = [str(f.trials), str(f.runs), f"{f.seconds:.1f}"] if f.study else ["", "", ""]
            lines.append([f.row, *numbers, values or f.reason])
        return title, ["Row", "Trials", "Runs", "Search seconds", "Best configuration"], lines


def tune_rows(
    experiment: Experiment,
    budget: Budget,
    workdir: Path,
    *,
    tracked: bool = False,
    tracking_uri: str | None = None,
    quiet: bool = True,
    dry: bool = False,
) -> Tuning:
    """Search every row with the installed tuner; `budget` is one that `checked_budget` gave."""
    tuner: Tuner = registry.load(registry.TUNERS, registry.names(registry.TUNERS)[0])
    found = tuner(experiment, budget, workdir, tracked=tracked, tracking_uri=tracking_uri, quiet=quiet, dry=dry)
    return Tuning(budget, found)
