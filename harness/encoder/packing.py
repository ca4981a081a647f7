"""Batches without padding: inside the transformer the tokens of all rows stand in one long row, one after another.

Embeddings, linear layers, normalisations, activations and dropout work on one token at a time, so they need no padding.
Attention alone needs rows: `harness.encoder.dropout` pads what it is given and packs what it returns.
"""

from __future__ import annotations

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
