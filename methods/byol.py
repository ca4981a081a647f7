"""BYOL on sentences: predict a slowly following copy's projection of the other view, without any
negatives.
"""

from __future__ import annotations

from typing import Any, ClassVar, Literal

from torch import Tensor, nn

from harness.config import option
from harness.encoder import Encoder
from harness.method import POOLING_HELP
from harness.recipes import RecipeFile
from harness.training import Batch, TrainingConfig, ViewMethod
from harness.views import ViewConfig, make_views
from harness.views.make import encode
from methods.parts.following import Following
from methods.parts.projection_heads import Widths, projector
from methods.parts.row_vectors import check_rows, full_precision, unit


@full_precision
def bootstrap(q_a: Tensor, q_b: Tensor, t_a: Tensor, t_b: Tensor) -> Tensor:
    """Each view's prediction against the target's projection of the other view, in [0, 8].

    L = (1/n) sum_i [2 - 2 cos(qA_i, tB_i)] + (1/n) sum_i [2 - 2 cos(qB_i, tA_i)],  t without
    gradient

    Args:
        q_a, q_b: (n, d) predictions of the online network. t_a, t_b: (n, d) projections of the
            target network.

    Source: BYOL Eq. 2, the squared distance of unit vectors, symmetrised as in its section 3.1.
    """
    check_rows(q_a, t_b)
    check_rows(q_b, t_a)
    forth = (unit(q_a) * unit(t_b.detach())).sum(-1).mean()
    back = (unit(q_b) * unit(t_a.detach())).sum(-1).mean()
    return 4 - 2 * (forth + back)


class BYOLConfig(ViewConfig, TrainingConfig):
    """Defaults: the vision paper's heads and momentum, SimCSE's optimisation."""

    pooling: str = option("cls", POOLING_HELP)
    projector: Widths = option((4096, 256), "widths of the projector's layers")
    predictor: int = option(4096, "width of the predictor's hidden layer", ge=1)
    head_init: Literal["normal", "pytorch"] = option(
        "pytorch", "N(0, 0.02) as in BERT, or PyTorch's default"
    )
    momentum: float = option(
        0.996,
        "share of itself that the target keeps at a training step (tau); 1: it never moves",
        ge=0,
        le=1,
    )
    target_dropout: bool = option(
        True, "does the target drop units in training as the online encoder does"
    )
    in_parts: ClassVar[bool] = True


class BYOLHeads(Following):
    """Projector and target of `Following`, and the predictor of the online encoder."""

    def __init__(self, encoder: Encoder, config: BYOLConfig) -> None:
        out = config.projector[-1]
        super().__init__(
            encoder,
            projector(encoder.dimension, config.projector, bias="hidden", init=config.head_init),
        )
        self.predictor = projector(
            out,
            (config.predictor, out),
            bias="hidden",
            init=config.head_init,
        )


class BYOL(ViewMethod):
    """L = mean over i of 4 - 2 cos(qA_i, tB_i) - 2 cos(qB_i, tA_i); the target t moves by averaging
    only.
    """

    name = "byol"
    version = 1
    sheet = RecipeFile.beside(__file__)
    Config = BYOLConfig

    def heads(self, encoder: Encoder) -> nn.Module:
        return BYOLHeads(encoder, self.config)

    def loss(self, encoder: Encoder, heads: Any, batch: Batch) -> dict[str, Tensor]:
        config: BYOLConfig = self.config
        views = make_views(batch.items, encoder, config, batch.rng, max_length=config.train_length)
        h_a, h_b = encode(encoder, views, config.differ_by)
        q_a = heads.predictor(heads.projector(h_a))
        q_b = heads.predictor(heads.projector(h_b))

        heads.target_encoder.train(config.target_dropout)
        t_a, t_b = heads.target(views, config.differ_by)
        return {"loss": bootstrap(q_a, q_b, t_a, t_b)}

    def after_update(self, encoder: Encoder, heads: Any) -> None:
        heads.follow(encoder, self.config.momentum)
