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
        """Keep it with the trial, what people read first: optuna-dashboard shows attributes in this order."""
        for key, value in {**self._readable(), _KEY: self.model_dump()}.items():
            trial.set_user_attr(key, value)

    def _readable(self) -> dict[str, str | float]:
        """The same for people, who read it in the columns of optuna-dashboard."""
        return {
            "configuration": self.label,
            "ended": f"{self.status}: {self.reason}" if self.reason else self.status,
            "runs": ", ".join(self.runs),
            "seeds": ", ".join(map(str, self.seeds)),
            "trained": "no, answered from records" if self.answered else "yes" if self.runs else "no",
            "training seconds": round(self.seconds.training, 1),
            "evaluation seconds": round(self.seconds.evaluation, 1),
            "whole seconds": round(self.seconds.whole, 1),
        }


def has_result(trial: FrozenTrial) -> bool:
    """Was it written how this trial ended? One that was cut short has nothing."""
    return _KEY in trial.user_attrs


def result_of(trial: FrozenTrial) -> TrialResult:
    """What was written of a trial; where nothing was, a failed one with the reason for which its place was given up."""
    result = TrialResult.model_validate(trial.user_attrs.get(_KEY, {}))
    return result.model_copy(update={"reason": result.reason or trial.user_attrs.get("reason", "")})
