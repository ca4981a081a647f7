"""Vectors of unit length as a last module."""

from __future__ import annotations

from torch import Tensor, nn
from torch.nn import functional


class Normalize(nn.Module):
    """Scale rows to unit length."""

    def forward(self, vectors: Tensor) -> Tensor:
        """(n, d) to (n, d)."""
        return functional.normalize(vectors, dim=-1)
