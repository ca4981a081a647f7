"""Small corpora of labelled pairs, made for tests."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from harness.sources import Corpus, load_corpus

COLUMNS = {"anchor": "premise", "positive": "hypothesis", "label": "label"}
ROWS = [
    ("a dog runs", "an animal moves", "entailment"),
    ("a dog runs", "the dog sleeps", "contradiction"),
    ("a dog runs", "the dog is old", "neutral"),
    ("two men eat", "people eat", "entailment"),
    ("two men eat", "nobody eats", "contradiction"),
    ("two men eat", "they are friends", "neutral"),
]


def make_labelled_pairs(
    folder: Path, rows: Sequence[tuple[str, str, str]] = ROWS, *, times: int = 1
) -> Corpus:
    """Make a corpus of pairs with labels; `times` repeats the rows."""
    file = folder / "labelled.jsonl"
    keys = ("premise", "hypothesis", "label")
    lines = [json.dumps(dict(zip(keys, row, strict=True))) + "\n" for row in rows]
    file.write_text("".join(lines) * times)
    return load_corpus(str(file), kind="pairs", columns=COLUMNS)
