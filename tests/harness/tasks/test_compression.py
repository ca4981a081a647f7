"""Compressed vectors: scores by the two libraries' own functions, and by the plain STS task."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from mteb.models.compression_wrappers import CompressionWrapper
from mteb.models.model_meta import ModelMeta
from mteb.types import OutputDType
from scipy.stats import spearmanr
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.evaluation import EmbeddingSimilarityEvaluator
from sklearn.decomposition import PCA
from torch import nn

from harness.evaluation.scoring import evaluate
from harness.sources.pair_sets import PairSet, load_sts
from harness.tasks.base import TaskResult
from harness.tasks.compression import DRAWS, CompressionTask, mteb_int8
from harness.tasks.sts import STSTask

D = 48


@pytest.fixture(scope="module")
def pairs() -> PairSet:
    return load_sts("Embedded-STS-contrast", source="embedded", split="test")


@pytest.fixture(scope="module")
def known(pairs: PairSet) -> dict[str, Any]:
    """A vector of each sentence: words' random vectors added up, so that similar sentences are
    near.
    """
    rng = np.random.default_rng(0)
    words: dict[str, Any] = {}
    texts = dict.fromkeys(
        text for s in pairs.subsets for side in (s.sentences1, s.sentences2) for text in side
    )
    for text in texts:
        for word in text.lower().split():
            words.setdefault(word, rng.normal(0.1, 1, D))
    return {
        text: sum(words[word] for word in text.lower().split()).astype(np.float32) for text in texts
    }


@pytest.fixture(scope="module")
def result(pairs: PairSet, known: dict[str, Any]) -> TaskResult:
    task = CompressionTask.of(pairs)
    return task.evaluate(lambda texts: np.stack([known[text] for text in texts]), pooling="mean")


def value(result: TaskResult, metric: str) -> float:
    (score,) = (score for score in result.scores if score.metric == metric)
    return score.value


def plain(pairs: PairSet, vectors: Any) -> float:
    """Spearman of a plain STS task."""
    return STSTask.of(pairs).evaluate(vectors, pooling="mean").scores[0].value


def sides(pairs: PairSet) -> tuple[list[str], list[str], list[float]]:
    left, right = (
        [t for s in pairs.subsets for t in (s.sentences1, s.sentences2)[side]] for side in (0, 1)
    )
    return left, right, [gold for s in pairs.subsets for gold in s.gold]


def test_cut_vectors_score_as_an_sts_task_of_them(
    pairs: PairSet, known: dict[str, Any], result: TaskResult
) -> None:
    rows = np.stack([*known.values()])
    parts = dict(
        zip(known, PCA(16, svd_solver="full").fit_transform(rows.astype(np.float64)), strict=True)
    )
    assert value(result, "spearman") == plain(
        pairs, lambda texts: np.stack([known[t] for t in texts])
    )
    first = plain(pairs, lambda texts: np.stack([known[t][:16] for t in texts]))
    assert value(result, "spearman_first_16") == first
    expected = plain(pairs, lambda texts: np.stack([parts[t] for t in texts]))
    assert value(result, "spearman_pca_16") == pytest.approx(expected, abs=1e-6)
    assert abs(value(result, "spearman_random_16") - first) < 0.1, (
        "the numbers are alike in all dimensions"
    )
    assert "spearman_first_64" not in {score.metric for score in result.scores}, (
        "there are 48 dimensions"
    )
    assert DRAWS == 10


def test_int8_and_bits_are_those_of_sentence_transformers(
    pairs: PairSet, known: dict[str, Any], result: TaskResult
) -> None:
    class Given(nn.Module):
        def preprocess(self, texts: Sequence[str], **_: Any) -> dict[str, Any]:
            return {"vectors": torch.from_numpy(np.stack([known[text] for text in texts]))}

        tokenize = preprocess

        def forward(self, features: dict[str, Any], **_: Any) -> dict[str, Any]:
            return {"sentence_embedding": features["vectors"]}

    model = SentenceTransformer(modules=[Given()], device="cpu")
    left, right, gold = sides(pairs)
    for precision, metric in (("int8", "spearman_st_int8"), ("binary", "spearman_binary")):
        theirs = EmbeddingSimilarityEvaluator(
            left, right, gold, precision=precision, main_similarity="cosine"
        )
        assert value(result, metric) == pytest.approx(theirs(model)["spearman_cosine"], abs=2e-4)


@pytest.mark.parametrize(
    ("level", "metric"), [("int8", "spearman_mteb_int8"), ("binary", "spearman_binary")]
)
def test_int8_and_bits_are_those_of_mteb(
    level: str, metric: str, pairs: PairSet, known: dict[str, Any], result: TaskResult
) -> None:
    meta = ModelMeta.create_empty({"name": "a/b", "revision": "1"})
    wrapper = CompressionWrapper(SimpleNamespace(mteb_model_meta=meta), OutputDType(level))  # type: ignore[arg-type]
    left, right, gold = sides(pairs)
    codes = [
        wrapper._quantize_embeddings(torch.from_numpy(np.stack([known[t] for t in s])))
        for s in (left, right)
    ]
    if level == "int8":
        np.testing.assert_array_equal(mteb_int8(np.stack([known[t] for t in left])), codes[0])
    similar = torch.cosine_similarity(codes[0].double(), codes[1].double()).float()
    assert value(result, metric) == pytest.approx(
        float(spearmanr(similar, gold).statistic), abs=2e-4
    )


def test_hamming_is_the_cosine_of_bits_as_minus_one_and_one(
    pairs: PairSet, known: dict[str, Any], result: TaskResult
) -> None:
    left, right, gold = sides(pairs)
    signs = [np.stack([np.where(known[t] > 0, 1, -1) for t in side]) for side in (left, right)]
    expected = float(spearmanr((signs[0] * signs[1]).sum(axis=1), gold).statistic)
    assert value(result, "spearman_hamming") == pytest.approx(expected, abs=1e-6)
    sizes = result.figures["compression:Embedded-STS-contrast"]["compression"]
    assert [
        sizes[f"spearman{form}"][0] for form in ("", "_first_16", "_mteb_int8", "_hamming")
    ] == [192, 64, 48, 6]


def test_nothing_is_encoded_for_it_and_a_constant_dimension_is_no_damage(pairs: PairSet) -> None:
    counted: list[int] = []

    def encode(texts: list[str]) -> Any:
        counted.append(len(texts))
        return np.array([[1.0, len(text), text.count("e")] for text in texts], dtype=np.float32)

    found = evaluate(encode, [STSTask.of(pairs), CompressionTask.of(pairs)], pooling="mean")
    assert len(counted) == 1
    assert all(np.isfinite(score.value) for score in found.scores)
