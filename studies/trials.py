"""The trials of a study: those that are left to run, how each ended, and the best ones."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

import optuna
from optuna.storages import BaseStorage
from optuna.trial import FrozenTrial, TrialState
from pydantic import BaseModel

# User attributes of Optuna's trials.
UNUSABLE = "unusable"  # user attribute of a trial whose sampler failed
SLOT = "slot"  # which planned trial it is
_RESULT = "about"  # a `TrialResult`
START = "untrained"  # user attribute of a study: the id of the run that scores the untrained model

_DONE = (TrialState.COMPLETE, TrialState.PRUNED)


class TrialResult(BaseModel):
    """How a trial ended."""

    runs: list[str] = []  # ids, one per seed
    seeds: list[int] = []
    seed_values: list[float] = []  # the objective by each seed
    status: str = "failed"  # of its first run that did not finish, else of its last
    reason: str = ""
    reused: bool = False  # nothing was trained for it
    label: str = ""  # its configuration
    seconds: float = 0.0  # from its beginning to its end

    def write(self, trial: optuna.Trial) -> None:
        """Store it with the trial."""
        trial.set_user_attr(_RESULT, self.model_dump())


def has_result(trial: FrozenTrial) -> bool:
    """True if it is stored how this trial ended; it is not where the process was killed first."""
    return _RESULT in trial.user_attrs


def result_of(trial: FrozenTrial) -> TrialResult:
    """Return how a trial ended; a failed one where nothing is stored."""
    return TrialResult.model_validate(trial.user_attrs.get(_RESULT, {}))


def trials_by_slot(stored: optuna.Study) -> dict[int, list[FrozenTrial]]:
    """Return the trials of each slot, by number."""
    by_slot: dict[int, list[FrozenTrial]] = defaultdict(list)
    for trial in stored.get_trials(deepcopy=False):
        if SLOT in trial.user_attrs:
            by_slot[trial.user_attrs[SLOT]].append(trial)
    return by_slot


def queue_slots(
    storage: BaseStorage,
    stored: optuna.Study,
    planned: Sequence[Mapping[str, Any]],
) -> tuple[list[optuna.Trial], int]:
    """Queue every slot that has no trial, or only failed ones.

    Returns:
        The trials to resume, and how many slots are open.
    """
    by_slot = trials_by_slot(stored)
    resumed: list[int] = []
    open_slots = 0
    for slot, fixed in enumerate(planned):
        first_in_state = {t.state: t.number for t in reversed(by_slot[slot])}
        if any(state in first_in_state for state in _DONE):
            continue
        open_slots += 1
        if TrialState.RUNNING in first_in_state:
            resumed.append(first_in_state[TrialState.RUNNING])
        elif TrialState.WAITING not in first_in_state:
            # A failed trial is tried again with its values, unless its sampler failed; in a grid
            # they are the slot's own.
            usable = [trial for trial in by_slot[slot] if UNUSABLE not in trial.user_attrs]
            tried = [trial.params for trial in usable if trial.params]
            if tried:
                values = {**fixed, **tried[-1]}
            else:
                values = dict(fixed)
            stored.enqueue_trial(values, user_attrs={SLOT: slot})

    for trial in stored.get_trials(deepcopy=False, states=(TrialState.RUNNING,)):
        if trial.number not in resumed:
            stored.tell(trial.number, state=TrialState.FAIL)

    study_id = storage.get_study_id_from_name(stored.study_name)
    trials = []
    for number in sorted(resumed):
        trial_id = storage.get_trial_id_from_study_id_trial_number(study_id, number)
        trials.append(optuna.Trial(stored, trial_id))
    return trials, open_slots


def next_trial(stored: optuna.Study, slots: int) -> optuna.Trial | None:
    """Begin the next waiting trial of the first `slots` slots; None where none waits."""
    while stored.get_trials(deepcopy=False, states=(TrialState.WAITING,)):
        trial = stored.ask()
        slot = trial.user_attrs.get(SLOT, slots)
        earlier = [t for t in trials_by_slot(stored)[slot] if t.number < trial.number]
        if slot < slots and all(t.state == TrialState.FAIL for t in earlier):
            return trial
        stored.tell(trial, state=TrialState.FAIL)  # an earlier call planned more trials
    return None


def ended_trials(stored: optuna.Study) -> list[FrozenTrial]:
    """Return the trial that counts for each slot, in the order of the slots."""
    finished = []
    for _, trials in sorted(trials_by_slot(stored).items()):
        done = [t for t in trials if t.state in _DONE]
        failed = [t for t in trials if t.state == TrialState.FAIL and has_result(t)]
        finished += done[:1] or failed[-1:]
    return finished


def best_trials(stored: optuna.Study) -> list[FrozenTrial]:
    """Return the finished trials with a value, best first."""
    done = stored.get_trials(deepcopy=False, states=(TrialState.COMPLETE,))
    return sorted(done, key=lambda t: (-(t.value or 0.0), t.number))


def describe_trial(trial: FrozenTrial) -> str:
    """Return one line about a trial that has ended."""
    result = result_of(trial)
    if trial.state != TrialState.COMPLETE:
        return f"{result.label}: {trial.state.name.lower()}: {result.reason}"
    line = f"{result.label}: {100 * (trial.value or 0.0):.2f}"
    if result.status != "finished":
        line += f" ({result.status})"
    if result.reused:
        line += " (reused)"
    return line
