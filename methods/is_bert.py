"""IS-BERT: a sentence vector shares information with the n-grams of its own sentence, and not with
those of others.
"""

from __future__ import annotations

import math
from typing import Any, Literal

import torch
from pydantic import field_validator
from torch import Tensor, nn
from torch.nn import functional

from harness.config import option
from harness.encoder import Encoder
from harness.recipes import RecipeFile
from harness.training import Batch, TrainedMethod, TrainingConfig
from methods.parts.optimizers import adamw


def jensen_shannon_information(
    local: Tensor,
    mask: Tensor,
    vectors: Tensor,
) -> tuple[Tensor, Tensor]:
    """Jensen-Shannon estimate of mutual information in two halves; the loss is their sum (in nats).

    s_ti = f_t . g_i for all T tokens of the batch and all n sentences:

        own    = (1/T)         sum_t                     (softplus(-s_t,sent(t)) - ln 2)
        others = (1/(T (n-1))) sum_t sum_{i != sent(t)}  (softplus(s_ti) - ln 2)

    A single sentence has no others: that half is 0.

    Args:
        local: f, token features (n, length, d). mask: (n, length), 0 where there is no token.
        vectors: g, sentence vectors (n, d).

    Returns:
        own, others: scalars, computed in float32 at least.
    """
    if (
        local.ndim != 3
        or mask.shape != local.shape[:2]
        or vectors.shape != (local.shape[0], local.shape[2])
    ):
        raise ValueError(
            "expected (n, length, d), (n, length) and (n, d), got "
            f"{tuple(local.shape)}, {tuple(mask.shape)} and {tuple(vectors.shape)}"
        )
    shared = torch.promote_types(local.dtype, vectors.dtype)
    dtype = torch.promote_types(shared, torch.float32)
    n = len(vectors)
    with torch.autocast(device_type=local.device.type, enabled=False):
        # Tokens only: padding never enters, so it needs no masking out.
        owner, position = mask.nonzero(as_tuple=True)
        scores = local[owner, position].to(dtype) @ vectors.to(dtype).T  # (T, n)
        is_own = owner.unsqueeze(1) == torch.arange(n, device=owner.device)
        tokens = max(len(owner), 1)
        own = functional.softplus(-scores[is_own]) - math.log(2)
        pairs = tokens * max(n - 1, 1)
        others = functional.softplus(scores[~is_own]) - math.log(2)
        return own.sum() / tokens, others.sum() / pairs


class ISBertConfig(TrainingConfig):
    """Defaults: the released script."""

    pooling: Literal["mean"] = option("mean", "the vector is the mean of the local features")
    learning_rate: float = option(
        2e-6,
        "peak learning rate of AdamW",
        gt=0,
        sweep=(1e-6, 1e-4),
        log=True,
    )
    batch_size: int = option(32, "sentences per training step", ge=2, sweep=[16, 32, 64, 128])
    train_length: int = option(
        128, "maximum number of tokens in training, special tokens included", ge=4
    )
    warmup: float = option(0.1, "share of the training steps with rising learning rate", ge=0, lt=1)
    weight_decay: float = option(
        0.01, "decoupled weight decay (none on biases and LayerNorm)", ge=0
    )
    eval_every: int = option(1000, "training steps between two evaluations on the dev set", ge=1)
    filters: int = option(
        256, "filters of each width; the vector has widths x filters dimensions", ge=1
    )
    widths: tuple[int, ...] = option((1, 3, 5), "widths of the convolutions, odd")
    adam_eps: float = option(1e-7, "added to the denominator of AdamW", gt=0)
    bias_correction: bool = option(
        False, "AdamW divides its moments by 1 - beta^t; the released script does not"
    )

    @field_validator("widths")
    @classmethod
    def _odd_widths(cls, value: tuple[int, ...]) -> tuple[int, ...]:
        are_odd = all(width > 0 and width % 2 == 1 for width in value)
        if not value or not are_odd:
            raise ValueError("must be one or more odd positive numbers")
        return value


class ISBert(TrainedMethod):
    """L = -(Jensen-Shannon estimate of the information between n-gram features and sentence
    vectors).
    """

    name = "is_bert"
    version = 1
    sheet = RecipeFile.beside(__file__)
    Config = ISBertConfig

    def load_base(self) -> Encoder:
        """Load the base model, with untrained convolutions on top, which are a part of the model."""
        from harness.encoder.pooling import TokenConvolution

        encoder = super().load_base()
        width = int(encoder.transformer.config.hidden_size)
        encoder.token_module = TokenConvolution(width, self.config.filters, self.config.widths)
        return encoder

    def optimizer(self, groups: list[dict[str, Any]]) -> torch.optim.Optimizer:
        config = self.config
        return adamw(
            groups,
            learning_rate=config.learning_rate,
            eps=config.adam_eps,
            bias_correction=config.bias_correction,
        )

    def heads(self, encoder: Encoder) -> nn.Module:
        encoder.warn_without_dropout("choose a base model that has, as BERT and RoBERTa do")
        return super().heads(encoder)

    def loss(self, encoder: Encoder, heads: nn.Module, batch: Batch) -> dict[str, Tensor]:
        ids = encoder.tokenize(batch.texts, max_length=self.config.train_length)
        features = encoder.collate(ids)
        mask = features["attention_mask"].to(encoder.device)
        local = encoder.token_states(features)
        vectors = encoder.pool(local, encoder.pooling_mask(features))
        own, others = jensen_shannon_information(local, mask, vectors)
        return {"loss": own + others, "own": own, "others": others}
