"""Deletion, repetition and cropping of tokens (shuffling: test_views.py): what stays, what goes,
how often.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.views import crop_tokens, delete_tokens, repeat_tokens, shuffle_tokens

CLS, SEP, PAD = 101, 102, 0
SPECIAL = frozenset({CLS, SEP, PAD})
DRAWS = 10_000
VIEWS: dict[str, Callable[..., list[int]]] = {
    "shuffle": shuffle_tokens,
    "deletion": delete_tokens,
    "repetition": repeat_tokens,
    "crop": crop_tokens,
}
ROWS = st.lists(st.integers(0, 110), max_size=40)
RATES = st.floats(0, 1)
SEEDS = st.integers(0, 2**32)


def ordinary(ids: list[int]) -> list[int]:
    return [token for token in ids if token not in SPECIAL]


@pytest.mark.parametrize("name", VIEWS)
@settings(deadline=None, max_examples=60)
@given(tokens=ROWS, rate=RATES, seed=SEEDS)
def test_the_frame_stays_and_something_is_left(
    name: str, tokens: list[int], rate: float, seed: int
) -> None:
    ids = [CLS, *tokens, SEP, PAD]
    before = list(ids)
    view = VIEWS[name](ids, rate, np.random.default_rng(seed), special=SPECIAL)
    assert ids == before
    assert [t for t in view if t in SPECIAL] == [t for t in ids if t in SPECIAL], (
        "special tokens: same, in order"
    )
    assert (view[0], view[-2:]) == (CLS, [SEP, PAD])
    assert bool(ordinary(view)) == bool(ordinary(ids)), "never emptied"
    assert set(view) <= set(ids), "no token that was not there"
    again = VIEWS[name](ids, rate, np.random.default_rng(seed), special=SPECIAL)
    assert again == view
    assert VIEWS[name](ids, 0.0, np.random.default_rng(seed), special=SPECIAL) == ids, (
        "rate 0 changes nothing"
    )


@settings(deadline=None, max_examples=60)
@given(tokens=ROWS, rate=RATES, seed=SEEDS)
def test_deletion_keeps_the_order_and_repetition_doubles_in_place(
    tokens: list[int], rate: float, seed: int
) -> None:
    ids = [CLS, *(1000 + i for i in range(len(tokens))), SEP]  # all different
    kept = delete_tokens(ids, rate, np.random.default_rng(seed), special=SPECIAL)
    assert kept == [t for t in ids if t in set(kept)]
    doubled = repeat_tokens(ids, rate, np.random.default_rng(seed), special=SPECIAL)
    assert list(dict.fromkeys(doubled)) == ids
    assert max(Counter(doubled).values()) <= 2
    cropped = ordinary(crop_tokens(ids, rate, np.random.default_rng(seed), special=SPECIAL))
    assert (
        cropped == list(range(cropped[0], cropped[0] + len(cropped))) if tokens else cropped == []
    )


def test_deletion_rate() -> None:
    rng, ids = np.random.default_rng(0), [CLS, *range(1000, 1020), SEP]
    lost = np.array(
        [22 - len(delete_tokens(ids, 0.15, rng, special=SPECIAL)) for _ in range(DRAWS)]
    )
    # binomial(20, 0.15): mean 3, variance 2.55; four standard errors of the mean over 10,000 draws
    # are 0.064
    assert lost.mean() == pytest.approx(3.0, abs=0.064)
    assert lost.var() == pytest.approx(2.55, rel=0.06)


def test_deletion_of_all_leaves_each_token_equally_often() -> None:
    rng = np.random.default_rng(1)
    seen = Counter(
        tuple(delete_tokens([CLS, 7, 8, 9, SEP], 1.0, rng, special=SPECIAL)) for _ in range(6000)
    )
    assert set(seen) == {(CLS, 7, SEP), (CLS, 8, SEP), (CLS, 9, SEP)}
    assert all(
        1850 < count < 2150 for count in seen.values()
    )  # 2000 +- four standard deviations of 36.5


@pytest.mark.parametrize(
    ("n", "rate", "most"),
    [
        (20, 0.32, 6),
        (20, 0.01, 2),
        (1, 0.32, 1),
    ],  # floor(6.4); at least up to 2; not more than there are
)
def test_repetition_counts_are_uniform(n: int, rate: float, most: int) -> None:
    rng, ids = np.random.default_rng(2), [CLS, *range(1000, 1000 + n), SEP]
    counts = Counter(
        len(repeat_tokens(ids, rate, rng, special=SPECIAL)) - len(ids) for _ in range(DRAWS)
    )
    assert sorted(counts) == list(range(most + 1))
    draws = max(2, int(rate * n)) + 1  # with one token, the draws 1 and 2 both double it
    expected = [DRAWS / draws] * (most + 1)
    expected[-1] = DRAWS - sum(expected[:-1])
    for k, mean in enumerate(expected):
        assert counts[k] == pytest.approx(mean, abs=4 * (mean * (1 - mean / DRAWS)) ** 0.5)


def test_repetition_stays_within_the_models_positions() -> None:
    rng, ids = np.random.default_rng(3), [CLS, *range(1000, 1020), SEP]
    assert (
        max(len(repeat_tokens(ids, 1.0, rng, special=SPECIAL, limit=25)) for _ in range(200)) == 25
    )
    assert (
        repeat_tokens(ids, 1.0, rng, special=SPECIAL, limit=10) == ids
    )  # too long already: not this view's business


def test_crop_length_and_uniform_start() -> None:
    rng, ids = np.random.default_rng(4), [CLS, *range(1000, 1010), SEP]
    spans = [crop_tokens(ids, 0.25, rng, special=SPECIAL) for _ in range(DRAWS)]
    assert {len(span) for span in spans} == {2 + 7}  # 2.5 of 10 are cut, which rounds to 3
    starts = Counter(span[1] for span in spans)
    assert sorted(starts) == [1000, 1001, 1002, 1003]
    assert all(
        2320 < count < 2680 for count in starts.values()
    )  # 2500 +- four standard deviations of 43.3


@pytest.mark.parametrize("name", VIEWS)
@pytest.mark.parametrize("rate", [-0.1, 1.1, float("nan")])
def test_rates_out_of_range(name: str, rate: float) -> None:
    with pytest.raises(ValueError, match=r"\[0, 1\]"):
        VIEWS[name]([1, 2, 3], rate, np.random.default_rng(0))
