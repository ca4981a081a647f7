"""Views: a changed copy of a sentence, made from its token ids."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np


def shuffle_tokens(
    ids: Sequence[int], fraction: float, rng: np.random.Generator, *, special: Collection[int] = ()
) -> list[int]:
    """A copy of `ids` in which round(fraction * n) of its n ordinary tokens are permuted among their own positions.

    Ordinary means not in `special` ([CLS], [SEP], padding ...): those never move. Which tokens and which permutation
    are uniform draws from `rng` (the identity is one of the permutations). Halves round up. At least 2 tokens take
    part when n >= 2 and fraction > 0; with fraction 0 or n < 2 the copy is unchanged and `rng` is not advanced.

    Source: Farina & Pappadopulo (2023), section 3, which leaves special tokens, rounding and position ids open.
    """
    if not 0 <= fraction <= 1:
        raise ValueError(f"fraction must be in [0, 1], got {fraction}")
    view = list(ids)
    ordinary = [place for place, token in enumerate(view) if token not in special]
    n = len(ordinary)
    if fraction == 0 or n < 2:
        return view
    count = min(n, max(2, int(fraction * n + 0.5)))
    chosen = [ordinary[i] for i in rng.choice(n, size=count, replace=False)]
    for place, source in zip(chosen, rng.permutation(count), strict=True):
        view[place] = ids[chosen[source]]
    return view
