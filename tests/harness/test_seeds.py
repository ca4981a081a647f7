from __future__ import annotations

import hashlib

import numpy as np
import torch
from hypothesis import given
from hypothesis import strategies as st

from harness.seeds import derive, numpy_generator, torch_generator

PURPOSES = ("data order", "init", "dropout", "views")


@given(seed=st.integers(), purpose=st.text(max_size=20))
def test_derived_seeds_fit_every_generator_and_repeat(seed: int, purpose: str) -> None:
    value = derive(seed, purpose)
    assert 0 <= value < 2**63
    assert derive(seed, purpose) == value


def test_derived_seed_is_the_documented_hash() -> None:
    digest = hashlib.blake2b(b"42\x00init", digest_size=8).hexdigest()
    assert derive(42, "init") == int(digest, 16) // 2


def test_seeds_and_purposes_never_share_a_stream() -> None:
    values = {derive(seed, purpose) for seed in range(500) for purpose in PURPOSES}
    assert len(values) == 500 * len(PURPOSES)
    assert derive(1, "1init") != derive(11, "init")


def test_generators_of_a_purpose_repeat_and_differ_between_purposes() -> None:
    assert numpy_generator(3, "views").integers(0, 2**62) == numpy_generator(3, "views").integers(
        0, 2**62
    )
    draws = {int(numpy_generator(3, purpose).integers(0, 2**62)) for purpose in PURPOSES}
    assert len(draws) == len(PURPOSES)
    one, two = (torch.rand(4, generator=torch_generator(3, "init")) for _ in range(2))
    assert torch.equal(one, two)
    assert not torch.equal(one, torch.rand(4, generator=torch_generator(4, "init")))


def test_drawing_from_one_purpose_does_not_move_another() -> None:
    """Methods that draw different amounts for their heads still see the same data order."""
    plain = numpy_generator(7, "data order").permutation(50)
    torch.rand(1000, generator=torch_generator(7, "init"))
    numpy_generator(7, "views").random(1000)
    assert np.array_equal(numpy_generator(7, "data order").permutation(50), plain)
