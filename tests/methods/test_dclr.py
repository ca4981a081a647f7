"""DCLR: both forms of its loss and of its noise against their equations, and the complementary
model's part.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from harness.method import FitContext
from harness.sources import Corpus, load_corpus
from harness.training import Batch
from methods.dclr import DCLR, ascend_noise, debiased_contrast
from tests.support.errors import raises_input_error
from tests.support.kill_and_resume import weights_whole_and_resumed

pytestmark = pytest.mark.timeout(300)
FORMS = ["printed", "released"]


@pytest.fixture(scope="module")
def corpus() -> Corpus:
    return load_corpus("embedded:sentences", limit=16)


def cos(x: np.ndarray, y: np.ndarray) -> float:
    return float(x @ y / np.linalg.norm(x) / np.linalg.norm(y))


def plain_loss(
    a: np.ndarray, p: np.ndarray, noise: np.ndarray, kept: np.ndarray, t: float, form: str
) -> float:
    """Both equations, written out one pair at a time."""
    total, n, m = 0.0, len(a), len(noise)
    for i in range(n):
        if form == "printed":
            below = sum(math.exp(cos(a[i], p[j]) / t) for j in range(n) if j != i and kept[i, j])
            below += sum(math.exp(cos(a[i], h) / t) for h in noise)
            total += -math.log(math.exp(cos(a[i], p[i]) / t) / below) / n if below else 0.0
            continue
        logits = [(1 if j == i else kept[i, j]) * cos(a[i], p[j]) / t for j in range(n)] + [
            cos(a[i], h) / t for h in noise
        ]
        chance = [math.exp(x) / sum(map(math.exp, logits)) for x in logits]
        total -= sum(math.log(c if j == i else 1 - c) for j, c in enumerate(chance)) / (n * (n + m))
    return total


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(("n", "m"), [(4, 3), (5, 0), (1, 2)])
def test_the_loss_is_its_equation(n: int, m: int, form: Any) -> None:
    rng = np.random.default_rng(n + m)
    a, p, noise = (rng.normal(size=(k, 6)) for k in (n, n, m))
    kept = rng.integers(0, 2, size=(n, n))
    kept[0] = 1  # one anchor at least has others
    found = debiased_contrast(
        *map(torch.from_numpy, (a, p, noise, kept)), temperature=0.5, form=form
    )
    assert float(found) == pytest.approx(plain_loss(a, p, noise, kept, 0.5, form), abs=1e-12)


@pytest.mark.parametrize("form", FORMS)
def test_an_anchor_without_negatives_gives_no_loss_and_a_finite_gradient(form: Any) -> None:
    x = torch.randn(3, 4, generator=torch.Generator().manual_seed(0)).requires_grad_()
    loss = debiased_contrast(
        x, x.flip(1), x[:0].detach(), torch.zeros(3, 3), temperature=0.05, form=form
    )
    loss.backward()
    assert torch.isfinite(loss)
    assert torch.isfinite(x.grad).all()
    if form == "printed":
        assert float(loss.detach()) == 0


@pytest.mark.parametrize("form", FORMS)
def test_noise_climbs_the_non_uniformity_loss(form: Any) -> None:
    """Against the gradient by differences."""
    rng = np.random.default_rng(7)
    a, p, noise = rng.normal(size=(3, 5)), rng.normal(size=(3, 5)), rng.normal(size=(2, 5))
    t, rate, step = 0.3, 0.05, 1e-6

    def height(h: np.ndarray) -> float:
        total = 0.0
        for i in range(len(a)):
            batch = [cos(a[i], x) / t for x in p] if form == "released" else []
            total += (
                math.log(sum(map(math.exp, [*batch, *(cos(a[i], x) / t for x in h)])))
                - cos(a[i], p[i]) / t
            )
        return total / len(a)

    slope = np.zeros_like(noise)
    for place in np.ndindex(noise.shape):
        up, down = noise.copy(), noise.copy()
        up[place] += step
        down[place] -= step
        slope[place] = (height(up) - height(down)) / (2 * step)
    expected = noise + rate * slope / np.linalg.norm(slope, axis=1, keepdims=True)
    given = [torch.from_numpy(x).requires_grad_() for x in (a, p)]
    found = ascend_noise(
        *given, torch.from_numpy(noise), steps=1, rate=rate, temperature=t, form=form
    )
    np.testing.assert_allclose(found.numpy(), expected, atol=1e-6)
    assert not found.requires_grad
    assert all(x.grad is None for x in given)
    more = ascend_noise(
        *given, torch.from_numpy(noise), steps=4, rate=rate, temperature=t, form=form
    )
    assert height(more.numpy()) > height(found.numpy()) > height(noise)


def set_up(corpus: Corpus, **values: Any) -> tuple[DCLR, Any, Any, Batch]:
    torch.manual_seed(0)
    method = DCLR(DCLR.configure({"train_length": 12, **values}))
    encoder = method.load_base().eval()
    return (
        method,
        encoder,
        method.heads(encoder).eval(),
        Batch(list(corpus[:5]), np.random.default_rng(0), 0),
    )


@pytest.mark.parametrize("form", FORMS)
def test_the_loss_of_a_batch(form: str, corpus: Corpus) -> None:
    """With the complement's cosines and the noise made anew from the same draw."""
    values = {"form": form, "noise_share": 1.5, "noise_rate": 0.5, "threshold": 0.93}
    method, encoder, heads, batch = set_up(corpus, **values)
    value = float(method.loss(encoder, heads, batch)["loss"].detach())
    z = heads.mlp(encoder(encoder.collate(encoder.tokenize(batch.texts, max_length=12)))).detach()
    v = method._complement[0].encode(batch.texts)
    kept = np.array([[cos(x, y) < 0.93 for y in v] for x in v])
    assert 0 < kept.sum() < kept.size - len(kept), "the threshold parts these sentences"
    noise = torch.from_numpy(np.random.default_rng(0).standard_normal((7, z.shape[1]))).float()
    noise = ascend_noise(z, z, noise, steps=4, rate=0.5, temperature=0.05, form=form)
    sides = (x.double().numpy() for x in (z, z, noise))
    assert value == pytest.approx(plain_loss(*sides, kept, 0.05, form), rel=1e-3)


