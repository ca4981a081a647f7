"""LeJEPA on sentences: two views agree, and random projections of each follow a standard normal
distribution.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from harness.config import option
from harness.recipes import RecipeFile
from harness.training import Batch
from methods.objectives import Window, lejepa
from methods.parts.two_views import JointEmbeddingConfig, TwoViewMethod


class LeJEPAConfig(JointEmbeddingConfig):
    """Defaults: the paper's objective and projector; what vision leaves open is as in SimCSE."""

    weight: float = option(
        0.05,
        "share of the distance from a normal distribution in the loss (lambda)",
        ge=0,
        le=1,
        sweep=[0.01, 0.05, 0.2],
    )
    slices: int = option(1024, "random directions in which each step compares distributions", ge=1)
    points: int = option(17, "places at which characteristic functions are compared", ge=2)
    range: float = option(5.0, "these places lie between minus and plus this", gt=0)
    window: Window = option(
        "half", "their weights: half, exp(-t^2/2), the paper's algorithm; full, exp(-t^2), its text"
    )
    stacked: bool = option(
        False, "one distribution of both views together, in place of one of each"
    )


class LeJEPA(TwoViewMethod):
    """L = (1 - lambda) mean |z - mean of its views|^2 + lambda SIGReg(z), z = projections that
    nothing scales.
    """

    name = "lejepa"
    version = 1
    sheet = RecipeFile.beside(__file__)
    Config = LeJEPAConfig

    def terms(
        self,
        z_a: Tensor,
        z_b: Tensor,
        heads: nn.Module,
        batch: Batch,
        /,
    ) -> dict[str, Tensor]:
        c: LeJEPAConfig = self.config
        draws = batch.rng.standard_normal((z_a.shape[1], c.slices), dtype="float32")
        return lejepa(
            z_a,
            z_b,
            torch.from_numpy(draws).to(z_a.device),
            weight=c.weight,
            points=c.points,
            limit=c.range,
            window=c.window,
            stacked=c.stacked,
        )
