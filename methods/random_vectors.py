"""Chance level: an independent random vector for every distinct sentence."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Literal, Self

from harness.config import option
from harness.errors import NotFitted
from harness.method import FitContext, Method, MethodCard, MethodConfig, saved_seed, unfitted
from harness.seeds import derive, seed_fields
from methods.parts.saved_folder import new_folder

if TYPE_CHECKING:
    import numpy as np
    import torch

    from harness.sources import TrainingText


class RandomVectorsConfig(MethodConfig):
    """No encoder is involved, so there is nothing to pool."""

    pooling: Literal["none"] = option("none", "random vectors have no pooling")
    dimension: int = option(256, "length of the vectors", ge=1, sweep=[256, 768])


class RandomVectors(Method):
    """Standard normal vectors drawn from a hash of (seed, sentence): the same sentence always gets the same vector."""

    name = "random"
    card = MethodCard(
        title="Random vectors",
        paper="sanity check: correlations must be about 0",
        notes="Reads no base model. It has no weights, so a saved one is its seed and settings.",
    )
    Config: ClassVar[type[MethodConfig]] = RandomVectorsConfig

    _seed: int | None = None

    def fit(self, corpus: TrainingText | None = None, context: FitContext | None = None) -> Self:
        """Take the seed; a corpus is ignored."""
        self._seed = (context or FitContext()).seed
        return self

    @property
    def seed(self) -> int:
        """The fitted seed.

        Raises:
            NotFitted: before `fit`.
        """
        if self._seed is None:
            raise NotFitted(f"{self.name} is not fitted yet: call fit() or load() first")
        return self._seed

    def parameters(self) -> int:
        """0: nothing is stored."""
        return 0

    def encode(
        self,
        sentences: str | Sequence[str],
        *,
        batch_size: int = 64,
        show_progress_bar: bool = False,
        convert_to_numpy: bool = True,
        convert_to_tensor: bool = False,
        normalize_embeddings: bool = False,
        device: str | None = None,
    ) -> np.ndarray | torch.Tensor:
        """Vectors (n, d) in float32, or (d,) for a single string.

        Raises:
            NotFitted: before `fit`.
        """
        import numpy as np

        key = derive(self.seed, "random vectors").to_bytes(8, "big")
        texts = [sentences] if isinstance(sentences, str) else sentences
        vectors = np.empty((len(texts), self.config.dimension), dtype=np.float32)
        for row, text in zip(vectors, texts, strict=True):
            digest = hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16, key=key).digest()
            row[:] = np.random.default_rng(int.from_bytes(digest, "big")).standard_normal(len(row))
        if normalize_embeddings:
            vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
        result = vectors[0] if isinstance(sentences, str) else vectors
        if convert_to_tensor or not convert_to_numpy:
            import torch

            return torch.from_numpy(result).to(device or "cpu")
        return result

    def save(self, path: str | Path, *, card: str = "") -> None:
        """Write seed and settings: there are no weights."""
        seed = seed_fields(self.seed)
        with new_folder(self, path, card, **seed):
            pass

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """What `save` wrote.

        Raises:
            InputError: the folder is not one, or another method's.
        """
        method = unfitted(cls, path)
        method._seed = saved_seed(path)
        return method
