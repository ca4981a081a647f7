"""Samplers and pruners by name: proposals lie in the space, pruned trials were worse."""

from __future__ import annotations

from importlib.util import find_spec

import optuna
import pytest

from studies.definition.space import make_space, plan_trials
from studies.definition.study import Study
from studies.samplers import check, make_pruner, make_sampler
from studies.trials import SLOT, next_trial, queue_slots


@pytest.mark.parametrize("name", ["random", "qmc", "tpe", "gp", "nsgaii", "cmaes"])
def test_every_sampler_fills_its_slots_inside_the_space(name: str) -> None:
    if name == "cmaes" and find_spec("cmaes") is None:
        pytest.skip("the package cmaes is not installed")
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    study = Study.parse(
        {
            "name": "x",
            "method": "vicreg",
            "sampler": name,
            "trials": 6,
            "by": "dropout",
            "space": {
                "dropout": [0.05, 0.2],
                "covariance_weight": "declared",
                "variance_weight": {"low": 10.0, "high": 100.0, "log": True},
            },
        },
        "x",
    )
    space = make_space(study, "x")
    check(study, space, "x")
    storage = optuna.storages.InMemoryStorage()
    stored = optuna.create_study(storage=storage, direction="maximize", sampler=make_sampler(study))
    planned = plan_trials(study, space)
    assert queue_slots(storage, stored, planned) == ([], 12)
    while (trial := next_trial(stored, 12)) is not None:
        values = space.suggest(trial, first=trial.user_attrs[SLOT] == 0)
        assert 1e-3 <= float(values["covariance_weight"]) <= 1e-1
        assert 10.0 <= float(values["variance_weight"]) <= 100.0
        stored.tell(trial, -abs(float(values["variance_weight"]) - 50))
    assert sorted(t.params["dropout"] for t in stored.trials) == [0.05] * 6 + [0.2] * 6
    assert len({t.params["covariance_weight"] for t in stored.trials}) > 6


@pytest.mark.parametrize("name", ["median", "percentile"])
def test_a_pruner_stops_a_trial_that_is_worse_than_earlier_ones(name: str) -> None:
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    study = Study.parse({"name": "x", "method": "simcse", "pruner": name, "trials": 1}, "x")
    stored = optuna.create_study(direction="maximize", pruner=make_pruner(study, 30))
    for k in range(6):
        trial = stored.ask()
        trial.report(0.5 + 0.01 * k, 10)
        stored.tell(trial, 0.5 + 0.01 * k)
    worse, better = stored.ask(), stored.ask()
    worse.report(0.3, 10)
    better.report(0.9, 10)
    assert worse.should_prune()
    assert not better.should_prune()


def test_hyperband_stops_the_worse_of_many_trials_before_their_end() -> None:
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    study = Study.parse({"name": "x", "method": "simcse", "pruner": "hyperband", "trials": 1}, "x")
    stored = optuna.create_study(direction="maximize", pruner=make_pruner(study, 90))
    stopped_at = []
    for k in range(12):
        trial = stored.ask()
        for step in range(10, 91, 10):
            trial.report(-k, step)
            if trial.should_prune():
                stopped_at.append(step)
                break
        stored.tell(trial, -k)
    assert min(stopped_at) < 90
