"""ConSERT: what each view does to the embeddings, on which half of the batch, and the loss against
its formula.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from harness.method import FitContext
from harness.sources import Corpus, load_corpus
from harness.training import Batch
from methods.consert import ConSERT
from methods.parts.embedding_views import (
    adversarial_step,
    change_embeddings,
    element_dropout,
    feature_cutoff,
    shift_by,
    token_cutoff,
)
from tests.support.encoder_models import base_model
from tests.support.errors import raises_input_error
from tests.support.kill_and_resume import weights_whole_and_resumed

pytestmark = pytest.mark.timeout(300)


@pytest.fixture(scope="module")
def corpus() -> Corpus:
    return load_corpus("embedded:sentences", limit=16)


def ones(lengths: list[int], d: int = 10) -> tuple[Tensor, Tensor]:
    mask = torch.tensor([[1] * n + [0] * (max(lengths) - n) for n in lengths])
    return torch.ones(*mask.shape, d), mask


def test_token_cutoff_takes_its_share_of_the_real_tokens() -> None:
    h, mask = ones([8, 3, 1])
    lost = token_cutoff(h, mask, rate=0.4) == 0
    assert bool((lost.all(2) == lost.any(2)).all()), "whole tokens"
    assert (lost[..., 0] & (mask == 1)).sum(1).tolist() == [3, 1, 0]
    assert not bool((lost[..., 0] & (mask == 0)).any()), "padding is not counted"
    seen = {tuple(token_cutoff(h, mask, rate=0.4)[0, :, 0].tolist()) for _ in range(20)}
    assert len(seen) > 5, "drawn anew"


def test_feature_cutoff_takes_the_same_features_from_all_tokens_of_a_sentence() -> None:
    h, mask = ones([4, 4, 2], d=10)
    lost = feature_cutoff(h, mask, rate=0.25) == 0
    assert lost.sum(2).unique().tolist() == [2], "floor(0.25 * 10) features"
    assert bool((lost == lost[:, :1]).all())
    assert len({tuple(row.tolist()) for row in lost[:, 0]}) > 1, "each sentence draws its own"


def test_dropout_scales_nothing_up() -> None:
    h, mask = ones([50] * 20, d=20)
    changed = element_dropout(h, mask, rate=0.2)
    assert changed.unique().tolist() == [0.0, 1.0]
    assert float((changed == 0).float().mean()) == pytest.approx(0.2, abs=0.01)


def test_the_adversarial_step_has_its_length_for_every_token_and_raises_the_loss(
    corpus: Corpus,
) -> None:
    g = torch.randn(3, 4, 5)
    assert bool(torch.isclose(adversarial_step(g, 0.5).norm(dim=-1), torch.tensor(0.5)).all())
    assert bool((adversarial_step(torch.zeros(1, 1, 5), 1.0) == 0).all())
    losses = {}
    for view in ("none", "adversarial"):
        made = ConSERT(
            ConSERT.configure({"view_a": "token_cutoff", "view_b": view, "train_length": 12})
        )
        torch.manual_seed(3)
        encoder = made.load_base().train()
        torch.manual_seed(4)
        losses[view] = float(made.loss(encoder, torch.nn.Module(), batch(corpus))["loss"].detach())
        assert all(p.grad is None for p in encoder.parameters()), (
            "the first gradient leaves nothing behind"
        )
    assert losses["adversarial"] > losses["none"]


def batch(corpus: Corpus) -> Batch:
    return Batch(list(corpus[:6]), np.random.default_rng(0), 0)


def test_each_half_of_the_rows_gets_its_own_change(corpus: Corpus) -> None:
    made = ConSERT(ConSERT.configure({"train_length": 12}))
    encoder = made.load_base().eval()
    ids = encoder.tokenize(corpus[:3], max_length=12)
    plain = encoder(encoder.collate(ids))
    noise = torch.ones(1)
    with change_embeddings(encoder.transformer, lambda h, mask: h, shift_by(noise)):
        h_a, h_b = encoder.two_views(ids, ids)
    torch.testing.assert_close(h_a, plain)
    assert not torch.allclose(h_b, plain, atol=1e-3)
    torch.testing.assert_close(
        encoder(encoder.collate(ids)), plain, msg="the change ends with its block"
    )


def test_the_loss_is_the_formula_of_both_views_vectors(corpus: Corpus) -> None:
    """Numpy on the vectors of a sentence and of its tokens in another order, which is all that
    "shuffle" does.
    """
    values = {"view_a": "none", "view_b": "shuffle", "train_length": 16, "contrastive_weight": 0.3}
    made = ConSERT(ConSERT.configure(values))
    encoder = made.load_base().train()
    value = float(made.loss(encoder, torch.nn.Module(), batch(corpus))["loss"].detach())
    encoder.eval()
    draw, ids = np.random.default_rng(0), encoder.tokenize(corpus[:6], max_length=16)
    a = encoder(encoder.collate(ids)).detach().double().numpy()
    from harness.views import shuffle_tokens

    mixed = [shuffle_tokens(row, 1.0, draw) for row in ids]
    assert all(sorted(x) == sorted(y) for x, y in zip(ids, mixed, strict=True))
    b = encoder(encoder.collate(mixed)).detach().double().numpy()
    rows = np.concatenate([a, b])
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    total = 0.0
    for i in range(12):
        terms = {j: float(rows[i] @ rows[j]) / 0.1 for j in range(12) if j != i}
        total += math.log(sum(math.exp(t) for t in terms.values())) - terms[(i + 6) % 12]
    assert value == pytest.approx(0.3 * total / 12, rel=1e-4)


def test_cls_stays_first_where_the_pooling_reads_it(corpus: Corpus) -> None:
    for pooling, stays in (("cls", True), ("mean", False)):
        made = ConSERT(ConSERT.configure({"pooling": pooling, "train_length": 16}))
        encoder = made.load_base()
        ids = encoder.tokenize(corpus[:16], max_length=16)
        mixed = made._order_tokens("shuffle", ids, encoder, batch(corpus))
        assert all(row[0] == encoder.tokenizer.cls_token_id for row in mixed) == stays


def test_words_of_a_template_stay_in_place(corpus: Corpus) -> None:
    made = ConSERT(ConSERT.configure({"pooling": 'prompt:This : "[X]" means [MASK].'}))
    encoder = made.load_base()
    ids = encoder.tokenize(corpus[:6], max_length=16)
    mixed = made._order_tokens("shuffle", ids, encoder, batch(corpus))
    assert mixed != ids
    for row, whole in zip(mixed, ids, strict=True):
        assert row[:4] == whole[:4]  # [CLS] this : "
        assert row[-5:] == whole[-5:]  # " means [MASK] . [SEP]


def test_it_trains_a_base_model_without_dropout(corpus: Corpus, tmp_path: Path) -> None:
    """It switches the checkpoint's dropout off, which is no rate that a model could lack."""
    base = base_model(tmp_path, "modernbert")
    made = ConSERT(
        ConSERT.configure({"batch_size": 8, "max_steps": 1, "train_length": 12}),
        base_model=str(base),
    )
    assert made.fit(corpus, FitContext()).fit_report.training["steps"] == 1


