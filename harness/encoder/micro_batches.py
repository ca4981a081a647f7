"""A large batch encoded in parts, so that the memory of its layers is that of one part; the gradient is the batch's.

GradCache (Gao et al., RepL4NLP 2021): encode without keeping what the layers computed, let the loss see all vectors,
then go back through one part after the other, each computed again from the random numbers that it had, with the
gradient of its vectors handed in. PyTorch's checkpointing does that when each part is one of its blocks: it brings back
the generators of CPU and device and the autocast of the first pass, and complains where the second differs in shape.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor
from torch.utils.checkpoint import checkpoint

Features = dict[str, Tensor]


def cuts(rows: int, size: int | None) -> list[slice]:
    """0 .. rows - 1 in slices of `size`, the last one shorter; one slice where `size` is None."""
    size = size or max(rows, 1)
    return [slice(start, min(start + size, rows)) for start in range(0, max(rows, 1), size)]


def in_parts(encode: Callable[[Features], Tensor], parts: Sequence[Features]) -> list[Tensor]:
    """`encode` of every part; of several only the results are kept, and the backward pass encodes each once more.

    Args:
        encode: a function of its argument, the weights and the generators of random numbers alone.
        parts: on the device that encodes them: the generators of the tensors' devices are those that are brought back.
    """
    if len(parts) == 1 or not torch.is_grad_enabled():
        return [encode(features) for features in parts]
    return [checkpoint(encode, features, use_reentrant=False) for features in parts]
