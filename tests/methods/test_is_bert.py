"""IS-BERT: the Jensen-Shannon objective against a transcription in numpy, and what the method makes
of it.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch

from harness.sources import load_corpus
from harness.training import Batch
from methods.is_bert import ISBert, jensen_shannon_information
from tests.support.errors import raises_input_error


def reference(local: np.ndarray, mask: np.ndarray, vectors: np.ndarray) -> tuple[float, float]:
    """Token by token, as the paper writes it: T(x) = f . g, JSD estimator with softplus, in
    float64.
    """

    def softplus(x: float) -> float:
        return max(x, 0.0) + math.log1p(math.exp(-abs(x)))

    n, tokens = len(vectors), int(mask.sum())
    own = others = 0.0
    for i in range(n):
        for t in range(mask.shape[1]):
            if not mask[i, t]:
                continue
            for j in range(n):
                score = float(local[i, t] @ vectors[j])
                if i == j:
                    own -= (math.log(2) - softplus(-score)) / tokens
                else:
                    others += (softplus(score) - math.log(2)) / (tokens * (n - 1))
    return own, others


def case(
    n: int, length: int = 5, d: int = 4, seed: int = 0
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    mask = (np.arange(length) < rng.integers(1, length + 1, (n, 1))).astype(np.int64)
    return rng.normal(size=(n, length, d)), mask, rng.normal(size=(n, d))


def computed(local: np.ndarray, mask: np.ndarray, vectors: np.ndarray) -> tuple[float, float]:
    own, others = jensen_shannon_information(*(torch.from_numpy(x) for x in (local, mask, vectors)))
    return own.item(), others.item()


@pytest.mark.parametrize("n", [1, 2, 3, 7])
def test_both_halves_equal_the_transcription(n: int) -> None:
    assert computed(*case(n)) == pytest.approx(reference(*case(n)), rel=1e-12, abs=1e-15)


def test_by_hand() -> None:
    # one token a sentence, f = g = (1) and (0): s = [[1, 0], [0, 0]]
    local, mask, vectors = (
        np.array([[[1.0]], [[0.0]]]),
        np.ones((2, 1), dtype=np.int64),
        np.array([[1.0], [0.0]]),
    )
    own, others = computed(local, mask, vectors)
    assert own == pytest.approx((math.log1p(math.exp(-1)) - math.log(2)) / 2)
    assert others == pytest.approx(0.0)  # softplus(0) - ln 2


def test_degenerate_batches() -> None:
    local, mask, vectors = case(4)
    assert computed(local, mask, vectors * 0) == pytest.approx(
        (0, 0), abs=1e-15
    )  # no information: both halves are 0
    assert computed(*case(1))[1] == 0.0  # a single sentence has no others
    same_local, same = np.repeat(local[:1], 4, 0), np.repeat(vectors[:1], 4, 0)
    full = np.ones_like(mask)
    assert computed(same_local, full, same) == pytest.approx(
        reference(same_local, full, same), rel=1e-12
    )
    huge = computed(local * 1e3, mask, vectors * 1e3)  # softplus must not overflow
    assert np.isfinite(huge).all()
    assert computed(local, mask * 0, vectors) == (0.0, 0.0)


def test_masked_entries_do_not_enter_at_all() -> None:
    local, mask, vectors = case(5)
    wild = np.where(mask[..., None] == 1, local, np.nan)
    assert computed(wild, mask, vectors) == computed(local, mask, vectors)
    wide = np.concatenate([local, np.full((5, 3, 4), 1e9)], axis=1)
    wider_mask = np.concatenate([mask, np.zeros((5, 3), dtype=np.int64)], axis=1)
    assert computed(wide, wider_mask, vectors) == pytest.approx(
        computed(local, mask, vectors), rel=1e-14
    )


@pytest.mark.parametrize("n", [1, 2, 4])
def test_gradients(n: int) -> None:
    local, mask, vectors = case(n, length=3, d=3)
    f, g = (torch.from_numpy(x).requires_grad_() for x in (local, vectors))
    assert torch.autograd.gradcheck(
        lambda f, g: sum(jensen_shannon_information(f, torch.from_numpy(mask), g)), (f, g)
    )


def test_half_precision_inputs_are_lifted_and_wrong_shapes_named() -> None:
    local, mask, vectors = (torch.from_numpy(x) for x in case(4))
    with torch.autocast("cpu", dtype=torch.bfloat16):
        own, others = jensen_shannon_information(local.bfloat16(), mask, vectors.bfloat16())
    assert own.dtype == others.dtype == torch.float32
    exact = reference(
        local.bfloat16().double().numpy(), mask.numpy(), vectors.bfloat16().double().numpy()
    )
    assert (own.item(), others.item()) == pytest.approx(exact, rel=1e-5)
    with pytest.raises(ValueError, match="expected"):
        jensen_shannon_information(local, mask[:, :-1], vectors)


def method(**values: Any) -> ISBert:
    small = {"batch_size": 8, "train_length": 16, "filters": 16}
    return ISBert(ISBert.configure({**small, **values}, preset="mini"))


def test_the_vector_is_the_mean_of_local_features_and_enters_the_loss() -> None:
    texts = list(load_corpus("embedded:sentences", limit=6))
    m = method(max_length=16)
    torch.manual_seed(0)
    encoder = m.load_base().eval()
    assert encoder.dimension == 3 * 16
    terms = m.loss(encoder, torch.nn.Module(), Batch(texts, np.random.default_rng(0), 0))
    features = encoder.collate(encoder.tokenize(texts))
    local = encoder.token_states(features).detach().double().numpy()
    mask = features["attention_mask"].numpy()
    means = (local * mask[..., None]).sum(1) / mask.sum(1, keepdims=True)
    assert encoder.encode(texts) == pytest.approx(means, abs=1e-5)
    own, others = reference(local, mask, means)
    assert terms["own"].item() == pytest.approx(own, rel=1e-4)
    assert terms["others"].item() == pytest.approx(others, rel=1e-4)
    assert terms["loss"].item() == pytest.approx(own + others, rel=1e-4)


def test_the_optimiser_has_no_bias_correction_unless_asked() -> None:
    """First update of a gradient g: lr * 0.1 g / (sqrt(0.001) |g| + eps), or lr with the
    correction.
    """
    for corrected, length in ((False, 0.1 / math.sqrt(0.001)), (True, 1.0)):
        p = torch.nn.Parameter(torch.tensor([1.0]))
        optimizer = method(learning_rate=1e-3, bias_correction=corrected).optimizer(
            [{"params": [p], "weight_decay": 0.0}]
        )
        p.grad = torch.tensor([2.0])
        optimizer.step()
        assert 1.0 - p.item() == pytest.approx(1e-3 * length, rel=1e-3)


def test_even_widths_are_refused_in_one_line() -> None:
    with raises_input_error(file='method "is_bert"', key="widths"):
        method(widths=[2, 3])