@pytest.mark.parametrize(
    "values", [{"matryoshka": [32]}, {"trainable_layers": 1}, {"view_b": "none"}]
)
def test_the_adversarial_view_goes_with_other_options(
    values: dict[str, Any], corpus: Corpus
) -> None:
    options = {"view_a": "adversarial", "batch_size": 4, "train_length": 8, "max_steps": 1}
    made = ConSERT(ConSERT.configure({**options, **values}))
    assert made.fit(corpus).fit_report.training["steps"] == 1


@pytest.mark.parametrize("views", [("dropout", "token_cutoff"), ("shuffle", "adversarial")])
def test_training_resumes_bit_for_bit(
    views: tuple[str, str], corpus: Corpus, tmp_path: Path
) -> None:
    values = {
        "view_a": views[0],
        "view_b": views[1],
        "batch_size": 4,
        "train_length": 8,
        "learning_rate": 1e-4,
    }
    whole, resumed = weights_whole_and_resumed(ConSERT, values, corpus, tmp_path)
    assert all(torch.equal(tensor, resumed[name]) for name, tensor in whole.items())


@pytest.mark.parametrize(
    "values",
    [
        {"view_a": "none", "view_b": "none"},
        {"view_a": "adversarial", "view_b": "adversarial"},
        {"view_a": "crop"},
        {"feature_cutoff": 1.0},
    ],
)
def test_bad_settings_are_refused_in_one_line(values: dict[str, Any]) -> None:
    with raises_input_error(key=next(iter(values))):
        ConSERT.configure(values)
