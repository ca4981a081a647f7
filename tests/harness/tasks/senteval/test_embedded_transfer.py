"""The embedded counterparts of the transfer tasks: their data, and encoders that know everything or
nothing.
"""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from harness.evaluation.scoring import evaluate
from harness.sources.embedded import FOLDER
from harness.tasks.catalogue import resolve_tasks
from harness.tasks.senteval.classifier import PROTOTYPING
from harness.tasks.senteval.suites import EMBEDDED, EMBEDDED_TRANSFER, EmbeddedTransferTask

Array = np.ndarray[Any, Any]


def test_the_suite_holds_every_labelled_file() -> None:
    tasks = resolve_tasks(["embedded-transfer"])
    assert [t.name for t in tasks] == list(EMBEDDED_TRANSFER)
    assert {(t.suite, t.source) for t in tasks} == {("embedded-transfer", "embedded")}
    used = {(part, file) for file, parts in EMBEDDED_TRANSFER.values() for part in parts}
    names = ("questions", "subjectivity", "sentiment", "paraphrase")
    assert used == {(f.parent.name, f.stem) for f in FOLDER.glob("*/*.jsonl") if f.stem in names}


def test_data_is_what_the_files_say() -> None:
    rows = [
        json.loads(line) for line in (FOLDER / "a" / "questions.jsonl").read_text().splitlines()
    ]
    data = EmbeddedTransferTask("Embedded-Questions").data
    assert data.classes == 6
    names = sorted({row["label"] for row in rows})
    for split, part in data.parts.items():
        read = [(text, names[label]) for text, label in zip(part.first, part.labels, strict=True)]
        assert read == [(row["text"], row["label"]) for row in rows if row["split"] == split]


@pytest.mark.parametrize("name", EMBEDDED_TRANSFER)
def test_the_suites_chance_is_that_of_its_equally_frequent_classes(name: str) -> None:
    labels = EmbeddedTransferTask(name).data.parts["test"].labels
    counts = np.bincount(labels)
    assert counts.max() - counts.min() <= 1
    assert EMBEDDED.chance_of(name) == pytest.approx(1 / len(counts))


def test_perfect_vectors_score_everything_and_random_ones_chance() -> None:
    task = EmbeddedTransferTask("Embedded-Subjectivity", classifier=PROTOTYPING)
    label = {
        t: y
        for part in task.data.parts.values()
        for t, y in zip(part.first, part.labels, strict=True)
    }
    rng = np.random.default_rng(0)

    def perfect(texts: list[str]) -> Array:
        return np.array([[label[t], 1 - label[t]] for t in texts], dtype=np.float32) * 10

    scores = {s.split: s for s in evaluate(perfect, [task], pooling="p").scores}
    assert (scores["test"].value, scores["test"].n) == (1.0, 100)
    assert (scores["dev"].value, scores["dev"].n) == (1.0, 200)
    chance = evaluate(lambda t: rng.standard_normal((len(t), 4)), [task], pooling="p").scores
    assert all(abs(s.value - 0.5) < 4 * np.sqrt(0.25 / s.n) for s in chance)


def test_paraphrases_are_pairs() -> None:
    task = EmbeddedTransferTask("Embedded-Paraphrase-natural", classifier=PROTOTYPING)
    assert task.features == "|u-v|, u*v"
    assert len(task.texts()) == 2 * 160
    result = evaluate(
        lambda t: np.random.default_rng(1).standard_normal((len(t), 3)), [task], pooling="p"
    )
    told = result.protocols[result.scores[0].comparable]
    assert (told["scheme"], told["preparation"], told["source"]) == (
        "k-fold on train",
        "raw text",
        "embedded",
    )
