"""Every planned trial has exactly one result, whenever the process ends; with Optuna's storage in
memory.
"""

from __future__ import annotations

from typing import Any

import optuna
import pytest
from optuna.trial import TrialState

from studies.trials import (
    SLOT,
    TrialResult,
    ended_trials,
    has_result,
    next_trial,
    queue_slots,
    result_of,
)

STORAGE = optuna.storages.InMemoryStorage()
PLAN: list[dict[str, Any]] = [{"x": 0.1}, {"x": 0.2}, {"x": 0.3}]


@pytest.fixture
def stored() -> optuna.Study:
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    return optuna.create_study(
        storage=STORAGE, direction="maximize", sampler=optuna.samplers.RandomSampler(seed=0)
    )


def finish(stored: optuna.Study, trial: optuna.Trial | None) -> float | None:
    """Give a trial its value, that of x."""
    if trial is None:
        return None
    x = trial.suggest_categorical("x", [0.1, 0.2, 0.3])
    stored.tell(trial, x)
    return float(x)


def values(stored: optuna.Study) -> list[float | None]:
    return [trial.value for trial in ended_trials(stored)]


def test_all_slots_are_run_once_and_then_nothing_is_left(stored: optuna.Study) -> None:
    assert queue_slots(STORAGE, stored, PLAN) == ([], 3)
    assert queue_slots(STORAGE, stored, PLAN) == ([], 3)  # called again: nothing is queued twice
    assert [finish(stored, next_trial(stored, 3)) for _ in range(4)] == [0.1, 0.2, 0.3, None]
    assert queue_slots(STORAGE, stored, PLAN) == ([], 0)
    assert len(stored.trials) == 3


def test_trials_that_a_killed_process_left_running_resume_with_number_and_values(
    stored: optuna.Study,
) -> None:
    open_plan: list[dict[str, Any]] = [{}, {}, {}]  # values come from the sampler
    queue_slots(STORAGE, stored, open_plan)
    _, second = next_trial(stored, 3), next_trial(stored, 3)
    assert second is not None
    x = second.suggest_categorical("x", [0.1, 0.2, 0.3])  # the first one has no values yet
    resumed, left = queue_slots(STORAGE, stored, open_plan)
    assert ([trial.number for trial in resumed], left) == ([0, 1], 3)
    assert finish(stored, resumed[1]) == x
    finish(stored, resumed[0])
    finish(stored, next_trial(stored, 3))
    assert queue_slots(STORAGE, stored, open_plan) == ([], 0)
    assert [t.state for t in stored.trials] == [TrialState.COMPLETE] * 3


def test_a_second_trial_of_a_slot_does_not_count(stored: optuna.Study) -> None:
    queue_slots(STORAGE, stored, PLAN)
    stored.enqueue_trial(PLAN[0], user_attrs={SLOT: 0})
    while (trial := next_trial(stored, 3)) is not None:
        finish(stored, trial)
    stored.enqueue_trial(PLAN[1], user_attrs={SLOT: 1})
    stored.ask()
    assert queue_slots(STORAGE, stored, PLAN) == ([], 0)
    assert values(stored) == [0.1, 0.2, 0.3]
    assert not [t for t in stored.trials if t.state in (TrialState.RUNNING, TrialState.WAITING)]


@pytest.mark.parametrize("final", [True, False])
def test_a_failed_trial_is_tried_again_with_its_values(stored: optuna.Study, final: bool) -> None:
    queue_slots(STORAGE, stored, [{}])
    trial = next_trial(stored, 1)
    assert trial is not None
    x = trial.suggest_categorical("x", [0.1, 0.2, 0.3])
    if final:  # it failed for a reason of its own, and was not cut short
        TrialResult(reason="no memory").write(trial)
    stored.tell(trial, state=TrialState.FAIL)
    assert queue_slots(STORAGE, stored, [{}]) == ([], 1)
    assert finish(stored, next_trial(stored, 1)) == x
    assert values(stored) == [x]


def test_more_trials_continue_the_study_and_fewer_leave_the_rest_for_later(
    stored: optuna.Study,
) -> None:
    queue_slots(STORAGE, stored, PLAN)
    assert queue_slots(STORAGE, stored, PLAN[:1]) == ([], 1)
    finish(stored, next_trial(stored, 1))
    assert next_trial(stored, 1) is None
    assert queue_slots(STORAGE, stored, PLAN) == ([], 2)
    while (trial := next_trial(stored, 3)) is not None:
        finish(stored, trial)
    assert values(stored) == [0.1, 0.2, 0.3]


def test_how_a_trial_ended_is_stored_with_it(stored: optuna.Study) -> None:
    trial = stored.ask()
    result = TrialResult(runs=["a"], seeds=[1], seed_values=[0.5], status="finished", seconds=2.0)
    result.write(trial)
    stored.tell(trial, 0.5)
    stored.tell(stored.ask(), state=TrialState.FAIL)
    ended, cut = stored.trials
    assert (has_result(ended), result_of(ended)) == (True, result)
    assert (has_result(cut), result_of(cut).status, result_of(cut).runs) == (False, "failed", [])
