"""InfoNCE: SimCSE's loss on any two views, such as crops of a document."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Literal

from torch import nn

from harness.config import option
from harness.method import POOLING_HELP, MethodConfig
from harness.recipes import RecipeFile
from harness.training import Batch, TrainingConfig
from harness.views import ViewConfig, encode_views
from methods.objectives import nt_xent
from methods.parts.projection_heads import tanh_mlp
from methods.parts.two_views import ViewMethod

if TYPE_CHECKING:
    from torch import Tensor

    from harness.encoder import Encoder


class InfoNCEConfig(ViewConfig, TrainingConfig):
    """Defaults: the loss of González-Márquez et al., and the optimisation of all methods."""

    pooling: str = option("mean", POOLING_HELP)
    temperature: float = option(0.05, "divides the cosines", gt=0, sweep=(0.001, 1.0), log=True)
    directions: Literal[1, 2] = option(
        1, "1: the first view finds the second; 2: also the second the first, averaged"
    )
    head: Literal["none", "training"] = option(
        "none", "SimCSE's tanh layer, in the loss only, or none"
    )
    in_parts: ClassVar[bool] = True


class InfoNCE(ViewMethod):
    """L = mean over i of -log softmax_j( cos(zA_i, zB_j) / temperature ) at j = i, of the two views
    A and B.
    """

    name = "infonce"
    version = 1
    sheet = RecipeFile.beside(__file__)
    Config: ClassVar[type[MethodConfig]] = InfoNCEConfig

    def heads(self, encoder: Encoder) -> nn.Module:
        return tanh_mlp(encoder.dimension) if self.config.head == "training" else nn.Identity()

    def loss(self, encoder: Encoder, heads: nn.Module, batch: Batch) -> dict[str, Tensor]:
        config: InfoNCEConfig = self.config
        h_a, h_b = encode_views(encoder, batch, config, max_length=config.train_length)
        z_a = heads(h_a)
        z_b = heads(h_b)
        loss = nt_xent(z_a, z_b, temperature=config.temperature)
        if config.directions == 2:
            loss = (loss + nt_xent(z_b, z_a, temperature=config.temperature)) / 2
        return {"loss": loss}
