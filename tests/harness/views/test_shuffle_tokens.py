from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.views import shuffle_tokens

CLS, SEP, PAD = 101, 102, 0
SPECIAL = frozenset({CLS, SEP, PAD})


@settings(deadline=None)
@given(
    tokens=st.lists(st.integers(0, 110), max_size=40),
    fraction=st.floats(0, 1),
    seed=st.integers(0, 2**32),
)
def test_special_tokens_stay_and_nothing_is_lost(
    tokens: list[int], fraction: float, seed: int
) -> None:
    ids = [CLS, *tokens, SEP, PAD, PAD]
    before = list(ids)
    view = shuffle_tokens(ids, fraction, np.random.default_rng(seed), special=SPECIAL)
    assert ids == before
    assert Counter(view) == Counter(ids)
    assert all(new == old for new, old in zip(view, ids, strict=True) if old in SPECIAL)
    n = sum(t not in SPECIAL for t in ids)
    moved = sum(new != old for new, old in zip(view, ids, strict=True))
    allowed = 0 if n < 2 or fraction == 0 else max(2, int(fraction * n + 0.5))
    assert moved <= allowed


@pytest.mark.parametrize(
    ("n", "fraction", "part"),
    [
        (20, 0.1, 2),  # round(2.0)
        (20, 0.05, 2),  # round(1.0) = 1, but a permutation needs two
        (10, 0.35, 4),  # 3.5 rounds up
        (10, 0.5, 5),
        (7, 1.0, 7),
    ],
)
def test_how_many_tokens_take_part(n: int, fraction: float, part: int) -> None:
    """Over many draws the largest number of moved tokens is the number that take part."""
    rng = np.random.default_rng(0)
    ids = [CLS, *range(1000, 1000 + n), SEP]
    moved = [
        sum(
            a != b
            for a, b in zip(ids, shuffle_tokens(ids, fraction, rng, special=SPECIAL), strict=True)
        )
        for _ in range(400)
    ]
    assert max(moved) == part


def test_two_tokens_are_swapped_half_of_the_time() -> None:
    rng = np.random.default_rng(1)
    swapped = sum(
        shuffle_tokens([CLS, 5, 6, SEP], 0.1, rng, special=SPECIAL) == [CLS, 6, 5, SEP]
        for _ in range(2000)
    )
    assert 900 < swapped < 1100  # 1000 +- 4.5 standard deviations of 22.4


def test_every_permutation_is_equally_likely() -> None:
    rng = np.random.default_rng(2)
    seen = Counter(tuple(shuffle_tokens([7, 8, 9], 1.0, rng)) for _ in range(6000))
    assert len(seen) == 6
    assert all(
        860 < count < 1140 for count in seen.values()
    )  # 1000 +- about 5 standard deviations of 28.9


@pytest.mark.parametrize("ids", [[], [CLS, SEP], [CLS, 5, SEP]])
def test_nothing_to_permute(ids: list[int]) -> None:
    rng = np.random.default_rng(3)
    state = rng.bit_generator.state
    assert shuffle_tokens(ids, 0.5, rng, special=SPECIAL) == ids
    assert rng.bit_generator.state == state


def test_same_generator_seed_same_view() -> None:
    ids = list(range(1, 30))
    first = shuffle_tokens(ids, 0.5, np.random.default_rng(4))
    assert shuffle_tokens(ids, 0.5, np.random.default_rng(4)) == first
    assert shuffle_tokens(ids, 0.5, np.random.default_rng(5)) != first


@pytest.mark.parametrize("fraction", [-0.1, 1.1, float("nan")])
def test_fraction_out_of_range(fraction: float) -> None:
    with pytest.raises(ValueError, match="fraction"):
        shuffle_tokens([1, 2, 3], fraction, np.random.default_rng(0))
