"""What Barlow Twins and VICReg share: two views, a wide projector, and an objective on its outputs."""

from __future__ import annotations

from abc import abstractmethod
from typing import ClassVar, Literal

from torch import Tensor, nn

from harness.config import option
from harness.encoder import Encoder
from harness.method import POOLING_HELP, MethodConfig, Supervision, Text
from harness.training import Batch, TrainedMethod, TrainingConfig
from harness.views import ViewConfig, encode_views
from methods.parts.projection_heads import Widths, projector, widths_for


class TwoViewConfig(ViewConfig, TrainingConfig):
    """Defaults: Farina & Pappadopulo's protocol; what they leave open is as in SimCSE."""

    pooling: str = option("cls", POOLING_HELP)
    learning_rate: float = option(2e-5, "peak learning rate of AdamW", gt=0, sweep=[1e-5, 2e-5, 5e-5])
    batch_size: int = option(256, "sentences (or pairs) per training step", ge=2)
    epochs: int = option(2, "passes over the corpus", ge=1)
    eval_every: int = option(60, "training steps between two evaluations on the dev set", ge=1)
    projector: Widths | None = option(
        None, "widths of the projector's layers; empty: three of 8192, of 4 times the base model's where that is narrow"
    )
    projector_bias: Literal["first", "hidden", "none", "all"] = option("hidden", "which projector layers have a bias")
    projector_init: Literal["normal", "pytorch"] = option("pytorch", "N(0, 0.02) as in BERT, or PyTorch's default")
    in_parts: ClassVar[bool] = True


class ViewMethod(TrainedMethod):
    """A method whose config is a `ViewConfig` too: its view decides which text it needs and what was known of it."""

    @property
    def text(self) -> Text:
        return "pairs" if "paraphrase" in self.config.views else self.card.text

    @property
    def supervision(self) -> Supervision:
        c = self.config
        return "supervised" if "paraphrase" in c.views and c.pairs_are_labelled else self.card.supervision

    @property
    def inputs(self) -> dict[str, str]:
        if "eda" not in self.config.views:
            return {}
        from harness.views.wordnet import load

        return {"wordnet": load().sha256}


class TwoViewMethod(ViewMethod):
    """A method whose loss is a function of the projections of two views. Subclasses write `terms`."""

    Config: ClassVar[type[MethodConfig]] = TwoViewConfig

    def heads(self, encoder: Encoder) -> nn.Module:
        config = self.config
        widths = config.projector or widths_for(encoder.dimension, 8192)
        return projector(encoder.dimension, widths, bias=config.projector_bias, init=config.projector_init)

    def loss(self, encoder: Encoder, heads: nn.Module, batch: Batch) -> dict[str, Tensor]:
        h_a, h_b = encode_views(encoder, batch, self.config, max_length=self.config.train_length)
        return self.terms(heads(h_a), heads(h_b))

    def objective(self, z_a: Tensor, z_b: Tensor) -> Tensor:
        """The loss of the projections (n, d) of both views, a scalar."""
        return self.terms(z_a, z_b)["loss"]

    @abstractmethod
    def terms(self, z_a: Tensor, z_b: Tensor) -> dict[str, Tensor]:
        """The same as "loss", and what it is the sum of, by name."""
