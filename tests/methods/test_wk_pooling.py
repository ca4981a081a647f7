"""WK pooling against a slow transcription of its definition: one token at a time, numpy's QR,
float64.
"""

from __future__ import annotations

import numpy as np
import pytest
import torch

from harness.encoder import Encoder
from harness.encoder.layout import is_whole_method
from methods.wk_pooling import (
    WKPooling,
    WKPoolingConfig,
    layer_weights,
    neighbour_layers,
    wk_vectors,
)
from tests.support.errors import raises_input_error

TEXTS = [
    "A dog ran over the street.",
    "Rain",
    "",
    "The old house by the river was sold to a family from the north.",
]


def token_vector(v: np.ndarray, window: int, left: str) -> np.ndarray:
    """v (K, d): the layers of one token."""
    layers = len(v)
    alignment, novelty = np.zeros(layers), np.zeros(layers)
    for k in range(layers):
        if k >= window:
            before = v[k - window : k]
        elif left == "code":
            before = v[:0]
        else:
            before = v[:k]
        matrix = np.concatenate([before, v[k + 1 : k + 1 + window], v[k : k + 1]]).T  # d x w
        r = np.linalg.qr(matrix, mode="r")
        columns = r[:-1, :-1] / np.linalg.norm(r[:-1, :-1], axis=0)
        last = r[:, -1]
        g = columns.mean(axis=1) @ last[:-1] / np.linalg.norm(last[:-1])
        alignment[k] = 1 / (2 * matrix.shape[1] * g)
        novelty[k] = abs(last[-1]) / np.linalg.norm(last)
    weights = alignment / alignment.sum() + novelty / novelty.sum()
    return (weights / weights.sum()) @ v


def sentence_vector(
    states: np.ndarray, window: int = 2, left: str = "code", ddof: int = 0
) -> np.ndarray:
    """states (K, tokens, d) of one sentence without padding; the last token is left out."""
    kept = states[:, :-1] if states.shape[1] > 1 else states
    weights = []
    for t in range(kept.shape[1]):
        v = kept[:, t]
        unit = v / np.linalg.norm(v, axis=1, keepdims=True)
        weights.append(np.var([unit[k] @ unit[k + 1] for k in range(len(v) - 1)], ddof=ddof))
    shares = np.array(weights) / np.sum(weights)
    return sum(share * token_vector(kept[:, t], window, left) for t, share in enumerate(shares))


def batch(
    layers: int, lengths: list[int], d: int, seed: int = 0
) -> tuple[list[torch.Tensor], torch.Tensor]:
    """Layers that drift, as a transformer's do; padding holds values too."""
    generator = torch.Generator().manual_seed(seed)
    state = torch.randn(len(lengths), max(lengths), d, generator=generator)
    states = [state]
    for _ in range(layers - 1):
        states.append(states[-1] + 0.4 * torch.randn(state.shape, generator=generator))
    mask = torch.tensor([[1] * n + [0] * (max(lengths) - n) for n in lengths])
    return states, mask


@pytest.mark.parametrize(("layers", "window"), [(9, 2), (4, 2), (3, 2), (5, 1), (9, 3), (4, 3)])
@pytest.mark.parametrize("left", ["code", "available"])
def test_the_definition(layers, window, left):
    lengths = [7, 2, 4, 1]
    states, mask = batch(layers, lengths, 24)
    vectors = wk_vectors(states, mask, window=window, left=left)
    assert vectors.shape == (4, 24)
    assert vectors.dtype == torch.float32
    for row, length in enumerate(lengths):
        alone = np.stack([state[row, :length].double().numpy() for state in states])
        expected = sentence_vector(alone, window, left)
        np.testing.assert_allclose(vectors[row].numpy(), expected, atol=1e-5)
        # the port's unbiased variance is the same after scaling
        np.testing.assert_allclose(
            sentence_vector(alone, window, left, ddof=1), expected, atol=1e-12
        )


def test_neighbours_as_the_code_slices_them():
    numbers = list(range(9))
    for k in numbers:
        sliced = [
            *numbers[k - 2 : k],
            *numbers[k + 1 : k + 3],
        ]  # with k = 1 the start is -1, and nothing comes out
        assert neighbour_layers(k, 9, 2, "code") == sliced
    assert neighbour_layers(1, 9, 2, "available") == [0, 2, 3]


def test_weights_of_a_token_by_hand():
    """Three layers: v0 = e0, v1 = e0 + e1, v2 = e1, window 1, left as available.

    k=0: neighbour v1; cos(v1, P v0) = 1, so a = 1/4; novelty |e0 - (e0+e1)/2| = 1/sqrt 2. The same
    for k=2. k=1: neighbours v0, v2 span it: novelty 0, and both cosines are 1/sqrt 2, so a = sqrt 2
    / 6.
    """
    v = torch.tensor([[1.0, 0.0], [1.0, 1.0], [0.0, 1.0]], dtype=torch.float64)
    weights = layer_weights((v @ v.T).unsqueeze(0), window=1, left="available")[0].numpy()
    a = np.array([1 / 4, np.sqrt(2) / 6, 1 / 4])
    n = np.array([1 / np.sqrt(2), 0.0, 1 / np.sqrt(2)])
    expected = a / a.sum() + n / n.sum()
    np.testing.assert_allclose(weights, expected / expected.sum(), atol=1e-9)


def test_degenerate_tokens_give_finite_vectors():
    d = 8
    same = [torch.ones(1, 3, d)] * 5
    np.testing.assert_allclose(
        wk_vectors(same, torch.ones(1, 3)).numpy(), np.ones((1, d)), atol=1e-6
    )
    zero = [torch.zeros(1, 3, d)] * 5
    assert not wk_vectors(zero, torch.ones(1, 3)).any()
    axes = [torch.eye(5, d)[k].expand(1, 2, d) for k in range(5)]  # at right angles
    assert wk_vectors(axes, torch.ones(1, 2)).isfinite().all()


def test_the_method_on_the_embedded_model():
    method = WKPooling(WKPooling.configure({}, preset="mini")).fit()
    encoder = Encoder.from_pretrained("embedded:mini-bert").eval()
    vectors = method.encode(TEXTS)
    assert vectors.shape == (4, 256)
    assert vectors.dtype == np.float32
    for row, text in enumerate(TEXTS):
        with torch.no_grad():
            states = encoder.hidden_states(encoder.collate(encoder.tokenize([text])))[1:]
        expected = sentence_vector(np.stack([state[0].double().numpy() for state in states]))
        np.testing.assert_allclose(vectors[row], expected, atol=2e-5)


def test_saved_and_loaded(tmp_path):
    method = WKPooling(
        WKPooling.configure({"left": "available", "max_length": 20}, preset="mini")
    ).fit()
    method.save(tmp_path / "wk", card="# Mine")
    method.save(tmp_path / "wk", card="# Mine")
    assert is_whole_method(tmp_path / "wk")
    assert "plain mean pooling" in (tmp_path / "wk" / "README.md").read_text()
    loaded = WKPooling.load(tmp_path / "wk")
    assert loaded.config == method.config
    np.testing.assert_allclose(loaded.encode(TEXTS), method.encode(TEXTS), atol=1e-6)


def test_too_few_layers():
    with raises_input_error(key="layer_start"):
        WKPooling().fit()
    with raises_input_error(key="layer_start"):
        WKPooling(WKPoolingConfig(layer_start=1, window=4)).fit()
    with raises_input_error(file='method "wk_pooling"', key="pooling"):
        WKPooling.configure({"pooling": "cls"})
