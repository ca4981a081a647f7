"""Batches without padding: inside the transformer the tokens of all rows stand in one long row, one after another.

Embeddings, linear layers, normalisations, activations and dropout work on one token at a time, so they need no padding.
Attention alone needs rows: `harness.encoder.dropout` pads what it is given and packs what it returns, or has kernels
read them as they lie (`harness.encoder.jagged_attention`).
"""

from __future__ import annotations

import torch
from torch import Tensor


class Packing:
    """Where the tokens of a padded batch stand in a packed one.

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
        return padded.flatten(0, 1).index_select(0, self._places).unsqueeze(0)

    def pad(self, packed: Tensor) -> Tensor:
        """(1, tokens, ...) to (rows, length, ...), 0 where there is padding."""
        tokens = packed.squeeze(0)
        padded = tokens.new_zeros(self.rows * self.length, *tokens.shape[1:]).index_copy(0, self._places, tokens)
        return padded.view(self.rows, self.length, *tokens.shape[1:])

    def holds(self, tensor: Tensor) -> bool:
        """Is `tensor` (1, tokens, ...)?"""
        return tensor.dim() > 1 and tensor.shape[0] == 1 and tensor.shape[1] == self.tokens

    def part(self, first: int, last: int) -> tuple[slice, Tensor, int, int]:
        """Rows `first` to `last`: where their tokens stand in the packed batch, where each row begins among them (with
        the end of the last), and the length of the shortest and the longest. Computed once for all layers."""
        if (first, last) not in self._parts:
            lengths = self._mask.sum(1)
            begin = int(lengths[:first].sum())
            chosen = lengths[first:last]
            offsets = torch.cat([chosen.new_zeros(1), chosen.cumsum(0)])
            place = slice(begin, begin + int(offsets[-1]))
            self._parts[first, last] = place, offsets, int(chosen.min()), int(chosen.max())
        return self._parts[first, last]

    def all_meet(self, mask: Tensor) -> bool:
        """Does an attention mask (rows, 1, length or 1, length), true where a token attends, hide padding alone?"""
        for known, answer in self._known:  # layers share their mask
            if known is mask:
                return answer
        padding = self._mask.bool()[:, None, None, :].expand(-1, -1, mask.shape[2], -1)
        answer = mask.dtype == torch.bool and torch.equal(mask, padding)
        self._known.append((mask, answer))
        return answer
