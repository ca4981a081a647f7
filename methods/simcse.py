"""Unsupervised SimCSE: contrastive learning whose only augmentation is dropout."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Literal

from harness.batches import Batch
from harness.config import option
from harness.method import POOLING_HELP, MethodCard, MethodConfig
from harness.training import TrainedMethod, TrainingConfig
from methods.heads import tanh_mlp
from methods.objectives import nt_xent

if TYPE_CHECKING:
    from torch import Tensor, nn

    from harness.encoder import Encoder


class SimCSEConfig(TrainingConfig):
    """Defaults: the released script for BERT-base."""

    pooling: str = option("cls", POOLING_HELP)
    temperature: float = option(0.05, "divides the cosines", gt=0, sweep=(0.001, 1.0), log=True)
    head: Literal["training", "none"] = option("training", "tanh layer in the loss, dropped when encoding; or none")
    dropout: float | None = option(
        None, "hidden and attention dropout of both views; empty: the checkpoint's own", ge=0, lt=1, sweep=(0.0, 0.5)
    )


class SimCSE(TrainedMethod):
    """L = mean over i of -log softmax_j( cos(zA_i, zB_j) / temperature ) at j = i."""

    name = "simcse"
    card = MethodCard(
        title="SimCSE (unsupervised)",
        paper="Gao, Yao & Chen, EMNLP 2021",
        equations="Eq. 4",
        reference="github.com/princeton-nlp/SimCSE",
        text="sentences",
        supervision="unsupervised",
        cost="one epoch, both views in one forward",
        notes="The paper evaluates every 250 steps, the released script every 125 (the default).",
    )
    Config: ClassVar[type[MethodConfig]] = SimCSEConfig
    presets: ClassVar[dict[str, dict[str, Any]]] = {
        "paper": {"batch_size": 64, "learning_rate": 3e-5, "epochs": 1, "train_length": 32, "eval_every": 250},
        "code": {"batch_size": 64, "learning_rate": 3e-5, "epochs": 1, "train_length": 32, "eval_every": 125},
        "paper-roberta": {"batch_size": 512, "learning_rate": 1e-5, "eval_every": 250},
        "code-roberta": {"batch_size": 512, "learning_rate": 1e-5, "eval_every": 125},
        "noncontrastive-baseline": {"batch_size": 256, "learning_rate": 3e-5, "epochs": 2, "eval_every": 60},
        # Found by studies/search_embedded.py on the embedded dev part.
        "mini": {"pooling": "cls", "batch_size": 64, "learning_rate": 3e-4, "eval_every": 10},
    }

    def heads(self, encoder: Encoder) -> nn.Module:
        from torch import nn

        return tanh_mlp(encoder.dimension) if self.config.head == "training" else nn.Identity()

    def loss(self, encoder: Encoder, heads: nn.Module, batch: Batch) -> dict[str, Tensor]:
        ids = encoder.tokenize(batch.texts, max_length=self.config.train_length)
        rates = None if self.config.dropout is None else (self.config.dropout, self.config.dropout)
        h_a, h_b = encoder.two_views(ids, ids, hidden_dropout=rates, attention_dropout=rates)
        return {"loss": nt_xent(heads(h_a), heads(h_b), temperature=self.config.temperature)}
