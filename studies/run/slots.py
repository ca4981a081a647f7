"""Exactly the planned trials: each planned trial is a slot, and each slot gets one finished trial, whoever is killed.

All slots are queued as waiting trials before the first one is run. There is one coordinator (`one_coordinator`), so
what is running when it begins was left by one that was killed, and is taken up again: same number, same values.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from studies.run.attributes import FINAL, FORGIVEN, SLOT
from studies.run.trials import is_dead

if TYPE_CHECKING:
    import optuna
    from optuna.trial import FrozenTrial


def take_up(stored: optuna.Study, planned: Sequence[Mapping[str, Any]]) -> tuple[list[optuna.Trial], int]:
    """Queue every slot that has no trial; the trials to go on with, and how many slots are not finished yet.

    Earlier versions may have left trials that nobody needs: running twice, or for a slot that is finished. They fail.
    """
    import optuna
    from optuna.trial import TrialState

    trials = stored.get_trials(deepcopy=False)
    forgiven = set(stored.user_attrs.get(FORGIVEN, ()))
    by_slot: dict[int, list[FrozenTrial]] = defaultdict(list)
    for trial in trials:
        by_slot[trial.user_attrs.get(SLOT, -1)].append(trial)
    going_on, open_slots = dict[int, int](), 0
    for slot, fixed in enumerate(planned):
        living = [t for t in by_slot[slot] if not is_dead(t, forgiven)]
        if any(t.state.is_finished() for t in living):
            continue
        open_slots += 1
        if running := [t for t in living if t.state == TrialState.RUNNING]:
            going_on[running[0].number] = running[0]._trial_id
        elif not living:
            # A trial that failed is tried again with its values; they are the slot's own in a grid.
            tried: dict[str, Any] = next((t.params for t in reversed(by_slot[slot]) if t.params), {})
            stored.enqueue_trial({**fixed, **tried}, user_attrs={SLOT: slot})
    for trial in trials:
        if trial.state == TrialState.RUNNING and trial.number not in going_on:
            stored.tell(trial.number, state=TrialState.FAIL)
    return [optuna.Trial(stored, going_on[number]) for number in sorted(going_on)], open_slots


def next_trial(stored: optuna.Study, slots: int) -> optuna.Trial | None:
    """The next waiting trial of the first `slots` slots, now running; None where none waits."""
    from optuna.trial import TrialState

    forgiven = set(stored.user_attrs.get(FORGIVEN, ()))
    while stored.get_trials(deepcopy=False, states=(TrialState.WAITING,)):
        trial = stored.ask()
        slot = trial.user_attrs.get(SLOT, slots)
        others = [t for t in stored.get_trials(deepcopy=False) if t.user_attrs.get(SLOT) == slot]
        if slot < slots and all(is_dead(t, forgiven) or t.number >= trial.number for t in others):
            return trial
        stored.tell(trial, state=TrialState.FAIL)  # of fewer trials than an earlier call planned, or queued twice
    return None


def forgive(stored: optuna.Study) -> None:
    """Let the slots of failed trials be tried again."""
    from optuna.trial import TrialState

    failed = stored.get_trials(deepcopy=False, states=(TrialState.FAIL,))
    if {t.number for t in failed if FINAL in t.user_attrs} - set(stored.user_attrs.get(FORGIVEN, ())):
        stored.set_user_attr(FORGIVEN, [t.number for t in failed])
