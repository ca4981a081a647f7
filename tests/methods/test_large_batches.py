"""Batches in parts and gradient checkpointing: the gradient of each method's whole batch, and who
refuses parts.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from harness import registry
from harness.encoder import network
from harness.sources import Pair, load_corpus
from harness.training import Batch, TrainedMethod
from tests.support.encoder_models import WORDS, base_model
from tests.support.errors import raises_input_error
from tests.support.kill_and_resume import weights_whole_and_resumed

pytestmark = pytest.mark.timeout(300)

NARROW = {"projector": [24, 24]}
IN_PARTS: dict[str, dict[str, Any]] = {
    "simcse": {"dropout": 0.0},
    "mixcse": {"dropout": 0.0},
    "esimcse": {"dropout": 0.0},
    "rankcse": {"dropout": 0.0},
    "promptbert": {"dropout": 0.0, "pooling": "prompt:the [X] and", "second": "a red [X] and"},
    "cot_bert": {
        "dropout": 0.0,
        "pooling": "prompt:the [X] and",
        "second": "a [X] and",
        "negative": "slow [X] and",
    },
    "sncse": {
        "dropout": 0.0,
        "pooling": "prompt:the [X] and",
        "second": "a red [X] and",
        "margin_weight": 1.0,
    },
    "dclr": {"dropout": 0.0},
    "simcse_supervised": {},
    "scd": {"dropout_a": 0.0, "dropout_b": 0.0, **NARROW},
    "barlow_twins": {"dropout": 0.0, **NARROW},
    "vicreg": {"dropout": 0.0, **NARROW},
    "lejepa": {"dropout": 0.0, "slices": 16, **NARROW},
    "visreg": {"dropout": 0.0, "slices": 16, **NARROW},
    "siglip": {"view": "shuffle"},
    "gradient_paradigm": {"dropout": 0.0, "margin": 0.9, "temperature": 0.1, "ratio": 1.5},
    "corinfomax": {"dropout": 0.0, "target": "none", "projector_blocks": 1, "eps": 1e-2},
    "byol": {"dropout": 0.0, "target_dropout": False, **NARROW},
    "infonce": {"view": "shuffle"},
    "w_mse": {"dropout": 0.0, "batch_size": 7, "slice": 7, **NARROW},
}


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> str:
    return base_model(tmp_path_factory.mktemp("base"))


def items(kind: str, count: int = 7) -> list[Any]:
    """Sentences of 1 to 20 words, or pairs of them with negatives."""
    rng = np.random.default_rng(0)
    texts = [" ".join(rng.choice(WORDS, int(rng.integers(1, 21)))) for _ in range(3 * count)]
    if kind == "sentences":
        return texts[:count]
    return [Pair(*texts[3 * i : 3 * i + 3]) for i in range(count)]


def method(name: str, base: str = "", **values: Any) -> TrainedMethod:
    cls = registry.load(registry.METHODS, name)
    made: TrainedMethod = cls(cls.configure(values), base_model=base)
    return made


def gradients(made: TrainedMethod, *, dropout: bool) -> dict[str, Tensor]:
    """Of one loss, in float64, by parameter; the loss and the buffers beside them."""
    torch.manual_seed(1)
    encoder = made.load_base()
    both = nn.ModuleDict({"heads": made.heads(encoder), "encoder": encoder}).double().train()
    for module in () if dropout else both.modules():
        if isinstance(module, nn.Dropout):
            module.p = 0.0
    encoder._views_differ = (
        True  # without dropout they do not: the gradient is compared all the same
    )
    torch.manual_seed(2)
    batch = Batch(items(made.text), np.random.default_rng(3), 0)
    loss = made.loss(encoder, both["heads"], batch)["loss"]
    loss.backward()  # type: ignore[no-untyped-call]
    found = {name: p.grad for name, p in both.named_parameters() if p.grad is not None}
    return {**found, **dict(both.named_buffers()), "loss": loss.detach()}


def expect_equal(
    found: dict[str, Tensor], expected: dict[str, Tensor], tolerance: float = 1e-6
) -> None:
    """Every tensor relative to its own largest entry."""
    assert found.keys() == expected.keys()
    largest = max(float(tensor.abs().max()) for tensor in expected.values())
    for name, tensor in expected.items():
        # What is zero but for rounding, as the gradient of a bias before a BatchNorm, has no scale
        # of its own.
        scale = max(float(tensor.abs().max()), 1e-6 * largest)
        assert float((found[name] - tensor).abs().max()) <= tolerance * scale, name


@pytest.mark.parametrize("name", list(IN_PARTS))
def test_the_gradient_in_parts_is_that_of_the_whole_batch(name: str, base: str) -> None:
    """Of every parameter of encoder and heads, whose BatchNorms see all rows. 7 = 3 + 3 + 1."""
    whole = gradients(method(name, base, **IN_PARTS[name]), dropout=False)
    parts = gradients(method(name, base, **IN_PARTS[name], micro_batch=3), dropout=False)
    assert any(bool(tensor.any()) for name, tensor in whole.items() if name.startswith("encoder"))
    expect_equal(parts, whole)


@pytest.mark.parametrize("name", ["simcse", "scd", "barlow_twins", "vicreg"])
def test_with_dropout_it_is_that_of_one_backward_pass_through_the_same_parts(
    name: str, base: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    values = {key: value for key, value in IN_PARTS[name].items() if not key.startswith("dropout")}
    parts = gradients(method(name, base, **values, micro_batch=3), dropout=True)
    whole = gradients(method(name, base, **values), dropout=True)
    assert not torch.allclose(
        parts["loss"], whole["loss"], rtol=1e-6
    )  # masks are drawn part by part
    monkeypatch.setattr(network, "checkpoint", lambda encode, features, **_: encode(features))
    expect_equal(parts, gradients(method(name, base, **values, micro_batch=3), dropout=True))


# Two views at their own rates; a frozen copy beside the encoder; a trained copy beside it.
@pytest.mark.parametrize("name", ["scd", "byol", "contrastive_tension"])
def test_gradient_checkpointing_changes_no_gradient(name: str, base: str) -> None:
    values = {"dropout": True} if name == "contrastive_tension" else NARROW
    expected = gradients(method(name, base, **values), dropout=True)
    expect_equal(
        gradients(method(name, base, **values, gradient_checkpointing=True), dropout=True),
        expected,
        1e-12,
    )


def test_training_in_parts_resumes_bit_for_bit(tmp_path: Path) -> None:
    values = {
        "batch_size": 5,
        "train_length": 8,
        "micro_batch": 3,
        "gradient_checkpointing": True,
        **NARROW,
    }
    cls = registry.load(registry.METHODS, "scd")
    corpus = load_corpus("embedded:sentences", limit=20)
    whole, resumed = weights_whole_and_resumed(cls, values, corpus, tmp_path)
    assert all(torch.equal(tensor, resumed[name]) for name, tensor in whole.items())


def test_methods_whose_loss_is_no_function_of_the_vectors_alone_refuse_parts() -> None:
    trained = {
        name: cls
        for name in registry.names(registry.METHODS)
        if issubclass(cls := registry.load(registry.METHODS, name), TrainedMethod)
        and cls.__module__.startswith("methods.")  # other tests register their own
    }
    assert {name for name, cls in trained.items() if cls.Config.in_parts} == set(IN_PARTS)  # type: ignore[attr-defined]
    for name in trained.keys() - IN_PARTS.keys():
        with raises_input_error(key="micro_batch"):
            method(name, micro_batch=32)


def test_masked_language_modelling_refuses_parts() -> None:
    with raises_input_error(file='method "simcse"', key="mlm_weight"):
        method("simcse", micro_batch=32, mlm_weight=0.1)
