from __future__ import annotations

import hashlib
import random
import sys
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import harness
from harness.seeds import derive, numpy_generator, preserve_random_state, torch_generator

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


SMALL = {"batch_size": 2, "max_steps": 1}
TEXTS = ["A dog runs.", "It rains.", "She sells maps.", "He sings."]


def _train(folder: Path) -> None:
    harness.train("simcse", preset="mini", corpus=TEXTS, config=SMALL)


def _fit_flow(folder: Path) -> None:
    harness.train("flow", corpus=TEXTS, config={"epochs": 1})


def _compare(folder: Path) -> None:
    rows = [{"method": "pooling", "config": {"pooling": "cls"}}, "random"]
    harness.compare(
        rows, suites="Embedded-STS-natural", workdir=folder, tracking_uri="none", formats=[]
    )


def _evaluate(folder: Path) -> None:
    harness.evaluate("embedded:mini-bert", "Embedded-STS-natural", cached=False)


@pytest.mark.usefixtures("few_pairs")
@pytest.mark.parametrize("call", [_train, _fit_flow, _compare, _evaluate])
def test_a_call_leaves_the_callers_generators_as_they_were(
    tmp_path: Path, call: Callable[[Path], None]
) -> None:
    for seed in (1, 2):
        random.seed(seed)
        np.random.seed(seed)
        torch.manual_seed(seed)
        call(tmp_path)
        drawn = random.random(), np.random.rand(), float(torch.rand(1))
        torch.manual_seed(seed)
        expected = random.Random(seed).random(), np.random.RandomState(seed).rand()
        assert drawn == (*expected, float(torch.rand(1)))


def test_generators_are_given_back_after_an_error_too() -> None:
    torch.manual_seed(5)

    @preserve_random_state()
    def fail() -> None:
        torch.manual_seed(6)
        raise ValueError("oh")

    with pytest.raises(ValueError):
        fail()
    after = torch.rand(1)
    torch.manual_seed(5)
    assert torch.equal(after, torch.rand(1))


def test_torch_that_is_imported_meanwhile_is_as_after_its_import(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with ExitStack() as stack:
        with monkeypatch.context() as patch:
            patch.delitem(sys.modules, "torch")  # as in a process that has not imported it
            stack.enter_context(preserve_random_state())
        torch.manual_seed(6)
    after = torch.rand(1)
    torch.manual_seed(67280421310721)  # the default of torch's documentation
    assert torch.equal(after, torch.rand(1))
