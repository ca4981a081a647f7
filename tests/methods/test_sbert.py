"""SBERT: the softmax over joined vectors against a transcription in numpy, labels, and what stands
on its encoder.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from harness.method import FitContext
from harness.sources import load_corpus
from harness.training import Batch
from methods.flow import Flow
from methods.parts.nli import LABELS, TWO_CLASSES, LabelledPairs, join_vectors, label_loss
from methods.sbert import SBERT
from methods.whitening import Whitening
from tests.support.errors import raises_input_error
from tests.support.labelled_pairs import ROWS, make_labelled_pairs

SMALL = {"batch_size": 6, "train_length": 16, "bucket": 1}
TEXTS = ["A dog runs across the field.", "Two children play chess.", "rain"]


def sbert(**values: Any) -> SBERT:
    return SBERT(SBERT.configure({**SMALL, **values}))


def softmax_loss(
    u: np.ndarray, v: np.ndarray, w: np.ndarray, b: np.ndarray, classes: list[int]
) -> float:
    """Pair by pair: o = softmax(W (u, v, |u - v|)), the mean of -log o of the label (section 3 of
    the paper).
    """
    losses = []
    for a, c, label in zip(u, v, classes, strict=True):
        scores = w @ np.concatenate([a, c, np.abs(a - c)]) + b
        losses.append(-(scores[label] - np.log(np.exp(scores).sum())))
    return float(np.mean(losses))


def test_the_loss_of_a_batch_equals_the_transcription(tmp_path: Path) -> None:
    method = sbert()
    pairs = list(LabelledPairs(make_labelled_pairs(tmp_path)))
    encoder = method.load_base().eval()
    heads = method.heads(encoder)
    terms = method.loss(encoder, heads, Batch(pairs, np.random.default_rng(0), 0))
    u, v = (
        encoder.encode([getattr(p, side) for p in pairs]).astype(float)
        for side in ("anchor", "positive")
    )
    weights = (p.detach().double().numpy() for p in heads.classifier.parameters())
    classes = [LABELS.index(label) for _, _, label in ROWS]
    assert terms["loss"].item() == pytest.approx(softmax_loss(u, v, *weights, classes), rel=1e-5)


def test_parts_are_joined_in_the_order_that_is_asked_for() -> None:
    u, v = torch.tensor([[1.0, -2.0]]), torch.tensor([[3.0, 4.0]])
    assert join_vectors(u, v, ("u", "v", "|u-v|", "u*v")).tolist() == [[1, -2, 3, 4, 2, 6, 3, -8]]
    assert sbert(joined="|u-v|, u*v").config.joined == "|u-v|,u*v"
    with raises_input_error(file='method "sbert"', key="joined"):
        sbert(joined="u,w")


def test_by_hand_and_in_half_precision() -> None:
    logits = torch.tensor([[np.log(3.0), 0.0]])
    assert label_loss(logits, torch.tensor([0])).item() == pytest.approx(-np.log(0.75))
    assert label_loss(logits.bfloat16(), torch.tensor([1])).dtype == torch.float32


def test_triplets_give_two_classes_and_the_run_says_so(tmp_path: Path) -> None:
    triplets = load_corpus("embedded:pairs", kind="pairs", limit=9)
    examples = LabelledPairs(triplets)
    assert (len(examples), examples.classes) == (18, 2)
    assert [examples[0].label, examples[1].label] == ["entailment", "contradiction"]
    assert (examples[3].anchor, examples[3].positive) == (triplets[1].anchor, triplets[1].negative)
    context = FitContext(precision="fp32", max_steps=1)
    assert sbert().fit(triplets, context).fit_report.training["notes"] == [TWO_CLASSES]
    assert "notes" not in sbert().fit(make_labelled_pairs(tmp_path), context).fit_report.training


def test_the_third_class_has_no_part_in_the_loss_of_triplets() -> None:
    method = sbert()
    pairs = list(method.examples(load_corpus("embedded:pairs", kind="pairs", limit=4)))
    logits = torch.tensor([[0.0, 0.0, 50.0]] * len(pairs))
    terms = method.loss_and_accuracy(logits, pairs)
    assert terms["loss"].item() == pytest.approx(np.log(2))
    assert terms["accuracy"].item() == 0.5


@pytest.mark.parametrize(
    "rows",
    [
        [*ROWS, ("a", "b", "entails")],
        [*ROWS, ("a", "b", "")],
        [("a", "b", ""), ("c", "d", "")],
    ],
)
def test_pairs_that_cannot_be_learnt_from_are_refused(
    rows: list[tuple[str, str, str]], tmp_path: Path
) -> None:
    with raises_input_error(file=tmp_path / "labelled.jsonl"):
        sbert().check(make_labelled_pairs(tmp_path, rows))


def test_flow_and_whitening_stand_on_a_saved_sbert(tmp_path: Path) -> None:
    base = tmp_path / "sbert"
    trained = sbert().fit(make_labelled_pairs(tmp_path), FitContext(precision="fp32", max_steps=2))
    trained.save(base)
    corpus = load_corpus("embedded:sentences", limit=24)
    whitened = Whitening(
        Whitening.configure({"pooling": "mean", "k": 8}), base_model=str(base)
    ).fit(corpus)
    rows = np.asarray(trained.encode(list(corpus)), dtype=np.float64)
    seen = (
        np.asarray(whitened.encode(TEXTS), dtype=np.float64) @ np.asarray(whitened.encode(TEXTS)).T
    )
    x = np.asarray(trained.encode(TEXTS), dtype=np.float64) - rows.mean(0)
    values, vectors = np.linalg.eigh(np.cov(rows, rowvar=False))
    by_hand = x @ (vectors[:, -8:] / np.sqrt(values[-8:]))
    assert seen == pytest.approx(by_hand @ by_hand.T, abs=2e-3 * np.abs(seen).max())
    flow = Flow(Flow.configure({"pooling": "mean", "batch_size": 8}), base_model=str(base))
    flow.fit(corpus, FitContext(precision="fp32", max_steps=1))
    assert np.isfinite(np.asarray(flow.encode(TEXTS))).all()
