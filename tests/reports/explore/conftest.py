"""A work directory with two rows of two seeds, scored on the embedded pairs and on one
classification.
"""

from __future__ import annotations

import zlib
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from harness.results.outcomes import outcomes_frame
from harness.results.record import Score
from harness.results.store import RunFolder, join_examples
from harness.results.text_ids import text_ids
from harness.tasks.catalogue import resolve_tasks
from tests.support.synthetic import Invented, score

PAIRS, CLASSES = "Embedded-STS-natural", "Embedded-Sentiment-contrast"


@cache
def vector_of_part(part: str) -> np.ndarray:
    """A random vector of a word or of three letters, always the same."""
    return np.random.default_rng(zlib.crc32(part.encode())).normal(size=64)


def vectors(kind: str, seed: int, texts: list[str]) -> np.ndarray:
    """Texts as sums of random vectors of their words ("words") or of their threes of letters, with
    noise by seed.
    """
    noise = np.random.default_rng(seed)
    lines = []
    for text in texts:
        plain = text.lower()
        parts = plain.split() if kind == "words" else [plain[i : i + 3] for i in range(len(plain))]
        each = [vector_of_part(part) for part in parts]
        lines.append(np.sum(each, axis=0) + 0.5 * noise.normal(size=64))
    return np.array(lines, dtype=np.float32)


@pytest.fixture(scope="session")
def explored(tmp_path_factory: pytest.TempPathFactory) -> Path:
    workdir = tmp_path_factory.mktemp("explored")
    made = Invented(workdir)
    (pairs,) = resolve_tasks([PAIRS])
    (classes,) = resolve_tasks([CLASSES])
    texts = classes.tested.first
    for row in ("words", "letters"):
        for seed in (1, 2):
            record = made.add(row, seed, tasks=(), geometry=False, curves=False)
            result = pairs.evaluate(
                lambda some, row=row, seed=seed: vectors(row, seed, list(some)), pooling="mean"
            )
            hard = np.random.default_rng(3).uniform(size=len(texts)) < (
                0.8 if row == "words" else 0.6
            )
            right = np.where(
                np.random.default_rng(seed).uniform(size=len(texts)) < 0.1, ~hard, hard
            )
            scores: list[Score] = [*result.scores]
            scores.append(
                score(
                    CLASSES, "embedded-transfer", "embedded", "accuracy", right.mean(), n=len(texts)
                )
            )
            record = made.extend(record, scores, protocols=result.protocols)
            folder = RunFolder(workdir, record.id)
            assert isinstance(result.pairs, pd.DataFrame)
            about = {"task": CLASSES, "source": "embedded", "split": "test", "metric": "accuracy"}
            outcomes = outcomes_frame(**about, outcome=right, unit=text_ids(texts))
            examples = join_examples(result.pairs, outcomes)
            assert examples is not None
            folder.write_examples(examples)
    return workdir
