"""Encode once: the texts of all tasks are joined, deduplicated, encoded in one call, and shared between the tasks."""

from __future__ import annotations

import time
from collections.abc import Callable, MutableMapping, Sequence
from typing import TypeVar

import numpy as np

from harness.errors import InputError
from harness.tasks.base import Array, Encode, Task, TaskResult, checked


class EmbeddingTable:
    """The vectors of a set of texts: call it with any of them, in any order and as often as needed."""

    def __init__(self, texts: Sequence[str], vectors: Array) -> None:
        """`texts`: n distinct texts; `vectors`: (n, d)."""
        self.vectors = vectors
        self._place = {text: i for i, text in enumerate(texts)}

    def __len__(self) -> int:
        return len(self._place)

    def __call__(self, texts: Sequence[str]) -> Array:
        """(len(texts), d) float32.

        Raises:
            KeyError: a text that was not encoded, which is a fault of the task that did not announce it.
        """
        rows: Array = self.vectors[[self._place[text] for text in texts]]
        return rows


def encode_once(
    encode: Encode, texts: Sequence[str], *, cache: MutableMapping[str, Array] | None = None
) -> EmbeddingTable:
    """Encode every distinct text in one call of `encode`.

    `cache` maps text -> (d,) vector of this very encoder: texts in it are not encoded again, new ones are added. A
    dict serves for one process; anything with the same interface may keep them longer.

    Raises:
        RunError: `encode` returned the wrong number of rows, or something that is no matrix of numbers.
    """
    distinct = list(dict.fromkeys(texts))
    if cache is None:
        return EmbeddingTable(distinct, _float32(checked(encode(distinct), len(distinct))))
    missing = [text for text in distinct if text not in cache]
    if missing:
        fresh = _float32(checked(encode(missing), len(missing)))
        cache.update(zip(missing, fresh, strict=True))
    return EmbeddingTable(distinct, np.stack([cache[text] for text in distinct]))


def _float32(x: Array) -> Array:
    if x.dtype == np.float32:
        return x
    with np.errstate(over="ignore"):  # too large for float32 becomes infinity, which the tasks replace and report
        return x.astype(np.float32)


def joined(parts: Sequence[TaskResult]) -> TaskResult:
    """One result of several; their costs are added up."""
    whole = TaskResult()
    for part in parts:
        whole.scores += part.scores
        whole.protocols |= part.protocols
        whole.notes += part.notes
        whole.missing |= part.missing
        whole.cost = {key: whole.cost.get(key, 0.0) + part.cost.get(key, 0.0) for key in whole.cost | part.cost}
    frames = [part.pairs for part in parts if part.pairs is not None]
    if frames:
        import pandas as pd

        whole.pairs = pd.concat(frames, ignore_index=True)
    if whole.cost.get("encode_seconds"):
        whole.cost["sentences_per_second"] = whole.cost["sentences"] / whole.cost["encode_seconds"]
    return whole


T = TypeVar("T")


def each(tasks: Sequence[Task], ask: Callable[[Task], T]) -> tuple[list[tuple[Task, T]], dict[str, str]]:
    """What `ask` gives for every task whose data is sound, and of each other task the reason why it is left out.

    Raises:
        InputError: the data of every task is missing or damaged (the first task's fault, one of one as of many).
    """
    found: list[tuple[Task, T]] = []
    missing: dict[str, str] = {}
    first: InputError | None = None
    for task in tasks:
        try:
            found.append((task, ask(task)))
        except InputError as error:
            first = first or error
            missing[task.name] = str(error)
    if first is not None and not found:
        raise first
    return found, missing


def evaluate(
    encode: Encode,
    tasks: Sequence[Task],
    *,
    pooling: str,
    cache: MutableMapping[str, Array] | None = None,
) -> TaskResult:
    """All scores of `tasks` for one encoder, whose texts are encoded once.

    A task whose data is missing or damaged does not stop the others: it has no scores, stands in `missing` with the
    reason, and in `notes`. `pooling` names how the vectors are made (it enters the protocol ids). `cost` of the result
    has "encode_seconds", "evaluate_seconds" (scoring, without encoding), "sentences" (distinct texts) and
    "sentences_per_second".

    Raises:
        InputError: the data of every task is missing or damaged.
        RunError: `encode` returned something else than one vector a text.
    """
    readable, missing = each(tasks, lambda task: task.texts())
    texts = list(dict.fromkeys(text for _, announced in readable for text in announced))
    start = time.perf_counter()
    table = encode_once(encode, texts, cache=cache)
    encoded = time.perf_counter()
    scored, unfit = each([task for task, _ in readable], lambda task: task.evaluate(table, pooling=pooling))
    result = joined([part for _, part in scored])
    result.missing = missing | unfit
    result.notes += [f"{name}: no scores: {reason}" for name, reason in result.missing.items()]
    seconds = encoded - start
    result.cost = {
        "encode_seconds": seconds,
        "evaluate_seconds": time.perf_counter() - encoded,
        "sentences": float(len(texts)),
        "sentences_per_second": len(texts) / seconds if seconds else 0.0,
    }
    return result
