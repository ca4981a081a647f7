"""SCD: two differently dropped views repel in the embedding space and agree, feature by feature, in
a projection.
"""

from __future__ import annotations

from typing import ClassVar, Literal, Self

from pydantic import model_validator
from torch import Tensor, nn

from harness.config import option
from harness.encoder import Encoder
from harness.method import POOLING_HELP
from harness.recipes import RecipeFile
from harness.training import Batch, TrainedMethod, TrainingConfig
from harness.views.settings import both
from methods.objectives import decorrelation, self_contrast
from methods.parts.projection_heads import Widths, projector, widths_for


class SCDConfig(TrainingConfig):
    """Defaults: the released BERT command, selected by the comparison's dev set."""

    pooling: str = option("cls", POOLING_HELP)
    batch_size: int = option(192, "sentences per training step", ge=2, sweep=[64, 128, 192, 256])
    eval_every: int = option(250, "training steps between two evaluations on the dev set", ge=1)
    terms: Literal["both", "self_contrast", "decorrelation"] = option(
        "both", "both, L_S only or L_C only"
    )
    self_contrast_weight: float = option(
        1.0, "weight of the self-contrast L_S (task_alpha in the code)", ge=0
    )
    decorrelation_weight: float = option(
        0.005225,
        "weight of the decorrelation L_C (alpha; task_beta in the code)",
        ge=0,
        sweep=(1e-3, 1e-1),
        log=True,
    )
    off_diagonal_weight: float = option(
        0.012,
        "weight of the off-diagonal correlations (lambda)",
        ge=0,
        sweep=(1e-3, 1e-1),
        log=True,
    )
    temperature: float = option(0.05, "divides the mean cosine L_S; the paper has none (1)", gt=0)
    reduction: Literal["mean", "sum"] = option(
        "mean", "of the cosines over the batch; the released weights used sum"
    )
    dropout_a: float | None = option(
        0.05,
        "dropout rate of the first view (r_A); empty: the checkpoint's own",
        ge=0,
        lt=1,
        sweep=(0.0, 0.2),
    )
    dropout_b: float | None = option(
        0.155,
        "dropout rate of the second view (r_B); empty: the checkpoint's own",
        ge=0,
        lt=1,
        sweep=(0.05, 0.4),
    )
    attention_dropout: Literal["views", "checkpoint"] = option(
        "views",
        "attention probabilities: the views' two rates (code), or the checkpoint's own rate",
    )
    attention_rate_a: float | None = option(
        None,
        "first view: rate of attention probabilities alone; empty: as attention_dropout says",
        ge=0,
        lt=1,
    )
    attention_rate_b: float | None = option(
        None,
        "second view: rate of attention probabilities alone; empty: as attention_dropout says",
        ge=0,
        lt=1,
    )
    projector: Widths | None = option(
        None,
        "widths of the projector's layers; empty: three of 4096, of 4 times the base model's where that is narrow",
    )
    projector_bias: Literal["first", "hidden", "none", "all"] = option(
        "first", "which projector layers have a bias"
    )
    normalisation: Literal["center", "no_center", "literal"] = option(
        "center", "Pearson correlation (code), without centring, or Eq. 3 as printed"
    )
    literal_sign: bool = option(False, "Eq. 4's minus sign as printed, for demonstration only")
    in_parts: ClassVar[bool] = True

    @model_validator(mode="after")
    def _rates_of_both_views(self) -> Self:
        for first, second in (("dropout_a", "dropout_b"), ("attention_rate_a", "attention_rate_b")):
            given = [getattr(self, name) is not None for name in (first, second)]
            if any(given) and not all(given):
                raise ValueError(f'keys "{first}" and "{second}": give both, or leave both empty')
        return self


class SCD(TrainedMethod):
    """L = mean cos(hA, hB) / temperature + alpha [ sum_j (1 - c_jj)^2 + lambda sum_{j != k} c_jk^2
    ].
    """

    name = "scd"
    version = 1
    sheet = RecipeFile.beside(__file__)
    Config = SCDConfig

    def heads(self, encoder: Encoder) -> nn.Module:
        if self.config.terms == "self_contrast":
            return nn.Identity()
        widths = self.config.projector or widths_for(encoder.dimension, 4096)
        return projector(encoder.dimension, widths, bias=self.config.projector_bias, init="normal")

    def loss(self, encoder: Encoder, heads: nn.Module, batch: Batch) -> dict[str, Tensor]:
        config = self.config
        rates = both(config.dropout_a, config.dropout_b)
        own = both(config.attention_rate_a, config.attention_rate_b)
        attention = own or (rates if config.attention_dropout == "views" else None)
        differ_by = "set dropout_a and dropout_b, or attention_rate_a and attention_rate_b, to rates above 0"
        h_a, h_b = encoder.two_views(
            batch.texts, hidden_dropout=rates, attention_dropout=attention, differ_by=differ_by
        )
        terms: dict[str, Tensor] = {}
        if config.terms != "decorrelation":
            repel = self_contrast(h_a, h_b, temperature=config.temperature)
            if config.reduction == "sum":
                count = len(h_a)
            else:
                count = 1
            terms["self_contrast"] = config.self_contrast_weight * count * repel
        if config.terms != "self_contrast":
            terms["decorrelation"] = config.decorrelation_weight * decorrelation(
                heads(h_a),
                heads(h_b),
                off_diagonal_weight=config.off_diagonal_weight,
                normalisation=config.normalisation,
                literal_sign=config.literal_sign,
            )
        return {"loss": sum(terms.values()), **terms}  # type: ignore[dict-item]
