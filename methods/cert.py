"""CERT: momentum contrast (MoCo) between the two sentences of a paraphrase pair, with a queue of
earlier keys.
"""

from __future__ import annotations

import math
from typing import Any, Literal

import torch
from torch import Tensor, nn
from torch.nn import functional

from harness.config import option
from harness.encoder import Encoder
from harness.method import POOLING_HELP
from harness.recipes import RecipeFile
from harness.training import Batch, TrainedMethod, TrainingConfig
from methods.parts.following import follow
from methods.parts.row_vectors import check_rows, check_temperature, full_precision, unit


@full_precision
def info_nce(queries: Tensor, keys: Tensor, queue: Tensor, *, temperature: float) -> Tensor:
    """L = mean over i of -log( exp(q_i . k_i/t) / [exp(q_i . k_i/t) + sum_m exp(q_i . queue_m/t)]
    ), unit vectors.

    Args:
        queries, keys: (n, d), scaled to unit length here; row i of both belongs together. n = 1 is
            fine: the other rows of the batch are no negatives.
        queue: (K, d), unit rows, the negatives.

    Source: MoCo (He et al., CVPR 2020, Eq. 1), as CERT uses it.
    """
    check_rows(queries, keys)
    check_temperature(temperature)
    q = unit(queries)
    own = (q * unit(keys)).sum(-1, keepdim=True)
    logits = torch.cat([own, q @ queue.T], dim=1) / temperature
    return functional.cross_entropy(logits, torch.zeros(len(q), dtype=torch.long, device=q.device))


class Queue(nn.Module):
    """First-in, first-out queue of the last `size` keys (size, d) of unit length; random directions
    until it is full.
    """

    keys: Tensor
    place: Tensor

    def __init__(self, size: int, dimension: int) -> None:
        super().__init__()
        self.register_buffer("keys", unit(torch.randn(size, dimension)))
        self.register_buffer("place", torch.zeros((), dtype=torch.long))

    @torch.no_grad()
    def push(self, keys: Tensor) -> None:
        """Replace the n oldest keys by `keys` (n, d), unit length; of more than `size` only the
        last ones enter.
        """
        size = len(self.keys)
        keys = keys[-size:]
        rows = (self.place + torch.arange(len(keys), device=self.keys.device)) % size
        self.keys[rows] = keys.to(self.keys.dtype)
        self.place.copy_((self.place + len(keys)) % size)


class CERTConfig(TrainingConfig):
    """Defaults: the released script."""

    pooling: str = option("cls", POOLING_HELP)
    batch_size: int = option(32, "pairs per training step", ge=2, sweep=[32, 64, 128])
    learning_rate: float = option(4e-5, "peak learning rate", gt=0, sweep=(1e-5, 1e-1), log=True)
    epochs: int = option(50, "passes over the corpus", ge=1)
    train_length: int = option(
        64, "maximum number of tokens in training, special tokens included", ge=4
    )
    weight_decay: float = option(1e-5, "weight decay (none on biases and LayerNorm)", ge=0)
    max_grad_norm: float = option(
        1e9, "gradient norm is clipped to this; the script does not clip", gt=0
    )
    optimizer: Literal["sgd", "adamw"] = option("sgd", "SGD with momentum 0.9, or AdamW")
    decay: Literal["cosine", "linear"] = option(
        "cosine", "of the learning rate to 0, after the warm-up"
    )
    temperature: float = option(
        0.07,
        "divides the cosines (tau)",
        gt=0,
        sweep=(0.01, 0.5),
        log=True,
    )
    momentum: float = option(
        0.999, "of the key encoder: the share of its own weights that it keeps", ge=0, le=1
    )
    queue_size: int = option(6720, "earlier keys that serve as negatives", ge=1)
    head_width: int = option(128, "output width of the projection Linear-ReLU-Linear", ge=1)
    head_dropout: float = option(
        0.0, "dropout of the vector before both heads (the script's classifier has 0.1)", ge=0, lt=1
    )
    keep: Literal["key", "query"] = option(
        "key", "which of the two encoders is used; the README exports the key"
    )


class MoCo(nn.Module):
    """Key encoder and head, which follow the trained ones, the trained head, and the queue."""

    def __init__(self, key: Encoder, head: nn.Module, key_head: nn.Module, queue: Queue) -> None:
        super().__init__()
        self.key = key.requires_grad_(False)
        self.head = head
        self.key_head = key_head.requires_grad_(False)
        self.queue = queue
        # Keys of the batch at hand, which enter the queue after the update.
        self.fresh: Tensor | None = None


class CERT(TrainedMethod):
    """L = InfoNCE of a sentence's query against the key of its paraphrase and the queue's keys."""

    name = "cert"
    version = 1
    sheet = RecipeFile.beside(__file__)
    Config = CERTConfig

    def heads(self, encoder: Encoder) -> nn.Module:
        width = self.config.head_width
        head = _projection_head(encoder.dimension, width)
        key_head = _projection_head(encoder.dimension, width)
        key_head.load_state_dict(head.state_dict())
        return MoCo(encoder.copy(), head, key_head, Queue(self.config.queue_size, width))

    def optimizer(self, groups: list[dict[str, Any]]) -> torch.optim.Optimizer:
        """SGD with momentum 0.9, or AdamW."""
        if self.config.optimizer == "adamw":
            return super().optimizer(groups)
        return torch.optim.SGD(groups, lr=self.config.learning_rate, momentum=0.9)

    def schedule(self, step: int, steps: int) -> float:
        """Share of the peak rate: half a cosine from 1 to 0 after the warm-up."""
        linear = super().schedule(step, steps)
        if self.config.decay == "linear" or step < self.config.warm_updates(steps):
            return linear
        return 0.5 * (1 - math.cos(math.pi * linear))

    def loss(self, encoder: Encoder, heads: Any, batch: Batch) -> dict[str, Tensor]:
        queries = heads.head(self._drop_out(encoder(batch.texts)))
        with torch.no_grad():
            positives = self._drop_out(heads.key(batch.positives))
            keys = unit(heads.key_head(positives).float())
        heads.fresh = keys
        return {
            "loss": info_nce(queries, keys, heads.queue.keys, temperature=self.config.temperature)
        }

    def _drop_out(self, vectors: Tensor) -> Tensor:
        """Apply the dropout that BertForSequenceClassification has before its classifier."""
        rate: float = self.config.head_dropout
        if not rate:
            return vectors  # no random number is drawn
        return functional.dropout(vectors, rate)

    def after_update(self, encoder: Encoder, heads: Any) -> None:
        """Move the key encoder and its head, and put the batch's keys into the queue."""
        follow(heads.key, encoder, self.config.momentum)
        follow(heads.key_head, heads.head, self.config.momentum)
        if heads.fresh is not None:
            heads.queue.push(heads.fresh)
            heads.fresh = None

    def candidates(self, encoder: Encoder, heads: Any) -> tuple[Encoder, ...]:
        """Return the encoder that `keep` names."""
        if self.config.keep == "key":
            return (heads.key,)
        return (encoder,)


def _projection_head(dimension: int, width: int) -> nn.Sequential:
    """Return Linear - ReLU - Linear, (n, dimension) -> (n, width)."""
    return nn.Sequential(nn.Linear(dimension, dimension), nn.ReLU(), nn.Linear(dimension, width))
