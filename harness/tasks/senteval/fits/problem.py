"""What is solved: SentEval's classifier settings, the splits of its fits, and what a solution holds."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from harness.config import nearest
from harness.errors import InputError

Rows = NDArray[np.int64]


Array = NDArray[Any]


# 2: a fit that cuts off its own held-out rows goes on with the generator that chose them, as SentEval's does
VERSIONS = {"senteval": "harness-senteval-classifier-2", "lbfgs": "harness-senteval-classifier-1",
            "sklearn": "harness-senteval-sklearn-1"}  # fmt: skip


L2_GRID = (1e-5, 1e-4, 1e-3, 1e-2)


OPTIMIZERS = {  # torch's default learning rates
    "adam": 1e-3, "rmsprop": 1e-2, "sgd": 1e-3, "adagrad": 1e-2,
    "adadelta": 1.0, "adamax": 2e-3, "asgd": 1e-2, "rprop": 1e-2,
}  # fmt: skip


COMPILED = ("adam", "rmsprop", "sgd", "adagrad")  # with loops of their own in numba_descent


# C of scikit-learn's logistic regression as SentEval searches it, by the number of parts of a task's data
SKLEARN_GRIDS = {1: (-2, 4), 2: (-1, 6), 3: (-2, 4)}


def whole_number(value: object, least: int) -> bool:
    """Is `value` an integer (of Python or numpy) from `least` to the largest seed of numpy's generators?"""
    return isinstance(value, int | np.integer) and not isinstance(value, bool) and bool(least <= value < 2**32)


@dataclass(frozen=True)
class Classifier:
    """How a head is fitted and its L2 weight chosen; the defaults are SentEval's "full" configuration.

    `solver`: "senteval" steps through batches with early stopping; "lbfgs" gives the exact minimum of the same convex
    objective (nhid 0) without seeds, batches or early stopping, so only `kfold` and `l2` have a meaning then;
    "sklearn" is scikit-learn's LogisticRegression, whose C is searched instead (SentEval's usepytorch = False).
    `optim`: a torch optimiser with its default settings, but for a learning rate given as in "sgd,lr=0.1".
    `epoch_size`: passes between two checks of the held-out accuracy. `tenacity`: the fit ends at the check number
    tenacity + 1 that did not improve, counted over the whole fit, or once more than `max_epoch` passes were made.
    """

    solver: Literal["senteval", "lbfgs", "sklearn"] = "senteval"
    nhid: int = 0
    optim: str = "adam"
    batch_size: int = 64
    tenacity: int = 5
    epoch_size: int = 4
    max_epoch: int = 200
    dropout: float = 0.0
    kfold: int = 10
    seed: int = 1111
    l2: tuple[float, ...] = L2_GRID

    def __post_init__(self) -> None:
        """Raises:
        InputError: a value out of its range.
        """
        name, _ = optimizer_settings(self.optim)
        least = {"nhid": 0, "batch_size": 1, "tenacity": 0, "epoch_size": 1, "max_epoch": 0, "kfold": 2, "seed": 0}
        for key, minimum in least.items():
            if not whole_number(getattr(self, key), minimum):
                what = f"a whole number from {minimum}" + (" to 2**32 - 1" if key == "seed" else "")
                raise InputError(f"classifier: {key} = {getattr(self, key)!r} is out of its range; expected {what}")
        checks = {
            "solver": self.solver in ("senteval", "lbfgs", "sklearn"),
            "nhid": self.solver == "senteval" or self.nhid == 0,
            "optim": bool(name),
            "dropout": isinstance(self.dropout, int | float) and 0 <= self.dropout < 1,
            "l2": bool(self.l2) and all(v >= 0 for v in self.l2),
        }
        for key, right in checks.items():
            if not right:
                extra = f" ({self.solver} is for nhid 0)" if key == "nhid" else ""
                raise InputError(f"classifier: {key} = {getattr(self, key)!r} is out of its range{extra}")

    def describe(self) -> dict[str, Any]:
        """All that enters a protocol id."""
        if self.solver == "lbfgs":
            return {"solver": "lbfgs", "kfold": self.kfold, "l2": list(self.l2), "version": VERSIONS["lbfgs"]}
        if self.solver == "sklearn":
            return {"solver": "sklearn", "kfold": self.kfold, "seed": self.seed, "version": VERSIONS["sklearn"]}
        return {**asdict(self), "l2": list(self.l2), "version": VERSIONS[self.solver]}

    def searched(self, parts: int) -> Classifier:
        """This for a task of so many parts: scikit-learn's C instead of L2 values, which falls as they rise."""
        if self.solver != "sklearn":
            return self
        if self.l2 != L2_GRID:  # a single value: no search
            return replace(self, l2=tuple(1 / value for value in self.l2))
        return replace(self, l2=tuple(2.0**power for power in range(*SKLEARN_GRIDS[parts])))


def optimizer_settings(text: str) -> tuple[str, float]:
    """Name and learning rate: "sgd,lr=0.1" -> ("sgd", 0.1).

    Raises:
        InputError: unknown optimiser, or a setting that is not lr=NUMBER.
    """
    if not isinstance(text, str):  # a script's setting
        raise InputError(f'classifier: optim = {text!r}: expected a name, as in "adam" or "sgd,lr=0.1"')
    name, *settings = [part.strip() for part in text.split(",")]
    if name not in OPTIMIZERS:
        raise InputError(f'classifier: optim "{text}"{nearest(name, list(OPTIMIZERS))}; known: {", ".join(OPTIMIZERS)}')
    rate = OPTIMIZERS[name]
    for setting in settings:
        key, _, value = setting.partition("=")
        try:
            rate = float(value)
        except ValueError:
            rate = math.nan
        if key.strip() != "lr" or not rate > 0:
            raise InputError(f'classifier: optim "{text}": the only setting is the rate, as in "{name},lr=0.1"')
    return name, rate


FULL = Classifier()


PROTOTYPING = Classifier(optim="rmsprop", batch_size=128, tenacity=3, epoch_size=2, kfold=5)


LBFGS = Classifier(solver="lbfgs")


CONFIGURATIONS = {"full": FULL, "prototyping": PROTOTYPING, "lbfgs": LBFGS}


@dataclass(frozen=True)
class Split:
    """One fit: rows to train on, rows that steer early stopping and rate the L2 value, rows to predict.

    `drawn`: how many rows the seeded generator has shuffled before it shuffles the training rows for the first time.
    """

    train: Rows
    held_out: Rows
    test: Rows
    drawn: int = 0


@dataclass(frozen=True)
class Solution:
    """`accuracy[s, r]`: of split s with L2 value r on its held-out rows, in [0, 1]; `predicted[s]`: (R, test rows)."""

    accuracy: NDArray[np.float64]
    predicted: list[NDArray[np.int64]]
