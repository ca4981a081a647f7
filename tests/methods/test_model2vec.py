"""Model2Vec: PCA and weights against scikit-learn and the formula, vectors by hand, and the saved
StaticEmbedding.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sentence_transformers import SentenceTransformer
from sklearn.decomposition import PCA

from harness.encoder import Encoder
from harness.method import FitContext
from harness.sources import load_corpus
from methods.model2vec import (
    Model2Vec,
    encode_tokens,
    ordinary_tokens,
    principal_components,
    sif_weights,
    zipf,
)
from tests.support.bases import narrow_bert
from tests.support.errors import raises_input_error

TEXTS = ["A man plays a guitar.", "Rain", "", "unknown \U0001f9ff word"]


def test_principal_components_are_scikit_learns() -> None:
    x = np.random.default_rng(0).normal(size=(40, 6)) * np.arange(1, 7)
    ours, theirs = principal_components(x, 3), PCA(3, svd_solver="full").fit_transform(x)
    np.testing.assert_allclose(np.abs(ours), np.abs(theirs), atol=1e-9)
    np.testing.assert_allclose(ours @ ours.T, theirs @ theirs.T, atol=1e-9)
    assert principal_components(x, 99).shape == (40, 6)


def test_weights_are_the_formula() -> None:
    p = zipf(3)
    np.testing.assert_allclose(p, np.array([1 / 2, 1 / 3, 1 / 4]) / (13 / 12))
    np.testing.assert_allclose(sif_weights(p, 1e-3), [1e-3 / (1e-3 + x) for x in p])


@pytest.fixture(scope="module")
def distilled() -> Model2Vec:
    config = Model2Vec.configure({"dimensions": 32}, preset="mean")
    return Model2Vec(config, base_model=narrow_bert()).fit(None, FitContext())


def test_a_sentence_is_the_mean_of_its_pieces(distilled: Model2Vec) -> None:
    encoder = Encoder.from_pretrained(narrow_bert(), pooling="mean").eval()
    ids = encoder.tokenizer("water music", add_special_tokens=False)["input_ids"]
    words = encoder.tokenizer.convert_ids_to_tokens(ids)
    assert words == ["water", "music"], (
        "each a piece, so that its row is the row's vector of the word as a sentence"
    )
    np.testing.assert_allclose(encode_tokens(encoder, ids), encoder.encode(words), atol=1e-5)
    ordinary = ordinary_tokens(encoder)
    vectors = principal_components(encode_tokens(encoder, ordinary), 32)
    vectors *= sif_weights(zipf(len(ordinary)), 1e-4)[:, None]
    expected = vectors[[ordinary.index(i) for i in ids]].mean(0)
    np.testing.assert_allclose(
        np.asarray(distilled.encode("water music")), expected, rtol=1e-3, atol=1e-5
    )


def test_special_and_unused_tokens_have_no_part() -> None:
    """As in the library. Of BERT's vocabulary 994 tokens are [unusedN]; they would move the rank of
    every other one.
    """
    encoder = Encoder.from_pretrained("embedded:mini-bert", pooling="mean")
    encoder.tokenizer.add_tokens(["[unused3]"])
    names = {index: name for name, index in encoder.tokenizer.get_vocab().items()}
    left_out = {names[index] for index in set(names) - set(ordinary_tokens(encoder))}
    assert left_out == {"[UNK]", "[CLS]", "[PAD]", "[SEP]", "[MASK]", "[unused3]"}


def test_saved_models_agree_with_sentence_transformers(
    distilled: Model2Vec, tmp_path: Path
) -> None:
    vectors = np.asarray(distilled.encode(TEXTS))
    assert np.isfinite(vectors).all()
    distilled.save(tmp_path / "saved")
    np.testing.assert_array_equal(
        np.asarray(Model2Vec.load(tmp_path / "saved").encode(TEXTS)), vectors
    )
    theirs = SentenceTransformer(str(tmp_path / "saved"), device="cpu")
    assert type(theirs[0]).__name__ == "StaticEmbedding"
    np.testing.assert_allclose(theirs.encode(TEXTS), vectors, atol=1e-6)


def test_frequencies_of_the_corpus_make_common_pieces_light() -> None:
    values = {"of": {"method": "pooling", "preset": "mean"}, "frequencies": "corpus", "sif": 1e-3}
    made = Model2Vec(Model2Vec.configure(values), base_model=narrow_bert())
    assert made.text == "sentences"
    made.fit(load_corpus("embedded:sentences", limit=200), FitContext())
    lengths = np.linalg.norm(np.asarray(made.encode(["the", "music", "mountain"])), axis=1)
    assert lengths[0] < 0.5 * min(lengths[1:])


def test_a_row_that_is_no_encoder_of_pieces_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    whitening = {"method": "whitening", "config": {"fit_on": "task"}}
    for of in ({"method": "random"}, whitening):
        made = Model2Vec(Model2Vec.configure({"of": of}))
        with raises_input_error():
            made.fit(load_corpus("embedded:sentences", limit=20), FitContext())


def test_what_a_row_knew_and_its_start_are_those_of_what_is_distilled() -> None:
    simcse = Model2Vec.configure({}, preset="mini")
    mean = Model2Vec.configure({}, preset="mean")
    assert (Model2Vec(simcse).supervision, Model2Vec(simcse).text) == ("unsupervised", "sentences")
    assert (Model2Vec(mean).supervision, Model2Vec(mean).text) == ("untrained", "none")
    assert Model2Vec(simcse).untrained_start == (
        "model2vec",
        {"of": {"method": "pooling", "config": {"pooling": "mean"}}},
    )
    assert Model2Vec(mean).untrained_start is None


@pytest.mark.parametrize("values", [{"of": {"method": "nothing"}}, {"dimensions": 0}, {"sif": 1.0}])
def test_bad_settings_are_refused_in_one_line(values: dict[str, Any]) -> None:
    with raises_input_error(key=next(iter(values))):
        Model2Vec.configure(values)
