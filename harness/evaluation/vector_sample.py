"""A few of the vectors that a run was scored by, kept with it: what a map of its space is drawn from.

The same texts for every run: of each task those whose ids come first when hashed, and of a task of pairs whole pairs.
Half precision, by id and without their words: 40 texts of 768 numbers are 61 KB a task.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from harness.results.text_ids import text_id
from harness.tasks.base import Array, Task, Vectors, finite

if TYPE_CHECKING:
    import pandas as pd

TEXTS = 40  # of a task
_LARGEST = float(np.finfo(np.float16).max)


def vector_sample(task: Task, texts: Sequence[str], vectors: Vectors, pairs: pd.DataFrame | None) -> pd.DataFrame:
    """Rows of `SAMPLE` (see `harness.results.vector_samples`) for a task that announced its texts.

    Args:
        pairs: what the task scored, where it scores pairs.
    """
    from harness.results.vector_samples import frame

    by_id = {text_id(text): text for text in reversed(dict.fromkeys(texts))}  # of texts with one id the first
    chosen = _of_pairs(pairs, by_id) if pairs is not None and "text1" in pairs else _first(by_id)
    matrix = half(vectors([by_id[one] for one in chosen])) if chosen else np.empty((0, 0), dtype=np.float16)
    return frame(task.name, task.source, chosen, matrix)


def _first(by_id: dict[int, str]) -> list[int]:
    """Ids are hashes: their order says nothing of the texts."""
    return sorted(by_id)[:TEXTS]


def _of_pairs(pairs: pd.DataFrame, by_id: dict[int, str]) -> list[int]:
    both = sorted(zip(pairs["text1"].tolist(), pairs["text2"].tolist(), strict=True))
    ids = dict.fromkeys(one for pair in both if all(one in by_id for one in pair) for one in pair)
    return list(ids)[:TEXTS]


def half(vectors: Array) -> Array:
    """Unit-length vectors (n, d) in half precision: a map is of directions, and these lose nothing by their length."""
    wide = finite(np.asarray(vectors, dtype=np.float64))[0]
    norms = np.linalg.norm(wide, axis=1, keepdims=True)
    return np.clip(wide / np.where(norms > 0, norms, 1.0), -_LARGEST, _LARGEST).astype(np.float16)
