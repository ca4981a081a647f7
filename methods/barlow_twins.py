"""Barlow Twins on sentences: the cross-correlation of two views' projections becomes the identity."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Literal

from harness.batches import Batch
from harness.config import option
from harness.method import POOLING_HELP, MethodCard, MethodConfig
from harness.sources.views import shuffle_tokens
from harness.training import TrainedMethod, TrainingConfig
from methods.heads import projector
from methods.objectives import barlow_twins

if TYPE_CHECKING:
    from torch import Tensor, nn

    from harness.encoder import Encoder


class BarlowTwinsConfig(TrainingConfig):
    """Defaults: Farina & Pappadopulo's protocol; what they leave open is as in SimCSE."""

    pooling: str = option("cls", POOLING_HELP)
    learning_rate: float = option(2e-5, "peak learning rate of AdamW", gt=0, sweep=[1e-5, 2e-5, 5e-5])
    batch_size: int = option(256, "sentences per update", ge=2)
    epochs: int = option(2, "passes over the corpus", ge=1)
    eval_every: int = option(60, "updates between two evaluations on the dev set", ge=1)
    view: Literal["dropout", "shuffle"] = option("dropout", "how the two views of a sentence differ")
    dropout: float = option(0.1, "dropout view: rate of both views", ge=0, lt=1, sweep=[0.05, 0.1, 0.2])
    attention_dropout: Literal["views", "checkpoint"] = option(
        "views", "dropout view: attention probabilities get the views' rate, or the checkpoint's own"
    )
    shuffle: float = option(
        0.1, "shuffle view: share of the ordinary tokens permuted", gt=0, le=1, sweep=[0.05, 0.1, 0.2, 0.3, 0.5]
    )
    native_dropout: bool = option(False, "shuffle view: keep the checkpoint's own dropout (default: none)")
    off_diagonal_weight: float = option(
        5e-3,
        "weight of the off-diagonal correlations (lambda)",
        ge=0,
        sweep=[5e-4, 1e-3, 2.5e-3, 5e-3, 7.5e-3, 1e-2, 2.5e-2],
    )
    projector: tuple[int, ...] = option((8192, 8192, 8192), "widths of the projector's layers")
    projector_bias: Literal["first", "hidden", "none", "all"] = option("hidden", "which projector layers have a bias")
    projector_init: Literal["normal", "pytorch"] = option("pytorch", "N(0, 0.02) as in BERT, or PyTorch's default")
    unbiased: bool = option(False, "divide variances by n - 1, as the vision paper's pseudo-code does")


class BarlowTwins(TrainedMethod):
    """L = sum_i (1 - r_ii)^2 + lambda sum_{i != j} r_ij^2, r = Pearson correlation over the batch."""

    name = "barlow_twins"
    card = MethodCard(
        title="Barlow Twins",
        paper="Farina & Pappadopulo, Non-contrastive sentence representations, Findings of NAACL 2024",
        equations="Eq. 2",
        reference="none published; facebookresearch/barlowtwins for the objective",
        text="sentences",
        supervision="unsupervised",
        cost="two epochs, both views in one forward, a wide projector",
        notes="The paper does not print its final lambda, optimiser, lengths, or how it treats special tokens; "
        "the vision code's projector has no biases (preset code), the paper follows VICReg's.",
    )
    Config: ClassVar[type[MethodConfig]] = BarlowTwinsConfig
    presets: ClassVar[dict[str, dict[str, Any]]] = {
        "paper": {"view": "dropout", "projector_bias": "hidden"},
        "paper-shuffle": {"view": "shuffle", "projector_bias": "hidden"},
        "code": {"projector_bias": "none"},
        # Both found by studies/search_embedded.py on the embedded dev part.
        "mini": {
            "pooling": "cls",
            "batch_size": 64,
            "learning_rate": 1e-4,
            "off_diagonal_weight": 0.025,
            "epochs": 1,
            "eval_every": 10,
            "projector": (1024, 1024, 1024),
        },
        "mini-shuffle": {
            "view": "shuffle",
            "pooling": "cls",
            "batch_size": 64,
            "learning_rate": 3e-4,
            "off_diagonal_weight": 0.005,
            "epochs": 1,
            "eval_every": 10,
            "projector": (1024, 1024, 1024),
        },
    }

    def heads(self, encoder: Encoder) -> nn.Module:
        config = self.config
        return projector(encoder.dimension, config.projector, bias=config.projector_bias, init=config.projector_init)

    def loss(self, encoder: Encoder, heads: nn.Module, batch: Batch) -> dict[str, Tensor]:
        config = self.config
        ids = encoder.tokenize(batch.texts, max_length=config.train_length)
        if config.view == "shuffle":
            special = frozenset(_markers(encoder.tokenizer))
            ids_a, ids_b = (
                [shuffle_tokens(row, config.shuffle, batch.rng, special=special) for row in ids] for _ in range(2)
            )
            hidden = attention = None if config.native_dropout else (0.0, 0.0)
        else:
            ids_a = ids_b = ids
            hidden = (config.dropout, config.dropout)
            attention = hidden if config.attention_dropout == "views" else None
        h_a, h_b = encoder.two_views(ids_a, ids_b, hidden_dropout=hidden, attention_dropout=attention)
        z_a, z_b = heads(h_a), heads(h_b)
        loss = barlow_twins(z_a, z_b, off_diagonal_weight=config.off_diagonal_weight, unbiased=config.unbiased)
        return {"loss": loss}


def _markers(tokenizer: Any) -> set[int]:
    """Ids of the tokens that frame and pad a sentence. An unknown word is an ordinary token, so [UNK] is not one."""
    ids = (getattr(tokenizer, f"{name}_token_id", None) for name in ("cls", "sep", "bos", "eos", "pad"))
    return {i for i in ids if i is not None}
