"""InferSent: one pass of the LSTM against a transcription in numpy, its learning rate, and what is
saved.
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
from methods.infersent import InferSent
from methods.parts.nli import TWO_CLASSES
from methods.parts.word_vectors import LOST_CAPITALS
from tests.support.errors import raises_input_error
from tests.support.labelled_pairs import make_labelled_pairs

WORDS = (
    "a dog runs an animal moves the sleeps is old two men eat people nobody eats they are friends ."
)
SMALL = {
    "hidden": 3,
    "classifier": 4,
    "batch_size": 4,
    "held_out": 0.25,
    "epochs": 8,
    "learning_rate": 0.5,
}


@pytest.fixture
def file(tmp_path: Path) -> Path:
    draw = np.random.default_rng(0)
    lines = [
        f"{word} " + " ".join(f"{x:.4f}" for x in draw.normal(size=5))
        for word in ["<s>", *WORDS.split()]
    ]
    path = tmp_path / "vectors.txt"
    path.write_text("\n".join(lines) + "\n")
    return path


def infersent(file: Path, **values: Any) -> InferSent:
    return InferSent(InferSent.configure({**SMALL, "vectors": str(file), **values}))


def sigmoid(x: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-x))


def states(x: np.ndarray, layer: dict[str, np.ndarray], ending: str) -> np.ndarray:
    """An LSTM word by word: i, f, g, o of W x + U h + b; c = f c + i g; h = o tanh c."""
    w, u = layer[f"weight_ih_l0{ending}"], layer[f"weight_hh_l0{ending}"]
    bias = layer[f"bias_ih_l0{ending}"] + layer[f"bias_hh_l0{ending}"]
    h = c = np.zeros(u.shape[1])
    out = []
    for word in x:
        i, f, g, o = np.split(w @ word + u @ h + bias, 4)
        c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
        h = sigmoid(o) * np.tanh(c)
        out.append(h)
    return np.array(out)


def transcribed(sentence: str, file: Path, method: InferSent, pooling: str = "max") -> np.ndarray:
    """The words that have a vector between <s>, which has one, and </s>, which has none; both
    directions, pooled.
    """
    rows = [line.split() for line in file.read_text().splitlines()]
    table = {word: np.array(numbers, dtype=float) for word, *numbers in rows}
    x = np.array([table["<s>"], *(table[w] for w in sentence.split() if w in table), np.zeros(5)])
    weights = {
        name: tensor.double().numpy() for name, tensor in method.encoder.layer.state_dict().items()
    }
    both = np.hstack([states(x, weights, ""), states(x[::-1], weights, "_reverse")[::-1]])
    return both.max(0) if pooling == "max" else both.mean(0)


@pytest.mark.parametrize("pooling", ["max", "mean"])
def test_vectors_equal_the_transcription(pooling: str, file: Path, tmp_path: Path) -> None:
    method = infersent(file, pooling=pooling).fit(
        make_labelled_pairs(tmp_path, times=4), FitContext(max_steps=3)
    )
    for sentence in ("a dog runs", "two unheard men eat people .", "", "unheard"):
        expected = transcribed(sentence, file, method, pooling)
        assert np.asarray(method.encode(sentence)) == pytest.approx(expected, abs=1e-6)
    together = np.asarray(
        method.encode(["a dog runs", "two men eat people and nobody is old", "unheard"])
    )
    assert together[0] == pytest.approx(transcribed("a dog runs", file, method, pooling), abs=1e-6)
    assert np.asarray(method.encode("the dog.")) == pytest.approx(
        np.asarray(method.encode("the dog .")), abs=1e-6
    )


def test_the_loss_is_that_of_u_v_their_difference_and_their_product(
    file: Path, tmp_path: Path
) -> None:
    method = infersent(file)
    pairs = list(method.examples(make_labelled_pairs(tmp_path)))
    encoder = method.load_base()
    heads = method.heads(encoder)
    loss = method.loss(encoder, heads, Batch(pairs, np.random.default_rng(0), 0))["loss"].item()
    u, v = (
        encoder.encode([getattr(p, side) for p in pairs]).astype(float)
        for side in ("anchor", "positive")
    )
    x = np.hstack([u, v, np.abs(u - v), u * v])
    for layer in (
        heads.classifier[0],
        heads.classifier[2],
        heads.classifier[4],
    ):  # nothing between them
        x = x @ layer.weight.detach().double().numpy().T + layer.bias.detach().double().numpy()
    log_p = x - np.log(np.exp(x).sum(1, keepdims=True))
    order = ("entailment", "contradiction", "neutral")
    assert loss == pytest.approx(
        -np.mean([row[order.index(p.label)] for row, p in zip(log_p, pairs, strict=True)])
    )


def test_the_rate_falls_after_each_epoch_and_faster_after_one_without_progress(
    file: Path, tmp_path: Path
) -> None:
    method = infersent(file)
    stream = method.stream(
        make_labelled_pairs(tmp_path, times=4), 0
    )  # 24 pairs, of which 6 are held out
    assert stream.steps_per_epoch == 5
    encoder = method.load_base()
    heads = method.heads(encoder)
    accuracies = iter([0.5, 0.6, 0.6, 0.4])
    method._accuracy = lambda encoder, heads: next(accuracies)  # type: ignore[method-assign]
    rates = []
    for step in range(20):
        rates.append(method.schedule(step, 20))
        method.after_update(encoder, heads)
    per_epoch = [1.0, 0.99, 0.99**2, 0.99**3 / 5]
    assert rates == pytest.approx([rate for rate in per_epoch for _ in range(5)])
    assert method.schedule(20, 25) == pytest.approx(0.99**4 / 25)


def test_a_killed_run_goes_on_with_the_rate_that_it_had(file: Path, tmp_path: Path) -> None:
    corpus = make_labelled_pairs(tmp_path, times=4)
    whole = infersent(file).fit(corpus, FitContext(max_steps=40))
    context = FitContext(max_steps=40, folder=tmp_path / "run", checkpoint_seconds=0.0)
    cut = infersent(file)
    loss = cut.loss

    def killed(encoder: Any, heads: Any, batch: Batch) -> Any:
        if batch.step == 33:
            raise KeyboardInterrupt
        return loss(encoder, heads, batch)

    cut.loss = killed  # type: ignore[method-assign]
    with pytest.raises(KeyboardInterrupt):
        cut.fit(corpus, context)
    assert float(cut._heads.shrunk) < 1, "the case has no epoch without progress"  # type: ignore[union-attr]
    again = infersent(file).fit(corpus, context)
    state = again.encoder.state_dict()
    assert all(
        torch.equal(tensor, state[name]) for name, tensor in whole.encoder.state_dict().items()
    )
    assert not any("vectors" in name for name in state), "checkpoints do not hold the word vectors"


def test_pairs_held_out_are_not_trained_on(file: Path, tmp_path: Path) -> None:
    method = infersent(file)
    corpus = make_labelled_pairs(
        tmp_path, [(f"a dog {i}", "the dog", "neutral") for i in range(20)]
    )
    stream = method.stream(corpus, 0)
    trained = {
        pair.anchor for step in range(stream.steps_per_epoch) for pair in stream.batch(step).items
    }
    held = {pair.anchor for pair in method._dev_pairs}
    assert len(held) == 5
    assert len(trained) == 15
    assert not held & trained
    with raises_input_error(file=corpus.uri):
        infersent(file, held_out=0.02).stream(corpus, 0)


TRIPLET = "anchor,positive,negative"


def test_both_classes_of_a_triplet_are_held_out(file: Path, tmp_path: Path) -> None:
    triplets = tmp_path / "triplets.csv"
    rows = [f"a dog {i},the dog,nobody" for i in range(20)]
    triplets.write_text("\n".join([TRIPLET, *rows]) + "\n")
    method = infersent(file, held_out=0.3)
    stream = method.stream(load_corpus(str(triplets), kind="pairs"), 0)
    labels = [pair.label for pair in method._dev_pairs]
    assert labels == ["entailment", "contradiction"] * 6
    held = {pair.anchor for pair in method._dev_pairs}
    trained = {item.anchor for item in stream.corpus}
    assert len(held) == 6
    assert len(trained) == 14
    assert not held & trained


def test_a_note_on_two_classes_leaves_others_in_place(file: Path, tmp_path: Path) -> None:
    triplets = tmp_path / "triplets.csv"
    triplets.write_text("\n".join([TRIPLET, *["a dog,the dog,nobody"] * 8]) + "\n")
    unmoved = infersent(file, learning_rate=1e-12, batch_size=12, log_every=1)
    corpus = load_corpus(str(triplets), kind="pairs")
    constant, *others = unmoved.fit(corpus).fit_report.training["notes"]
    assert "did not move" in constant
    assert others == [TWO_CLASSES, LOST_CAPITALS]


def test_sentence_transformers_reads_the_same_vectors(file: Path, tmp_path: Path) -> None:
    from sentence_transformers import SentenceTransformer

    method = infersent(file, max_length=4, lower_case=True).fit(
        make_labelled_pairs(tmp_path), FitContext(max_steps=1)
    )
    method.save(tmp_path / "model")
    texts = ["A dog runs", "", "the dog is old and moves. </s>", "unheard"]
    theirs = SentenceTransformer(
        str(tmp_path / "model"), device="cpu", trust_remote_code=True
    ).encode(texts)
    assert theirs == pytest.approx(np.asarray(method.encode(texts)), abs=1e-6)
    again = InferSent.load(tmp_path / "model")
    assert np.array_equal(np.asarray(again.encode(texts)), np.asarray(method.encode(texts)))
    assert (
        again.num_parameters()
        == method.num_parameters()
        == 2 * 4 * 3 * (5 + 3 + 2) + (len(WORDS.split()) + 2) * 5
    )
    (tmp_path / "model" / "1_LSTM" / "model.safetensors").write_bytes(b"damaged")
    with raises_input_error(file=tmp_path / "model/1_LSTM/model.safetensors"):
        InferSent.load(tmp_path / "model")


def test_layers_of_a_transformer_are_not_there_to_be_read(file: Path) -> None:
    encoder = infersent(file).load_base()
    with raises_input_error(key="layers"):
        encoder.hidden_states(encoder.collate(encoder.tokenize(["a dog"])))
