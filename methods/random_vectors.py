"""Chance level: an independent random vector for every distinct sentence."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np
from numpy.typing import NDArray

from harness.config import option
from harness.errors import NotFitted
from harness.method import FitContext, MethodConfig, load_unfitted
from harness.recipes import RecipeFile
from harness.saved_method import read_saved_seed
from harness.seeds import derive, seed_fields
from methods.parts.array_method import ArrayMethod, new_folder

if TYPE_CHECKING:
    from harness.sources import TrainingText


class RandomVectorsConfig(MethodConfig):
    """Length of the vectors. No encoder is involved, so there is nothing to pool."""

    pooling: Literal["none"] = option("none", "random vectors have no pooling")
    dimension: int = option(256, "length of the vectors", ge=1, sweep=[256, 768])


class RandomVectors(ArrayMethod):
    """Standard normal vectors drawn from a hash of (seed, sentence): the same sentence always gets
    the same vector.
    """

    name = "random"
    version = 1
    sheet = RecipeFile.beside(__file__)
    Config = RandomVectorsConfig

    _seed: int | None = None

    def fit(self, corpus: TrainingText | None = None, context: FitContext | None = None) -> Self:
        """Take the seed; a corpus is ignored."""
        self._seed = (context or FitContext()).seed
        return self

    @property
    def seed(self) -> int:
        """Seed of the vectors.

        Raises:
            NotFitted: before `fit`.
        """
        if self._seed is None:
            raise NotFitted(f"{self.name} is not fitted yet: call fit() or load() first")
        return self._seed

    def num_parameters(self) -> int:
        """Return 0: nothing is stored."""
        return 0

    def _vectors(self, texts: Sequence[str], **options: Any) -> NDArray[np.float32]:
        key = derive(self.seed, "random vectors").to_bytes(8, "big")
        vectors = np.empty((len(texts), self.config.dimension), dtype=np.float32)
        for row, text in zip(vectors, texts, strict=True):
            content = text.encode("utf-8", "surrogatepass")
            digest = hashlib.blake2b(content, digest_size=16, key=key).digest()
            rng = np.random.default_rng(int.from_bytes(digest, "big"))
            row[:] = rng.standard_normal(len(row))
        return vectors

    def save(self, path: str | Path, *, card: str = "") -> None:
        """Write seed and settings: there are no weights."""
        seed = seed_fields(self.seed)
        with new_folder(self, path, card, **seed):
            pass

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Load what `save` wrote.

        Raises:
            InputError: the folder is not one, or another method's.
        """
        method = load_unfitted(cls, path)
        method._seed = read_saved_seed(path)
        return method