def test_without_noise_and_with_nothing_left_out_the_released_form_has_simcses_chances(
    corpus: Corpus,
) -> None:
    method, encoder, heads, batch = set_up(corpus, form="released", noise_share=0, threshold=1.1)
    z = (
        heads.mlp(encoder(encoder.collate(encoder.tokenize(batch.texts, max_length=12))))
        .detach()
        .double()
    )
    z = z / z.norm(dim=1, keepdim=True)
    chance = (z @ z.T / 0.05).softmax(1)
    own = torch.eye(5, dtype=torch.bool)
    expected = -(chance[own].log().sum() + (1 - chance[~own]).log().sum()) / 25
    assert float(method.loss(encoder, heads, batch)["loss"].detach()) == pytest.approx(
        float(expected), rel=1e-4
    )


def test_a_row_knew_what_its_complement_knew() -> None:
    for known, row in (
        ("supervised", "supervised"),
        ("untrained", "unsupervised"),
        ("unsupervised", "unsupervised"),
    ):
        assert DCLR(DCLR.configure({"complement_supervision": known})).supervision == row
    assert set(DCLR(DCLR.configure({})).inputs) == {"complement"}


def test_the_complement_enters_no_checkpoint(corpus: Corpus, tmp_path: Path) -> None:
    method = DCLR(DCLR.configure({"batch_size": 8, "max_steps": 1, "train_length": 8}))
    method.fit(corpus, FitContext(folder=tmp_path, checkpoint_seconds=0.0))
    state = torch.load(tmp_path / "checkpoint" / "state.pt", weights_only=True)
    assert all(name.startswith("mlp.") for name in state["heads"])
    assert not any(name.startswith("method.") for name in state)


def test_training_resumes_bit_for_bit(corpus: Corpus, tmp_path: Path) -> None:
    values = {"batch_size": 4, "train_length": 8, "learning_rate": 1e-3, "epochs": 1}
    whole, resumed = weights_whole_and_resumed(DCLR, values, corpus, tmp_path)
    assert all(torch.equal(tensor, resumed[name]) for name, tensor in whole.items())


@pytest.mark.parametrize(
    "values",
    [
        {"form": "both"},
        {"noise_share": -1},
        {"complement_pooling": "middle"},
        {"similarity": "dot"},
    ],
)
def test_bad_settings_are_refused_in_one_line(values: dict[str, Any]) -> None:
    with raises_input_error(key=next(iter(values))):
        DCLR.configure(values)
