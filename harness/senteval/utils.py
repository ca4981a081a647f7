"""The helpers that scripts take from SentEval's `utils`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

import numpy as np

from harness.tasks.base import Array
from harness.tasks.senteval.classifier import get_optimizer
from harness.tasks.senteval.engine import Params

dotdict = Params
__all__ = ["cosine", "create_dictionary", "dotdict", "get_optimizer"]


def cosine(u: Array, v: Array) -> float:
    """Of two vectors (d,)."""
    return float(np.dot(u, v) / (np.linalg.norm(u) * np.linalg.norm(v)))


def create_dictionary(
    sentences: Iterable[Sequence[str]], threshold: int = 0
) -> tuple[list[str], dict[str, int]]:
    """The words of tokenised sentences, the commonest first after "<s>", "</s>" and "<p>", and each
    word's place.

    `threshold`: words that occur less often are left out (0: none).
    """
    counts = Counter(word for sentence in sentences for word in sentence)
    marks = {
        "<s>": 10**9 + 4,
        "</s>": 10**9 + 3,
        "<p>": 10**9 + 2,
    }
    kept = {word: n for word, n in counts.items() if n >= threshold} | marks
    words = sorted(kept, key=lambda word: -kept[word])
    return words, {word: place for place, word in enumerate(words)}
