"""Supervised SimCSE: which columns the loss has, whose weight is where, and what it says to gaps in
the negatives.
"""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from harness.errors import InputError
from harness.method import FitContext
from harness.recipes import iterate_presets
from harness.sources import Corpus, Pair, load_corpus
from harness.training import Batch
from methods.supervised_simcse import SupervisedSimCSE
from tests.support.bases import narrow_bert
from tests.support.errors import raises_input_error

pytestmark = pytest.mark.timeout(300)
SMALL = {"batch_size": 6, "train_length": 12, "learning_rate": 1e-4, "epochs": 1}


@pytest.fixture(scope="module")
def pairs() -> Corpus[Pair]:
    return load_corpus("embedded:pairs", kind="pairs", limit=12)


def make(**values: Any) -> SupervisedSimCSE:
    config = SupervisedSimCSE.configure({**SMALL, **values})
    return SupervisedSimCSE(config, base_model=narrow_bert())


def numpy_loss(method: Any, encoder: Any, pairs: list[Pair], *, columns: int) -> float:
    """Eq. 5 in float64, from vectors that the encoder gives in evaluation mode."""
    texts = [
        [p.anchor for p in pairs],
        [p.positive for p in pairs],
        [p.negative or "" for p in pairs],
    ][:columns]
    a, *others = [
        x / np.linalg.norm(x, axis=1, keepdims=True)
        for x in (
            encoder(encoder.collate(encoder.tokenize(t, max_length=12))).detach().double().numpy()
            for t in texts
        )
    ]
    t, w, n, total = method.config.temperature, method.config.hard_negative_weight, len(pairs), 0.0
    for i in range(n):
        denominator = 0.0
        for c, column in enumerate(others):
            for j in range(n):
                alpha = math.exp(w) if c == 1 and i == j else 1.0
                denominator += alpha * math.exp(float(a[i] @ column[j]) / t)
        total -= math.log(math.exp(float(a[i] @ others[0][i]) / t) / denominator)
    return total / n


@pytest.mark.parametrize("head", ["mlp", "none"])
def test_loss_has_2n_columns_with_negatives_and_n_without(pairs: Corpus[Pair], head: str) -> None:
    triplets = list(pairs[:5])
    plain = [Pair(p.anchor, p.positive) for p in triplets]
    for values, items, columns in (
        ({"hard_negative_weight": math.log(2.0)}, triplets, 3),
        ({"hard_negatives": "ignore"}, triplets, 2),
        ({}, plain, 2),
    ):
        method = make(head=head, temperature=0.5, **values)
        torch.manual_seed(0)
        encoder = method.load_base()
        heads = method.heads(encoder)
        encoder.eval()
        terms = method.loss(encoder, heads, Batch(items, np.random.default_rng(0), 0))
        expected = numpy_loss(method, encoder, items, columns=columns)
        assert float(terms["loss"].detach()) == pytest.approx(expected, rel=1e-4), values


def test_tanh_layer_is_kept_and_sentence_transformers_gives_the_same_vectors(
    pairs: Corpus[Pair], tmp_path: Path
) -> None:
    from sentence_transformers import SentenceTransformer

    texts = ["A man is fishing.", "Rain."]
    method = make(max_steps=1).fit(pairs, FitContext(precision="fp32"))
    vectors = np.asarray(method.encode(texts))
    assert [type(module).__name__ for module in method.encoder.head] == ["Linear", "Tanh"]
    method.save(tmp_path / "model")
    assert np.allclose(
        SentenceTransformer(str(tmp_path / "model"), device="cpu").encode(texts), vectors, atol=1e-5
    )
    assert np.allclose(SupervisedSimCSE.load(tmp_path / "model").encode(texts), vectors, atol=1e-5)


def test_a_gap_in_the_negatives_is_told_before_training_and_names_the_remedy(
    tmp_path: Path,
) -> None:
    rows = [
        {"anchor": f"a {i}", "positive": f"p {i}", "negative": f"n {i}" if i != 2 else ""}
        for i in range(4)
    ]
    file = tmp_path / "gap.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    gap = load_corpus(str(file), kind="pairs")
    for rule in ("auto", "required"):
        with pytest.raises(InputError) as error:
            make(hard_negatives=rule).fit(gap, FitContext(precision="fp32"))
        assert str(error.value) == (
            f'{file}: pair 3 has no negative, which others have; give every pair one, or set hard_negatives = "ignore"'
        )
    assert make(hard_negatives="ignore").stream(gap, 0).steps_per_epoch == 1


def test_required_negatives_that_are_missing(tmp_path: Path) -> None:
    file = tmp_path / "plain.jsonl"
    file.write_text(
        "".join(json.dumps({"anchor": f"a {i}", "positive": f"p {i}"}) + "\n" for i in range(4))
    )
    plain = load_corpus(str(file), kind="pairs")
    with raises_input_error(file=file):
        make(hard_negatives="required").fit(plain, FitContext(precision="fp32"))
    assert make().stream(plain, 0).steps_per_epoch == 1
    with raises_input_error(file='method "simcse_supervised"'):
        make().fit(load_corpus("embedded:sentences", limit=4))


def test_weight_of_minus_twenty_all_but_removes_the_own_negative(pairs: Corpus[Pair]) -> None:
    """alpha -> 0: what is left are the other anchors' negatives."""
    method = make(head="none", hard_negative_weight=-20.0, temperature=0.5)
    encoder = method.load_base().eval()
    heads = method.heads(encoder)
    (pair,) = pairs[:1]
    one = Batch([pair], np.random.default_rng(0), 0)  # N = 1: nothing but the own negative
    assert float(method.loss(encoder, heads, one)["loss"].detach()) == pytest.approx(0.0, abs=1e-6)


def test_presets_are_settings_and_the_card_says_what_it_learns_from() -> None:
    for preset, family in iterate_presets(SupervisedSimCSE.presets):
        config = SupervisedSimCSE.configure({}, preset=preset, family=family)
        assert (config.train_length, config.head) == (32, "mlp")
        assert (
            family == "mini" or config.temperature == 0.05
        )  # that of the family mini was searched
    assert SupervisedSimCSE.configure({}, preset="code", family="bert-base").batch_size == 512
    assert SupervisedSimCSE.configure({}, preset="code-large").learning_rate == 1e-5
    assert (SupervisedSimCSE.card.text, SupervisedSimCSE.card.supervision) == (
        "pairs",
        "supervised",
    )
