"""Base classes of the methods without negatives: two views, a wide projector, and an objective on
its outputs.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import ClassVar, Literal

from torch import Tensor, nn

from harness.config import option
from harness.encoder import Encoder
from harness.errors import InputError
from harness.method import POOLING_HELP, MethodConfig
from harness.training import Batch, TrainingConfig, ViewMethod
from harness.views import ViewConfig, make_views
from harness.views.make import encode
from methods.parts.following import Following
from methods.parts.projection_heads import Widths, blocks, projector, widths_for


class TwoViewConfig(ViewConfig, TrainingConfig):
    """Defaults: Farina & Pappadopulo's protocol; what they leave open is as in SimCSE."""

    pooling: str = option("cls", POOLING_HELP)
    learning_rate: float = option(
        2e-5, "peak learning rate of AdamW", gt=0, sweep=[1e-5, 2e-5, 5e-5]
    )
    batch_size: int = option(256, "sentences (or pairs) per training step", ge=2)
    epochs: int = option(2, "passes over the corpus", ge=1)
    eval_every: int = option(60, "training steps between two evaluations on the dev set", ge=1)
    projector: Widths | None = option(
        None,
        "widths of the projector's layers; empty: three of 8192, of 4 times the base model's where that is narrow",
    )
    projector_bias: Literal["first", "hidden", "none", "all"] = option(
        "hidden", "which projector layers have a bias"
    )
    projector_init: Literal["normal", "pytorch"] = option(
        "pytorch", "N(0, 0.02) as in BERT, or PyTorch's default"
    )
    projector_blocks: int = option(
        0,
        "UNSEE's projector of so many blocks of ten times the vectors' width; 0: that of projector",
        ge=0,
        later=True,
    )
    target: Literal["none", "ema"] = option(
        "none",
        "ema: compare each view with what a slowly following copy of the encoder makes of the other",
        later=True,
    )
    target_projector: bool = option(False, "target ema: the copy has a projector too", later=True)
    momentum: float = option(
        0.999,
        "target ema: share of itself that the copy keeps at a training step",
        ge=0,
        le=1,
        later=True,
    )
    in_parts: ClassVar[bool] = True


class JointEmbeddingConfig(TwoViewConfig):
    """Options of objectives from vision that regularise how projections are distributed; what vision
    leaves open is as in SimCSE.
    """

    learning_rate: float = option(
        3e-5,
        "peak learning rate of AdamW",
        gt=0,
        sweep=(1e-5, 1e-3),
        log=True,
    )
    batch_size: int = option(
        128,
        "sentences (or pairs) per training step",
        ge=2,
        sweep=[64, 128, 256, 512],
    )
    epochs: int = option(1, "passes over the corpus", ge=1)
    eval_every: int = option(125, "training steps between two evaluations on the dev set", ge=1)
    projector: Widths = option((2048, 2048, 64), "widths of the projector's layers")


class TwoViewMethod(ViewMethod):
    """A method whose loss is a function of the projections of two views. Subclasses write `terms`.

    With a target (UNSEE) it is terms(zA, tB) + terms(zB, tA), t = what the following copy gives,
    without gradient.
    """

    Config: ClassVar[type[MethodConfig]] = TwoViewConfig

    def widths(self, encoder: Encoder) -> Widths:
        """Return the widths of the projector's layers."""
        return self.config.projector or widths_for(encoder.dimension, 8192)

    def heads(self, encoder: Encoder) -> nn.Module:
        config = self.config
        if config.projector_blocks:
            head = blocks(encoder.dimension, config.projector_blocks, init=config.projector_init)
        else:
            head = self._make_projector(encoder)
        if config.target == "none":
            return head
        return Following(encoder, head, with_projector=config.target_projector)

    def _make_projector(self, encoder: Encoder) -> nn.Sequential:
        config = self.config
        d = encoder.dimension
        widths = self.widths(encoder)
        if config.target == "ema" and not config.target_projector:
            if config.projector is None:
                widths = (*widths[:-1], d)
            if widths[-1] != d:
                raise InputError(
                    f'{self.name}: key "projector" = {list(widths)}: the target has no projector, so the last width '
                    f"must be {d}, as its vectors; or set target_projector = true",
                    key="projector",
                )
        return projector(d, widths, bias=config.projector_bias, init=config.projector_init)

    def loss(self, encoder: Encoder, heads: nn.Module, batch: Batch) -> dict[str, Tensor]:
        config = self.config
        views = make_views(batch.items, encoder, config, batch.rng, max_length=config.train_length)
        h_a, h_b = encode(encoder, views, config.differ_by)
        if not isinstance(heads, Following):
            return self.terms(heads(h_a), heads(h_b), heads, batch)

        z_a = heads.projector(h_a)
        z_b = heads.projector(h_b)
        t_a, t_b = heads.target(views, config.differ_by)
        terms_a = self.terms(z_a, t_b, heads, batch)
        terms_b = self.terms(z_b, t_a, heads, batch)
        return {name: terms_a[name] + terms_b[name] for name in terms_a}

    def after_update(self, encoder: Encoder, heads: nn.Module) -> None:
        if isinstance(heads, Following):
            heads.follow(encoder, self.config.momentum)

    @abstractmethod
    def terms(
        self,
        z_a: Tensor,
        z_b: Tensor,
        heads: nn.Module,
        batch: Batch,
        /,
    ) -> dict[str, Tensor]:
        """Return the loss of the projections (n, d) of both views as "loss", and its summands by
        name.
        """
