"""Methods whose vectors are arrays that no encoder of torch makes, under the options of every method's `encode`."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from harness.method import Method

if TYPE_CHECKING:
    import torch


class ArrayMethod(Method):
    """Subclasses write `_vectors`, and `save` and `load` of what makes them."""

    @abstractmethod
    def _vectors(self, texts: Sequence[str], **options: Any) -> NDArray[np.float32]:
        """(n, d) of n texts, at their own length; `options`: batch_size, show_progress_bar, device.

        Raises:
            NotFitted: before `fit`.
        """

    def encode(
        self,
        sentences: str | Sequence[str],
        *,
        convert_to_numpy: bool = True,
        convert_to_tensor: bool = False,
        normalize_embeddings: bool = False,
        **options: Any,
    ) -> NDArray[np.float32] | torch.Tensor:
        """As `Method.encode`: vectors (n, d) in float32, or (d,) for a single string.

        Raises:
            NotFitted: before `fit`.
            InputError: something that is not a string.
        """
        vectors = self._vectors([sentences] if isinstance(sentences, str) else sentences, **options)
        if normalize_embeddings:
            vectors = unit(vectors)
        result: NDArray[np.float32] = vectors[0] if isinstance(sentences, str) else vectors
        if convert_to_numpy and not convert_to_tensor:
            return result
        import torch

        return torch.from_numpy(result).to(options.get("device") or "cpu")


def unit(vectors: NDArray[np.float32]) -> NDArray[np.float32]:
    """Rows at unit length; rows of zeros stay."""
    scaled: NDArray[np.float32] = vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)
    return scaled
