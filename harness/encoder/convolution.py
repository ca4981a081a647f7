"""A module over tokens between transformer and pooling: parallel 1-d convolutions, sentence-transformers' `CNN`.

`CNN` itself lets the transformer's output at padding leak into the last tokens of a sentence, so that a vector depends
on what else is in its batch. Here padding counts as zeros, as does everything outside of the sentence. A saved model
says the same in sentence-transformers' modules by a `WordWeights` of ones before the `CNN`: it multiplies by the mask.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from harness.errors import InputError


class TokenConvolution(nn.Module):
    """Convolutions of several odd widths side by side, `filters` each, stride 1, length kept, no activation.

    IS-BERT (Zhang et al., EMNLP 2020) takes widths 1, 3 and 5 with 256 filters each.
    """

    def __init__(self, inputs: int, filters: int = 256, widths: Sequence[int] = (1, 3, 5)) -> None:
        super().__init__()
        if not widths or any(width < 1 or width % 2 == 0 for width in widths):
            raise InputError(f"the widths of a token convolution must be odd numbers, not {list(widths)}")
        if filters < 1:
            raise InputError(f"a token convolution needs at least 1 filter, not {filters}")
        self.inputs, self.filters, self.widths = inputs, filters, tuple(widths)
        self.convs = nn.ModuleList(nn.Conv1d(inputs, filters, width, padding=width // 2) for width in self.widths)

    @property
    def out_features(self) -> int:
        """d' of the token vectors: filters times widths."""
        return self.filters * len(self.widths)

    def forward(self, tokens: Tensor, mask: Tensor) -> Tensor:
        """Token vectors (n, length, d) to (n, length, d'), zero where `mask` (n, length) is 0."""
        kept = mask.unsqueeze(1).to(tokens.dtype)
        channels = tokens.transpose(1, 2) * kept
        out = torch.cat([conv(channels) for conv in self.convs], dim=1)
        return (out * kept.to(out.dtype)).transpose(1, 2)
