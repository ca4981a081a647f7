"""Crops of documents: the rule against another implementation of it, the draws, and what a batch
makes of them.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest

from harness.encoder import Encoder
from harness.sources import load_corpus
from harness.views import ViewConfig, make_views
from harness.views.documents import crop_spans, draw_pair, sentence_crops
from tests.support.errors import raises_input_error


def crops_by_walking(text: str, n: int, shortest: int, longest: int) -> list[str]:
    """The rule as the paper's code walks it: from each usable piece on, the next n usable ones,
    each closed by ". ".
    """
    pieces = text.split(".")
    found = []
    for j in range(len(pieces)):
        if not shortest <= len(pieces[j]) <= longest:
            continue
        crop, count = "", 0
        for piece in pieces[j:]:
            if count < n and shortest <= len(piece) <= longest:
                crop, count = crop + piece.strip() + ". ", count + 1
        if count == n:
            found.append(crop.strip())
    return found


@pytest.mark.parametrize("n", [1, 2, 3])
def test_crops_are_those_of_the_rule(n: int) -> None:
    documents = list(load_corpus("embedded:documents", kind="documents"))
    rng = np.random.default_rng(0)
    for _ in range(200):  # pieces of all lengths around the limits, decimals and "e.g."
        words = rng.choice(["a", "bb", "e.g.", "3.14", "sentence", "the end. ", ".", " "], size=60)
        documents.append(" ".join(words))
    limits = [(100, 250), (1, 20), (5, 12)]
    found = [[sentence_crops(text, n, *limit) for limit in limits] for text in documents]
    assert found == [[crops_by_walking(text, n, *limit) for limit in limits] for text in documents]
    assert all(crops[0] for crops in found[:24])


def test_a_sentence_is_usable_by_its_length_with_the_space_before_it() -> None:
    assert sentence_crops("1234. 123. 1234. 12345.", 2, 4, 5) == ["1234. 123.", "123. 1234."]


@pytest.mark.parametrize(
    ("pair", "allowed"),
    [
        ("different", {(a, b) for a in range(5) for b in range(5) if a != b}),
        ("disjoint", {(a, b) for a in range(5) for b in range(5) if abs(a - b) >= 2}),
        ("same", {(a, a) for a in range(5)}),
    ],
)
def test_every_allowed_pair_is_drawn_equally_often(
    pair: Any, allowed: set[tuple[int, int]]
) -> None:
    """Crops of two sentences share one where they are neighbours; 5 crops, 4,000 draws: a
    chi-square at 0.1 %.
    """
    rng = np.random.default_rng(3)
    crops = list("01234")
    counts = Counter(tuple(map(int, draw_pair(crops, 2, pair, rng))) for _ in range(4000))
    assert set(counts) == allowed
    expected = 4000 / len(allowed)
    from scipy.stats import chi2

    assert sum((n - expected) ** 2 / expected for n in counts.values()) < chi2.ppf(
        0.999, len(allowed) - 1
    )


def test_spans_are_distributed_as_independent_cropping() -> None:
    """Of a chunk of 256 tokens: length int(u * 256) with u uniform, start uniform over what is
    left, both views alike and independent; the chunk lies anywhere in the document.
    """
    rng = np.random.default_rng(1)
    ids = [0, *range(2, 1002), 1]
    lengths, starts, lows = [], [], []
    for _ in range(4000):
        pair = crop_spans(ids, 256, (0.05, 0.5), rng, special={0, 1})
        for span in pair:
            assert (span[0], span[-1]) == (0, 1)
            assert span[1:-1] == list(range(span[1], span[-2] + 1)), "a span of the document"
        assert max(span[-2] for span in pair) - min(span[1] for span in pair) < 256, (
            "both are of one chunk"
        )
        lengths.append([len(span) - 2 for span in pair])
        starts.append([span[1] - 2 for span in pair])
        lows.append(min(starts[-1]))
    length = np.array(lengths)
    # u uniform on 0.05..0.5: mean 0.275, sd 0.45 / sqrt(12); int() takes half a token off
    assert length.mean() == pytest.approx(0.275 * 256 - 0.5, abs=4 * 0.13 * 256 / np.sqrt(8000))
    assert length.std() == pytest.approx(0.45 * 256 / np.sqrt(12), rel=0.03)
    assert (length.min(), length.max()) == (12, 127)
    assert abs(np.corrcoef(length.T)[0, 1]) < 4 / np.sqrt(4000), "the two lengths are independent"
    # start = place of the chunk, uniform on 0..744, plus start in it, uniform on 0..256 - length:
    # mean 372 + 93
    assert np.mean(starts) == pytest.approx(
        372 + (256 - length.mean()) / 2, abs=4 * 230 / np.sqrt(4000)
    )
    assert min(lows) < 20


def test_a_short_document_is_its_own_chunk_and_the_limit_holds() -> None:
    rng = np.random.default_rng(0)
    spans = [crop_spans([0, 5, 6, 7, 1], 256, (0.05, 0.5), rng, special={0, 1}) for _ in range(50)]
    assert {tuple(span) for pair in spans for span in pair} == {(0, 5, 1), (0, 6, 1), (0, 7, 1)}
    cut = crop_spans([0, *range(2, 300), 1], 256, (1.0, 1.0), rng, special={0, 1}, limit=10)
    assert [len(span) for span in cut] == [10, 10]
    assert crop_spans([0, 1], 256, (0.05, 0.5), rng, special={0, 1}) == ([0, 1], [0, 1])


@pytest.fixture(scope="module")
def encoder() -> Encoder:
    return Encoder.from_pretrained("embedded:mini-bert")


def views(encoder: Encoder, items: list[str], seed: int = 0, **values: Any) -> Any:
    config = ViewConfig.parse(values, "test")
    return make_views(items, encoder, config, np.random.default_rng(seed), max_length=64)


@pytest.mark.parametrize(
    "view", ["sentence_crop", "sentence_crop+deletion", "token_crop", "token_crop+deletion"]
)
def test_views_of_documents_are_two_crops_drawn_from_the_batch_s_generator(
    encoder: Encoder, view: str
) -> None:
    documents = list(load_corpus("embedded:documents", kind="documents", limit=6))
    made = views(encoder, documents, view=view, chunk=100)
    assert made == views(encoder, documents, view=view, chunk=100)
    assert made.ids_a != views(encoder, documents, 1, view=view, chunk=100).ids_a
    whole = encoder.tokenizer(documents)["input_ids"]
    for side in (made.ids_a, made.ids_b):
        for row, document in zip(side, whole, strict=True):
            assert set(row) <= set(document)
            assert len(row) <= 64
            assert (row[0], row[-1]) == (document[0], document[-1])
    assert made.ids_a != made.ids_b
    assert made.hidden_dropout == (0.0, 0.0)


def test_the_dropout_arm_is_one_crop_twice(encoder: Encoder) -> None:
    documents = list(load_corpus("embedded:documents", kind="documents", limit=6))
    made = views(encoder, documents, view="sentence_crop", crop_pair="same", native_dropout=True)
    assert made.ids_a == made.ids_b
    assert made.hidden_dropout is None


def test_a_document_without_two_crops_is_refused(encoder: Encoder) -> None:
    with raises_input_error():
        views(encoder, ["Too short. This too."], view="sentence_crop")


@pytest.mark.parametrize(
    "values",
    [
        {"view": "sentence_crop+token_crop"},
        {"view": "paraphrase+sentence_crop"},
        {"view": "eda+token_crop"},
        {"view": "shuffle+sentence_crop"},
        {"token_crop": [0.5, 0.05]},
        {"token_crop": [0.0, 0.5]},
        {"sentence_crop": 0},
        {"crop_pair": "twice"},
    ],
)
def test_wrong_settings_are_one_line(values: dict[str, Any]) -> None:
    with raises_input_error(file="test"):
        ViewConfig.parse(values, "test")


def test_defaults_of_the_options_of_documents_are_no_part_of_a_run_s_id() -> None:
    """So runs keep the ids that they had before these options existed."""
    assert {"sentence_crop", "shortest", "crop_pair", "token_crop", "chunk"}.isdisjoint(
        ViewConfig().model_dump()
    )
    config = ViewConfig.parse({"view": "sentence_crop", "shortest": 20}, "test")
    assert config.model_dump()["shortest"] == config.model_dump(mode="json")["shortest"] == 20
    assert ViewConfig.parse(config.model_dump(), "test") == config
