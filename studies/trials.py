"""The trials of a study: which are planned and left, what is stored of them besides values, and which are best."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel

if TYPE_CHECKING:
    import optuna
    from optuna.trial import FrozenTrial

# User attributes of Optuna's trials and studies.
SLOT, FINAL = "slot", "final"  # of a trial: which planned one it is; that it failed, and was not cut short
PROPOSER = "proposer"  # of a trial: who proposed its values, where the sampler's name does not say it
FORGIVEN = "forgiven"  # of the study: failed trials whose slots a later call tries again
_RESULT = "about"


class TrialSeconds(BaseModel):
    """Wall seconds of a trial; zero where it reused records."""

    training: float = 0.0
    evaluation: float = 0.0
    optuna: float = 0.0
    whole: float = 0.0


class TrialResult(BaseModel):
    """How a trial ended."""

    runs: list[str] = []  # ids, one per seed
    seeds: list[int] = []
    seed_values: list[list[float]] = []  # for each seed the values of the objectives
    status: str = "failed"  # of its last run
    reason: str = ""
    reused: bool = False  # nothing was trained for it
    label: str = ""  # its configuration
    seconds: TrialSeconds = TrialSeconds()

    def write(self, trial: optuna.Trial) -> None:
        """Store it with the trial; optuna-dashboard shows attributes in this order."""
        for key, value in {**self._readable(), _RESULT: self.model_dump()}.items():
            trial.set_user_attr(key, value)

    def _readable(self) -> dict[str, str | float]:
        """The same as columns of optuna-dashboard."""
        return {
            "configuration": self.label,
            "ended": f"{self.status}: {self.reason}" if self.reason else self.status,
            "runs": ", ".join(self.runs),
            "seeds": ", ".join(map(str, self.seeds)),
            "trained": "no, reused" if self.reused else "yes" if self.runs else "no",
            "training seconds": round(self.seconds.training, 1),
            "evaluation seconds": round(self.seconds.evaluation, 1),
            "whole seconds": round(self.seconds.whole, 1),
        }


def has_result(trial: FrozenTrial) -> bool:
    """Is it stored how this trial ended? Nothing is, of one that was cut short."""
    return _RESULT in trial.user_attrs


def result_of(trial: FrozenTrial) -> TrialResult:
    """How a trial ended; a failed one where nothing is stored."""
    result = TrialResult.model_validate(trial.user_attrs.get(_RESULT, {}))
    return result.model_copy(update={"reason": result.reason or trial.user_attrs.get("reason", "")})


def is_dead(trial: FrozenTrial, forgiven: set[int]) -> bool:
    """Does the slot of this trial need another one?"""
    from optuna.trial import TrialState

    return trial.state == TrialState.FAIL and (FINAL not in trial.user_attrs or trial.number in forgiven)


def queue_slots(stored: optuna.Study, planned: Sequence[Mapping[str, Any]]) -> tuple[list[optuna.Trial], int]:
    """Queue every slot that has no trial; the trials to resume, and how many slots have not ended.

    The slots of failed trials are tried again.
    """
    import optuna
    from optuna.trial import TrialState

    failed = stored.get_trials(deepcopy=False, states=(TrialState.FAIL,))
    if {t.number for t in failed if FINAL in t.user_attrs} - set(stored.user_attrs.get(FORGIVEN, ())):
        stored.set_user_attr(FORGIVEN, [t.number for t in failed])
    trials = stored.get_trials(deepcopy=False)
    forgiven = set(stored.user_attrs.get(FORGIVEN, ()))
    by_slot: dict[int, list[FrozenTrial]] = defaultdict(list)
    for trial in trials:
        by_slot[trial.user_attrs.get(SLOT, -1)].append(trial)
    resumed, open_slots = dict[int, int](), 0
    for slot, fixed in enumerate(planned):
        living = [t for t in by_slot[slot] if not is_dead(t, forgiven)]
        if any(t.state.is_finished() for t in living):
            continue
        open_slots += 1
        if running := [t for t in living if t.state == TrialState.RUNNING]:
            resumed[running[0].number] = running[0]._trial_id
        elif not living:
            # A failed trial is tried again with its values; in a grid they are the slot's own.
            tried: dict[str, Any] = next((t.params for t in reversed(by_slot[slot]) if t.params), {})
            stored.enqueue_trial({**fixed, **tried}, user_attrs={SLOT: slot})
    for trial in trials:
        if trial.state == TrialState.RUNNING and trial.number not in resumed:
            stored.tell(trial.number, state=TrialState.FAIL)
    return [optuna.Trial(stored, resumed[number]) for number in sorted(resumed)], open_slots


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
        stored.tell(trial, state=TrialState.FAIL)  # an earlier call planned more trials
    return None


def finished_trials(stored: optuna.Study) -> list[FrozenTrial]:
    """The trial that counts for each slot, in the order of the slots; others are left out."""
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
        return f"{result.label}: {value}{ended}{' (reused)' if result.reused else ''}"
    return f"{result.label}: {trial.state.name.lower()}: {result.reason}"
