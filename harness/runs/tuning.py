"""`harness compare --tune TRIALS`: every row searched under one budget, then trained on seeds that chose nothing.

The searches are studies (`studies.tune`); this module checks the budget, and adds the winners as rows of their own.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from harness.errors import refuse
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


def check_budget(budget: Budget | None, experiment: Experiment) -> Budget | None:
    """The budget of `--tune` with its steps, by default those of the experiment; None where rows are not searched.

    Raises:
        InputError: it does not suit the experiment.
    """
    if budget is None:
        return None
    steps = budget.steps if budget.steps is not None else experiment.budget.steps or experiment.max_steps
    both, own = set(budget.seeds) & set(experiment.seeds), any(entry.base_models for entry in experiment.methods)
    refuse({
        f"--tune {budget.trials}: expected 1 or more trials a row": budget.trials < 1,
        f"--tune: seed {min(both, default=0)} would be searched on and reported; choose another (--set seeds)": both,
        "--tune: the experiment has no dev set to search on; give it a table [dev]": experiment.dev is None,
        "--tune: not for a file with blocks, or with base models of rows": experiment.blocks or own,
        "--tune: one base model at a time; choose it with --set 'base_models=[\"NAME\"]'": experiment.base_models[1:],
        f"--tune-steps {steps or 0}: expected 1 or more training steps of a trial; or give max_steps": (steps or 0) < 1,
    })  # fmt: skip
    return replace(budget, steps=steps)


def with_winners(experiment: Experiment, tuned: Mapping[str, Any]) -> Experiment:
    """The experiment with each tuned row after its untuned one; `tuned` is what `studies.tune.tune_rows` returns."""
    rows = []
    for entry, search in zip(experiment.methods, tuned["rows"], strict=True):
        rows.append(entry)
        if search["values"]:
            update = {"name": search["label"], "config": {**entry.config, **search["values"]}}
            rows.append(entry.model_copy(update=update))
    return experiment.model_copy(update={"methods": rows})
