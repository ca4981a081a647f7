"""Encoding: what goes in, what comes out, and that nothing but the sentence decides its vector."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from harness.encoder import Encoder
from harness.encoder.precision import autocast, check_precision, describe_bf16, measure_bf16
from harness.encoder.sentences import token_budget_batches
from harness.errors import InputError
from tests.support.encoder_models import TEXTS, base_model
from tests.support.errors import raises_input_error


@pytest.fixture(scope="module")
def encoder(tmp_path_factory):
    return Encoder.from_pretrained(base_model(tmp_path_factory.mktemp("base"))).eval()


@given(st.lists(st.integers(0, 70), max_size=60), st.integers(1, 300))
def test_batches_hold_every_index_once_within_the_budget(lengths, budget):
    batches = token_budget_batches(lengths, budget)
    assert sorted(i for batch in batches for i in batch) == list(range(len(lengths)))
    for batch in batches:
        assert len(batch) == 1 or len(batch) * max(1, *(lengths[i] for i in batch)) <= budget
    longest = [max(lengths[i] for i in batch) for batch in batches]
    assert longest == sorted(longest, reverse=True)


def test_order_batch_size_and_repetition_do_not_matter(encoder):
    many = [*TEXTS, *TEXTS[::-1], *("the cat " * k for k in range(1, 9))]
    one_by_one = np.concatenate([encoder.encode([text]) for text in many])
    for size in (1, 3, 64):
        np.testing.assert_allclose(encoder.encode(many, batch_size=size), one_by_one, atol=1e-5)
    np.testing.assert_allclose(encoder.encode(many[::-1]), one_by_one[::-1], atol=1e-5)


def test_each_distinct_sentence_is_encoded_once(encoder, monkeypatch):
    seen = []
    collate = encoder.collate
    monkeypatch.setattr(encoder, "collate", lambda ids: seen.extend(ids) or collate(ids))
    vectors = encoder.encode(["a cat", "a dog", "a cat", "a cat"])
    assert len(seen) == 2
    assert (vectors[0] == vectors[2]).all()
    assert (vectors[0] != vectors[1]).any()


def test_repeated_sentences_from_a_generator_across_windows(encoder, monkeypatch):
    monkeypatch.setattr("harness.encoder.network.WINDOW", 3)
    many = [*TEXTS, TEXTS[4], TEXTS[0], *TEXTS, "tree tree", TEXTS[0]]
    vectors = encoder.encode(text for text in many)
    np.testing.assert_allclose(vectors, np.stack([encoder.encode(t) for t in many]), atol=1e-5)


def test_awkward_text_gives_finite_vectors(encoder):
    awkward = ["", "   ", "word " * 10_000, "🙂🙃 👩‍👩‍👧", "a \ud800 b", "\x00", "x" * 20_000]
    vectors = encoder.encode(awkward)
    assert vectors.dtype == np.float32
    assert np.isfinite(vectors).all()
    np.testing.assert_allclose(vectors[4], encoder.encode("a ? b"), atol=1e-5)
    assert max(map(len, encoder.tokenize(awkward))) == encoder.max_length
    with raises_input_error(key="sentence 1"):
        encoder.encode(["a", None])


def test_kinds_of_output(encoder):
    assert encoder.encode("a cat").shape == (32,)
    assert encoder.encode([]).shape == (0, 32)
    tensor = encoder.encode(TEXTS, convert_to_tensor=True)
    assert isinstance(tensor, torch.Tensor)
    assert isinstance(encoder.encode(TEXTS, convert_to_numpy=False), torch.Tensor)
    np.testing.assert_array_equal(tensor.numpy(), encoder.encode(TEXTS))
    unit = encoder.encode(TEXTS, normalize_embeddings=True)
    np.testing.assert_allclose(np.linalg.norm(unit, axis=1), 1, atol=1e-5)
    linear = torch.nn.Linear(32, 5)
    linear(tensor).sum().backward()  # usable in training code: not an inference tensor


def test_training_mode_is_left_as_it_was(encoder):
    encoder.train()
    encoder.transformer.embeddings.eval()
    first = encoder.encode(TEXTS)
    np.testing.assert_array_equal(first, encoder.encode(TEXTS))  # nothing was dropped
    assert encoder.training
    assert encoder.transformer.encoder.layer[0].training
    assert not encoder.transformer.embeddings.training
    encoder.eval()


def test_the_bar_shows_only_when_asked(encoder, capfd):
    encoder.encode(TEXTS)
    assert capfd.readouterr() == ("", "")
    encoder.encode(TEXTS, show_progress_bar=True)
    assert capfd.readouterr().out == ""


def test_an_affine_map_is_applied_last(encoder):
    plain = encoder.encode(TEXTS)
    encoder.affine = torch.nn.Linear(32, 7)
    try:
        weight, bias = (p.detach().numpy() for p in encoder.affine.parameters())
        assert encoder.dimension == 7
        np.testing.assert_allclose(encoder.encode(TEXTS), plain @ weight.T + bias, atol=1e-4)
    finally:
        encoder.affine = None
    assert encoder.dimension == 32


def test_lengths(tmp_path):
    for family, positions in (
        ("bert", 26),
        ("distilbert", 26),
        ("roberta", 24),
        ("xlm-roberta", 24),
        ("mpnet", 24),
    ):
        folder = base_model(tmp_path / family, family)
        encoder = Encoder.from_pretrained(folder)
        assert encoder.max_length == positions  # RoBERTa numbers positions from 2
        assert np.isfinite(encoder.encode("the " * 50)).all()
        with raises_input_error(key="max_length"):
            Encoder.from_pretrained(folder, max_length=positions + 1)
        short = Encoder.from_pretrained(folder, max_length=8)
        assert [len(ids) for ids in short.tokenize(["the " * 50, "the"])] == [8, 3]
        assert [len(ids) for ids in short.tokenize(["the " * 50], max_length=5)] == [5]


def test_autocast_and_the_precisions_of_a_device(encoder):
    exact = encoder.encode(TEXTS)
    rough = encoder.encode(TEXTS, precision="bf16")
    assert rough.dtype == np.float32
    np.testing.assert_allclose(rough, exact, atol=0.2)
    assert (rough != exact).any()
    state = torch.get_rng_state()
    assert "no native" not in describe_bf16("mps")  # which was not measured
    share = measure_bf16("cpu")
    assert torch.equal(state, torch.get_rng_state())
    assert share is not None
    assert share > 0
    check_precision("bf16", "cpu")
    for bad in ("fp8", "auto", "fp16"):  # the last needs a GPU
        with pytest.raises(InputError) as caught:
            check_precision(bad, "cpu")
        assert caught.value.key == "precision"
    with autocast("bf16", "cpu"):
        assert (torch.ones(2, 2) @ torch.ones(2, 2)).dtype == torch.bfloat16
    with autocast(None, "cpu"), autocast("fp32", "cpu"):
        assert (torch.ones(2, 2) @ torch.ones(2, 2)).dtype == torch.float32


def test_texts_go_to_the_tokenizer_in_parts(tmp_path, monkeypatch):
    encoder = Encoder.from_pretrained(base_model(tmp_path))
    many = [f"{text} {number}" for number, text in enumerate([*TEXTS, ""] * 3)]
    whole, calls, tokenizer = encoder.tokenize(many), [], encoder.tokenizer
    encoder.tokenizer = lambda texts, **options: (
        calls.append(len(texts)) or tokenizer(texts, **options)
    )
    monkeypatch.setattr("harness.encoder.network.AT_ONCE", 4)
    assert encoder.tokenize(many) == whole
    assert max(calls) == 4
    assert sum(calls) == len(many)
