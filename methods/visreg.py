"""VISReg on sentences: two views agree, every feature varies, and random slices of the batch are
normally distributed.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from harness.config import option
from harness.recipes import RecipeFile
from harness.training import Batch
from methods.objectives import visreg_terms
from methods.parts.two_views import JointEmbeddingConfig, TwoViewMethod


class VISRegConfig(JointEmbeddingConfig):
    """Defaults: the paper's objective for small data; what vision leaves open is as in SimCSE."""

    weight: float = option(
        0.6,
        "share of the three regularisers in the loss (lambda; paper: 0.6 for small data, 0.9 for large)",
        ge=0,
        le=1,
        sweep=[0.3, 0.6, 0.9],
    )
    scale_weight: float = option(
        1.0,
        "weight of the features' spread around 1",
        ge=0,
        sweep=(0.1, 10.0),
        log=True,
    )
    shape_weight: float = option(
        1.0, "weight of the slices' distance from a normal distribution", ge=0
    )
    centre_weight: float = option(1.0, "weight of the features' squared means", ge=0)
    slices: int = option(4096, "random directions in which each step compares distributions", ge=1)
    eps: float = option(1e-4, "added to a standard deviation that divides", gt=0)


class VISReg(TwoViewMethod):
    """L = (1 - lambda) mean |z - mean of its views|^2 + lambda (scale + shape + centre)."""

    name = "visreg"
    version = 1
    sheet = RecipeFile.beside(__file__)
    Config = VISRegConfig

    def terms(
        self,
        z_a: Tensor,
        z_b: Tensor,
        heads: nn.Module,
        batch: Batch,
        /,
    ) -> dict[str, Tensor]:
        c: VISRegConfig = self.config
        draws = batch.rng.standard_normal((z_a.shape[1], c.slices), dtype="float32")
        return visreg_terms(
            z_a,
            z_b,
            torch.from_numpy(draws).to(z_a.device),
            weight=c.weight,
            scale=c.scale_weight,
            shape=c.shape_weight,
            centre=c.centre_weight,
            eps=c.eps,
        )
