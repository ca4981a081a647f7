"""Every planned trial gets exactly one result, whoever dies in between; with Optuna's storage in memory."""

from __future__ import annotations

import socket
from typing import Any

import optuna
import pytest
from optuna.trial import TrialState

from studies import slots
from studies.run.attributes import SLOT

PLAN: list[dict[str, Any]] = [{"x": 0.1}, {"x": 0.2}, {"x": 0.3}]
DEAD = f"{socket.gethostname()}:999999999:1"  # no process has this id


@pytest.fixture
def stored() -> optuna.Study:
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    return optuna.create_study(direction="maximize", sampler=optuna.samplers.RandomSampler(seed=0))


def finish(stored: optuna.Study, owner: str = "") -> float | None:
    """Claim a trial and finish it; its value is that of x."""
    trial = slots.claim(stored, owner or slots.me())
    if trial is None:
        return None
    x = trial.suggest_categorical("x", [0.1, 0.2, 0.3])
    stored.tell(trial, x)
    return float(x)


def finished(stored: optuna.Study) -> list[float]:
    return sorted(t.value or 0.0 for t in stored.trials if t.state == TrialState.COMPLETE)


def test_all_slots_are_run_once_and_then_nothing_is_left(stored: optuna.Study) -> None:
    assert slots.repair(stored, PLAN) == 3
    assert slots.repair(stored, PLAN) == 3  # asked again: nothing is queued twice
    assert [finish(stored) for _ in range(4)] == [0.1, 0.2, 0.3, None]
    assert slots.repair(stored, PLAN) == 0
    assert len(stored.trials) == 3


def test_the_trial_of_a_dead_worker_is_run_again_with_its_values(stored: optuna.Study) -> None:
    open_plan: list[dict[str, Any]] = [{}, {}]  # values come from the sampler
    slots.repair(stored, open_plan)
    trial = slots.claim(stored, DEAD)
    assert trial is not None
    x = trial.suggest_categorical("x", [0.1, 0.2, 0.3])
    assert slots.repair(stored, open_plan) == 2
    assert stored.trials[0].state == TrialState.FAIL
    values = [finish(stored), finish(stored)]
    assert x in values
    assert stored.trials[-1].params == {"x": x}
    assert slots.repair(stored, open_plan) == 0
    assert not [t for t in stored.trials if t.state in (TrialState.RUNNING, TrialState.WAITING)]


def test_a_living_worker_keeps_its_trial(stored: optuna.Study) -> None:
    slots.repair(stored, PLAN)
    assert slots.claim(stored, slots.me()) is not None
    assert slots.repair(stored, PLAN) == 3
    assert stored.trials[0].state == TrialState.RUNNING


def test_another_machine_is_judged_by_its_signs_of_life(stored: optuna.Study, monkeypatch: pytest.MonkeyPatch) -> None:
    slots.repair(stored, PLAN)
    assert slots.claim(stored, "elsewhere:17:1") is not None
    slots.repair(stored, PLAN)
    assert stored.trials[0].state == TrialState.RUNNING
    monkeypatch.setattr(slots, "GRACE_SECONDS", -1.0)
    slots.repair(stored, PLAN)
    assert stored.trials[0].state == TrialState.FAIL


def test_of_two_trials_of_one_slot_the_first_counts(stored: optuna.Study) -> None:
    slots.repair(stored, PLAN)
    stored.enqueue_trial(PLAN[0], user_attrs={SLOT: 0})  # as two workers do that repair at the same moment
    while finish(stored) is not None:
        pass
    assert finished(stored) == [0.1, 0.2, 0.3]
    assert slots.repair(stored, PLAN) == 0


def test_a_slot_that_kills_its_workers_is_given_up_and_tried_again_on_demand(stored: optuna.Study) -> None:
    plan = PLAN[:1]
    for _ in range(slots.RETRIES):
        slots.repair(stored, plan)
        assert slots.claim(stored, DEAD) is not None
    slots.repair(stored, plan)
    assert slots.claim(stored, slots.me()) is None
    assert slots.repair(stored, plan) == 0
    slots.forgive(stored)
    assert slots.repair(stored, plan) == 1
    assert finish(stored) == 0.1


def test_more_trials_go_on_with_the_study(stored: optuna.Study) -> None:
    slots.repair(stored, PLAN[:1])
    finish(stored)
    assert slots.repair(stored, PLAN) == 2
