"""InfoNCE: its loss is SimCSE's, on any view; documents that cannot be cropped are left out."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch

from harness.method import FitContext
from harness.sources import load_corpus
from harness.testing import assert_method
from harness.training import Batch
from methods.barlow_twins import BarlowTwins
from methods.infonce import InfoNCE
from methods.simcse import SimCSE
from methods.w_mse import WMSE
from tests.support.bases import narrow_bert
from tests.support.errors import raises_input_error

pytestmark = pytest.mark.timeout(300)


def loss_of(method: Any, batch: Batch, *, train: bool = False) -> float:
    torch.manual_seed(0)
    encoder = method.load_base().train(train)
    heads = method.heads(encoder)
    torch.manual_seed(1)
    return float(method.loss(encoder, heads, batch)["loss"].detach())


@pytest.mark.parametrize("head", ["none", "training"])
def test_with_dropout_it_is_simcse(head: str) -> None:
    """Same loss, head, dropout masks: equal to the last bit."""
    texts = list(load_corpus("embedded:sentences", limit=8))
    shared = {"pooling": "cls", "head": head, "dropout": 0.1}
    losses = [
        loss_of(
            method(method.configure(shared)), Batch(texts, np.random.default_rng(0), 0), train=True
        )
        for method in (InfoNCE, SimCSE)
    ]
    assert losses[0] == losses[1]


@pytest.mark.parametrize("directions", [1, 2])
def test_the_loss_of_paraphrases_by_its_formula(directions: int) -> None:
    """Without dropout the views are what `encode` returns: the loss of 20 * cosine, written out."""
    pairs = list(load_corpus("embedded:pairs", kind="pairs", limit=6))
    method = InfoNCE(InfoNCE.configure({"view": "paraphrase", "directions": directions}))
    encoder = method.load_base().eval()
    a, b = (
        np.asarray(encoder.encode([getattr(p, side) for p in pairs]), float)
        for side in ("anchor", "positive")
    )
    cosines = (a @ b.T) / np.outer(np.linalg.norm(a, axis=1), np.linalg.norm(b, axis=1))

    def one_way(s: np.ndarray) -> float:
        return (
            sum(
                math.log(sum(math.exp(20 * (s[i, j] - s[i, i])) for j in range(6)))
                for i in range(6)
            )
            / 6
        )

    expected = one_way(cosines) if directions == 1 else (one_way(cosines) + one_way(cosines.T)) / 2
    assert loss_of(method, Batch(pairs, np.random.default_rng(0), 0)) == pytest.approx(
        expected, rel=1e-4
    )


@pytest.mark.parametrize("kind", [InfoNCE, BarlowTwins, WMSE])
def test_two_view_methods_crop_documents_and_leave_out_those_without_two_crops(kind: Any) -> None:
    whole = list(load_corpus("embedded:documents", kind="documents", limit=8))
    values = {"view": "sentence_crop", "max_steps": 1, "batch_size": 4}
    method = kind(kind.configure(values))
    assert method.text == "documents"
    report = method.fit([*whole, "Short. Too short."], FitContext(precision="fp32")).fit_report
    assert {"documents": 8, "documents_too_short": 1}.items() <= report.training.items()
    with raises_input_error(file="given documents"):
        kind(kind.configure(values)).fit([whole[0], "Short."])


@pytest.mark.parametrize("preset", ["paper", "token-crop"])
def test_the_recipes_for_documents_keep_every_promise(preset: str) -> None:
    assert_method(InfoNCE, preset=preset, base_model=narrow_bert())
