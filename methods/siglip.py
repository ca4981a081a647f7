"""SigLIP's loss on two views: every pair of a batch is a decision of its own, without a softmax."""

from __future__ import annotations

import math
from typing import Any, ClassVar, Literal

import torch
from torch import Tensor, nn

from harness.config import option
from harness.encoder import Encoder
from harness.method import POOLING_HELP
from harness.recipes import RecipeFile
from harness.training import Batch, TrainingConfig, ViewMethod
from harness.views import ViewConfig, encode_views
from methods.objectives import sigmoid_pairs
from methods.parts.projection_heads import tanh_mlp


class SigLIPConfig(ViewConfig, TrainingConfig):
    """Defaults: the paper's loss, and the optimisation of all methods."""

    pooling: str = option("cls", POOLING_HELP)
    scale: float = option(
        10.0,
        "factor of the cosines at the start; it is learnt",
        gt=0,
        sweep=(1.0, 100.0),
        log=True,
    )
    bias: float = option(-10.0, "added to the scaled cosines at the start; it is learnt")
    head: Literal["none", "training"] = option(
        "training", "SimCSE's tanh layer, in the loss only, or none"
    )
    in_parts: ClassVar[bool] = True


class TemperatureHead(nn.Module):
    """The tanh layer or none, and the learnt scale (as its logarithm) and bias."""

    def __init__(self, mlp: nn.Module, scale: float, bias: float) -> None:
        super().__init__()
        self.mlp = mlp
        self.log_scale = nn.Parameter(torch.tensor(math.log(scale)))
        self.bias = nn.Parameter(torch.tensor(float(bias)))


class SigLIP(ViewMethod):
    """L = -(1/n) sum_ij log sigmoid( y_ij (scale cos(zA_i, zB_j) + bias) ), y_ij = 1 where i = j,
    else -1.
    """

    name = "siglip"
    version = 1
    sheet = RecipeFile.beside(__file__)
    Config = SigLIPConfig

    def heads(self, encoder: Encoder) -> nn.Module:
        training = self.config.head == "training"
        mlp = tanh_mlp(encoder.dimension) if training else nn.Identity()
        return TemperatureHead(mlp, self.config.scale, self.config.bias)

    def loss(self, encoder: Encoder, heads: Any, batch: Batch) -> dict[str, Tensor]:
        config: SigLIPConfig = self.config
        h_a, h_b = encode_views(encoder, batch, config, max_length=config.train_length)
        scale = heads.log_scale.exp()
        loss = sigmoid_pairs(
            heads.mlp(h_a),
            heads.mlp(h_b),
            scale=scale,
            bias=heads.bias,
        )
        return {"loss": loss, "scale": scale.detach(), "bias": heads.bias.detach()}
