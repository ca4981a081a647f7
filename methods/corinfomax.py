"""CorInfoMax on sentences: views agree, and the covariance of their projections keeps a large
determinant.
"""

from __future__ import annotations

from typing import Any, Literal

import torch
from torch import Tensor, nn

from harness.config import option
from harness.encoder import Encoder
from harness.method import POOLING_HELP
from harness.recipes import RecipeFile
from harness.training import Batch
from methods.parts.row_vectors import check_rows
from methods.parts.two_views import TwoViewConfig, TwoViewMethod


def moments(z: Tensor, mean: Tensor, covariance: Tensor, memory: float) -> tuple[Tensor, Tensor]:
    """Running mean (d,) and covariance (d, d) of what was seen before and a batch z (n, d).

    mean <- m mean + (1 - m) mean(z);  covariance <- m covariance + (1 - m) (z - mean)'(z - mean)/n,
    with the new mean
    """
    mean = memory * mean + (1 - memory) * z.mean(0)
    centred = z - mean
    covariance = memory * covariance + (1 - memory) * centred.T @ centred / len(z)
    return mean, covariance


def log_determinant(covariance: Tensor, eps: float) -> Tensor:
    """log det(R + eps I) / d of a covariance matrix R (d, d)."""
    identity = torch.eye(len(covariance), dtype=covariance.dtype, device=covariance.device)
    value: Tensor = torch.linalg.slogdet(covariance + eps * identity).logabsdet / len(covariance)
    return value


class CorInfoMaxConfig(TwoViewConfig):
    """Defaults: UNSEE's code, with a target that follows the encoder; learning rate of its one
    published script.
    """

    pooling: str = option("mean", POOLING_HELP)
    learning_rate: float = option(
        1e-4,
        "peak learning rate of AdamW",
        gt=0,
        sweep=(1e-5, 1e-3),
        log=True,
    )
    batch_size: int = option(
        32,
        "sentences (or pairs) per training step",
        ge=2,
        sweep=[32, 64, 128, 256],
    )
    epochs: int = option(1, "passes over the corpus", ge=1)
    projector_blocks: int = option(
        4,
        "UNSEE's projector of so many blocks of ten times the vectors' width; 0: that of projector",
        ge=0,
    )
    target: Literal["none", "ema"] = option(
        "ema",
        "ema: compare each view with what a slowly following copy of the encoder makes of the other",
    )
    covariance_weight: float = option(
        0.2,
        "weight of the log-determinants",
        ge=0,
        sweep=(0.02, 2.0),
        log=True,
    )
    invariance_weight: float = option(
        2000.0,
        "weight of the mean squared difference of the views",
        ge=0,
        sweep=(200.0, 2e4),
        log=True,
    )
    memory: float = option(
        0.01, "share of earlier batches in means and covariances at a training step", ge=0, lt=1
    )
    eps: float = option(1e-6, "added to the diagonal of a covariance matrix", gt=0)


class CorInfoMax(TwoViewMethod):
    """L = -w_C/d [log det(R_A + eps I) + log det(R_B + eps I)] + w_I MSE(zA, zB), R = running
    covariances.
    """

    name = "corinfomax"
    version = 1
    sheet = RecipeFile.beside(__file__)
    Config = CorInfoMaxConfig

    def heads(self, encoder: Encoder) -> nn.Module:
        """Return the projector (and target), with the moments of both branches in buffers."""
        heads: Any = super().heads(encoder)
        d = getattr(heads, "projector", heads)[-1].out_features
        heads.register_buffer("means", torch.zeros(2, d, dtype=torch.float64))
        heads.register_buffer("covariances", torch.eye(d, dtype=torch.float64).repeat(2, 1, 1))
        return heads  # type: ignore[no-any-return]

    def terms(self, z_a: Tensor, z_b: Tensor, heads: Any, batch: Batch, /) -> dict[str, Tensor]:
        config: CorInfoMaxConfig = self.config
        check_rows(z_a, z_b)
        covariance = torch.zeros((), dtype=torch.float64, device=z_a.device)
        for branch, z in enumerate((z_a.double(), z_b.double())):
            earlier_mean = heads.means[branch].clone()
            earlier_matrix = heads.covariances[branch].clone()
            mean, matrix = moments(z, earlier_mean, earlier_matrix, config.memory)
            size = log_determinant(matrix, config.eps)
            covariance = covariance - config.covariance_weight * size
            heads.means[branch] = mean.detach()
            heads.covariances[branch] = matrix.detach()

        distance = (z_a.double() - z_b.double()).square().mean()
        invariance = config.invariance_weight * distance
        return {
            "loss": covariance + invariance,
            "covariance": covariance,
            "invariance": invariance,
        }
