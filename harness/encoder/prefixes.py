"""One pass of an encoder, and the vectors of it cut to several widths: what a Matryoshka loss is
made of.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextvars import ContextVar
from functools import partial, wraps
from typing import Any, ParamSpec, Self, TypeVar

from torch import Tensor
from torch.nn import functional

P = ParamSpec("P")
T = TypeVar("T")


class Prefixes:
    """Gives a loss the vectors of its encoders again, with zeros behind their first `width`
    dimensions.

    A loss may be computed for one width after the other: each pass of an encoder is made once, in
    the first of them.

        >>> from harness.encoder import Encoder
        >>> encoder = Encoder.from_pretrained("embedded:mini-bert")
        >>> with Prefixes() as prefixes:
        ...     lengths = [int(encoder(["A dog runs."]).count_nonzero()) for _ in prefixes.widths((8, 256))]
        >>> lengths
        [8, 256]
    """

    def __init__(self) -> None:
        self.passes: list[Any] = []
        self.place = 0
        self.width = 0
        self.was_cut = False

    def __enter__(self) -> Self:
        self._token = _prefixes.set(self)
        return self

    def __exit__(self, *error: object) -> None:
        _prefixes.reset(self._token)

    def widths(self, widths: Iterable[int]) -> Iterator[int]:
        """Each width, for which the loss is then computed."""
        for self.width in widths:
            self.place = 0
            yield self.width

    def of(self, encode: Callable[[], T]) -> T:
        """The pass that `encode` makes; passes within it are parts of it, and whole."""
        if self.place == len(self.passes):
            token = _prefixes.set(None)
            try:
                self.passes.append(encode())
            finally:
                _prefixes.reset(token)
        self.place += 1
        result: T = self.passes[self.place - 1]
        return result

    def truncate(self, vectors: Tensor | tuple[Tensor, ...]) -> Any:
        """Vectors (n, d), or several of them, with zeros in place of what is behind the width."""
        if isinstance(vectors, tuple):
            return tuple(self.truncate(part) for part in vectors)
        self.was_cut = True
        zeros = max(0, vectors.shape[1] - self.width)
        return functional.pad(vectors[:, : self.width], (0, zeros))


_prefixes: ContextVar[Prefixes | None] = ContextVar("prefixes", default=None)


def replay_pass(*, cut: bool = False) -> Callable[[Callable[P, T]], Callable[P, T]]:
    """A pass of an encoder, which inside a `Prefixes` is made once; `cut`: it gives vectors, which
    are cut.
    """

    def decorate(encode: Callable[P, T]) -> Callable[P, T]:
        @wraps(encode)
        def replay(*args: P.args, **options: P.kwargs) -> T:
            if (prefixes := _prefixes.get()) is None:
                return encode(*args, **options)
            result = prefixes.of(partial(encode, *args, **options))
            return prefixes.truncate(result) if cut else result  # type: ignore[arg-type]

        return replay

    return decorate
