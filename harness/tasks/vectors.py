"""The vectors of a set of texts: encoded once, shared between the tasks."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import numpy as np

from harness.errors import RunError
from harness.seeds import numpy_generator
from harness.tasks.base import Array, Encode, check_vectors


class VectorStore(Protocol):
    """Text -> (d,) vector of one encoder: a dict, or a store that outlives it."""

    def __contains__(self, text: object, /) -> bool: ...

    def __getitem__(self, text: str, /) -> Array: ...

    def update(self, vectors: Iterable[tuple[str, Array]], /) -> None: ...


KEPT_BYTES = 2**28  # vectors of texts that were not announced, which are stored for the next task


@dataclass(frozen=True)
class Origin:
    """Whose vectors a table holds, for tasks that file results of their own.

    Attributes:
        name: "harness/METHOD"; `revision`: hash of all that the vectors depend on.
        results: a folder for results that may be read again in place of evaluating, None to keep
            none.
    """

    name: str
    revision: str
    results: Path | None = None


UNNAMED = Origin("harness/unnamed", "unknown")


class EmbeddingTable:
    """The vectors of a set of texts: call it with any of them, in any order and as often as needed.

    Attributes:
        seconds: spent on encoding; `fresh`: how many texts were encoded (the others came from a
            cache); `requested`: how many texts beyond the announced ones were requested.
    """

    def __init__(
        self,
        texts: Sequence[str],
        vectors: Array,
        *,
        fresh: int | None = None,
        seconds: float = 0.0,
        more: Callable[[list[str]], EmbeddingTable] | None = None,
        origin: Origin = UNNAMED,
    ) -> None:
        """`texts`: n distinct texts; `vectors`: (n, d); `more` encodes what is not among them, once
        for all tasks as long as `KEPT_BYTES` hold it.
        """
        self.vectors = vectors
        if fresh is None:
            self.fresh = len(texts)
        else:
            self.fresh = fresh
        self.seconds = seconds
        self.requested = 0
        self.origin = origin
        self._place = {text: i for i, text in enumerate(texts)}
        self._more = more
        self._kept: dict[str, Array] = {}
        self._kept_bytes = 0

    def __len__(self) -> int:
        return len(self._place)

    def __call__(self, texts: Sequence[str]) -> Array:
        """(len(texts), d) float32.

        Raises:
            KeyError: a text that was not encoded, in a table that cannot encode: a fault of the
                task that did not announce it.
        """
        more = self._more
        if more is None or all(text in self._place for text in texts):
            numbers = [self._place[text] for text in texts]
            rows: Array = self.vectors[numbers]
            return rows
        known = self._encode_missing(more, texts)
        return np.stack(
            [known[text] if text in known else self.vectors[self._place[text]] for text in texts]
        )

    def _encode_missing(
        self,
        more: Callable[[list[str]], EmbeddingTable],
        texts: Sequence[str],
    ) -> dict[str, Array]:
        """Vectors of those `texts` that were not announced, from before or encoded now."""
        known = {text: self._kept[text] for text in texts if text in self._kept}
        unknown = []
        for text in dict.fromkeys(texts):
            if text not in self._place and text not in known:
                unknown.append(text)
        if not unknown:
            return known
        encoded = more(unknown)
        self.seconds += encoded.seconds
        self.fresh += encoded.fresh
        self.requested += len(unknown)
        fresh = dict(zip(unknown, encoded.vectors, strict=True))
        if self._kept_bytes + encoded.vectors.nbytes <= KEPT_BYTES:
            self._kept |= fresh
            self._kept_bytes += encoded.vectors.nbytes
        return known | fresh


def encode_once(
    encode: Encode,
    texts: Sequence[str],
    *,
    cache: VectorStore | None = None,
) -> EmbeddingTable:
    """Encode every distinct text in one call of `encode`.

    `cache` holds vectors of this very encoder: texts in it are not encoded again, new ones are
    added.

    Raises:
        RunError: `encode` returned the wrong number of rows, or something that is no matrix of
            numbers.
    """
    distinct = list(dict.fromkeys(texts))
    if cache is not None:
        known = {text: cache[text] for text in distinct if text in cache}
    else:
        known = {}
    unknown = [text for text in distinct if text not in known]
    if known and not unknown:
        return EmbeddingTable(distinct, np.stack(list(known.values())), fresh=0)
    start = time.perf_counter()
    found = encode(list(unknown))  # which an `encode` may change
    vectors = _float32(check_vectors(found, len(unknown)))
    seconds = time.perf_counter() - start
    if cache is not None:
        cache.update(zip(unknown, vectors, strict=True))
    if known:
        width = len(next(iter(known.values())))
        if width != vectors.shape[1]:
            raise RunError(
                f"encode returned vectors of {vectors.shape[1]} numbers, but of {width} before"
            )
        known |= zip(unknown, vectors, strict=True)
        vectors = np.stack([known[text] for text in distinct])
    return EmbeddingTable(distinct, vectors, fresh=len(unknown), seconds=seconds)


def encode_few(encode: Encode, texts: Sequence[str], count: int) -> EmbeddingTable:
    """Encode `count` of n distinct texts, drawn by chance; every other text gets the vector of one
    of these, drawn too.

    So a rehearsal scores a task in its full shape, and encodes little.

        >>> import numpy as np
        >>> table = encode_few(lambda texts: np.array([[len(text)] for text in texts]), ["a", "bb", "ccc"], 2)
        >>> table.fresh, table(["a", "bb", "ccc"]).shape, len(np.unique(table.vectors))
        (2, (3, 1), 2)

    Raises:
        RunError: as `encode_once`.
    """
    draw = numpy_generator(0, "sentences of a rehearsal")
    chosen = draw.permutation(len(texts))[:count]
    few = encode_once(encode, [texts[i] for i in chosen])
    places = draw.integers(len(chosen), size=len(texts))
    places[chosen] = np.arange(len(chosen))
    return EmbeddingTable(texts, few.vectors[places], fresh=few.fresh, seconds=few.seconds)


def _float32(x: Array) -> Array:
    if x.dtype == np.float32:
        return x
    with np.errstate(
        over="ignore"
    ):  # too large for float32 becomes infinity, which the tasks replace and report
        return x.astype(np.float32)
