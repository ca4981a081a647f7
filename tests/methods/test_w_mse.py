"""W-MSE: whitening against its definition, the loss against numpy, slices of a batch, batches that
are too short.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.linalg import cholesky, solve

from harness.errors import TrainingStopped
from harness.method import FitContext
from harness.recipes import iterate_presets
from harness.sources import Corpus, load_corpus
from harness.training import Batch, BatchStream
from methods.w_mse import WMSE, draw_slices, whiten, whitened_mse
from tests.support.errors import raises_input_error
from tests.support.kill_and_resume import weights_whole_and_resumed

pytestmark = pytest.mark.timeout(300)
SMALL = {
    "batch_size": 6,
    "slice": 6,
    "train_length": 8,
    "learning_rate": 1e-3,
    "projector": (16, 3),
}


@pytest.fixture(scope="module")
def corpus() -> Corpus:
    return load_corpus("embedded:sentences", limit=26)


def np_whiten(x: np.ndarray, shrinkage: float) -> np.ndarray:
    d = x.shape[1]
    covariance = (1 - shrinkage) * np.cov(x, rowvar=False).reshape(d, d) + shrinkage * np.eye(d)
    return np.array([solve(cholesky(covariance, lower=True), row - x.mean(0)) for row in x])


def np_w_mse(
    a: np.ndarray, b: np.ndarray, *, shrinkage: float, statistics: str, normalise: bool
) -> float:
    if statistics == "both":
        both = np_whiten(np.concatenate([a, b]), shrinkage)
        w_a, w_b = both[: len(a)], both[len(a) :]
    else:
        w_a, w_b = np_whiten(a, shrinkage), np_whiten(b, shrinkage)
    total = 0.0
    for x, y in zip(w_a, w_b, strict=True):
        if normalise:
            x, y = (v / np.linalg.norm(v) if np.linalg.norm(v) else v for v in (x, y))
        total += float(np.sum((x - y) ** 2))
    return total / len(a)


def views(n: int, d: int, seed: int = 0) -> list[np.ndarray]:
    rng = np.random.default_rng(seed)
    base = rng.normal(2.0, 1.0, (n, d)) @ rng.normal(size=(d, d))
    return [base + 0.3 * rng.normal(size=(n, d)) for _ in range(2)]


@pytest.mark.parametrize("statistics", ["view", "both"])
@pytest.mark.parametrize("normalise", [True, False])
@pytest.mark.parametrize("shrinkage", [0.0, 0.01, 0.5])
def test_every_variant_equals_numpy(statistics: Any, normalise: bool, shrinkage: float) -> None:
    options: dict[str, Any] = {
        "shrinkage": shrinkage,
        "statistics": statistics,
        "normalise": normalise,
    }
    for n, d in ((8, 3), (5, 1), (4, 3)):
        a, b = views(n, d, n)
        value = whitened_mse(torch.from_numpy(a), torch.from_numpy(b), **options)
        assert float(value) == pytest.approx(np_w_mse(a, b, **options), rel=1e-7)


@pytest.mark.parametrize("statistics", ["view", "both"])
def test_degenerate_inputs_with_shrinkage_equal_numpy(statistics: Any) -> None:
    a, b = views(4, 3)
    constant = a.copy()
    constant[:, 1] = 5.0
    same = np.repeat(a[:1], 4, 0)
    for left, right in ((a[:2], b[:2]), (constant, b), (same, same), *(tuple(views(3, 6)),)):
        options: dict[str, Any] = {"shrinkage": 0.1, "statistics": statistics, "normalise": True}
        tensors = [torch.from_numpy(x.copy()).requires_grad_() for x in (left, right)]
        value = whitened_mse(*tensors, **options)
        assert float(value.detach()) == pytest.approx(
            np_w_mse(left, right, **options), rel=1e-6, abs=1e-9
        )
        value.backward()
        assert all(t.grad is not None and bool(t.grad.isfinite().all()) for t in tensors)


@pytest.mark.parametrize("statistics", ["view", "both"])
@pytest.mark.parametrize("normalise", [True, False])
def test_gradients(statistics: Any, normalise: bool) -> None:
    a, b = (torch.from_numpy(x).requires_grad_() for x in views(6, 3, 2))
    assert torch.autograd.gradcheck(
        lambda x, y: whitened_mse(x, y, shrinkage=0.05, statistics=statistics, normalise=normalise),
        (a, b),
    )
    assert torch.autograd.gradcheck(lambda x: whiten(x), (a,))


@settings(max_examples=20)
@given(n=st.integers(2, 12), d=st.integers(1, 8), seed=st.integers(0, 10**6))
def test_whitened_rows_have_mean_0_and_identity_covariance(n: int, d: int, seed: int) -> None:
    x = torch.from_numpy(np.random.default_rng(seed).normal(3.0, 2.0, (n + d, d)))
    y = whiten(x).numpy()
    assert y.mean(0) == pytest.approx(np.zeros(d), abs=1e-8)
    assert np.cov(y, rowvar=False).reshape(d, d) == pytest.approx(np.eye(d), abs=1e-6)


def test_by_hand() -> None:
    # one feature, rows 1 and 3: mean 2, variance 2: -1/sqrt 2 and 1/sqrt 2
    x = torch.tensor([[1.0], [3.0]], dtype=torch.float64)
    assert whiten(x).flatten().tolist() == pytest.approx([-(0.5**0.5), 0.5**0.5])
    assert float(whitened_mse(x, 10 * x + 4)) == pytest.approx(0.0), (
        "shift and scale of a view are whitened away"
    )
    assert float(whitened_mse(x, x.flip(0))) == pytest.approx(4.0), "unit vectors that point apart"
    assert float(whitened_mse(x, x.flip(0), normalise=False)) == pytest.approx(2.0)  # (2/sqrt 2)^2


def test_whitened_vectors_cannot_collapse() -> None:
    """However small the spread of the projections, the loss is the same: there is nothing to gain
    by collapsing.
    """
    a, b = (torch.from_numpy(x) for x in views(8, 3))
    assert float(whitened_mse(1e-3 * a, 1e-3 * b)) == pytest.approx(
        float(whitened_mse(a, b)), rel=1e-6
    )


def test_too_few_rows_or_no_variance() -> None:
    with pytest.raises(ValueError, match="3 rows cannot whiten 3 dimensions"):
        whiten(torch.randn(3, 3))
    with pytest.raises(ValueError, match="1 rows cannot whiten 1 dimensions"):
        whiten(torch.randn(1, 1), shrinkage=0.5)
    with pytest.raises(ValueError, match="is singular: a shrinkage mends that"):
        whiten(torch.ones(9, 3))
    with pytest.raises(ValueError, match="at least 2 rows"):
        whitened_mse(torch.randn(1, 2), torch.randn(1, 2))
    bad = torch.full((9, 3), float("nan"))
    assert not bool(whiten(bad).isfinite().any()), "left to the guard against divergence"


@settings(max_examples=40)
@given(count=st.integers(2, 70), size=st.integers(2, 30), seed=st.integers(0, 100))
def test_slices_are_a_partition_into_parts_that_are_long_enough(
    count: int, size: int, seed: int
) -> None:
    parts = draw_slices(count, size, np.random.default_rng(seed))
    assert sorted(np.concatenate(parts).tolist()) == list(range(count))
    assert min(map(len, parts)) >= min(size, count)
    assert len(parts) == max(1, count // size)


# ---------------------------------------------------------------- the method


def test_loss_is_the_mean_over_slices_and_slicings(corpus: Corpus) -> None:
    values = {**SMALL, "slice": 4, "slicings": 2, "shrinkage": 0.01, "dropout": 0.0}
    method = WMSE(WMSE.configure(values))
    encoder = method.load_base().eval()
    heads = method.heads(encoder).train()
    items = list(corpus[:9])
    loss = float(
        method.loss(encoder, heads, Batch(items, np.random.default_rng(3), 0))["loss"].detach()
    )
    with torch.no_grad():
        h = encoder(encoder.collate(encoder.tokenize(items, max_length=8)))
    # shuffling the rows of a view is all that differs from one slice; both views are equal here, so
    # that the distance is zero whatever the slices are
    assert loss == pytest.approx(0.0, abs=1e-6)

    # different views: a fixed pair, so that numpy can follow
    a, b = (
        h + s * torch.randn(h.shape, generator=torch.Generator().manual_seed(1))
        for s in (0.1, -0.2)
    )
    encoder.two_views = lambda *_, **__: (a, b)
    loss = float(
        method.loss(encoder, heads, Batch(items, np.random.default_rng(3), 0))["loss"].detach()
    )
    rng, total = np.random.default_rng(3), 0.0
    with torch.no_grad():
        z_a, z_b = (heads(x).double().numpy() for x in (a, b))
    for _ in range(2):
        for part in np.array_split(rng.permutation(9), 2):  # 9 rows, slices of 4: 5 and 4
            options: dict[str, Any] = {"shrinkage": 0.01, "statistics": "view", "normalise": True}
            total += len(part) * np_w_mse(z_a[part], z_b[part], **options)
    assert loss == pytest.approx(total / 18, rel=1e-3)


def np_head(heads: Any, x: np.ndarray) -> np.ndarray:
    """Linear, batch normalisation over the rows of `x` (biased variance), ReLU, Linear, in float64."""
    first, norm, last = heads[0], heads[1], heads[3]

    def at(tensor: torch.Tensor) -> np.ndarray:
        return tensor.detach().double().numpy()

    x = x @ at(first.weight).T + at(first.bias)
    x = at(norm.weight) * (x - x.mean(0)) / np.sqrt(x.var(0) + norm.eps) + at(norm.bias)
    return np.maximum(x, 0) @ at(last.weight).T


@pytest.mark.parametrize("joint", [False, True])
def test_the_head_sees_a_view_or_both(corpus: Corpus, joint: bool) -> None:
    """The released code: h = head(cat(views)), then each view's rows are whitened by themselves."""
    method = WMSE(WMSE.configure({**SMALL, "slice": 9, "shrinkage": 0.01, "joint_head": joint}))
    encoder = method.load_base()
    heads = method.heads(encoder).train()
    a, b = (torch.from_numpy(view).float() for view in views(9, encoder.dimension))
    encoder.two_views = lambda *_, **__: (a, b)
    loss = float(
        method.loss(encoder, heads, Batch(list(corpus[:9]), np.random.default_rng(3), 0))[
            "loss"
        ].detach()
    )
    parts = [np.concatenate([a, b])] if joint else [a.numpy(), b.numpy()]
    z_a, z_b = np.split(
        np.concatenate([np_head(heads, part.astype(np.float64)) for part in parts]), 2
    )
    expected = np_w_mse(z_a, z_b, shrinkage=0.01, statistics="view", normalise=True)
    assert loss == pytest.approx(expected, rel=1e-4)


