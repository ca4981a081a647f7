"""A seed that some streams alone have: the others draw what they drew, in every method."""

from __future__ import annotations

import json
from collections.abc import Sequence

import numpy as np
import pytest
import torch
from torch import nn

from harness import registry
from harness.method import FitContext, Method
from harness.recipes import preset_names
from harness.seeds import (
    STREAMS,
    PartSeed,
    Stream,
    derive,
    part_seed,
    seed_fields,
    seed_of,
    seed_text,
)
from harness.sources import Corpus, load_corpus
from harness.training import TrainedMethod

PURPOSES = {
    "init": ("init", "random vectors"),
    "data_order": ("data order 0", "data order 7", "batch order 1 2"),
    "dropout": ("dropout", "dropout 3"),
    "views": ("views 0", "views 12"),
}


@pytest.mark.parametrize("stream", STREAMS)
def test_a_stream_varies_alone(stream: Stream) -> None:
    seed = part_seed(5, [stream], 1)
    for other, purposes in PURPOSES.items():
        for purpose in purposes:
            assert derive(seed, purpose) == derive(5 if other == stream else 1, purpose)
    assert derive(seed, "a plugin's own") == derive(1, "a plugin's own")


def test_streams_of_one_seed_are_that_seed() -> None:
    assert type(part_seed(1, ["init"], 1)) is int
    assert type(part_seed(2, STREAMS, 1)) is int
    assert type(part_seed(2, [], 1)) is int
    assert part_seed(2, ["views", "init"], 1) == part_seed(2, ["init", "views"], 1) != 2


def test_a_shifted_seed_shifts_all_its_streams() -> None:
    assert part_seed(2, ["init"], 1) + 1000 == part_seed(1002, ["init"], 1001)


@pytest.mark.parametrize("seed", [3, PartSeed(3, ("init", "views"), 1)])
def test_a_stored_seed_is_that_seed(seed: int) -> None:
    again = seed_of(json.loads(json.dumps(seed_fields(seed))))
    assert again == seed
    assert type(again) is type(seed)


def test_a_seed_is_shown_with_its_streams() -> None:
    assert seed_text(3) == "3"
    assert seed_text(PartSeed(3, ("init",), 1)) == "3 (init)"


def _trained() -> list[str]:
    kinds = {
        name: registry.load(registry.METHODS, name) for name in registry.names(registry.METHODS)
    }
    own = {name: kind for name, kind in kinds.items() if kind.__module__.startswith("methods.")}
    return [name for name, kind in own.items() if issubclass(kind, TrainedMethod)]


def _small(name: str) -> tuple[Method, Corpus]:
    kind = registry.load(registry.METHODS, name)
    preset = "mini" if "mini" in preset_names(kind.presets) else None
    config = kind.configure(
        {"batch_size": 4}, preset=preset, base_model="embedded:mini-bert", where=name
    )
    text = kind(config).text
    return kind(config, base_model="embedded:mini-bert"), load_corpus(
        f"embedded:{text}", kind=text, limit=48
    )


def _items(method: TrainedMethod, corpus: Corpus, seed: int) -> tuple[list[str], object]:
    batch = method.stream(corpus, seed).batch(1)
    return [repr(item) for item in batch.items], batch.rng.bit_generator.state


@pytest.mark.parametrize("name", _trained())
def test_batches_follow_their_own_streams_in_every_method(name: str) -> None:
    method, corpus = _small(name)
    assert isinstance(method, TrainedMethod)
    (order, views), (other_order, other_views) = (_items(method, corpus, seed) for seed in (1, 2))
    assert _items(method, corpus, part_seed(2, ["init", "dropout"], 1)) == (order, views)
    assert _items(method, corpus, part_seed(2, ["data_order"], 1)) == (other_order, views)
    assert _items(method, corpus, part_seed(2, ["views"], 1)) == (order, other_views)
    assert other_order != order


class WatchedError(Exception):
    """Ends a fit where enough was seen."""


def _beginning(
    name: str, seed: int, monkeypatch: pytest.MonkeyPatch
) -> tuple[list[torch.Tensor], torch.Tensor]:
    """Weights of the heads, and the state of dropout's generator, as the first training step finds
    them.
    """
    method, corpus = _small(name)
    seen: list[tuple[list[torch.Tensor], torch.Tensor]] = []

    def loss(encoder: nn.Module, heads: nn.Module, batch: object) -> None:
        seen.append(
            ([p.detach().clone() for p in heads.state_dict().values()], torch.get_rng_state())
        )
        raise WatchedError

    monkeypatch.setattr(method, "loss", loss, raising=False)
    with pytest.raises(WatchedError):
        method.fit(corpus, FitContext(seed=seed, precision="fp32", max_steps=1))
    return seen[0]


@pytest.mark.parametrize("name", ["simcse", "barlow_twins", "byol", "cert", "tsdae"])
def test_heads_and_dropout_follow_their_own_streams(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def same(a: Sequence[torch.Tensor], b: Sequence[torch.Tensor]) -> bool:
        return len(a) == len(b) and all(torch.equal(x, y) for x, y in zip(a, b, strict=True))

    heads, masks = _beginning(name, 1, monkeypatch)
    other_heads, other_masks = _beginning(name, 2, monkeypatch)
    assert not same(heads, other_heads)
    assert not torch.equal(masks, other_masks)
    init = _beginning(name, part_seed(2, ["init"], 1), monkeypatch)
    assert same(init[0], other_heads)
    assert torch.equal(init[1], masks)
    rest = _beginning(name, part_seed(2, ["data_order", "dropout", "views"], 1), monkeypatch)
    assert same(rest[0], heads)
    assert torch.equal(rest[1], other_masks)


@pytest.mark.parametrize(
    "name", ["simcse", "flow", pytest.param("declutr", marks=pytest.mark.campaign)]
)
def test_nothing_is_drawn_beside_the_streams(name: str) -> None:
    """A seed of which no stream has the number trains the same weights as the seed that all streams
    have.
    """
    vectors = []
    for seed in (1, PartSeed(2, (), 1)):
        method, corpus = _small(name)
        method.fit(corpus, FitContext(seed=seed, precision="fp32", max_steps=2))
        vectors.append(np.asarray(method.encode(["Rain fell.", "A cat sat on the mat."])))
    assert np.array_equal(*vectors)
