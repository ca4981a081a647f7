"""Skip-Thought: encoder and decoders against a transcription in numpy, and which sentences are
neighbours.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from harness.method import FitContext
from harness.sources import Corpus, load_corpus
from harness.training import Batch
from methods.skip_thought import SkipThought, Triple, Triples
from tests.support.errors import raises_input_error

SMALL = {"hidden": 6, "embedding": 4, "batch_size": 4, "learning_rate": 1e-3}


def skip_thought(**values: Any) -> SkipThought:
    return SkipThought(SkipThought.configure({**SMALL, **values}))


def documents(folder: Path, *texts: str) -> Corpus:
    file = folder / "documents.txt"
    file.write_text("\n".join(texts) + "\n")
    return load_corpus(str(file), kind="documents")


def sigmoid(x: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-x))


def gru(x: np.ndarray, layer: Any, start: np.ndarray, ending: str = "") -> np.ndarray:
    """States word by word, as the released code has them: u h + (1 - u) tanh(W x + r (U h)), biases
    being 0 there.
    """
    weights = {name: tensor.double().numpy() for name, tensor in layer.state_dict().items()}
    w, u = weights[f"weight_ih_l0{ending}"], weights[f"weight_hh_l0{ending}"]
    b, c = weights[f"bias_ih_l0{ending}"], weights[f"bias_hh_l0{ending}"]
    h, out = start, []
    for word in x:
        (xr, xz, xn), (hr, hz, hn) = np.split(w @ word + b, 3), np.split(u @ h + c, 3)
        z = sigmoid(xz + hz)
        h = z * h + (1 - z) * np.tanh(xn + sigmoid(xr + hr) * hn)
        out.append(h)
    return np.array(out)


@pytest.mark.parametrize("direction", ["uni", "bi"])
def test_loss_and_vectors_equal_the_transcription(direction: str) -> None:
    method = skip_thought(direction=direction)
    encoder = method.load_base()
    heads = method.heads(encoder)
    triples = [
        Triple("A dog ran.", "It was late.", "Nobody saw it."),
        Triple("We sat down.", "Then rain fell on us for an hour.", "Why not?"),
    ]
    terms = method.loss(encoder, heads, Batch(triples, np.random.default_rng(0), 0))
    table = encoder.words.weight.detach().double().numpy()
    out, bias = (p.detach().double().numpy() for p in heads.vocabulary.parameters())
    wanted = {"after": 0.0, "before": 0.0}
    for triple in triples:
        ids, *said = [
            encoder.tokenize([text])[0] for text in (triple.anchor, triple.after, triple.before)
        ]
        if direction == "uni":
            h = gru(table[ids], encoder.layer, np.zeros(6))[-1]
        else:
            forwards = gru(table[ids], encoder.layer, np.zeros(3))[-1]
            h = np.concatenate(
                [forwards, gru(table[ids[::-1]], encoder.layer, np.zeros(3), "_reverse")[-1]]
            )
        assert np.asarray(encoder.encode(triple.anchor)) == pytest.approx(h, abs=1e-6)
        for name, words in zip(wanted, said, strict=True):
            for state, word in zip(
                gru(table[words[:-1]], getattr(heads, name), h), words[1:], strict=True
            ):
                scores = out @ state + bias
                wanted[name] -= scores[word] - np.log(np.exp(scores).sum())
    assert {name: terms[name].item() for name in wanted} == pytest.approx(wanted, rel=1e-5)
    assert terms["loss"].item() == pytest.approx(sum(wanted.values()), rel=1e-5)


def test_triples_are_the_inner_sentences_of_each_document(tmp_path: Path) -> None:
    corpus = documents(
        tmp_path, "One. Two. Three. Four.", "Only one.", "Five. Six.", "Seven. Eight. Nine."
    )
    assert list(Triples(corpus)) == [
        ("One.", "Two.", "Three."),
        ("Two.", "Three.", "Four."),
        ("Seven.", "Eight.", "Nine."),
    ]
    with raises_input_error(file=corpus.uri):
        skip_thought().check(documents(tmp_path, "One. Two. Three.", "Four. Five."))


def test_a_bidirectional_encoder_needs_an_even_width() -> None:
    with raises_input_error(file='method "skip_thought"', key="hidden"):
        skip_thought(direction="bi", hidden=5)


def test_saved_with_its_tokenizer_and_read_again(tmp_path: Path) -> None:
    corpus = load_corpus("embedded:documents", kind="documents", limit=4)
    method = skip_thought(direction="bi").fit(corpus, FitContext(precision="fp32", max_steps=2))
    method.save(tmp_path / "model")
    again = SkipThought.load(tmp_path / "model")
    texts = ["A dog ran.", "", "rain"]
    assert np.array_equal(np.asarray(again.encode(texts)), np.asarray(method.encode(texts)))
    assert again.num_parameters() == method.num_parameters()
