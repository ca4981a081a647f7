"""How many tokens an encoder processes: what a training run counts among its costs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar

from torch import Tensor

_counts: ContextVar[list[int] | None] = ContextVar("tokens", default=None)


@contextmanager
def count_tokens() -> Iterator[list[int]]:
    """Inside the block the length of every row that an encoder processes is added to the list.

    Special tokens count and padding does not; the tokens of two views count twice.

    >>> from harness.encoder import Encoder
    >>> encoder = Encoder.from_pretrained("embedded:mini-bert")
    >>> with count_tokens() as lengths:
    ...     vectors = encoder(encoder.collate(encoder.tokenize(["A dog runs."])))
    >>> lengths
    [6]
    """
    lengths: list[int] = []
    token = _counts.set(lengths)
    try:
        yield lengths
    finally:
        _counts.reset(token)


def add_tokens(rows: Tensor | Sequence[Sequence[int]]) -> None:
    """Report the rows of a pass to `count_tokens`: a mask (n, length), or rows of token ids.

    A mask on a GPU is waited for, so give that of `Network.collate`.
    """
    lengths = _counts.get()
    if lengths is not None:
        if isinstance(rows, Tensor):
            lengths += rows.sum(1).tolist()
        else:
            lengths += [len(row) for row in rows]
