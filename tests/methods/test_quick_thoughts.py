"""Quick Thoughts: its loss against a float64 numpy transcription, sentence splitting, and batches
of neighbours.
"""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.errors import InputError
from harness.method import DEFAULT_BASE_MODEL, FitContext
from harness.recipes import iterate_presets
from harness.sources import Corpus, load_corpus
from harness.training import Batch
from methods.quick_thoughts import (
    ConsecutiveSentences,
    QuickThoughts,
    neighbour_loss,
    neighbours,
    split_sentences,
)
from tests.support.bases import narrow_bert
from tests.support.errors import raises_input_error

SMALL = {"batch_size": 8, "train_length": 16, "learning_rate": 1e-4}


@pytest.fixture(scope="module")
def corpus() -> Corpus:
    return load_corpus("embedded:documents", kind="documents", limit=4)


def make(base_model: str = DEFAULT_BASE_MODEL, **values: Any) -> QuickThoughts:
    return QuickThoughts(QuickThoughts.configure({**SMALL, **values}), base_model=base_model)


# ------------------------------------------------------------------------------------------------------- loss


def np_loss(
    f: np.ndarray,
    g: np.ndarray,
    documents: list[int],
    context: int,
    t: float,
    cosine: bool,
    own: str,
) -> float:
    """The printed sums, one loop each: over sentences, over their neighbours, over the candidates."""
    n, losses = len(f), []

    def similarity(u: np.ndarray, v: np.ndarray) -> float:
        return float(u @ v / math.sqrt((u @ u) * (v @ v)) if cosine else u @ v) / t

    for i in range(n):
        near = [
            j for j in range(n) if j != i and abs(i - j) <= context and documents[i] == documents[j]
        ]
        if not near:
            continue
        total = sum(math.exp(similarity(f[i], g[k])) for k in range(n) if k != i) + (
            1.0 if own == "zero" else 0.0
        )
        losses.append(
            -sum(math.log(math.exp(similarity(f[i], g[j])) / total) for j in near) / len(near)
        )
    return float(np.mean(losses)) if losses else 0.0


