"""What is drawn for one update, and changed into views."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Batch:
    """The items of one update, and the generator that its views may draw from.

    >>> Batch(["A dog runs."], np.random.default_rng(1), step=0).texts
    ['A dog runs.']
    """

    items: list[Any]  # str, or harness.sources.Pair
    rng: np.random.Generator
    step: int

    @property
    def texts(self) -> list[str]:
        """The sentences (of a pair: its anchor)."""
        return [item if isinstance(item, str) else item.anchor for item in self.items]
