"""`harness compare --tune TRIALS`: every row searched under one budget, then trained on seeds that chose nothing.

The search is a plugin's (entry points `harness.tuners`): it is called once with all rows and returns what it found.
This file checks the budget, puts the winners beside the rows that they come from, and keeps how they were found in the
comparison's manifest, for the report.
"""

from __future__ import annotations

import argparse
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Protocol

from harness import registry
from harness.comparison.experiment import Experiment
from harness.errors import InputError
from harness.files.toml_text import inline

DEFAULT_SEEDS = "101"


@dataclass(frozen=True)
class Budget:
    """What every row gets."""

    trials: int
    steps: int  # upper bound on the updates of a trial
    seeds: tuple[int, ...]  # none of them is one of the comparison's


@dataclass(frozen=True)
class Found:
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
    ) -> list[Found]:
        """Search every row of the experiment, on its dev set; one answer a row, in their order."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `harness compare` that this file is about."""
    parser.add_argument("--tune", type=int, metavar="TRIALS", help="search every row's declared ranges with so many "
                        "trials on the dev set, and add the best configuration as a row of its own")  # fmt: skip
    parser.add_argument("--tune-steps", type=int, metavar="N", help="updates of a trial (default: max_steps)")
    parser.add_argument("--tune-seeds", metavar="LIST", help="seeds of the search, none of them one of the "
                        f"comparison's (default: {DEFAULT_SEEDS})")  # fmt: skip


def budget_of(args: argparse.Namespace, experiment: Experiment) -> Budget | None:
    """The budget that was asked for, or None without `--tune`.

    Raises:
        InputError: it cannot be used with this experiment.
    """
    if args.tune is None:
        for name in ("tune_steps", "tune_seeds"):
            if getattr(args, name) is not None:
                raise InputError(f"--{name.replace('_', '-')}: goes with --tune TRIALS")
        return None
    if args.tune < 1:
        raise InputError(f"--tune {args.tune}: expected 1 or more trials a row")
    if args.tune_steps is not None and args.tune_steps < 1:
        raise InputError(f"--tune-steps {args.tune_steps}: expected 1 or more updates")
    text = args.tune_seeds or DEFAULT_SEEDS
    try:
        seeds = tuple(dict.fromkeys(int(part) for part in text.split(",")))
    except ValueError:
        raise InputError(f"--tune-seeds {text}: expected numbers with commas, as 101,102") from None
    both = sorted(set(seeds) & set(experiment.seeds))
    if both:
        raise InputError(
            f"--tune: seed {both[0]} would search and be reported; give the search others than the "
            f"comparison's {experiment.seeds} with --tune-seeds"
        )
    if experiment.dev is None:
        raise InputError("--tune: the experiment has no dev set to search on; give it a table [dev]")
    if len(experiment.base_models) > 1:
        raise InputError("--tune: searches on one base model at a time; choose it with --set 'base_models=[\"NAME\"]'")
    steps = args.tune_steps or experiment.max_steps
    if steps is None:
        raise InputError("--tune: every row's trials need the same number of updates; give max_steps or --tune-steps")
    if not registry.names(registry.TUNERS):
        raise InputError(f"--tune: no tuner is installed (entry points {registry.TUNERS.entry_points})")
    return Budget(args.tune, steps, seeds)


@dataclass(frozen=True)
class Tuning:
    """A budget, and what it found for each row of an experiment."""

    budget: Budget
    rows: list[Found]

    def with_winners(self, experiment: Experiment) -> Experiment:
        """The experiment with each tuned row after the row that it comes from."""
        rows = []
        for entry, found in zip(experiment.methods, self.rows, strict=True):
            rows.append(entry)
            if found.values:
                update = {"name": found.label, "config": {**entry.config, **found.values}}
                rows.append(entry.model_copy(update=update))
        return experiment.model_copy(update={"methods": rows})

    def overrides(self, label: str) -> list[str]:
        """What makes the row that a tuned row comes from the same runs, as values of `--set`; empty for other rows."""
        return [
            f"methods.{number}.config.{key}={inline(value).as_string()}"
            for number, found in enumerate(self.rows, 1)
            if found.label == label
            for key, value in found.values.items()
        ]

    def manifest(self) -> dict[str, Any]:
        """As the comparison's manifest keeps it under "tuned"."""
        rows = [{"label": found.label, **asdict(found)} for found in self.rows]
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


def tune(experiment: Experiment, budget: Budget, workdir: Path, args: argparse.Namespace) -> Tuning:
    """Search every row with the installed tuner."""
    tuner: Tuner = registry.load(registry.TUNERS, registry.names(registry.TUNERS)[0])
    found = tuner(
        experiment, budget, workdir, tracked=not args.no_tracking, tracking_uri=args.tracking_uri, quiet=args.quiet
    )
    return Tuning(budget, found)
