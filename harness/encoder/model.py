"""The encoder that the rest of the harness knows: a network, with where it comes from and where it goes."""

from __future__ import annotations

from pathlib import Path
from typing import Self

from harness.encoder.layout import loading, reading, saving
from harness.encoder.network import Network
from harness.encoder.pooling import Pooling


class Encoder(Network):
    """A `Network` that is loaded from a base model or a saved encoder, and saved."""

    @classmethod
    def from_pretrained(
        cls, name: str, *, pooling: str = "mean", max_length: int | None = None, first_layer: int = 1
    ) -> Self:
        """A base model: "embedded:NAME", a folder, or a hub id, with the pooling called `pooling`.

        `max_length` defaults to the smallest of the tokenizer's limit, the model's positions and 512.

        Raises:
            InputError: no such model, a pooling that it does not have, or a `max_length` beyond its positions.
        """
        return loading.from_pretrained(cls, name, Pooling.parse(pooling, first_layer), max_length)

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """A folder or hub id in the SentenceTransformer layout: what `save` wrote, or any other of a transformer,
        pooling, and dense or normalisation modules. A plain transformer gets mean pooling.

        Raises:
            InputError: no such model, a damaged file, or a module that we do not know.
        """
        return reading.load(cls, str(path))

    def save(self, path: str | Path, *, card: str = "") -> None:
        """Write the SentenceTransformer layout (safetensors, no code to trust) into the folder `path`.

        `SentenceTransformer(path).encode` gives the same vectors. `card` is the text of README.md below its heading.
        The folder appears whole or not at all; an earlier saved model in its place is replaced.

        Raises:
            InputError: `path` holds something that is not a saved model.
        """
        saving.save(self, Path(path), card)