def test_presets_are_valid_and_wrong_values_are_named() -> None:
    for preset, family in iterate_presets(WMSE.presets):
        WMSE.configure({}, preset=preset, family=family)
    for values in ({"projector": ()}, {"shrinkage": 1.0}, {"slice": 1}, {"statistics": "none"}):
        with raises_input_error(key=next(iter(values))):
            WMSE.configure(values)


def test_a_corpus_too_small_for_its_projector_is_refused(corpus: Corpus) -> None:
    method = WMSE(WMSE.configure({}, preset="paper", family="bert-base"))
    with raises_input_error(file=corpus.uri):
        method.fit(corpus, FitContext(precision="fp32"))


def test_both_views_together_are_twice_the_rows(corpus: Corpus) -> None:
    narrow = {**SMALL, "shrinkage": 0.0, "projector": (16, 6), "batch_size": 6}
    with raises_input_error(file=corpus.uri):
        WMSE(WMSE.configure(narrow)).stream(corpus, 1)
    WMSE(WMSE.configure({**narrow, "statistics": "both"})).stream(corpus, 1)


def test_without_shrinkage_short_batches_are_left_out_and_the_rest_keeps_its_order(
    corpus: Corpus,
) -> None:
    whole = WMSE(WMSE.configure({**SMALL, "bucket": 2, "shrinkage": 0.0})).stream(corpus, 1)
    plain = BatchStream(corpus, batch_size=6, bucket=2, seed=1, length_cap=48)
    assert (whole.steps_per_epoch, plain.steps_per_epoch) == (4, 5)  # 26 = 4 * 6 + 2
    for epoch in range(3):
        seen = [plain.batch(epoch * 5 + step).texts for step in range(5)]
        assert [whole.batch(epoch * 4 + step).texts for step in range(4)] == [
            t for t in seen if len(t) == 6
        ]
    assert WMSE(WMSE.configure(SMALL)).stream(corpus, 0).steps_per_epoch == 5


