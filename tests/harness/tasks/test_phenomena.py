"""The pairs by phenomenon: what is compared with what, and that counting words does not win."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache

import numpy as np
import pytest

from harness.sources import embedded_rows
from harness.tasks.base import Array
from harness.tasks.catalogue import resolve_tasks
from harness.tasks.phenomena import NEAREST, TAGS, AllPairs, MarginTask, word_overlap

SUITE = resolve_tasks(["embedded-phenomena"])


@cache
def words(text: str) -> frozenset[str]:
    return frozenset(re.findall(r"\w+", text.lower()))


def bag_of_words(texts: Sequence[str]) -> Array:
    """Its cosines are nearly a function of word overlap alone."""
    known = {
        word: place for place, word in enumerate(sorted(set().union(*map(words, SUITE[0].texts()))))
    }
    vectors = np.zeros((len(texts), len(known)), dtype=np.float32)
    for row, text in enumerate(texts):
        vectors[row, [known[word] for word in words(text)]] = 1
    return vectors


def table(task: MarginTask) -> Array:
    texts = list(dict.fromkeys(task.texts()))
    return np.random.default_rng(0).normal(size=(len(texts), 16)).astype(np.float32)


def test_the_suite_has_all_pairs_and_four_phenomena() -> None:
    assert [type(task) for task in SUITE] == [AllPairs] + [MarginTask] * 4
    assert len(SUITE[0].texts()) == 2 * 2393
    rows = {row["tag"] for row in embedded_rows("sts", "fghij")}
    assert rows > set(TAGS)
    assert len(rows) == 10


@pytest.mark.parametrize("tag", TAGS)
def test_paraphrases_beat_changed_sentences_by_hand(tag: str) -> None:
    """The score equals a loop over pairs that takes the paraphrases of nearest overlap one by one."""
    task = MarginTask(tag)
    texts = list(dict.fromkeys(task.texts()))
    vectors = dict(zip(texts, table(task), strict=True))

    def cosine(row: dict[str, str]) -> float:
        u, v = (vectors[row[side]].astype(np.float64) for side in ("sentence1", "sentence2"))
        return float(u @ v / np.sqrt((u @ u) * (v @ v)))

    def overlap(row: dict[str, str]) -> float:
        left, right = words(row["sentence1"]), words(row["sentence2"])
        return len(left & right) / len(left | right)

    same = [
        r
        for r in embedded_rows("sts")
        if r.get("tag") in ("words", "syntax") and r["split"] == "test"
    ]
    same = [row for row in same if row["score"] >= 4]
    changed = [
        r
        for r in embedded_rows("sts")
        if r.get("tag") == tag and r["split"] == "test" and r["score"] <= 3
    ]
    shares = []
    for row in changed:
        near = sorted(same, key=lambda other: abs(overlap(other) - overlap(row)))[:NEAREST]
        shares.append(np.mean([cosine(other) > cosine(row) for other in near]))
    result = task.evaluate(
        lambda asked: np.stack([vectors[text] for text in asked]), pooling="mean"
    )
    assert len(changed) > 100
    assert result.scores[0].value == pytest.approx(np.mean(shares), abs=1e-9)
    assert result.scores[0].n == len(changed) == len(task.tested.first)
    assert result.outcomes is not None
    assert result.outcomes["outcome"].mean() == pytest.approx(result.scores[0].value, abs=1e-6)


@pytest.mark.parametrize("tag", TAGS)
def test_counting_words_is_near_chance(tag: str) -> None:
    (score,) = MarginTask(tag).evaluate(bag_of_words, pooling="mean").scores
    assert 0.38 < score.value < 0.62


def test_the_second_annotator_is_the_ceiling() -> None:
    for task in SUITE:
        result = task.evaluate(bag_of_words, pooling="mean")
        agreement = result.figures[task.name]["facts"]["agreement"]
        assert 0.9 < agreement <= 1
        assert result.scores[0].value < agreement


def test_order_of_words_does_not_change_overlap() -> None:
    assert word_overlap("Rebels shelled the troops.", "The troops shelled rebels.") == 1
    assert word_overlap("a", "b") == 0