@settings(max_examples=40)
@given(
    st.lists(st.integers(0, 2), min_size=1, max_size=7),
    st.integers(1, 4),
    st.integers(1, 3),
    st.floats(0.1, 3),
    st.booleans(),
    st.sampled_from(["left_out", "zero"]),
    st.integers(0, 2**32),
)
def test_loss_equals_numpy(
    documents: list[int], d: int, context: int, t: float, cosine: bool, own: Any, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    f, g = rng.normal(size=(2, len(documents), d))
    value = neighbour_loss(
        torch.from_numpy(f),
        torch.from_numpy(g),
        torch.from_numpy(neighbours(np.array(documents), context)),
        temperature=t,
        similarity="cosine" if cosine else "dot",
        own=own,
    )
    expected = np_loss(f, g, documents, context, t, cosine, own)
    assert float(value) == pytest.approx(expected, rel=1e-9, abs=1e-9)


def test_three_sentences_by_hand() -> None:
    """f . g = 1 between the first two, 0 otherwise, tau 1. First: -log(e / (e + 1)). Second:
    neighbours on both sides, -(log(e / (e + 1)) + log(1 / (e + 1))) / 2. Third: -log(1 / 2).
    """
    f = torch.tensor([[1.0, 0.0], [0.0, 1.0], [0.0, 0.0]])
    g = torch.tensor([[0.0, 1.0], [1.0, 0.0], [0.0, 0.0]])
    targets = torch.tensor([[0, 1, 0], [1, 0, 1], [0, 1, 0]])
    e = math.e
    first, second, third = math.log(1 + 1 / e), math.log(e + 1) - 0.5, math.log(2)
    assert float(neighbour_loss(f, g, targets)) == pytest.approx((first + second + third) / 3)
    code = (
        math.log(e + 2) - 1 + math.log(e + 2) - 0.5 + math.log(3)
    ) / 3  # a score of 0 more in every sum
    assert float(neighbour_loss(f, g, targets, own="zero")) == pytest.approx(code)


def test_neighbours_stay_within_their_document() -> None:
    near = neighbours(np.array([0, 0, 0, 1, 1]), 1).astype(int)
    assert near.tolist() == [
        [0, 1, 0, 0, 0],
        [1, 0, 1, 0, 0],
        [0, 1, 0, 0, 0],
        [0, 0, 0, 0, 1],
        [0, 0, 0, 1, 0],
    ]
    assert neighbours(np.zeros(4), 2).sum() == 10


@pytest.mark.parametrize("own", ["left_out", "zero"])
def test_gradients_by_finite_differences(own: Any) -> None:
    generator = torch.Generator().manual_seed(0)
    f, g = (
        torch.randn(4, 3, dtype=torch.float64, generator=generator, requires_grad=True)
        for _ in range(2)
    )
    targets = torch.from_numpy(
        neighbours(np.array([0, 0, 1, 2]), 1)
    )  # the last two have no neighbour
    assert torch.autograd.gradcheck(
        lambda x, y: neighbour_loss(x, y, targets, temperature=0.7, own=own), (f, g)
    )


def test_degenerate_batches_stay_finite() -> None:
    """One sentence, two that belong to different documents, two that can only be each other's,
    equal rows.
    """
    for documents, expected in (([0], 0.0), ([0, 1], 0.0), ([0, 0], 0.0), ([0, 0, 0], math.log(2))):
        f = torch.ones(len(documents), 3, requires_grad=True)
        value = neighbour_loss(f, f, torch.from_numpy(neighbours(np.array(documents), 1)))
        value.backward()
        assert value.item() == pytest.approx(expected, abs=1e-6)
        assert f.grad is not None
        assert torch.isfinite(f.grad).all()
    with pytest.raises(ValueError, match="temperature"):
        neighbour_loss(f, f, torch.ones(3, 3), temperature=0.0)


# ---------------------------------------------------------------------------------------- sentences
# and batches


@pytest.mark.parametrize(
    ("text", "sentences"),
    [
        ("It rained. We stayed in! Did you?", ["It rained.", "We stayed in!", "Did you?"]),
        ('He said "Go." Then he left.', ['He said "Go."', "Then he left."]),
        ('It ended. "Why?" she asked.', ["It ended.", '"Why?" she asked.']),
        (
            "About 3.5 m, i.e. little, was left. 40 remained.",
            ["About 3.5 m, i.e. little, was left.", "40 remained."],
        ),
        ("J. S. Bach wrote it. Élan followed.", ["J. S. Bach wrote it.", "Élan followed."]),
        ("A heading\n\nA paragraph\n...\nthe end", ["A heading", "A paragraph", "the end"]),
        ("雨が降った。家にいた！", ["雨が降った。", "家にいた！"]),
        (" \n ", []),
        ("", []),
    ],
)
def test_sentences(text: str, sentences: list[str]) -> None:
    assert split_sentences(text) == sentences


@given(st.text(alphabet='aA1 .!?\n"。', max_size=60))
def test_splitting_loses_no_letter_and_keeps_the_order(text: str) -> None:
    joined = "".join(split_sentences(text))
    assert [c for c in joined if c.isalnum()] == [c for c in text if c.isalnum()]


@settings(max_examples=30)
@given(st.lists(st.integers(0, 5), min_size=2, max_size=8), st.integers(2, 9), st.integers(0, 99))
def test_an_epoch_holds_every_sentence_once_in_consecutive_batches(
    sizes: list[int], batch_size: int, seed: int
) -> None:
    class Documents(list[str]):
        uri = "test"

    texts = Documents(" ".join(f"S{d} {k}." for k in range(size)) for d, size in enumerate(sizes))
    if max(sizes) < 2:
        with raises_input_error(file=texts.uri):
            ConsecutiveSentences(texts, batch_size=batch_size, seed=seed)  # type: ignore[arg-type]
        return
    stream = ConsecutiveSentences(texts, batch_size=batch_size, seed=seed)  # type: ignore[arg-type]
    for epoch in range(2):
        steps = range(epoch * stream.steps_per_epoch, (epoch + 1) * stream.steps_per_epoch)
        batches = [stream.batch(step) for step in steps]
        assert all(len(b.items) == stream.batch_size for b in batches[:-1])
        assert all(2 <= len(b.items) <= stream.batch_size for b in batches)
        flat = [item for b in batches for item in b.items]
        assert len(flat) >= sum(sizes) - 1  # a last batch of one sentence is dropped
        assert len(set(flat)) == len(flat)
        order = list(dict.fromkeys(item.document for item in flat))
        expected = [f"S{d} {k}." for d in order for k in range(sizes[d])]
        assert [item.anchor for item in flat] == expected[: len(flat)]
        assert [item.anchor.split()[0] for item in flat] == [f"S{item.document}" for item in flat]
        assert stream.batch(steps[-1]).items == batches[-1].items


# --------------------------------------------------------------------------------------------------- the method


def test_two_encoders_start_equal_and_are_trained_apart(corpus: Corpus) -> None:
    method = make()
    encoder = method.load_base().eval()
    heads = method.heads(encoder)
    batch = method.stream(corpus, 0).batch(0)
    ids = encoder.collate(encoder.tokenize(batch.texts, max_length=16))
    with torch.no_grad():
        vectors = encoder(ids).double().numpy()
        np.testing.assert_array_equal(heads.g(ids).double().numpy(), vectors)
    documents = [item.document for item in batch.items]
    loss = method.loss(encoder, heads, batch)["loss"]
    scores = vectors @ vectors.T
    scores -= scores.max()  # the transcription takes exponentials without a shift
    np.fill_diagonal(scores, -np.inf)
    near = neighbours(np.array(documents), 1)
    rows = [
        (np.log(np.exp(s).sum()) - s[m]).mean()
        for s, m in zip(scores, near, strict=True)
        if m.any()
    ]
    assert loss.item() == pytest.approx(float(np.mean(rows)), rel=1e-4)
    loss.backward()
    assert all(p.grad is not None for p in heads.parameters())
    assert next(encoder.parameters()) is not next(heads.parameters())
    assert not list(make(shared=True).heads(encoder).parameters())


def test_plain_strings_are_sentences_of_one_document(corpus: Corpus) -> None:
    method = make(shared=True)
    encoder = method.load_base()
    loss = method.loss(
        encoder, method.heads(encoder), Batch(["a", "b", "c"], np.random.default_rng(0), 0)
    )["loss"]
    assert math.isfinite(loss.item())
    assert loss.item() > 0


@pytest.mark.parametrize(
    "values", [{}, {"shared": True, "similarity": "cosine", "temperature": 0.05}]
)
def test_fits_resumes_and_repeats(corpus: Corpus, tmp_path: Path, values: dict[str, Any]) -> None:
    base_model = narrow_bert()
    probe = ["A dog runs.", "Rain fell on the town."]
    whole = make(base_model, **values).fit(corpus, FitContext(precision="fp32", max_steps=3))
    context = FitContext(precision="fp32", max_steps=3, folder=tmp_path, checkpoint_seconds=0.0)
    broken, seen = make(base_model, **values), []

    def stop(encoder: Any, heads: Any) -> None:
        seen.append(0)
        if len(seen) == 3:
            raise OSError("disk full")

    broken.after_update = stop  # type: ignore[method-assign]
    with pytest.raises(OSError):
        broken.fit(corpus, context)
    np.testing.assert_array_equal(
        make(base_model, **values).fit(corpus, context).encode(probe), whole.encode(probe)
    )
    assert (
        float(np.abs(whole.encode(probe) - make(base_model).load_base().encode(probe)).max()) > 1e-4
    )
    whole.save(tmp_path / "model")
    np.testing.assert_allclose(
        QuickThoughts.load(tmp_path / "model").encode(probe), whole.encode(probe), atol=1e-6
    )


def test_which_encoders_compete(corpus: Corpus) -> None:
    encoder = make().load_base()
    for values, count in (
        ({}, 1),
        ({"test": "better"}, 2),
        ({"test": "better", "shared": True}, 1),
    ):
        method = make(**values)
        heads = method.heads(encoder)
        encoders = method.candidates(encoder, heads)
        assert len(encoders) == count
        assert encoders[0] is encoder
        assert count == 1 or encoders[1] is heads.g


def test_a_step_lowers_the_loss(corpus: Corpus) -> None:
    method = make()
    encoder = method.load_base().eval()
    heads = method.heads(encoder)
    batch = method.stream(corpus, 0).batch(0)
    optimizer = torch.optim.AdamW([*encoder.parameters(), *heads.parameters()], lr=1e-4)
    before = method.loss(encoder, heads, batch)["loss"]
    before.backward()
    optimizer.step()
    assert method.loss(encoder, heads, batch)["loss"].item() < before.item()


def test_presets_and_bad_settings() -> None:
    for preset, family in iterate_presets(QuickThoughts.presets):
        config = QuickThoughts.configure({}, preset=preset, family=family)
        assert (
            QuickThoughts.Config.parse(json.loads(config.model_dump_json()), "round trip") == config
        )
    for values in ({"temperature": 0}, {"context": 0}, {"test": "g"}, {"batch_size": 1}):
        with pytest.raises(InputError):
            make(**values)
    with raises_input_error(file='method "quick_thoughts"'):
        make().fit(load_corpus("embedded:sentences", limit=4))
