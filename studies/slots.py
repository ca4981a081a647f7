"""Exactly the planned trials: each planned trial is a slot, and each slot gets one finished trial, whoever is killed.

All slots of a study are queued as waiting trials, and a worker takes the next one from the queue, which every storage
of Optuna hands out once. What can still go wrong is put right by rules that need no lock: of two trials of one slot the
one with the lower number counts; a running trial whose process is dead fails, and its slot is queued again with the
same values, so that its run goes on from its checkpoint.
"""

from __future__ import annotations

import os
import socket
import time
from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from studies.run.attributes import BEAT, FINAL, FORGIVEN, OWNER, SLOT
from studies.run.trials import is_dead

if TYPE_CHECKING:
    import optuna
    from optuna.trial import FrozenTrial

BEAT_SECONDS = 15.0
GRACE_SECONDS = 120.0  # a worker of another machine that has been silent for so long is dead
UNSIGNED_SECONDS = 60.0  # a trial still unsigned after so long was taken by a process that died in the act
RETRIES = 3  # a slot whose workers died this often is given up: its trial takes them along (memory, for one)


def repair(stored: optuna.Study, slots: list[dict[str, Any]]) -> int:
    """Fail the trials of dead workers and queue every slot that has no trial; how many slots are not finished yet."""
    from optuna.trial import TrialState

    trials = stored.get_trials(deepcopy=False)
    for trial in trials:
        if trial.state == TrialState.RUNNING and not _lives(trial):
            _fail(stored, trial)
    trials = stored.get_trials(deepcopy=False)
    forgiven = set(stored.user_attrs.get(FORGIVEN, ()))
    by_slot: dict[int, list[FrozenTrial]] = defaultdict(list)
    for trial in trials:
        if SLOT in trial.user_attrs:
            by_slot[trial.user_attrs[SLOT]].append(trial)
    open_slots = 0
    for slot, fixed in enumerate(slots):
        mine = by_slot[slot]
        living = [t for t in mine if not is_dead(t, forgiven)]
        if any(t.state.is_finished() for t in living):
            continue
        open_slots += 1
        if living:
            continue
        # The values of a trial that was cut short, so that its run can go on; they are the slot's own in a grid.
        params = next((t.params for t in reversed(mine) if OWNER in t.user_attrs and t.params), fixed)
        stored.enqueue_trial({**fixed, **params}, user_attrs={SLOT: slot})
    return open_slots


def _fail(stored: optuna.Study, trial: FrozenTrial) -> None:
    import optuna
    from optuna.trial import TrialState

    try:
        stored.tell(trial.number, state=TrialState.FAIL)
    except (ValueError, optuna.exceptions.UpdateFinishedTrialError):
        return  # somebody else was faster


def claim(stored: optuna.Study, owner: str) -> optuna.Trial | None:
    """The next slot's trial, signed by this worker; None where the queue is empty."""
    from optuna.trial import TrialState

    if not stored.get_trials(deepcopy=False, states=(TrialState.WAITING,)):
        return None
    trial = stored.ask()
    slot = trial.user_attrs.get(SLOT)
    if slot is None:  # the queue was emptied between look and grasp
        stored.tell(trial, state=TrialState.FAIL)
        return None
    trial.set_user_attr(OWNER, owner)
    forgiven = set(stored.user_attrs.get(FORGIVEN, ()))
    same = [t for t in stored.get_trials(deepcopy=False) if t.user_attrs.get(SLOT) == slot and t.number < trial.number]
    if any(not is_dead(t, forgiven) for t in same):
        stored.tell(trial, state=TrialState.FAIL)
        return claim(stored, owner)
    if sum(OWNER in t.user_attrs and t.number not in forgiven for t in same) >= RETRIES:
        trial.set_user_attr("reason", f"its worker ended {RETRIES} times without a result")
        trial.set_user_attr(FINAL, "failed")
        stored.tell(trial, state=TrialState.FAIL)
        return claim(stored, owner)
    return trial


def forgive(stored: optuna.Study) -> None:
    """Let the slots of failed trials be tried again."""
    from optuna.trial import TrialState

    failed = [t.number for t in stored.get_trials(deepcopy=False, states=(TrialState.FAIL,)) if FINAL in t.user_attrs]
    if set(failed) - set(stored.user_attrs.get(FORGIVEN, ())):
        dead = [t.number for t in stored.get_trials(deepcopy=False, states=(TrialState.FAIL,))]
        stored.set_user_attr(FORGIVEN, dead)


def me() -> str:
    """This process: host, id, and when it started (ids are used again)."""
    return f"{socket.gethostname()}:{os.getpid()}:{_started(os.getpid())}"


def _lives(trial: FrozenTrial) -> bool:
    """Is the worker of a running trial alive? Certain on this host, judged by its sign of life on others."""
    owner = trial.user_attrs.get(OWNER)
    begun = trial.datetime_start.timestamp() if trial.datetime_start else 0.0
    if owner is None:
        return time.time() - begun < UNSIGNED_SECONDS
    host, pid, started = owner.rsplit(":", 2)
    if host == socket.gethostname():
        return bool(_started(int(pid)) == started)
    return bool(time.time() - trial.user_attrs.get(BEAT, begun) < GRACE_SECONDS)


def _started(pid: int) -> str:
    """When a process started, in a form that only serves to be compared; empty when there is none."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        if Path("/proc/self").exists():
            return ""
        try:
            os.kill(pid, 0)  # no /proc here: at least whether it is there
        except ProcessLookupError:
            return ""
        except PermissionError:
            pass
        return "there"
    return "" if fields[0] in "ZX" else fields[19]  # a zombie is dead; field 22 of the line is the start time
