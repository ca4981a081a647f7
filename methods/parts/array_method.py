"""Base class of methods whose vectors are arrays that no encoder of torch makes, and the folders of
methods that are no single encoder.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from harness.encoder.layout import card_text, make_sentence_transformer, stage_folder
from harness.errors import InputError
from harness.method import Method
from harness.saved_method import METHOD_FILE, write_settings

if TYPE_CHECKING:
    import torch


class ArrayMethod(Method):
    """Subclasses write `_vectors`, and `save` and `load` of what makes them."""

    @abstractmethod
    def _vectors(self, texts: Sequence[str], **options: Any) -> NDArray[np.float32]:
        """Return (n, d) of n texts, not normalised; `options`: batch_size, show_progress_bar, device.

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
        """Encode as `Method.encode` does: vectors (n, d) in float32, or (d,) for a single string.

        Raises:
            NotFitted: before `fit`.
            InputError: something that is not a string.
        """
        single = isinstance(sentences, str)
        vectors = self._vectors([sentences] if isinstance(sentences, str) else sentences, **options)
        if normalize_embeddings:
            vectors = unit(vectors)
        if single:
            result: NDArray[np.float32] = vectors[0]
        else:
            result = vectors
        if convert_to_numpy and not convert_to_tensor:
            return result
        import torch

        return torch.from_numpy(result).to(options.get("device") or "cpu")


def unit(vectors: NDArray[np.float32]) -> NDArray[np.float32]:
    """Scale rows to unit length; rows of zeros stay."""
    norms = np.linalg.norm(vectors, axis=1, keepdims=True)
    scaled: NDArray[np.float32] = vectors / np.maximum(norms, 1e-12)
    return scaled


@contextmanager
def new_folder(method: Method, path: str | Path, card: str = "", **more: Any) -> Iterator[Path]:
    """Yield a folder to write into; it takes the place of `path` when the block ends well, and
    vanishes when it does not.

    README.md and the file that says how the method was configured, and `more`, are added; so is
    modules.json where the block wrote none, so that sentence-transformers opens the folder. An
    earlier saved method is replaced.

    Raises:
        InputError: `path` holds something that is not a saved method.
    """
    path = Path(path)
    if path.exists() and not _can_be_replaced(path):
        raise InputError(
            f"{path} exists and is not a saved method",
            file=path,
            remedy="choose another folder or remove it",
        )
    with stage_folder(path) as staged:
        yield staged
        write_settings(
            staged,
            method=method.name,
            base_model=method.base_model,
            config=method.config,
            **more,
        )
        title = f"# {method.card.title}"
        text = card_text(card.strip() or title, ours=make_sentence_transformer(staged))
        (staged / "README.md").write_text(text, "utf-8")


def _can_be_replaced(path: Path) -> bool:
    """True for an empty folder or a saved method."""
    if not path.is_dir():
        return False
    return (path / METHOD_FILE).exists() or not any(path.iterdir())
