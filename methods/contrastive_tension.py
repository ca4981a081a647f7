"""Contrastive Tension: two copies of one encoder agree on identical sentences and disagree on
different ones.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from harness.config import option
from harness.encoder import Encoder
from harness.method import POOLING_HELP
from harness.recipes import RecipeFile
from harness.training import Batch, TrainedMethod, TrainingConfig
from methods.objectives import Similarity
from methods.parts.row_vectors import check_rows, full_precision, unit

# Shares of the peak rate; it falls after 10, 20, 30 and 40 % of the training steps.
STEPS = (1.0, 0.8, 0.6, 0.4, 0.2)


@full_precision
def tension(
    u: Tensor,
    v: Tensor,
    same: Tensor,
    *,
    reduction: Literal["mean", "sum"] = "mean",
) -> Tensor:
    """Binary cross-entropy of dot products: L = sum_i softplus(x_i) - y_i x_i, x_i = u_i . v_i,
    mean or sum over pairs.

    Args:
        u, v: (n, d), vectors of the first copy and of the second; raw, not of unit length.
        same: (n,), y_i = 1 for a pair of identical sentences, 0 for different ones.

    Source: the CT code (mean) and its port in sentence-transformers (sum).
    """
    check_rows(u, v)
    return functional.binary_cross_entropy_with_logits((u * v).sum(-1), same, reduction=reduction)


@full_precision
def tension_in_batch(
    u: Tensor,
    v: Tensor,
    log_scale: Tensor,
    *,
    similarity: Similarity = "dot",
) -> Tensor:
    """L = (CE(S) + CE(S^T))/2 with S_ij = sim(u_i, v_j) exp(g), target j = i, each a mean over the
    n rows.

    Args:
        u, v: (n, d); row i of both is the same sentence. n = 1 gives 0.
        log_scale: g, a scalar that learns too.

    Source: ContrastiveTensionLossInBatchNegatives of sentence-transformers.
    """
    check_rows(u, v)
    if similarity == "cosine":
        u = unit(u)
        v = unit(v)
    scores = u @ v.T * log_scale.exp()
    target = torch.arange(len(u), device=u.device)
    rows = functional.cross_entropy(scores, target)
    columns = functional.cross_entropy(scores.T, target)
    return (rows + columns) / 2


def pairs_of(
    texts: Sequence[str],
    negatives: int,
    rng: np.random.Generator,
) -> tuple[list[str], list[str]]:
    """Return the sentences that the first copy reads and those of the second, row by row.

    Of n sentences in random order the first n // (1 + 2 K) (one at least) are paired with
    themselves; all others, each used once, make pairs of two. So n = 30 with K = 7 gives 2
    identical pairs and 14 different ones, and no sentence of an identical pair occurs in a
    different one. With n = 2 there is no different pair.
    """
    order = [texts[int(i)] for i in rng.permutation(len(texts))]
    same = max(1, len(order) // (1 + 2 * negatives))
    half = (len(order) - same) // 2
    first = order[: same + half]
    second = order[:same] + order[same + half : same + 2 * half]
    return first, second


class ContrastiveTensionConfig(TrainingConfig):
    """Defaults: the official code; presets hold the port to sentence-transformers and its in-batch
    form.
    """

    pooling: str = option("mean", POOLING_HELP)
    objective: Literal["pairs", "in_batch"] = option(
        "pairs", "pairs that are alike or not, or all against all"
    )
    batch_size: int = option(
        30, "sentences per training step; 30 are 2 identical and 14 different pairs", ge=3
    )
    negatives: int = option(7, "different pairs per identical one (K)", ge=1)
    learning_rate: float = option(1e-5, "peak learning rate", gt=0, sweep=(1e-6, 1e-4), log=True)
    optimizer: Literal["rmsprop", "rmsprop_torch", "adamw"] = option(
        "rmsprop",
        "RMSprop with TensorFlow's constants (rho 0.9, eps 1e-7) or PyTorch's (0.99, 1e-8), or AdamW",
    )
    decay: Literal["steps", "constant", "linear"] = option(
        "steps",
        "to 0.8, 0.6, 0.4, 0.2 of the peak after 10, 20, 30, 40 % of the training steps; constant; or linear to 0",
    )
    max_grad_norm: float = option(
        1e9, "gradient norm is clipped to this; the official code does not clip", gt=0
    )
    train_length: int = option(
        75, "maximum number of tokens in training, special tokens included", ge=4
    )
    eval_every: int = option(500, "training steps between two evaluations on the dev set", ge=1)
    dropout: bool = option(
        False, "drop in training (port); the official code runs its models without"
    )
    reduction: Literal["mean", "sum"] = option("mean", "over the pairs of a batch; the port sums")
    keep: Literal["better", "second"] = option(
        "better", "copy that is used: the better one on dev, or the second"
    )
    min_characters: int = option(0, "shorter sentences are left out of a batch (port: 10)", ge=0)
    similarity: Similarity = option("dot", "in_batch: cosine or dot product")
    scale: float = option(
        1.0, "in_batch: initial factor of the similarities, which is learned", gt=0
    )


class Twin(nn.Module):
    """First copy, trained with the encoder (the second), and log of the learned factor of the
    in-batch form.
    """

    def __init__(self, first: Encoder, scale: float, *, learned: bool) -> None:
        super().__init__()
        self.first = first
        self.log_scale = nn.Parameter(torch.tensor(math.log(scale)), requires_grad=learned)


class ContrastiveTension(TrainedMethod):
    """L = BCE(u . v, 1 for identical sentences, 0 for different ones), u and v from two separately
    trained copies.
    """

    name = "contrastive_tension"
    version = 1
    sheet = RecipeFile.beside(__file__)
    Config = ContrastiveTensionConfig

    def heads(self, encoder: Encoder) -> nn.Module:
        if self.config.dropout:
            encoder.warn_without_dropout("choose a base model that has, or set dropout = false")
        return Twin(encoder.copy(), self.config.scale, learned=self.config.objective == "in_batch")

    def optimizer(self, groups: list[dict[str, Any]]) -> torch.optim.Optimizer:
        """RMSprop p -= lr g / (sqrt(mean g^2) + eps), as TensorFlow 2's own optimiser of that time,
        or AdamW.
        """
        if self.config.optimizer == "adamw":
            return super().optimizer(groups)
        rate = self.config.learning_rate
        if self.config.optimizer == "rmsprop":
            return torch.optim.RMSprop(groups, lr=rate, alpha=0.9, eps=1e-7)
        return torch.optim.RMSprop(groups, lr=rate, alpha=0.99, eps=1e-8)

    def schedule(self, step: int, steps: int) -> float:
        """Share of the peak rate; "steps" falls at 500, 1000, 1500 and 2000 of the official 5,000
        training steps.
        """
        if self.config.decay == "linear":
            return super().schedule(step, steps)
        warm_share: float = self.config.warm_share(step, steps)
        if warm_share < 1.0 or self.config.decay == "constant":
            return warm_share
        falls = sum(10 * step > part * steps for part in (1, 2, 3, 4))
        return STEPS[falls]

    def candidates(self, encoder: Encoder, heads: Any) -> tuple[Encoder, ...]:
        """Return both copies, the second first: it is used when no dev set decides."""
        if self.config.keep == "better":
            return (encoder, heads.first)
        return (encoder,)

    def loss(self, encoder: Encoder, heads: Any, batch: Batch) -> dict[str, Tensor]:
        config = self.config
        texts = [text for text in batch.texts if len(text) >= config.min_characters]
        if len(texts) < 2:
            texts = batch.texts

        if config.objective == "in_batch":
            u = self._vectors(heads.first, texts)
            v = self._vectors(encoder, texts)
            return {"loss": tension_in_batch(u, v, heads.log_scale, similarity=config.similarity)}

        left, right = pairs_of(texts, config.negatives, batch.rng)
        u = self._vectors(heads.first, left)
        v = self._vectors(encoder, right)
        labels = []
        for a, b in zip(left, right, strict=True):
            labels.append(float(a == b))
        same = torch.tensor(labels, device=u.device)
        return {"loss": tension(u, v, same, reduction=config.reduction)}

    def _vectors(self, copy: Encoder, texts: Sequence[str]) -> Tensor:
        copy.train(self.config.dropout)
        vectors: Tensor = copy(texts)
        return vectors
