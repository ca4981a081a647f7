"""Attention over a packed batch by kernels that read its rows as they lie, each of its own length.

On a GPU torch has such kernels: flash attention in half precision, a memory-efficient one in fp32. A processor has
none: there, rows are padded for attention alone (`harness.encoder.dropout`).
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from harness.encoder.packing import Packing


def has_kernels(states: Tensor) -> bool:
    """Has the device of `states` kernels for rows of unequal length?"""
    return states.is_cuda


def fits(query: Tensor, key: Tensor, mask: Tensor | None, packing: Packing, options: Mapping[str, Any]) -> bool:
    """Do all tokens of a row meet, and nothing besides is asked for? Other attention has no such kernels.

    Args:
        mask: of the padded batch.
        options: what a model gives to transformers' attention functions beside tensors.
    """
    if query.shape[1] != key.shape[1] or any(options.get(name) is not None for name in ("position_bias", "softcap")):
        return False
    return mask is not None and packing.all_meet(mask)


def attend(
    query: Tensor, key: Tensor, value: Tensor, packing: Packing, rates: tuple[float, ...], scale: float | None
) -> Tensor:
    """softmax(q k^T scale) v inside each row.

    Args:
        query, key, value: (1, heads, tokens, d of a head), packed.
        rates: dropout of the probabilities: of all rows, or of view a and view b.
        scale: of the products; d ** -0.5 when None.

    Returns:
        (1, tokens, heads, d of a head).
    """
    outputs = []
    places = [0, packing.rows] if len(rates) == 1 else [0, packing.rows // 2, packing.rows]
    for (first, last), rate in zip(pairwise(places), rates, strict=True):
        tokens, offsets, shortest, longest = packing.part(first, last)
        q, k, v = (
            torch.nested.nested_tensor_from_jagged(
                states[0, :, tokens].transpose(0, 1).contiguous(), offsets, min_seqlen=shortest, max_seqlen=longest
            ).transpose(1, 2)
            for states in (query, key, value)
        )
        part = functional.scaled_dot_product_attention(q, k, v, dropout_p=rate, scale=scale)
        outputs.append(part.transpose(1, 2).values())
    return torch.cat(outputs).unsqueeze(0)
