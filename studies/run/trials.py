"""The trials of a study that count: which of them ended, which are best, and a line about each."""

from __future__ import annotations

from typing import TYPE_CHECKING

from studies.run.attributes import FINAL, FORGIVEN, SLOT
from studies.run.trial_result import result_of

if TYPE_CHECKING:
    import optuna
    from optuna.trial import FrozenTrial


def is_dead(trial: FrozenTrial, forgiven: set[int]) -> bool:
    """Does the slot of this trial need another one?"""
    from optuna.trial import TrialState

    return trial.state == TrialState.FAIL and (FINAL not in trial.user_attrs or trial.number in forgiven)


def finished_trials(stored: optuna.Study) -> list[FrozenTrial]:
    """The trial that counts for each slot, in the order of the slots; those cut short and surplus ones are left out."""
    forgiven = set(stored.user_attrs.get(FORGIVEN, ()))
    by_slot: dict[int, FrozenTrial] = {}
    for trial in stored.get_trials(deepcopy=False):
        slot = trial.user_attrs.get(SLOT)
        if slot is not None and trial.state.is_finished() and not is_dead(trial, forgiven):
            by_slot.setdefault(slot, trial)
    return [by_slot[slot] for slot in sorted(by_slot)]


def best_trials(stored: optuna.Study) -> list[FrozenTrial]:
    """The best finished trials, best first: by value among those with the most seeds; all Pareto-optimal ones of
    several objectives, in the order of their numbers."""
    import optuna
    from optuna.trial import TrialState

    if len(stored.directions) > 1:
        return stored.best_trials
    done = stored.get_trials(deepcopy=False, states=(TrialState.COMPLETE,))
    most = max((len(result_of(t).seeds) for t in done), default=0)
    done = [t for t in done if len(result_of(t).seeds) == most]
    sign = -1 if stored.directions[0] == optuna.study.StudyDirection.MAXIMIZE else 1
    return sorted(done, key=lambda t: (sign * (t.value or 0.0), t.number))


def line_about(trial: FrozenTrial) -> str:
    """One line about a finished trial."""
    result = result_of(trial)
    if trial.state.name == "COMPLETE":
        value = ", ".join(f"{100 * v:.2f}" for v in trial.values)
        ended = "" if result.status == "finished" else f" ({result.status})"
        return f"{result.label}: {value}{ended}{' (known)' if result.answered else ''}"
    return f"{result.label}: {trial.state.name.lower()}: {result.reason}"
