"""TSDAE: the noise, the decoder that sees one vector only, and the loss beside
sentence-transformers' own.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from harness.encoder import Encoder
from harness.sources import load_corpus
from harness.training import Batch
from methods.tsdae import TSDAE, delete_words, load_decoder, reconstruction
from tests.support.errors import raises_input_error

TEXTS = [
    "A dog runs across the field.",
    "Two children play chess, and nobody else is there.",
    "rain",
    "",
]


@pytest.fixture(scope="module")
def base() -> Encoder:
    return Encoder.from_pretrained("embedded:mini-bert", pooling="cls").eval()


# ---------------------------------------------------------------- the noise


@given(st.text(max_size=60), st.floats(0, 0.99), st.integers(0, 1000))
def test_what_stays_is_a_part_of_the_text_in_its_order(text: str, share: float, seed: int) -> None:
    kept = delete_words(text, share, np.random.default_rng(seed))
    letters = iter(text)
    assert all(letter in letters for letter in kept)  # a subsequence
    assert bool(kept.strip()) == bool(text.strip())


def test_a_word_is_deleted_with_the_asked_probability() -> None:
    text = " ".join(f"w{i}" for i in range(200))
    rng = np.random.default_rng(0)
    draws = np.array([len(delete_words(text, 0.6, rng).split()) for _ in range(200)])
    # binomial(200, 0.4): mean 80, sd 6.93; the mean of 200 draws has a standard error of 0.49
    assert abs(draws.mean() - 80) < 3 * 0.49
    assert draws.std() == pytest.approx(6.93, rel=0.2)


def test_by_hand() -> None:
    class Fixed:
        def random(self, n: int) -> np.ndarray:
            return np.array([0.9, 0.1, 0.7, 0.59, 0.6])[:n]

    assert delete_words("The dog ran off.", 0.6, Fixed()) == "The ran."  # type: ignore[arg-type]
    assert delete_words("only", 0.99, np.random.default_rng(0)) == "only"
    assert delete_words("A b.", 0.0, np.random.default_rng(0)) == "A b."


# ---------------------------------------------------------------- the decoder


def logits(decoder: Any, ids: torch.Tensor, vectors: torch.Tensor) -> torch.Tensor:
    with torch.no_grad():
        return decoder(
            input_ids=ids, encoder_hidden_states=vectors[:, None], use_cache=False
        ).logits


def test_a_tied_decoder_owns_its_cross_attention_only(base: Encoder) -> None:
    torch.manual_seed(0)
    tied, copied = (load_decoder("embedded:mini-bert", base, tied=t) for t in (True, False))
    own = [name for name, _ in tied.named_parameters()]
    assert all("crossattention" in name or "predictions" in name for name in own)
    assert not {id(p) for p in base.parameters()} & {id(p) for p in tied.parameters()}, (
        "an optimiser sees them once"
    )
    assert sum(p.numel() for p in copied.parameters()) > sum(p.numel() for p in base.parameters())
    # a change of the encoder reaches the tied decoder, embeddings and output layer included, and
    # not the copy
    ids, vectors = torch.tensor([[2, 70, 80, 3]]), torch.randn(1, 256)
    before = [logits(d.eval(), ids, vectors) for d in (tied, copied)]
    changed = Encoder.from_pretrained("embedded:mini-bert", pooling="cls")
    tied = load_decoder("embedded:mini-bert", changed, tied=True).eval()
    tied.load_state_dict(tied.state_dict())
    first = logits(tied, ids, vectors)
    with torch.no_grad():
        next(p for n, p in changed.named_parameters() if "word_embeddings" in n).mul_(0.5)
    assert not torch.allclose(logits(tied, ids, vectors), first)
    assert torch.equal(logits(copied, ids, vectors), before[1])


def test_the_decoder_looks_back_only_and_at_the_vector(base: Encoder) -> None:
    torch.manual_seed(0)
    decoder = load_decoder("embedded:mini-bert", base, tied=True).eval()
    ids, vectors = torch.tensor([[2, 70, 80, 90, 3]]), torch.randn(1, 256)
    seen = logits(decoder, ids, vectors)
    later = logits(decoder, torch.tensor([[2, 70, 80, 91, 3]]), vectors)
    assert torch.allclose(seen[:, :3], later[:, :3], atol=1e-5)
    assert not torch.allclose(seen[:, 3:], later[:, 3:], atol=1e-3)
    assert not torch.allclose(seen, logits(decoder, ids, -vectors), atol=1e-3)


def test_a_small_decoder_and_one_that_cannot_be(base: Encoder) -> None:
    small = load_decoder("embedded:mini-bert", base, tied=True, layers=1)
    assert int(small.config.num_hidden_layers) == 1
    with raises_input_error(key="decoder_layers"):
        load_decoder("embedded:mini-bert", base, tied=True, layers=9)


def test_a_family_without_such_a_decoder_is_refused_in_one_line(
    base: Encoder, tmp_path: Any
) -> None:
    from transformers import DistilBertConfig, DistilBertModel

    DistilBertModel(
        DistilBertConfig(vocab_size=30, dim=8, n_layers=1, n_heads=2, hidden_dim=8)
    ).save_pretrained(tmp_path)
    with raises_input_error(file=tmp_path):
        load_decoder(str(tmp_path), base, tied=True)


# ---------------------------------------------------------------- the loss


def cross_entropy(scores: np.ndarray, ids: list[list[int]]) -> float:
    """-(1/T) sum over real tokens but the first of log softmax, in float64."""
    total, count = 0.0, 0
    for row, tokens in zip(scores.astype(np.float64), ids, strict=True):
        for t in range(1, len(tokens)):
            x = row[t - 1]
            total -= x[tokens[t]] - x.max() - math.log(np.exp(x - x.max()).sum())
            count += 1
    return total / count


def test_loss_equals_the_transcription_and_padding_does_not_enter(base: Encoder) -> None:
    torch.manual_seed(0)
    decoder = load_decoder("embedded:mini-bert", base, tied=True).eval()
    ids, vectors = base.tokenize(TEXTS), torch.randn(4, 256)
    features = base.collate(ids)
    loss = reconstruction(decoder, vectors, features["input_ids"], features["attention_mask"])
    expected = cross_entropy(logits(decoder, features["input_ids"], vectors).numpy(), ids)
    assert loss.item() == pytest.approx(expected, rel=1e-5)
    parts = [
        reconstruction(
            decoder,
            vectors[i : i + 1],
            torch.tensor([row]),
            torch.ones(1, len(row), dtype=torch.long),
        )
        for i, row in enumerate(ids)
    ]
    weights = [len(row) - 1 for row in ids]
    mean = sum(w * part.item() for w, part in zip(weights, parts, strict=True)) / sum(weights)
    assert loss.item() == pytest.approx(mean, rel=1e-5)


def test_the_loss_of_sentence_transformers_is_the_same(base: Encoder) -> None:
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.losses import DenoisingAutoEncoderLoss
    from sentence_transformers.sentence_transformer.modules import Pooling, Transformer

    from harness.sources.embedded import EMBEDDED_MODELS

    torch.manual_seed(0)
    decoder = load_decoder("embedded:mini-bert", base, tied=True).eval()
    path = str(EMBEDDED_MODELS["mini-bert"])
    theirs = SentenceTransformer(
        modules=[Transformer(path), Pooling(256, "cls")], device="cpu"
    ).eval()
    objective = (
        DenoisingAutoEncoderLoss(theirs, path, tie_encoder_decoder=True).float().eval()
    )  # the file is in float16
    own = dict(decoder.named_parameters())
    with torch.no_grad():
        for name, p in objective.decoder.named_parameters():
            if "crossattention" in name:
                p.copy_(own[name])
    rng = np.random.default_rng(0)
    damaged = [delete_words(text, 0.6, rng) for text in TEXTS[:3]]
    noisy, whole = (base.collate(base.tokenize(texts)) for texts in (damaged, TEXTS[:3]))
    with torch.no_grad():
        expected = objective([dict(noisy), dict(whole)], torch.zeros(3))
        ours = reconstruction(decoder, base(noisy), whole["input_ids"], whole["attention_mask"])
    assert ours.item() == pytest.approx(expected.item(), rel=1e-5)


def method(**values: Any) -> TSDAE:
    return TSDAE(TSDAE.configure({"batch_size": 8, "train_length": 16, **values}, preset="mini"))


@pytest.mark.parametrize("tied", [True, False])
def test_gradients_reach_the_encoder_and_the_noise_comes_from_the_batch(tied: bool) -> None:
    m = method(tied=tied)
    torch.manual_seed(0)
    encoder = m.load_base().eval()
    heads = m.heads(encoder).eval()
    texts = list(load_corpus("embedded:sentences", limit=4))
    losses = [
        m.loss(encoder, heads, Batch(texts, np.random.default_rng(seed), 0))["loss"]
        for seed in (1, 1, 2)
    ]
    assert losses[0].item() == losses[1].item() != losses[2].item()
    losses[0].backward()  # type: ignore[no-untyped-call]
    assert all(p.grad is not None for p in encoder.transformer.encoder.parameters())
    clean = m.loss(encoder, heads, Batch([""] * 2, np.random.default_rng(0), 0))[
        "loss"
    ]  # nothing to delete
    assert math.isfinite(clean.item())


def test_the_learning_rate_is_constant_unless_it_decays() -> None:
    assert [method(warmup=0.5).schedule(step, 4) for step in range(4)] == [0.0, 0.5, 1.0, 1.0]
    assert [method(decay=True).schedule(step, 4) for step in range(4)] == [1.0, 0.75, 0.5, 0.25]
    # the example on Wikipedia: 100 updates up, then down to 0
    example = method(decay=True, warmup_steps=100)
    assert [example.schedule(step, 1100) for step in (0, 50, 100, 600, 1099)] == [
        0.0,
        0.5,
        1.0,
        0.5,
        0.001,
    ]
