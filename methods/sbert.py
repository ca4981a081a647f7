"""SBERT: a siamese encoder that learns to classify the pairs of natural language inference."""

from __future__ import annotations

from torch import Tensor, nn

from harness.config import option
from harness.encoder import Encoder
from harness.method import POOLING_HELP
from harness.recipes import RecipeFile
from harness.training import Batch, TrainingConfig
from methods.parts.nli import LABELS, Joined, NLIMethod, join_vectors, split_parts


class SBERTConfig(TrainingConfig):
    """Defaults: the paper's."""

    pooling: str = option("mean", POOLING_HELP)
    batch_size: int = option(16, "pairs per training step", ge=2, sweep=[16, 32, 64, 128])
    learning_rate: float = option(
        2e-5,
        "peak learning rate of AdamW",
        gt=0,
        sweep=(1e-5, 1e-4),
        log=True,
    )
    warmup: float = option(0.1, "share of the training steps with rising learning rate", ge=0, lt=1)
    weight_decay: float = option(
        0.01, "decoupled weight decay (none on biases and LayerNorm)", ge=0
    )
    train_length: int = option(
        128, "maximum number of tokens in training, special tokens included", ge=4
    )
    eval_every: int = option(1000, "training steps between two evaluations on the dev set", ge=1)
    bucket: int = option(
        1, "batches per length-sorted megabatch, for less padding; 1: random batches", ge=1
    )
    joined: Joined = option(
        "u,v,|u-v|",
        "what the classifier sees of both vectors: u, v, |u-v|, u*v, joined by commas",
        sweep=["u,v", "|u-v|", "u*v", "|u-v|,u*v", "u,v,u*v", "u,v,|u-v|", "u,v,|u-v|,u*v"],
    )


class SBERT(NLIMethod):
    """L = mean over pairs of -log softmax( W [u, v, |u - v|] + b ) at the pair's label."""

    name = "sbert"
    version = 1
    sheet = RecipeFile.beside(__file__)
    Config = SBERTConfig

    def heads(self, encoder: Encoder) -> nn.Module:
        heads = nn.Module()
        heads.classifier = nn.Linear(
            encoder.dimension * len(split_parts(self.config.joined)), len(LABELS)
        )
        return heads

    def loss(self, encoder: Encoder, heads: nn.Module, batch: Batch) -> dict[str, Tensor]:
        config: SBERTConfig = self.config
        u, v = encoder([*batch.texts, *batch.positives]).split(len(batch.items))
        features = join_vectors(u, v, split_parts(config.joined))
        logits = heads.classifier(features)  # type: ignore[operator]
        return self.loss_and_accuracy(logits, batch.items)
