"""Pooling: formulas against numpy loops, models against transformers' own hidden states."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from transformers import AutoModel

from harness.encoder import Encoder, Pooling
from harness.encoder.pooling import average_layers, reduce_tokens
from tests.support.encoder_models import FAMILIES, TEXTS, base_model
from tests.support.errors import raises_input_error

POOLINGS = [
    *(
        ("cls", 1),
        ("mean", 1),
        ("max", 1),
        ("first_last_avg", 1),
        ("first_last_avg", 0),
        ("last2_avg", 1),
    ),
    *((f"layer:{layer}:{mode}", 1) for layer in (0, 1, 3) for mode in ("cls", "mean", "max")),
]


@pytest.fixture(scope="module")
def bases(tmp_path_factory):
    return {name: base_model(tmp_path_factory.mktemp("base") / name, name) for name in FAMILIES}


def test_hand_worked():
    tokens = torch.tensor([[[1.0, -2.0], [3.0, -6.0], [100.0, 100.0]]])
    mask = torch.tensor([[1, 1, 0]])
    assert reduce_tokens(tokens, mask, "cls").tolist() == [[1.0, -2.0]]
    assert reduce_tokens(tokens, mask, "mean").tolist() == [[2.0, -4.0]]
    assert reduce_tokens(tokens, mask, "max").tolist() == [[3.0, -2.0]]
    assert average_layers([tokens, 3 * tokens], (0, 1))[0, 0].tolist() == [2.0, -4.0]


def reference(states, length, name, first):
    """One sentence's vector from its hidden states (layers, length, d), by the table of the fact
    sheet.
    """
    states = states[:, :length].astype(np.float64)
    if name.startswith("layer:"):
        _, layer, mode = name.split(":")
        states, name = states[: int(layer) + 1], mode
    tokens = states[-1]
    if name == "first_last_avg":
        tokens, name = (states[first] + states[-1]) / 2, "mean"
    if name == "last2_avg":
        tokens, name = (states[-2] + states[-1]) / 2, "mean"
    return {"cls": tokens[0], "mean": tokens.mean(axis=0), "max": tokens.max(axis=0)}[name]


@pytest.mark.parametrize("family", FAMILIES)
def test_every_pooling_of_every_family(bases, family):
    plain = AutoModel.from_pretrained(bases[family], attn_implementation="eager").eval()
    for name, first in POOLINGS:
        encoder = Encoder.from_pretrained(bases[family], pooling=name, first_layer=first)
        vectors = encoder.encode(TEXTS)
        assert vectors.shape == (len(TEXTS), 32)
        for text, vector in zip(TEXTS, vectors, strict=True):
            ids = encoder.tokenize([text])
            with torch.no_grad():
                states = plain(torch.tensor(ids), output_hidden_states=True).hidden_states
            expected = reference(np.stack([s[0].numpy() for s in states]), len(ids[0]), name, first)
            np.testing.assert_allclose(vector, expected, atol=2e-5, err_msg=f"{name} of {text!r}")


@pytest.mark.parametrize("family", ["bert", "roberta", "xlm-roberta", "mpnet"])
def test_cls_pooler_is_the_checkpoints_own(bases, family):
    encoder = Encoder.from_pretrained(bases[family], pooling="cls_pooler")
    plain = AutoModel.from_pretrained(bases[family]).eval()
    with torch.no_grad():
        expected = plain(torch.tensor(encoder.tokenize(TEXTS[:1]))).pooler_output
    np.testing.assert_allclose(encoder.encode(TEXTS[:1]), expected.numpy(), atol=2e-5)


def test_models_without_a_pooler_say_so(bases):
    for name in (
        bases["distilbert"],
        "embedded:mini-bert",
    ):  # the second is a masked language model
        with raises_input_error(file=name):
            Encoder.from_pretrained(name, pooling="cls_pooler")


def test_no_parameters_that_no_vector_depends_on(bases):
    for name, unused in (("mean", 0), ("cls_pooler", 0), ("layer:2:mean", 0)):
        encoder = Encoder.from_pretrained(bases["bert"], pooling=name)
        encoder(encoder.collate(encoder.tokenize(TEXTS))).sum().backward()
        assert sum(p.grad is None for p in encoder.parameters()) == unused, name


def test_wrong_names():
    with raises_input_error(key="pooling"):
        Pooling.parse("meen")
    with raises_input_error(key="first_layer"):
        Pooling.parse("first_last_avg", 2)


def test_a_layer_too_high(bases):
    with raises_input_error(key="pooling"):
        Encoder.from_pretrained(bases["bert"], pooling="layer:4:mean")
