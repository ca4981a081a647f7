"""Views made from token ids: (ids, rate, rng) to new ids.

Ordinary tokens are those not in `special` ([CLS], [SEP], padding ...): special ones are neither
moved nor lost nor repeated, and some ordinary token always stays. `ids` is not modified. Halves
round up.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np


def shuffle_tokens(
    ids: Sequence[int],
    fraction: float,
    rng: np.random.Generator,
    *,
    special: Collection[int] = (),
) -> list[int]:
    """A copy of `ids` in which round(fraction * n) of its n ordinary tokens are permuted among
    their own positions.

    Which tokens and which permutation are uniform draws (the identity is one of the permutations).
    At least 2 tokens take part when n >= 2 and fraction > 0; with fraction 0 or n < 2 the copy is
    unchanged and `rng` is not advanced.

    Source: Farina & Pappadopulo (2023), section 3, which leaves special tokens, rounding and
    position ids open.
    """
    _check(fraction, "fraction")
    view = list(ids)
    ordinary = _ordinary(ids, special)
    n = len(ordinary)
    if fraction == 0 or n < 2:
        return view
    count = min(n, max(2, _round(fraction * n)))
    chosen = [ordinary[i] for i in rng.choice(n, size=count, replace=False)]
    for place, source in zip(chosen, rng.permutation(count), strict=True):
        view[place] = ids[chosen[source]]
    return view


def delete_tokens(
    ids: Sequence[int],
    rate: float,
    rng: np.random.Generator,
    *,
    special: Collection[int] = (),
) -> list[int]:
    """`ids` without each ordinary token with probability `rate`, independently; where none would be
    left, one drawn uniformly stays.

    Source: EDA's random deletion (Wei & Zou, 2019), on tokens.
    """
    _check(rate, "rate")
    ordinary = _ordinary(ids, special)
    if not ordinary:
        return list(ids)
    lost = rng.random(len(ordinary)) < rate
    if lost.all():
        lost[rng.integers(len(ordinary))] = False
    gone = {place for place, drop in zip(ordinary, lost, strict=True) if drop}
    return [token for place, token in enumerate(ids) if place not in gone]


def repeat_tokens(
    ids: Sequence[int],
    rate: float,
    rng: np.random.Generator,
    *,
    special: Collection[int] = (),
    limit: int | None = None,
) -> list[int]:
    """`ids` with k of its n ordinary tokens doubled in place, k uniform in 0 .. max(2, floor(rate *
    n)).

    The tokens are drawn without replacement. No more are doubled than there are, or than `limit`
    ids leave room for.

    Source: Wu et al., ESimCSE (COLING 2022), section 3.1.
    """
    _check(rate, "rate")
    ordinary = _ordinary(ids, special)
    n = len(ordinary)
    if rate == 0 or n == 0:
        return list(ids)
    most = max(2, int(rate * n))
    count = min(int(rng.integers(most + 1)), n)
    if limit is not None:
        count = min(count, max(0, limit - len(ids)))
    twice = {ordinary[i] for i in rng.choice(n, size=count, replace=False)}
    found = []
    for place, token in enumerate(ids):
        for _ in range(2 if place in twice else 1):
            found.append(token)
    return found


def crop_tokens(
    ids: Sequence[int],
    rate: float,
    rng: np.random.Generator,
    *,
    special: Collection[int] = (),
) -> list[int]:
    """`ids` with a span of its n ordinary tokens, and round(rate * n) of them cut off its two ends.

    Where the span begins is a uniform draw; it holds at least one token.

    Source: the crop of Gao et al., SimCSE (EMNLP 2021), Table 1, which keeps 100% - k% of the
    length.
    """
    _check(rate, "rate")
    ordinary = _ordinary(ids, special)
    n = len(ordinary)
    kept = max(1, n - _round(rate * n))
    if kept >= n:
        return list(ids)
    start = int(rng.integers(n - kept + 1))
    gone = {*ordinary[:start], *ordinary[start + kept :]}
    return [token for place, token in enumerate(ids) if place not in gone]


def _ordinary(ids: Sequence[int], special: Collection[int]) -> list[int]:
    return [place for place, token in enumerate(ids) if token not in special]


def _round(x: float) -> int:
    return int(x + 0.5)


def _check(rate: float, name: str) -> None:
    if not 0 <= rate <= 1:
        raise ValueError(f"{name} must be in [0, 1], got {rate}")
