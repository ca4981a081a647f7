"""What is written of a trial that ended, beside its values: which runs made it, how they ended, how long it took."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic import BaseModel

if TYPE_CHECKING:
    import optuna
    from optuna.trial import FrozenTrial

_KEY = "about"  # the user attribute that holds it: in the storages of all studies so far


class TrialSeconds(BaseModel):
    """Wall seconds of a trial by what they went into; zero where it was answered from the records."""

    training: float = 0.0
    evaluation: float = 0.0
    optuna: float = 0.0
    whole: float = 0.0


class TrialResult(BaseModel):
    """How a trial ended. Keys that an earlier version wrote besides are left out; what it did not write is empty."""

    runs: list[str] = []  # ids, one a seed
    seeds: list[int] = []
    seed_values: list[list[float]] = []  # for each seed the values of the objectives
    status: str = "failed"  # of its last run
    reason: str = ""
    answered: bool = False  # from the records: nothing was trained
    label: str = ""  # its configuration
    seconds: TrialSeconds = TrialSeconds()

    def write(self, trial: optuna.Trial) -> None:
        """Keep it with the trial."""
        trial.set_user_attr(_KEY, self.model_dump())


def has_result(trial: FrozenTrial) -> bool:
    """Did a worker write how this trial ended? A trial whose worker died has nothing."""
    return _KEY in trial.user_attrs


def result_of(trial: FrozenTrial) -> TrialResult:
    """What was written of a trial; where nothing was, a failed one with the reason for which its place was given up."""
    result = TrialResult.model_validate(trial.user_attrs.get(_KEY, {}))
    return result.model_copy(update={"reason": result.reason or trial.user_attrs.get("reason", "")})
