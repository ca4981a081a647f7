"""Training text as a caller has it in hand: the same corpus as a file of it, and one line for anything else."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from datasets import Dataset, DatasetDict

from harness import registry
from harness.errors import InputError
from harness.sources import Kind, Pair, TrainingText, corpus_of, load_corpus

TEXTS = ["A dog runs.", " Two children play chess. ", "It rains in the hills."]
PAIRS = [("a dog", "a hound"), ("rain", "wet weather")]
TRIPLES = [("a dog", "a hound", "a cat"), ("rain", "wet weather", "sunshine")]
ROLES = ("anchor", "positive", "negative")


def file_of(folder: Path, kind: Kind) -> str:
    """What the lists hold, as a file."""
    if kind != "pairs":
        (folder / "texts.txt").write_text("\n".join(TEXTS) + "\n\n")
        return str(folder / "texts.txt")
    rows = [dict(zip(ROLES, row, strict=True)) for row in TRIPLES]
    (folder / "pairs.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return str(folder / "pairs.jsonl")


@pytest.mark.parametrize(
    ("kind", "given"),
    [
        ("sentences", TEXTS),
        ("sentences", [*TEXTS, ""]),
        ("documents", tuple(TEXTS)),
        ("sentences", Dataset.from_dict({"id": [1, 2, 3], "text": TEXTS})),
        ("documents", Dataset.from_dict({"document": TEXTS})),
        ("sentences", np.array(TEXTS)),
        ("pairs", TRIPLES),
        ("pairs", [list(triple) for triple in TRIPLES]),
        ("pairs", [Pair(*triple) for triple in TRIPLES]),
        ("pairs", [dict(zip(ROLES, triple, strict=True)) for triple in TRIPLES]),
        ("pairs", Dataset.from_list([dict(zip(ROLES, triple, strict=True)) for triple in TRIPLES])),
    ],
)
def test_what_is_given_is_the_corpus_of_its_file(tmp_path: Path, kind: Kind, given: TrainingText) -> None:
    of_file = load_corpus(file_of(tmp_path, kind), kind=kind)
    corpus = corpus_of(given, kind)
    assert (corpus.kind, corpus.sha256, list(corpus)) == (kind, of_file.sha256, list(of_file))
    assert len(corpus_of(given, kind, limit=2)) == 2


def test_paths_and_corpora_are_taken_as_they_are(tmp_path: Path) -> None:
    path = file_of(tmp_path, "sentences")
    corpus = load_corpus(path)
    assert corpus_of(corpus, "pairs") is corpus  # whoever asks says what is wrong with it
    assert corpus_of(path, "sentences").sha256 == corpus_of(Path(path), "sentences").sha256 == corpus.sha256
    assert len(corpus_of("embedded:pairs", "pairs", limit=5)) == 5


def test_pairs_without_negatives_and_with_labels() -> None:
    assert list(corpus_of(PAIRS, "pairs")) == [Pair(*pair) for pair in PAIRS]
    labelled = [Pair("a", "b", label="neutral"), Pair("c", "d", "e")]
    assert list(corpus_of(labelled, "pairs")) == labelled


@pytest.mark.parametrize(
    ("kind", "given", "message"),
    [
        ("sentences", 3, "expected a list of texts .str., a datasets.Dataset, a path or a Corpus, not int"),
        ("sentences", {"text": TEXTS}, "not dict"),
        ("sentences", b"bytes", "not bytes"),
        ("sentences", ["a", 2], "item 1: expected texts .str., not int"),
        ("sentences", PAIRS, "item 0: expected texts .str., not tuple"),
        ("pairs", TEXTS, "item 0: expected pairs of texts"),
        ("pairs", [("a", None), ("b", "c")], "needs at least 2 pairs, not 1"),
        ("pairs", [("a", 1), ("b", "c")], "item 0: expected pairs of texts"),
        ("pairs", [("a", "b", "c", "d", "e")], "item 0: expected pairs of texts"),
        ("sentences", ["one", "", " "], "at least 2 sentences, not 1"),
        ("sentences", ["fine", "half \ud83d"], "item 1: holds half a character"),
        ("sentences", Dataset.from_dict({"phrase": TEXTS}), 'need a column "text"; there are: phrase'),
        ("pairs", Dataset.from_dict({"anchor": TEXTS}), 'need columns "anchor" and "positive"; there are: anchor'),
        ("sentences", DatasetDict(train=Dataset.from_dict({"text": TEXTS})), "a set of splits .train.: give one"),
    ],
)
def test_anything_else_is_one_clear_line(kind: Kind, given: Any, message: str) -> None:
    with pytest.raises(InputError, match=message) as raised:
        corpus_of(given, kind)
    assert "\n" not in str(raised.value)


def test_methods_learn_from_lists_as_from_corpora() -> None:
    whitening = registry.load(registry.METHODS, "whitening")
    by_list, by_corpus = whitening().fit(TEXTS), whitening().fit(corpus_of(TEXTS, "sentences"))
    np.testing.assert_array_equal(by_list.encode(TEXTS), by_corpus.encode(TEXTS))
    simcse = registry.load(registry.METHODS, "simcse")
    method = simcse(simcse.configure({"batch_size": 2, "max_steps": 1, "min_rank": 1}))
    assert method.fit(TEXTS) is method
    assert method.encode("A cat sleeps.").shape == (256,)
    with pytest.raises(InputError, match="item 0: expected texts"):
        simcse().fit(PAIRS)
    concat = registry.load(registry.METHODS, "concat")
    parts = {"parts": [{"method": "pooling"}, {"method": "whitening"}]}
    assert concat(concat.configure(parts)).fit(TEXTS).encode(TEXTS).shape[0] == 3
