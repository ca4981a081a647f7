"""The helpers that scripts take from SentEval's `utils`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from harness.errors import InputError
from harness.tasks.base import Array
from harness.tasks.senteval.engine import Params
from harness.tasks.senteval.fits.problem import OPTIMIZERS

dotdict = Params


def cosine(u: Array, v: Array) -> float:
    """Of two vectors (d,)."""
    return float(np.dot(u, v) / (np.linalg.norm(u) * np.linalg.norm(v)))


def create_dictionary(sentences: Iterable[Sequence[str]], threshold: int = 0) -> tuple[list[str], dict[str, int]]:
    """The words of tokenised sentences, the commonest first after "<s>", "</s>" and "<p>", and each word's place.

    `threshold`: words that occur less often are left out (0: none).
    """
    counts = Counter(word for sentence in sentences for word in sentence)
    marks = {"<s>": 10**9 + 4, "</s>": 10**9 + 3, "<p>": 10**9 + 2}
    kept = {word: n for word, n in counts.items() if n >= threshold} | marks
    words = sorted(kept, key=lambda word: -kept[word])
    return words, {word: place for place, word in enumerate(words)}


def get_optimizer(text: str) -> tuple[type[Any], dict[str, float]]:
    """A class of `torch.optim` and its settings: "adam,lr=0.01" -> (Adam, {"lr": 0.01}).

    Raises:
        InputError: an unknown optimiser, or a setting that is not NAME=NUMBER.
    """
    from torch import optim

    classes: dict[str, type[Any]] = {
        "adadelta": optim.Adadelta, "adagrad": optim.Adagrad, "adam": optim.Adam, "adamax": optim.Adamax,
        "asgd": optim.ASGD, "rmsprop": optim.RMSprop, "rprop": optim.Rprop, "sgd": optim.SGD,
    }  # fmt: skip
    name, *settings = text.split(",")
    if name not in classes:
        raise InputError(f'optimiser "{text}": known: {", ".join(sorted(OPTIMIZERS))}')
    try:
        return classes[name], {key: float(value) for key, value in (part.split("=") for part in settings)}
    except ValueError:
        raise InputError(f'optimiser "{text}": expected NAME=NUMBER after the name, as in "{name},lr=0.1"') from None
