"""Targets: networks without a gradient that follow the trained ones as moving averages of their
weights.
"""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from harness.views.make import encode

if TYPE_CHECKING:
    from harness.encoder import Encoder
    from harness.views import Views


@torch.no_grad()
def follow(slow: nn.Module, fast: nn.Module, momentum: float) -> None:
    """Exponential moving average of weights: slow = momentum * slow + (1 - momentum) * fast."""
    for s, f in zip(slow.parameters(), fast.parameters(), strict=True):
        s.lerp_(f, 1 - momentum)


class Following(nn.Module):
    """Projector of the trained encoder, and its target: frozen copies of the encoder and of the
    projector.

    BatchNorm's running statistics are not averaged: the target has its own.

    Args:
        with_projector: has the target a projector? If not, its outputs are the vectors of its encoder.
    """

    def __init__(
        self,
        encoder: Encoder,
        projector: nn.Module,
        *,
        with_projector: bool = True,
    ) -> None:
        super().__init__()
        self.projector = projector
        self.target_encoder = encoder.copy().requires_grad_(False)
        self.target_projector = (
            copy.deepcopy(projector).requires_grad_(False) if with_projector else None
        )

    @torch.no_grad()
    def target(self, views: Views, differ_by: str) -> tuple[Tensor, Tensor]:
        """Return the target's outputs (n, d) of both views, without gradient."""
        t_a, t_b = encode(self.target_encoder, views, differ_by)
        if self.target_projector is None:
            return t_a, t_b
        return self.target_projector(t_a), self.target_projector(t_b)

    def follow(self, encoder: Encoder, momentum: float) -> None:
        """Move the target after a training step."""
        follow(self.target_encoder, encoder, momentum)
        if self.target_projector is not None:
            follow(self.target_projector, self.projector, momentum)
