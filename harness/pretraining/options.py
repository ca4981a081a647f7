"""The options of `harness pretrain`: one field each, which the command line shows as it stands."""

from __future__ import annotations

from typing import Literal, Self

from pydantic import model_validator

from harness.config import Config, option

SHAPE = ("vocabulary", "lower", "layers", "width", "heads", "feed_forward")


class PretrainingConfig(Config):
    """Masked-language modelling, from scratch or continued; the defaults are the recipe of the embedded mini-bert."""

    base_model: str | None = option(None, "go on from this model: hub id, folder or embedded:NAME; empty: from scratch")
    vocabulary: int = option(16_000, "word pieces learned from the corpus (from scratch)", ge=100)
    lower: bool = option(True, "lower-case the text (from scratch)")
    layers: int = option(4, "layers (from scratch)", ge=1)
    width: int = option(256, "hidden size (from scratch)", ge=8)
    heads: int = option(4, "attention heads (from scratch)", ge=1)
    feed_forward: int | None = option(None, "width of the feed-forward layers; empty: 4 x width (from scratch)", ge=8)
    length: int | None = option(
        None, "tokens of a sequence; empty: 64 from scratch, else as many as the base model takes, 128 at most", ge=8
    )
    steps: int | None = option(None, "updates; empty: as --minutes says, or one pass over the corpus", ge=1)
    minutes: float | None = option(None, "minutes of training, evaluation included; empty: as --steps says", gt=0)
    batch_tokens: int = option(2048, "tokens per update", ge=8)
    learning_rate: float | None = option(None, "peak of AdamW; empty: 1e-3 from scratch, 1e-4 continued", gt=0)
    warmup: float = option(0.02, "share of the training with rising learning rate; then it falls to 0", ge=0, lt=1)
    weight_decay: float = option(0.01, "decoupled weight decay (none on biases and LayerNorm)", ge=0)
    beta2: float = option(0.98, "AdamW's second moment", gt=0, lt=1)
    max_grad_norm: float = option(1.0, "gradient norm is clipped to this", gt=0)
    masking: float = option(0.15, "share of the tokens to predict (of them 80 % masked, 10 % random)", gt=0, lt=1)
    dropout: float = option(0.0, "dropout while pretraining; the saved model keeps its own rates", ge=0, lt=1)
    hold_out: float = option(0.005, "share of the texts kept for validation", gt=0, le=0.5)
    eval_every: int = option(500, "updates between two evaluations", ge=1)
    log_every: int = option(50, "updates between two lines of the training curve", ge=1)
    precision: Literal["auto", "fp32", "bf16"] = option("auto", "auto takes bf16 where it measures faster")
    half: bool = option(False, "save the weights in float16")
    seed: int = option(1, "the one source of randomness", ge=0)

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        given = [name for name in SHAPE if name in self.model_fields_set]
        if self.base_model is not None and given:
            raise ValueError(f'"{given[0]}" is of a model from scratch; leave it out, or leave out base_model')
        if self.width % self.heads:
            raise ValueError(f'"width" {self.width} must be a multiple of "heads" {self.heads}')
        return self

    @property
    def peak(self) -> float:
        """The peak learning rate."""
        return self.learning_rate or (1e-3 if self.base_model is None else 1e-4)
