"""The settings of SentEval's classifier (Conneau and Kiela 2018, tools/classifier.py)."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from harness.config import nearest
from harness.errors import InputError

# 2: a fit that cuts off its own held-out rows goes on with the generator that chose them, as
# SentEval's does
VERSION = "harness-senteval-classifier-2"
L2_GRID = (1e-5, 1e-4, 1e-3, 1e-2)
_OPTIMIZERS = ("Adadelta", "Adagrad", "Adam", "Adamax", "ASGD", "RMSprop", "Rprop", "SGD")
OPTIMIZERS = {name.lower(): name for name in _OPTIMIZERS}  # SentEval's names of torch's classes
_LEAST = {
    "nhid": 0,
    "batch_size": 1,
    "tenacity": 0,
    "epoch_size": 1,
    "max_epoch": 0,
    "kfold": 2,
    "seed": 0,
}


@dataclass(frozen=True)
class Classifier:
    """How a head is fitted and its L2 weight chosen; the defaults are SentEval's "full"
    configuration.

    `optim`: a torch optimiser with its default settings, except for a learning rate given as in
    "sgd,lr=0.1".
    `epoch_size`: passes between two checks of the held-out accuracy. `tenacity`: the fit ends at
    the check number tenacity + 1 that did not improve, counted over the whole fit, or once more
    than `max_epoch` passes were made.
    """

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
        for key, least in _LEAST.items():
            check_whole_number("classifier: " + key, getattr(self, key), least)
        _, settings = parse_optimizer(self.optim)
        rate = settings.get("lr", 1)
        if settings.keys() - {"lr"} or not rate > 0:
            raise InputError(
                f'classifier: optim "{self.optim}": the only setting is a rate above 0, as in "sgd,lr=0.1"',
                key="optim",
            )
        is_number = isinstance(self.dropout, int | float)
        if not is_number or not 0 <= self.dropout < 1:
            raise InputError(
                f"classifier: dropout = {self.dropout!r} is out of its range; expected 0 or more, below 1",
                key="dropout",
            )

    def describe(self) -> dict[str, Any]:
        """All that enters a protocol id."""
        return {
            "solver": "senteval",
            **asdict(self),
            "l2": list(self.l2),
            "version": VERSION,
        }


def check_whole_number(key: str, value: object, least: int) -> None:
    """Raises:
    InputError: `value` is no integer (of Python or numpy) from `least` to the largest seed of
    numpy's generators.
    """
    whole = isinstance(value, int | np.integer) and not isinstance(value, bool)
    if not whole or not least <= value < 2**32:  # type: ignore[operator]
        raise InputError(
            f"{key} = {value!r} is out of its range; expected a whole number from {least} to 2**32 - 1",
            key=key,
        )


def parse_optimizer(text: str) -> tuple[str, dict[str, float]]:
    """The name of an optimiser and its settings: "sgd,lr=0.1" -> ("sgd", {"lr": 0.1}).

    Raises:
        InputError: an unknown optimiser, or a setting that is not NAME=NUMBER.
    """
    if not isinstance(text, str):  # a script's setting
        raise InputError(
            f'optim = {text!r}: expected a name, as in "adam" or "sgd,lr=0.1"', key="optim"
        )
    name, *settings = [part.strip() for part in text.split(",")]
    if name not in OPTIMIZERS:
        raise InputError(
            f'optim "{text}"{nearest(name, list(OPTIMIZERS))}; known: {", ".join(OPTIMIZERS)}',
            key="optim",
        )
    try:
        values = {}
        for setting in settings:
            key, value = setting.split("=")
            values[key.strip()] = float(value)
        return name, values
    except ValueError:
        raise InputError(
            f'optim "{text}": expected NAME=NUMBER after the name, as in "{name},lr=0.1"',
            key="optim",
        ) from None


def get_optimizer(text: str) -> tuple[type[Any], dict[str, float]]:
    """A class of `torch.optim` and its settings: "adam,lr=0.01" -> (Adam, {"lr": 0.01}).

    Raises:
        InputError: an unknown optimiser, or a setting that is not NAME=NUMBER.
    """
    from torch import optim

    name, settings = parse_optimizer(text)
    return getattr(optim, OPTIMIZERS[name]), settings


FULL = Classifier()
PROTOTYPING = Classifier(optim="rmsprop", batch_size=128, tenacity=3, epoch_size=2, kfold=5)
CONFIGURATIONS = {"full": FULL, "prototyping": PROTOTYPING}
