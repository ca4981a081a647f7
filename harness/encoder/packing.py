"""Batches without padding: inside the transformer the tokens of all rows form one long row, one
after another.

Embeddings, linear layers, normalisations, activations and dropout work on one token at a time, so
they need no padding. Attention alone needs rows. On a GPU torch has kernels for rows of unequal
length (`attend`): flash attention in half precision, a memory-efficient one in fp32. A processor
has none: there, `harness.encoder.dropout` pads what attention is given and packs what it returns.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional


class Packing:
    """The places of a padded batch's tokens in a packed one.

        >>> import torch
        >>> packing = Packing(torch.tensor([[1, 1, 0], [1, 1, 1]]))
        >>> packing.pack(torch.tensor([[5, 6, 0], [7, 8, 9]]))
        tensor([[5, 6, 7, 8, 9]])

    Attributes:
        rows, length, tokens: of the padded batch, and how many of its tokens are real.
        half: the tokens of the first half of the rows, which are view a.
    """

    def __init__(self, mask: Tensor) -> None:
        """`mask` (rows, length) is 1 where a token is real."""
        self.rows, self.length = mask.shape
        self._places = mask.reshape(-1).nonzero().squeeze(1)
        self.tokens = len(self._places)
        self.half = int(mask[: self.rows // 2].sum())
        self._mask = mask
        self._parts: dict[tuple[int, int], tuple[slice, Tensor, int, int]] = {}
        self._known: list[tuple[Tensor, bool]] = []

    def pack(self, padded: Tensor) -> Tensor:
        """(rows, length, ...) to (1, tokens, ...)."""
        tokens = padded.flatten(0, 1)
        return tokens.index_select(0, self._places).unsqueeze(0)

    def pad(self, packed: Tensor) -> Tensor:
        """(1, tokens, ...) to (rows, length, ...), 0 where there is padding."""
        tokens = packed.squeeze(0)
        padded = tokens.new_zeros(self.rows * self.length, *tokens.shape[1:]).index_copy(
            0,
            self._places,
            tokens,
        )
        return padded.view(self.rows, self.length, *tokens.shape[1:])

    def is_packed(self, tensor: Tensor) -> bool:
        """Is `tensor` (1, tokens, ...)?"""
        if tensor.dim() < 2:
            return False
        return tensor.shape[0] == 1 and tensor.shape[1] == self.tokens

    def part(self, first: int, last: int) -> tuple[slice, Tensor, int, int]:
        """Rows `first` to `last`: the places of their tokens in the packed batch, where each row
        begins among them (and where the last ends), and the lengths of the shortest and the
        longest. Computed once for all layers.
        """
        if (first, last) not in self._parts:
            lengths = self._mask.sum(1)
            begin = int(lengths[:first].sum())
            chosen = lengths[first:last]
            offsets = torch.cat([chosen.new_zeros(1), chosen.cumsum(0)])
            end = begin + int(offsets[-1])
            shortest = int(chosen.min())
            longest = int(chosen.max())
            self._parts[first, last] = slice(begin, end), offsets, shortest, longest
        return self._parts[first, last]

    def all_meet(self, mask: Tensor) -> bool:
        """Does an attention mask (rows, 1, length or 1, length), true where a token attends, hide
        padding alone?
        """
        for known, answer in self._known:  # layers share their mask
            if known is mask:
                return answer
        of_keys = self._mask.bool()[:, None, None, :]
        padding = of_keys.expand(-1, -1, mask.shape[2], -1)
        answer = mask.dtype == torch.bool and torch.equal(mask, padding)
        self._known.append((mask, answer))
        return answer


def has_kernels(states: Tensor) -> bool:
    """Has the device of `states` kernels for rows of unequal length?"""
    return states.is_cuda


def fits(
    query: Tensor,
    key: Tensor,
    mask: Tensor | None,
    packing: Packing,
    options: Mapping[str, Any],
) -> bool:
    """Do all tokens of a row meet, and does the model request nothing else? Other attention has no
    such kernels.

    Args:
        mask: of the padded batch.
        options: what a model gives to transformers' attention functions besides tensors.
    """
    if query.shape[1] != key.shape[1]:
        return False
    if any(options.get(name) is not None for name in ("position_bias", "softcap")):
        return False
    return mask is not None and packing.all_meet(mask)


def attend(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    packing: Packing,
    rates: tuple[float, ...],
    scale: float | None,
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
    if len(rates) == 1:
        places = [0, packing.rows]
    else:
        places = [0, packing.rows // 2, packing.rows]
    for (first, last), rate in zip(pairwise(places), rates, strict=True):
        tokens, offsets, shortest, longest = packing.part(first, last)
        q, k, v = (
            torch.nested.nested_tensor_from_jagged(
                states[0, :, tokens].transpose(0, 1).contiguous(),
                offsets,
                min_seqlen=shortest,
                max_seqlen=longest,
            ).transpose(1, 2)
            for states in (query, key, value)
        )
        part = functional.scaled_dot_product_attention(q, k, v, dropout_p=rate, scale=scale)
        outputs.append(part.transpose(1, 2).values())
    return torch.cat(outputs).unsqueeze(0)
