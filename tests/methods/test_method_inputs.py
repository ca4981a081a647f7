"""What methods feed their objective, and the maps of whitening and random vectors. The promises of
the interface are tested by test_conformance.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from harness import registry
from harness.encoder.pooling import Pooling
from harness.method import FitContext, Method
from harness.sources import Corpus, load_corpus
from harness.training import Batch
from methods.barlow_twins import BarlowTwins
from methods.pooling import PoolingMethod
from methods.random_vectors import RandomVectors
from methods.scd import SCD
from methods.simcse import SimCSE
from methods.whitening import Moments, Whitening, whitening_matrix
from tests.support.errors import raises_input_error

SMALL = {"batch_size": 12, "train_length": 16, "learning_rate": 1e-4}
PROJECTOR = {"projector": (32, 32, 32)}
CONFIGS: dict[str, tuple[type[Method], dict[str, Any]]] = {
    "simcse": (SimCSE, SMALL),
    "scd": (SCD, {**SMALL, **PROJECTOR}),
    "scd L_S": (SCD, {**SMALL, "terms": "self_contrast"}),
    "barlow_twins": (BarlowTwins, {**SMALL, **PROJECTOR, "epochs": 1}),
    "barlow_twins shuffle": (
        BarlowTwins,
        {**SMALL, **PROJECTOR, "epochs": 1, "view": "shuffle", "shuffle": 0.5},
    ),
}


def make(name: str, **more: Any) -> Any:
    method, values = CONFIGS[name]
    return method(method.configure({**values, **more}))


@pytest.fixture(scope="module")
def corpus() -> Corpus:
    return load_corpus("embedded:sentences", limit=24)


def test_every_plugin_is_reached_by_its_own_name() -> None:
    for name in ("pooling", "random", "whitening", "simcse", "scd", "barlow_twins"):
        assert registry.load(registry.METHODS, name).name == name


# ---------------------------------------------------------------- what reaches the encoder


class Spy:
    """An encoder that records what it is asked for and answers with leaf tensors."""

    dimension = 8
    pooling = Pooling("cls")

    def __init__(self) -> None:
        from harness.encoder import Encoder

        self.tokenizer = Encoder.from_pretrained("embedded:mini-bert").tokenizer
        self.train_length: int | None = None
        self.calls: list[tuple[Any, Any, dict[str, Any]]] = []

    def tokenize(self, texts: Sequence[str], max_length: int | None = None) -> list[list[int]]:
        return self.tokenizer(list(texts), truncation=True, max_length=max_length)["input_ids"]

    def two_views(
        self, a: Any, b: Any = None, *, differ_by: str = "", **rates: Any
    ) -> tuple[torch.Tensor, torch.Tensor]:
        ids_a, ids_b = (
            self.tokenize(rows, self.train_length) if isinstance(rows[0], str) else rows
            for rows in (a, a if b is None else b)
        )
        self.calls.append((ids_a, ids_b, rates))
        generator = torch.Generator().manual_seed(5)
        shape = len(ids_a), self.dimension
        return tuple(torch.randn(shape, generator=generator, requires_grad=True) for _ in range(2))  # type: ignore[return-value]


def asked(name: str, corpus: Corpus, **more: Any) -> tuple[Any, Any, dict[str, Any]]:
    spy, method = Spy(), make(name, **more)
    spy.train_length = method.config.train_length
    torch.manual_seed(0)
    method.loss(spy, method.heads(spy), Batch(list(corpus[:12]), np.random.default_rng(2), 0))
    (call,) = spy.calls
    return call


def test_a_folder_of_another_method_is_refused(tmp_path: Path) -> None:
    RandomVectors().fit().save(tmp_path / "model")
    with raises_input_error(file=tmp_path / "model"):
        PoolingMethod.load(tmp_path / "model")


@pytest.mark.parametrize("name", ["scd", "barlow_twins", "barlow_twins shuffle"])
def test_logged_terms_add_up_to_the_loss(name: str, corpus: Corpus) -> None:
    spy, method = Spy(), make(name)
    torch.manual_seed(0)
    terms = method.loss(
        spy, method.heads(spy), Batch(list(corpus[:12]), np.random.default_rng(2), 0)
    )
    values = {key: float(value.detach()) for key, value in terms.items()}
    loss = values.pop("loss")
    assert values
    assert sum(values.values()) == pytest.approx(loss, rel=1e-5)


def test_dropout_rates_of_the_views(corpus: Corpus) -> None:
    assert asked("simcse", corpus)[2] == {"hidden_dropout": None, "attention_dropout": None}
    assert asked("simcse", corpus, dropout=0.2)[2] == {
        "hidden_dropout": (0.2, 0.2),
        "attention_dropout": (0.2, 0.2),
    }
    # SCD: the views' two rates reach the attention probabilities as well, unless they are left to
    # the checkpoint
    both = {"hidden_dropout": (0.05, 0.155), "attention_dropout": (0.05, 0.155)}
    assert asked("scd", corpus)[2] == both
    assert asked("scd", corpus, attention_dropout="checkpoint")[2] == {
        **both,
        "attention_dropout": None,
    }
    same = {"hidden_dropout": (0.1, 0.1), "attention_dropout": (0.1, 0.1)}
    assert asked("barlow_twins", corpus)[2] == same
    assert asked("barlow_twins", corpus, attention_dropout="checkpoint")[2] == {
        **same,
        "attention_dropout": None,
    }
    # augmentations are not combined: shuffled views drop nothing by default
    none = {"hidden_dropout": (0.0, 0.0), "attention_dropout": (0.0, 0.0)}
    assert asked("barlow_twins shuffle", corpus)[2] == none
    native = asked("barlow_twins shuffle", corpus, native_dropout=True)[2]
    assert native == {"hidden_dropout": None, "attention_dropout": None}


def test_sentences_are_cut_to_the_training_length(corpus: Corpus) -> None:
    for name in ("simcse", "scd", "barlow_twins"):
        ids_a, ids_b, _ = asked(name, corpus, train_length=6)
        assert ids_a == ids_b
        assert max(map(len, ids_a)) == 6


def test_both_shuffled_views_keep_their_tokens_and_their_frame(corpus: Corpus) -> None:
    plain, _, _ = asked("barlow_twins", corpus)
    ids_a, ids_b, _ = asked("barlow_twins shuffle", corpus)
    for view in (ids_a, ids_b):
        assert view != plain
        for row, original in zip(view, plain, strict=True):
            assert sorted(row) == sorted(original)
            assert (row[0], row[-1]) == (original[0], original[-1])  # [CLS], [SEP]
    assert ids_a != ids_b, "each branch draws its own permutation"


def test_scd_terms_carry_their_weights(corpus: Corpus) -> None:
    def terms(**more: Any) -> dict[str, float]:
        spy, method = Spy(), make("scd", **more)
        torch.manual_seed(0)
        losses = method.loss(
            spy, method.heads(spy), Batch(list(corpus[:12]), np.random.default_rng(2), 0)
        )
        return {key: float(value.detach()) for key, value in losses.items()}

    one = terms(temperature=1.0, decorrelation_weight=0.01)
    scaled = terms(temperature=0.05, decorrelation_weight=0.03)
    assert scaled["self_contrast"] == pytest.approx(20 * one["self_contrast"])
    assert scaled["decorrelation"] == pytest.approx(3 * one["decorrelation"], rel=1e-5)
    assert terms(reduction="sum", temperature=1.0)["self_contrast"] == pytest.approx(
        12 * one["self_contrast"]
    )
    assert set(terms(terms="self_contrast")) == {"loss", "self_contrast"}
    assert set(terms(terms="decorrelation")) == {"loss", "decorrelation"}


def test_terms_of_an_ablation_without_projector_have_no_head_parameters() -> None:
    spy: Any = Spy()
    assert not list(make("scd L_S").heads(spy).parameters())
    assert not list(make("simcse", head="none").heads(spy).parameters())


# ---------------------------------------------------------------- whitening


def test_moments_equal_numpy_in_chunks_and_far_from_the_origin() -> None:
    rows = np.random.default_rng(0).normal(0, [1e-3, 1.0, 30.0], (500, 3)) + np.array(
        [1e4, -1e4, 0.0]
    )
    moments = Moments()
    for chunk in (rows[:7], rows[7:8], rows[8:]):
        moments.add(chunk)
    assert moments.mean() == pytest.approx(rows.mean(0), rel=1e-12)
    assert moments.covariance() == pytest.approx(np.cov(rows, rowvar=False), rel=1e-6, abs=1e-9)


def test_whitening_matrix_by_hand() -> None:
    # covariance diag(4, 1/4): stretch by 1/2 and 2, larger variance first; signs are free
    w = whitening_matrix(np.diag([0.25, 4.0]), k=None)
    assert np.abs(w) == pytest.approx(np.array([[0.0, 2.0], [0.5, 0.0]]))
    assert np.abs(whitening_matrix(np.diag([0.25, 4.0]), k=1)) == pytest.approx(
        np.array([[0.0], [0.5]])
    )
    # shrinkage: 1 / sqrt(4 + 5) = 1/3
    assert np.abs(whitening_matrix(np.diag([0.25, 4.0]), k=1, epsilon=5.0)) == pytest.approx(
        np.array([[0.0], [1 / 3]])
    )


def test_whitening_leaves_out_directions_without_variance() -> None:
    # variances 4, 1 and none: rank 2
    covariance = np.diag([4.0, 0.0, 1.0])
    assert whitening_matrix(covariance, k=None).shape == (3, 2)
    assert whitening_matrix(covariance, k=None, epsilon=0.5).shape == (3, 3)
    with raises_input_error(key="k"):
        whitening_matrix(covariance, k=3)
    with raises_input_error(key="k"):
        whitening_matrix(covariance, k=4)
    with raises_input_error():
        whitening_matrix(np.zeros((3, 3)), k=None)


def test_whitened_corpus_has_mean_0_and_identity_covariance() -> None:
    corpus = load_corpus("embedded:sentences", limit=320)
    method = Whitening(Whitening.configure({"pooling": "first_last_avg"})).fit(corpus)
    y = np.asarray(method.encode(list(corpus)), dtype=np.float64)
    assert np.abs(y.mean(0)).max() < 1e-3
    assert np.abs(np.cov(y, rowvar=False) - np.eye(y.shape[1])).max() < 5e-3
    # distances are Mahalanobis distances of the vectors before the map, whatever the signs of the
    # directions
    base = PoolingMethod(PoolingMethod.configure({"pooling": "first_last_avg"})).fit()
    x = np.asarray(base.encode(list(corpus)), dtype=np.float64)
    inverse = np.linalg.inv(np.cov(x, rowvar=False))
    for i, j in ((0, 1), (5, 300), (17, 319)):
        expected = (x[i] - x[j]) @ inverse @ (x[i] - x[j])
        assert float(((y[i] - y[j]) ** 2).sum()) == pytest.approx(expected, rel=1e-2)


def test_whitening_one_sentence_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "one.txt"
    file.write_text("Only one sentence.\n")
    with raises_input_error(file=file):
        Whitening().fit(load_corpus(str(file)))


# ---------------------------------------------------------------- random vectors


def test_random_vectors_depend_on_the_sentence_and_the_seed_only() -> None:
    method = RandomVectors().fit(context=FitContext(seed=1))
    texts = [f"sentence {i}" for i in range(400)]
    vectors = np.asarray(method.encode(texts))
    assert np.array_equal(np.asarray(method.encode(texts[::-1]))[::-1], vectors)
    assert np.array_equal(method.encode(texts[7]), vectors[7])
    assert np.linalg.norm(
        np.asarray(method.encode(texts, normalize_embeddings=True)), axis=1
    ) == pytest.approx(1)
    assert torch.is_tensor(method.encode(texts[:2], convert_to_tensor=True))
    assert np.asarray(method.encode([])).shape == (0, 256)
    # cosines of independent vectors: mean 0, sd 1/sqrt(256) = 0.0625
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    cosines = (unit @ unit.T)[np.triu_indices(400, 1)]
    assert abs(cosines.mean()) < 0.002
    assert cosines.std() == pytest.approx(1 / 16, rel=0.02)
    assert np.isfinite(np.asarray(method.encode(["", "\ud800", "🙂" * 1000]))).all()