def test_two_sentences_are_enough_with_shrinkage_and_collapse_is_an_outcome_without(
    corpus: Corpus,
) -> None:
    method = WMSE(WMSE.configure({**SMALL, "projector": (16, 8), "batch_size": 12}))
    encoder = method.load_base().train()
    heads = method.heads(encoder)
    two = Batch(list(corpus[:2]), np.random.default_rng(0), 0)
    loss = method.loss(encoder, heads, two)["loss"]
    assert bool(loss.isfinite())
    loss.backward()
    collapsed = WMSE(WMSE.configure({**SMALL, "shrinkage": 0.0}))
    with torch.no_grad():
        heads = collapsed.heads(encoder)
        heads[-1].weight.zero_()
    with pytest.raises(TrainingStopped, match="singular") as stopped:
        collapsed.loss(encoder, heads, Batch(list(corpus[:6]), np.random.default_rng(0), 0))
    assert stopped.value.status == "collapsed"


def test_training_resumes_bit_for_bit(corpus: Corpus, tmp_path: Path) -> None:
    values = {**SMALL, "slice": 3, "projector": (16, 2), "shrinkage": 0.0}
    whole, resumed = weights_whole_and_resumed(WMSE, values, corpus, tmp_path)
    assert all(torch.equal(tensor, resumed[name]) for name, tensor in whole.items())
