"""ConSERT: contrast of two views made at the embedding layer: shuffled, cut off, dropped out or
adversarial.
"""

from __future__ import annotations

from functools import partial
from typing import Any, Literal, Self, get_args

import torch
from pydantic import model_validator
from torch import Tensor, nn

from harness.config import option
from harness.encoder import Encoder
from harness.encoder.prefixes import replay_pass
from harness.method import POOLING_HELP
from harness.recipes import RecipeFile
from harness.training import Batch, TrainedMethod, TrainingConfig
from harness.views import shuffle_tokens
from harness.views.make import Template, markers
from methods.objectives import nt_xent_symmetric
from methods.parts import embedding_views as views
from methods.parts.optimizers import adamw

View = Literal["none", "shuffle", "token_cutoff", "feature_cutoff", "dropout", "adversarial"]


class ConSERTConfig(TrainingConfig):
    """Defaults: the paper's best pair of views on BERT-base."""

    pooling: str = option("last2_avg", POOLING_HELP)
    batch_size: int = option(96, "sentences per training step", ge=2, sweep=[64, 96, 128])
    learning_rate: float = option(5e-7, "peak learning rate", gt=0, sweep=(1e-7, 1e-4), log=True)
    train_length: int = option(
        64, "maximum number of tokens in training, special tokens included", ge=4
    )
    warmup: float = option(0.1, "share of the training steps with rising learning rate", ge=0, lt=1)
    weight_decay: float = option(
        0.01, "decoupled weight decay (none on biases and LayerNorm)", ge=0
    )
    view_a: View = option(
        "feature_cutoff",
        f"change of the first view: {', '.join(get_args(View))}",
        sweep=list(get_args(View)),
    )
    view_b: View = option("shuffle", "change of the second view", sweep=list(get_args(View)))
    token_cutoff: float = option(
        0.15, "share of the tokens that token_cutoff sets to zero", gt=0, lt=1
    )
    feature_cutoff: float = option(
        0.2, "share of the features that feature_cutoff sets to zero", gt=0, lt=1
    )
    dropout: float = option(
        0.2, "share of the embeddings' numbers that dropout sets to zero", gt=0, lt=1
    )
    noise: float = option(1.0, "length of the adversarial step of every token", gt=0)
    native_dropout: bool = option(False, "also the checkpoint's own dropout, in both views")
    temperature: float = option(0.1, "divides the cosines", gt=0, sweep=(0.01, 1.0), log=True)
    contrastive_weight: float = option(
        1.0,
        "weight of the loss, a mean over 2n (matters where gradients are clipped); the code's sum: 0.3",
        gt=0,
    )

    @model_validator(mode="after")
    def _views_differ(self) -> Self:
        if self.view_a == self.view_b == "adversarial":
            raise ValueError(
                'keys "view_a" and "view_b": the adversarial view is one against the other, not both'
            )
        if self.view_a == self.view_b == "none" and not self.native_dropout:
            raise ValueError(
                'keys "view_a" and "view_b": both "none" are equal views; set native_dropout = true'
            )
        return self


class ConSERT(TrainedMethod):
    """L = w * mean over the 2n vectors of both views of -log softmax( cos / temperature )[other
    view].
    """

    name = "consert"
    version = 2  # 1: shuffled tokens of a template, too
    sheet = RecipeFile.beside(__file__)
    Config = ConSERTConfig

    def optimizer(self, groups: list[dict[str, Any]]) -> torch.optim.Optimizer:
        """AdamW without bias correction, as the code has it."""
        return adamw(
            groups, learning_rate=self.config.learning_rate, eps=1e-6, bias_correction=False
        )

    def loss(self, encoder: Encoder, heads: nn.Module, batch: Batch) -> dict[str, Tensor]:
        config: ConSERTConfig = self.config
        sides = (config.view_a, config.view_b)
        rows = encoder.tokenize(batch.texts, max_length=config.train_length)
        ids = [self._order_tokens(view, rows, encoder, batch) for view in sides]
        changes = [self._change(view) for view in sides]

        if "adversarial" in sides:  # one of the two at most, as the config checks
            side = sides.index("adversarial")
            step = self._adversarial_step(encoder, ids, changes, side)
            changes[side] = views.shift_by(step)

        return {"loss": config.contrastive_weight * self._contrastive_loss(encoder, ids, changes)}

    @replay_pass()
    def _adversarial_step(
        self,
        encoder: Encoder,
        ids: list[list[list[int]]],
        changes: list[views.Change],
        side: int,
    ) -> Tensor:
        """Return the step (n, length, d) of the embeddings of a side that raises the loss of the
        whole vectors fastest.
        """
        recorder = views.EmbeddingRecorder()
        recording = [*changes]
        recording[side] = recorder
        loss = self._contrastive_loss(encoder, ids, recording, differ=False)
        (gradient,) = torch.autograd.grad(loss, recorder.embeddings)
        return views.adversarial_step(gradient.detach(), self.config.noise)

    def _order_tokens(
        self,
        view: View,
        ids: list[list[int]],
        encoder: Encoder,
        batch: Batch,
    ) -> list[list[int]]:
        """Return the token rows of a view; "shuffle" has them in another order."""
        if view != "shuffle":
            return ids
        if encoder.pooling.mode == "cls":
            fixed = markers(encoder.tokenizer)
        else:
            fixed = frozenset()
        shuffle = partial(shuffle_tokens, fraction=1.0, rng=batch.rng, special=fixed)
        template = Template.of(encoder)
        return [template.around(row, shuffle) for row in ids]

    def _change(self, view: View) -> views.Change:
        """Return the change of a view's embeddings; none yet for the adversarial view."""
        config = self.config
        if view == "token_cutoff":
            return partial(views.token_cutoff, rate=config.token_cutoff)
        if view == "feature_cutoff":
            return partial(views.feature_cutoff, rate=config.feature_cutoff)
        if view == "dropout":
            return partial(views.element_dropout, rate=config.dropout)
        return views.keep_unchanged

    def _contrastive_loss(
        self,
        encoder: Encoder,
        ids: list[list[list[int]]],
        changes: list[views.Change],
        *,
        differ: bool = True,
    ) -> Tensor:
        if self.config.native_dropout:
            rates = None
        else:
            rates = (0.0, 0.0)
        remedy = "choose another view_a or view_b, or set native_dropout = true"
        with views.change_embeddings(encoder.transformer, *changes):
            h_a, h_b = encoder.two_views(
                *ids,
                hidden_dropout=rates,
                attention_dropout=rates,
                differ_by=remedy if differ else None,
            )
        return nt_xent_symmetric(h_a, h_b, temperature=self.config.temperature)
