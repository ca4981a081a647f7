"""Hidden and token states, independent copies, and convolutions over tokens that padding does not reach."""

from __future__ import annotations

import json
import warnings

import numpy as np
import pytest
import torch
from torch import nn

from harness.encoder import Encoder
from harness.encoder.convolution import TokenConvolution
from harness.errors import InputError
from tests.support.encoder_models import FAMILIES, TEXTS, base_model


@pytest.fixture(scope="module")
def bases(tmp_path_factory):
    return {name: base_model(tmp_path_factory.mktemp("base") / name, name) for name in FAMILIES}


@pytest.fixture
def encoder(bases):
    return Encoder.from_pretrained(bases["bert"], pooling="mean").eval()


def reference(path, texts=TEXTS, batch_size=32):
    from sentence_transformers import SentenceTransformer

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = SentenceTransformer(str(path), device="cpu")
        return model.encode(texts, batch_size=batch_size, show_progress_bar=False)


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
        with torch.no_grad(), one.view_rates.inside(rows, half, half), other.view_rates.inside(rows, none, none):
            first, second = other._vectors(features), other._vectors(features)
            torch.testing.assert_close(first, second)  # at rate 0 nothing is random
            assert not torch.allclose(one._vectors(features), one._vectors(features))

    twin = encoder.copy()
    drops(encoder, twin)
    drops(twin, encoder)
    a, b = twin.two_views(ids, ids, hidden_dropout=(0.0, 0.4), attention_dropout=(0.0, 0.4))
    torch.testing.assert_close(a.detach(), encoder.eval()(encoder.collate(ids)).detach(), atol=1e-5, rtol=1e-4)
    assert not torch.allclose(a, b)


def convolved(tokens: np.ndarray, module: TokenConvolution) -> np.ndarray:
    """Equation by hand: out[t, f] = bias[f] + sum over offsets o and channels c of w[f, c, o] x[t + o - half, c]."""
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


@pytest.mark.parametrize("pooling", ["mean", "cls", "max", "first_last_avg"])
@pytest.mark.parametrize("family", ["bert", "roberta"])
def test_convolution_saved_and_read_by_everyone(bases, tmp_path, family, pooling):
    torch.manual_seed(1)
    encoder = Encoder.from_pretrained(bases[family], pooling=pooling)
    encoder.token_module = TokenConvolution(32, 5, (1, 3))
    encoder.affine = nn.Linear(10, 7)
    assert encoder.dimension == 7
    vectors = encoder.encode(TEXTS)
    np.testing.assert_allclose(np.stack([encoder.encode(text) for text in TEXTS]), vectors, atol=1e-5)
    encoder.save(tmp_path / "saved")
    np.testing.assert_allclose(reference(tmp_path / "saved"), vectors, atol=1e-5)  # padded batches too
    np.testing.assert_allclose(reference(tmp_path / "saved", batch_size=1), vectors, atol=1e-5)
    loaded = Encoder.load(tmp_path / "saved")
    np.testing.assert_allclose(loaded.encode(TEXTS), vectors, atol=1e-6)
    assert loaded.pooling == encoder.pooling
    loaded.save(tmp_path / "again")
    np.testing.assert_allclose(reference(tmp_path / "again"), vectors, atol=1e-5)


def test_convolution_that_sentence_transformers_wrote(bases, tmp_path):
    """Without padding its CNN and ours are the same; with padding its vectors depend on the batch, ours do not."""
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer import modules

    parts = [modules.Transformer(bases["bert"]), modules.CNN(32, 6, [1, 3]), modules.Pooling(12, "mean")]
    SentenceTransformer(modules=parts, device="cpu").save(str(tmp_path / "theirs"))
    vectors = Encoder.load(tmp_path / "theirs").encode(TEXTS)
    np.testing.assert_allclose(reference(tmp_path / "theirs", batch_size=1), vectors, atol=1e-5)


def test_convolution_errors(bases, encoder, tmp_path):
    with pytest.raises(InputError, match=r"odd numbers, not \[2\]"):
        TokenConvolution(32, 4, [2])
    with pytest.raises(InputError, match="at least 1 filter"):
        TokenConvolution(32, 0)
    encoder.token_module = nn.Linear(32, 8)
    with pytest.raises(InputError, match="type Linear cannot be saved"):
        encoder.save(tmp_path / "other")
    assert not list(tmp_path.iterdir())
    encoder.token_module = TokenConvolution(32, 4)
    encoder.save(tmp_path / "saved")
    file = tmp_path / "saved" / "2_CNN" / "cnn_config.json"
    config = json.loads(file.read_text())
    for broken, message in (
        ({**config, "stride_sizes": [2, 1, 1]}, "strides or even widths"),
        ({**config, "kernel_sizes": [2, 3, 5]}, "strides or even widths"),
        ({**config, "out_channels": 5}, "does not fit its cnn_config.json"),
        ({"kernel_sizes": [1]}, "does not fit its cnn_config.json"),
    ):
        file.write_text(json.dumps(broken))
        with pytest.raises(InputError, match=message) as error:
            Encoder.load(tmp_path / "saved")
        assert "\n" not in str(error.value)
    file.write_text(json.dumps(config))
    from safetensors.torch import save_file

    weights = tmp_path / "saved" / "1_WordWeights" / "model.safetensors"
    save_file({"emb_layer.weight": torch.full((20, 1), 0.5)}, weights)
    with pytest.raises(InputError, match="weights words"):
        Encoder.load(tmp_path / "saved")
