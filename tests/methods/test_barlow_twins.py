"""Barlow Twins: its objective on degenerate batches, and each of its views from the corpus to the
record.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from harness.encoder import Encoder
from harness.method import FitContext
from harness.sources import load_corpus
from harness.training import Batch
from methods.barlow_twins import BarlowTwins
from methods.vicreg import VICReg
from tests.support import tiny_wordnet
from tests.support.errors import raises_input_error

SMALL = {
    "batch_size": 8,
    "train_length": 12,
    "projector": (32, 32, 32),
    "learning_rate": 1e-4,
    "epochs": 1,
}


def make(**values: Any) -> BarlowTwins:
    return BarlowTwins(BarlowTwins.configure(values))


# ---------------------------------------------------------------- objective


def correlation(u: np.ndarray, v: np.ndarray, ddof: int) -> float:
    n, mu, mv = len(u), sum(u) / len(u), sum(v) / len(v)
    su = math.sqrt(sum((x - mu) ** 2 for x in u) / (n - ddof) + 1e-5)
    sv = math.sqrt(sum((x - mv) ** 2 for x in v) / (n - ddof) + 1e-5)
    return sum((x - mu) * (y - mv) for x, y in zip(u, v, strict=True)) / (n * su * sv)


def formula(a: np.ndarray, b: np.ndarray, weight: float, ddof: int) -> float:
    """Farina & Pappadopulo, Eq. 2."""
    d = a.shape[1]
    r = [[correlation(a[:, j], b[:, k], ddof) for k in range(d)] for j in range(d)]
    on = sum((1 - r[j][j]) ** 2 for j in range(d))
    return on + weight * sum(r[j][k] ** 2 for j in range(d) for k in range(d) if j != k)


def cases() -> dict[str, tuple[np.ndarray, np.ndarray]]:
    rng = np.random.default_rng(1)
    a = rng.normal(size=(7, 4))
    b = a + 0.5 * rng.normal(size=(7, 4))
    flat_a, flat_b = a.copy(), b.copy()
    flat_a[:, 2] = flat_b[:, 2] = -3.0
    wide = rng.normal(size=(2, 3, 8))
    return {
        "random": (a, b),
        "two rows": (a[:2], b[:2]),
        "more features than rows": (wide[0], wide[1]),
        "identical rows": (np.tile(a[:1], (5, 1)), np.tile(b[:1], (5, 1))),
        "a feature without variance": (flat_a, flat_b),
        "equal views": (a, a),
    }


CASES = cases()


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("unbiased", [False, True])
def test_objective_and_gradient_equal_the_formula(name: str, unbiased: bool) -> None:
    a, b = CASES[name]
    method = make(off_diagonal_weight=0.3, unbiased=unbiased)
    z = torch.from_numpy(a).clone().requires_grad_()
    value = method.terms(z, torch.from_numpy(b))["loss"]
    value.backward()
    assert float(value.detach()) == pytest.approx(formula(a, b, 0.3, int(unbiased)), rel=1e-9)
    assert z.grad is not None
    step = 1e-6
    for i in range(2):
        for j in range(a.shape[1]):
            up, down = a.copy(), a.copy()
            up[i, j] += step
            down[i, j] -= step
            slope = (formula(up, b, 0.3, int(unbiased)) - formula(down, b, 0.3, int(unbiased))) / (
                2 * step
            )
            assert float(z.grad[i, j]) == pytest.approx(slope, rel=1e-4, abs=1e-5)


def test_constant_projections_cost_one_a_feature() -> None:
    # no correlation at all: (1 - 0)^2 for each of 4 features
    a, b = (torch.from_numpy(x) for x in CASES["identical rows"])
    assert float(make().terms(a, b)["loss"]) == pytest.approx(4.0)


# ---------------------------------------------------------------- views


@pytest.mark.parametrize(
    ("values", "text", "supervision"),
    [
        ({}, "sentences", "unsupervised"),
        ({"view": "shuffle+dropout"}, "sentences", "unsupervised"),
        ({"view": "paraphrase"}, "pairs", "supervised"),
        ({"view": "paraphrase+shuffle"}, "pairs", "supervised"),
        ({"view": "paraphrase", "pairs_are_labelled": False}, "pairs", "unsupervised"),
        ({"pairs_are_labelled": True}, "sentences", "unsupervised"),
    ],
)
def test_text_and_supervision_follow_the_view(
    values: dict[str, Any], text: str, supervision: str
) -> None:
    for method in (BarlowTwins, VICReg):
        config = method.configure(values)
        assert method(config).text == text
        assert method(config).supervision == supervision


@pytest.fixture(scope="module")
def encoder() -> Encoder:
    return Encoder.from_pretrained("embedded:mini-bert", pooling="cls")


@pytest.mark.parametrize(
    "view", ["deletion", "repetition", ["crop", "shuffle"], "deletion+dropout"]
)
def test_a_step_depends_on_its_generators_alone(encoder: Encoder, view: Any) -> None:
    method = make(**SMALL, view=view, crop=0.3, deletion=0.3)
    torch.manual_seed(0)
    heads = method.heads(encoder).train()
    encoder.train()
    items = list(load_corpus("embedded:sentences", limit=8))

    def loss(seed: int) -> float:
        torch.manual_seed(1)
        return float(
            method.loss(encoder, heads, Batch(items, np.random.default_rng(seed), 0))[
                "loss"
            ].detach()
        )

    assert math.isfinite(loss(2))
    assert loss(2) == loss(2)
    assert loss(2) != loss(3)


def test_pairs_train_and_sentences_are_refused() -> None:
    method = make(**SMALL, view="paraphrase").fit(
        load_corpus("embedded:pairs", kind="pairs", limit=18), FitContext(precision="fp32")
    )
    assert method.fit_report.training["steps"] == 3  # 8 + 8 + 2
    assert np.isfinite(np.asarray(method.encode(["rain"]))).all()
    with raises_input_error(file='method "barlow_twins"'):
        make(**SMALL, view="paraphrase").fit(load_corpus("embedded:sentences", limit=8))


def test_eda_names_its_wordnet_and_fails_early_without_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    nltk_data = pytest.importorskip("nltk.data", reason="nltk is not installed")
    monkeypatch.setattr(nltk_data, "path", [str(tiny_wordnet.write(tmp_path))])
    method = make(**SMALL, view="eda", eda=0.3)
    assert len(BarlowTwins(method.config).inputs["wordnet"]) == 64
    method.fit(
        load_corpus("embedded:sentences", limit=8), FitContext(precision="fp32", max_steps=1)
    )
    assert np.isfinite(np.asarray(method.encode(["rain"]))).all()
    monkeypatch.setattr(nltk_data, "path", [])
    with raises_input_error():
        _ = BarlowTwins(method.config).inputs
    assert BarlowTwins(make().config).inputs == {}, "other views need none"


# ---------------------------------------------------------------- the study
