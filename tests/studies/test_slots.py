"""Every planned trial gets exactly one result, whoever dies in between; with Optuna's storage in memory."""

from __future__ import annotations

from typing import Any

import optuna
import pytest
from optuna.trial import TrialState

from studies.run.attributes import FINAL, SLOT
from studies.run.slots import forgive, next_trial, take_up

PLAN: list[dict[str, Any]] = [{"x": 0.1}, {"x": 0.2}, {"x": 0.3}]


@pytest.fixture
def stored() -> optuna.Study:
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    return optuna.create_study(direction="maximize", sampler=optuna.samplers.RandomSampler(seed=0))


def finish(stored: optuna.Study, trial: optuna.Trial | None) -> float | None:
    """Give a trial its value, that of x."""
    if trial is None:
        return None
    x = trial.suggest_categorical("x", [0.1, 0.2, 0.3])
    stored.tell(trial, x)
    return float(x)


def finished(stored: optuna.Study) -> list[float]:
    return sorted(t.value or 0.0 for t in stored.trials if t.state == TrialState.COMPLETE)


def test_all_slots_are_run_once_and_then_nothing_is_left(stored: optuna.Study) -> None:
    assert take_up(stored, PLAN) == ([], 3)
    assert take_up(stored, PLAN) == ([], 3)  # asked again: nothing is queued twice
    assert [finish(stored, next_trial(stored, 3)) for _ in range(4)] == [0.1, 0.2, 0.3, None]
    assert take_up(stored, PLAN) == ([], 0)
    assert len(stored.trials) == 3


def test_what_a_dead_coordinator_left_running_is_taken_up_with_its_number_and_values(stored: optuna.Study) -> None:
    open_plan: list[dict[str, Any]] = [{}, {}, {}]  # values come from the sampler
    take_up(stored, open_plan)
    first, second = next_trial(stored, 3), next_trial(stored, 3)
    assert first is not None
    assert second is not None
    x = second.suggest_categorical("x", [0.1, 0.2, 0.3])  # the first one had not drawn its values yet
    going_on, left = take_up(stored, open_plan)
    assert ([trial.number for trial in going_on], left) == ([0, 1], 3)
    assert finish(stored, going_on[1]) == x
    finish(stored, going_on[0])
    finish(stored, next_trial(stored, 3))
    assert take_up(stored, open_plan) == ([], 0)
    assert [t.state for t in stored.trials] == [TrialState.COMPLETE] * 3


def test_what_earlier_versions_left_twice_counts_once(stored: optuna.Study) -> None:
    take_up(stored, PLAN)
    stored.enqueue_trial(PLAN[0], user_attrs={SLOT: 0})  # as two workers did that repaired at the same moment
    while (trial := next_trial(stored, 3)) is not None:
        finish(stored, trial)
    assert finished(stored) == [0.1, 0.2, 0.3]
    stored.enqueue_trial(PLAN[1], user_attrs={SLOT: 1})
    stored.ask()  # a worker of a slot that another one had finished
    assert take_up(stored, PLAN) == ([], 0)
    assert not [t for t in stored.trials if t.state in (TrialState.RUNNING, TrialState.WAITING)]


def test_a_trial_that_failed_is_tried_again_on_demand_with_its_values(stored: optuna.Study) -> None:
    take_up(stored, [{}])
    trial = next_trial(stored, 1)
    assert trial is not None
    x = trial.suggest_categorical("x", [0.1, 0.2, 0.3])
    trial.set_user_attr(FINAL, "failed")
    stored.tell(trial, state=TrialState.FAIL)
    assert take_up(stored, [{}]) == ([], 0)
    forgive(stored)
    assert take_up(stored, [{}]) == ([], 1)
    assert finish(stored, next_trial(stored, 1)) == x


def test_a_trial_that_an_earlier_version_cut_short_is_run_again(stored: optuna.Study) -> None:
    take_up(stored, PLAN[:1])
    trial = next_trial(stored, 1)
    assert trial is not None
    stored.tell(trial, state=TrialState.FAIL)  # its worker had died: no reason of its own
    assert take_up(stored, PLAN[:1]) == ([], 1)
    assert finish(stored, next_trial(stored, 1)) == 0.1


def test_more_trials_go_on_with_the_study_and_fewer_leave_the_rest_for_later(stored: optuna.Study) -> None:
    take_up(stored, PLAN)
    assert take_up(stored, PLAN[:1]) == ([], 1)
    finish(stored, next_trial(stored, 1))
    assert next_trial(stored, 1) is None
    assert take_up(stored, PLAN) == ([], 2)
    while (trial := next_trial(stored, 3)) is not None:
        finish(stored, trial)
    assert finished(stored) == [0.1, 0.2, 0.3]
