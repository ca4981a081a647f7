"""Exactly the planned trials: each planned trial is a slot, and each slot gets one finished trial, whoever is killed.

All slots of a study are queued as waiting trials, and a worker takes the next one from the queue, which every storage
of Optuna hands out once. What can still go wrong is put right by rules that need no lock: of two trials of one slot the
one with the lower number counts; a running trial whose process is dead fails, and its slot is queued again with the
same values, so that its run goes on from its checkpoint.
"""

from __future__ import annotations

import os
import random
import socket
import time
from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from studies.attributes import BEAT, FINAL, FORGIVEN, OWNER, SLOT
from studies.definition import ENUMERATED

if TYPE_CHECKING:
    import optuna
    from optuna.trial import FrozenTrial

    from studies.definition import Study
    from studies.space import Space

BEAT_SECONDS = 15.0
GRACE_SECONDS = 120.0  # a worker of another machine that has been silent for so long is dead
UNSIGNED_SECONDS = 60.0  # a trial still unsigned after so long was taken by a process that died in the act
RETRIES = 3  # a slot whose workers died this often is given up: its trial takes them along (memory, for one)


def plan(study: Study, space: Space) -> list[dict[str, Any]]:
    """The fixed values of each slot: whole configurations for grids and defaults, the value of `by`, or nothing."""
    if study.sampler in ENUMERATED:
        points = space.points()
        if study.sampler == "brute_force":
            random.Random(study.sampler_seed).shuffle(points)  # noqa: S311 - an order, not a secret
            points = points[: study.trials]
        return [dict(point) for point in points]
    assert study.trials is not None
    turns: list[dict[str, Any]] = [{}]
    if study.by is not None:  # taking turns, so that a study that was stopped has all values to the same extent
        turns = [{study.by: value} for value in space[study.by].values()]
    found = [dict(turn) for _ in range(study.trials) for turn in turns]
    if study.defaults_first:
        found[0] = space.defaults() | found[0]
    return found


def is_dead(trial: FrozenTrial, forgiven: set[int]) -> bool:
    """Does the slot of this trial need another one?"""
    from optuna.trial import TrialState

    return trial.state == TrialState.FAIL and (FINAL not in trial.user_attrs or trial.number in forgiven)


def repair(found: optuna.Study, slots: list[dict[str, Any]]) -> int:
    """Fail the trials of dead workers and queue every slot that has no trial; how many slots are not finished yet."""
    from optuna.trial import TrialState

    trials = found.get_trials(deepcopy=False)
    for trial in trials:
        if trial.state == TrialState.RUNNING and not _lives(trial):
            _fail(found, trial)
    trials = found.get_trials(deepcopy=False)
    forgiven = set(found.user_attrs.get(FORGIVEN, ()))
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
        found.enqueue_trial({**fixed, **params}, user_attrs={SLOT: slot})
    return open_slots


def _fail(found: optuna.Study, trial: FrozenTrial) -> None:
    import optuna
    from optuna.trial import TrialState

    try:
        found.tell(trial.number, state=TrialState.FAIL)
    except (ValueError, optuna.exceptions.UpdateFinishedTrialError):
        return  # somebody else was faster


def claim(found: optuna.Study, owner: str) -> optuna.Trial | None:
    """The next slot's trial, signed by this worker; None where the queue is empty."""
    from optuna.trial import TrialState

    if not found.get_trials(deepcopy=False, states=(TrialState.WAITING,)):
        return None
    trial = found.ask()
    slot = trial.user_attrs.get(SLOT)
    if slot is None:  # the queue was emptied between look and grasp
        found.tell(trial, state=TrialState.FAIL)
        return None
    trial.set_user_attr(OWNER, owner)
    forgiven = set(found.user_attrs.get(FORGIVEN, ()))
    same = [t for t in found.get_trials(deepcopy=False) if t.user_attrs.get(SLOT) == slot and t.number < trial.number]
    if any(not is_dead(t, forgiven) for t in same):
        found.tell(trial, state=TrialState.FAIL)
        return claim(found, owner)
    if sum(OWNER in t.user_attrs and t.number not in forgiven for t in same) >= RETRIES:
        trial.set_user_attr("reason", f"its worker ended {RETRIES} times without a result")
        trial.set_user_attr(FINAL, "failed")
        found.tell(trial, state=TrialState.FAIL)
        return claim(found, owner)
    return trial


def forgive(found: optuna.Study) -> None:
    """Let the slots of failed trials be tried again."""
    from optuna.trial import TrialState

    failed = [t.number for t in found.get_trials(deepcopy=False, states=(TrialState.FAIL,)) if FINAL in t.user_attrs]
    if set(failed) - set(found.user_attrs.get(FORGIVEN, ())):
        dead = [t.number for t in found.get_trials(deepcopy=False, states=(TrialState.FAIL,))]
        found.set_user_attr(FORGIVEN, dead)


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
