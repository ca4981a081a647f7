"""Image features and captions for caption retrieval, as plain files (SentEval's own are pickles, which run code)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from harness.errors import InputError
from harness.sources.senteval.lines import no_such_file, numbered_lines

_CAPTIONS = 5


def read_captions(folder: Path, part: str) -> tuple[NDArray[Any], list[str]]:
    """`part`.npy, (n, d) features of n images, and `part`.txt, five captions of each, one a line in the images' order.

    Raises:
        InputError: a file is missing, damaged or does not fit the other.
    """
    features, texts = folder / f"{part}.npy", folder / f"{part}.txt"
    for file in (features, texts):
        if not file.is_file():
            raise no_such_file(
                file,
                f"caption retrieval needs {part}.npy (image features, one row an image) and {part}.txt (five captions "
                "an image, one a line)",
            )
    try:
        images: NDArray[Any] = np.load(features, allow_pickle=False)
    except (ValueError, EOFError, OSError) as error:
        raise InputError(f"{features}: not a NumPy matrix ({str(error).splitlines()[0]})") from None
    if images.ndim != 2 or not np.issubdtype(images.dtype, np.floating) or not np.isfinite(images).all():
        raise InputError(f"{features}: expected an (images, features) matrix of finite floating-point numbers")
    lines = [line for _, line in numbered_lines(texts, blank=True)]
    if len(lines) != _CAPTIONS * len(images):
        raise InputError(
            f"{texts}: {len(lines)} captions for {len(images)} images; expected {_CAPTIONS} an image: "
            f"{_CAPTIONS * len(images)}"
        )
    return images, [" ".join(line.split()) or "." for line in lines]
