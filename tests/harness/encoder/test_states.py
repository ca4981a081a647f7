"""Hidden and token states, independent copies, and convolutions over tokens that padding does not
reach.
"""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

from harness.encoder import Encoder
from harness.encoder.pooling import TokenConvolution
from tests.support.encoder_models import FAMILIES, TEXTS, base_model
from tests.support.errors import raises_input_error


@pytest.fixture(scope="module")
def bases(tmp_path_factory):
    return {name: base_model(tmp_path_factory.mktemp("base") / name, name) for name in FAMILIES}


@pytest.fixture
def encoder(bases):
    return Encoder.from_pretrained(bases["bert"], pooling="mean").eval()


@pytest.mark.parametrize("family", FAMILIES)
def test_hidden_states_are_those_of_the_transformer(bases, family):
    encoder = Encoder.from_pretrained(bases[family]).eval()
    features = encoder.collate(encoder.tokenize(TEXTS))
    with torch.no_grad():
        states = encoder.hidden_states(features)
        expected = encoder.transformer(**features, output_hidden_states=True)
    assert len(states) == 4
    assert all(state.shape == (*features["input_ids"].shape, 32) for state in states)
    for state, wanted in zip(states, expected.hidden_states, strict=True):
        torch.testing.assert_close(state, wanted)
    torch.testing.assert_close(states[-1], encoder.token_states(features))


@pytest.mark.parametrize("pooling", ["cls", "mean", "first_last_avg", "layer:2:max", "cls_pooler"])
def test_pooling_the_token_states_is_the_forward_pass(bases, pooling):
    encoder = Encoder.from_pretrained(bases["bert"], pooling=pooling).eval()
    encoder.affine = nn.Linear(32, 5)
    features = encoder.collate(encoder.tokenize(TEXTS))
    with torch.no_grad():
        pooled = encoder.pool(encoder.token_states(features), features["attention_mask"])
        torch.testing.assert_close(pooled, encoder(features))


def test_a_copy_shares_nothing_that_changes(encoder):
    twin = encoder.copy()
    before = encoder.encode(TEXTS)
    np.testing.assert_array_equal(twin.encode(TEXTS), before)
    mine, its = dict(encoder.named_parameters()), dict(twin.named_parameters())
    assert mine.keys() == its.keys()
    assert not {p.data_ptr() for p in mine.values()} & {p.data_ptr() for p in its.values()}
    with torch.no_grad():
        for parameter in twin.parameters():
            parameter.add_(1.0)
    np.testing.assert_array_equal(encoder.encode(TEXTS), before)


@pytest.mark.parametrize("family", FAMILIES)
def test_dropping_views_in_one_copy_leaves_the_other_alone(bases, family):
    encoder = Encoder.from_pretrained(bases[family])
    ids = encoder.tokenize(TEXTS)

    def drops(one: Encoder, other: Encoder) -> None:
        one.train()
        other.train()
        rows = 2 * len(ids)
        half, none = (0.5, 0.5), (0.0, 0.0)
        features = other.collate([*ids, *ids])
        # as inside of `two_views`
        with (
            torch.no_grad(),
            one.view_rates.inside(rows, half, half),
            other.view_rates.inside(rows, none, none),
        ):
            first, second = other(features), other(features)
            torch.testing.assert_close(first, second)  # at rate 0 nothing is random
            assert not torch.allclose(one(features), one(features))

    twin = encoder.copy()
    drops(encoder, twin)
    drops(twin, encoder)
    a, b = twin.two_views(
        ids, ids, differ_by=None, hidden_dropout=(0.0, 0.4), attention_dropout=(0.0, 0.4)
    )
    torch.testing.assert_close(
        a.detach(), encoder.eval()(encoder.collate(ids)).detach(), atol=1e-5, rtol=1e-4
    )
    assert not torch.allclose(a, b)


def convolved(tokens: np.ndarray, module: TokenConvolution) -> np.ndarray:
    """Equation by hand: out[t, f] = bias[f] + sum over offsets o and channels c of w[f, c, o] x[t +
    o - half, c].
    """
    blocks = []
    for conv in module.convs:
        weight = conv.weight.detach().double().numpy()
        bias = conv.bias.detach().double().numpy()
        half = weight.shape[2] // 2
        out = np.tile(bias, (len(tokens), 1))
        for t in range(len(tokens)):
            for offset in range(weight.shape[2]):
                if 0 <= t + offset - half < len(tokens):
                    out[t] += weight[:, :, offset] @ tokens[t + offset - half]
        blocks.append(out)
    return np.concatenate(blocks, axis=1)


def test_convolution_of_each_sentence_as_if_it_were_alone():
    torch.manual_seed(0)
    module = TokenConvolution(6, 4, (1, 3, 5))
    tokens = torch.randn(3, 7, 6)
    mask = torch.tensor([[1] * 7, [1] * 4 + [0] * 3, [1] + [0] * 6])
    with torch.no_grad():
        out = module(tokens, mask)
    assert out.shape == (3, 7, module.out_features)
    for row, length in enumerate((7, 4, 1)):
        expected = convolved(tokens[row, :length].double().numpy(), module)
        np.testing.assert_allclose(out[row, :length].numpy(), expected, atol=1e-5)
        assert not out[row, length:].any()


def test_widths_and_filters_of_a_convolution():
    for arguments, key in (((32, 4, [2]), "widths"), ((32, 4, []), "widths"), ((32, 0), "filters")):
        with raises_input_error(key=key):
            TokenConvolution(*arguments)
