"""ESimCSE: one view with some tokens repeated, and the sentences of earlier batches as further
negatives.
"""

from __future__ import annotations

from functools import partial
from typing import Any, Literal

import torch
from torch import Tensor, nn
from torch.nn import functional

from harness.config import option
from harness.encoder import Encoder
from harness.recipes import RecipeFile
from harness.training import Batch
from harness.views import repeat_tokens
from harness.views.make import Template, markers
from methods.parts.cross_batch_memory import CrossBatchMemory
from methods.parts.following import follow
from methods.parts.row_vectors import check_rows, check_temperature, full_precision, unit
from methods.simcse import STATE_A_RATE, SimCSE, SimCSEConfig


@full_precision
def nt_xent_queue(
    anchors: Tensor,
    positives: Tensor,
    queue: Tensor,
    *,
    temperature: float,
) -> Tensor:
    """NT-Xent with the rows of a queue as negatives of every anchor.

    L = -(1/n) sum_i log( exp(cos(a_i, p_i)/t) / [sum_j exp(cos(a_i, p_j)/t) + sum_m exp(cos(a_i,
    q_m)/t)] )

    Args:
        anchors, positives: (n, d); row i of one belongs to row i of the other.
        queue: (m, d), m >= 0; no gradient flows into it.

    Source: Wu et al., COLING 2022, the loss with the momentum queue; paper and code agree.
    """
    check_rows(anchors, positives)
    check_temperature(temperature)
    a = unit(anchors)
    logits = a @ unit(torch.cat([positives, queue.detach()])).T / temperature
    return functional.cross_entropy(logits, torch.arange(len(a), device=a.device))


class ESimCSEConfig(SimCSEConfig):
    """Defaults: the paper's on BERT-base."""

    similarity: Literal["cosine"] = option("cosine", "of two sentences in the loss")
    same_mask: Literal[False] = option(False, "false: the views differ by their text, too")
    repetition: float = option(
        0.32,
        "largest share of the tokens that the second view repeats; 0: none",
        ge=0,
        le=1,
        sweep=(0.1, 0.5),
    )
    queue_size: int = option(
        160, "earlier sentences that serve as negatives (2.5 batches); 0: none", ge=0
    )
    momentum: float = option(
        0.995,
        "of the encoder whose vectors enter the queue: the share of its own weights that it keeps",
        ge=0,
        le=1,
    )


class ESimCSE(SimCSE):
    """`nt_xent_queue` of a sentence against its copy with repeated tokens, the batch, and a
    momentum queue.
    """

    name = "esimcse"
    version = 2  # 1: repeated tokens of a template, too
    sheet = RecipeFile.beside(__file__)
    Config = ESimCSEConfig

    # Slow vectors of the batch at hand, which enter the queue after the update.
    _fresh: Tensor | None = None

    def heads(self, encoder: Encoder) -> nn.Module:
        """Return SimCSE's heads with the slow encoder and the queue of its vectors."""
        if self.config.dropout is None and self.config.attention_rate is None:
            encoder.warn_without_dropout(STATE_A_RATE)
        heads = super().heads(encoder)
        if self.config.queue_size:
            heads.slow = encoder.copy().requires_grad_(False)
            heads.queue = CrossBatchMemory(self.config.queue_size, encoder.dimension)
        return heads

    def views(self, encoder: Encoder, batch: Batch) -> tuple[list[list[int]], list[list[int]]]:
        """Return the token rows of the sentences, and the same with tokens repeated."""
        ids, _ = super().views(encoder, batch)
        template = Template.of(encoder)
        repeat = partial(
            repeat_tokens,
            rate=self.config.repetition,
            rng=batch.rng,
            special=markers(encoder.tokenizer),
            limit=encoder.max_length - template.length,
        )
        return ids, [template.around(row, repeat) for row in ids]

    def contrast(self, z_a: Tensor, z_b: Tensor, heads: Any, batch: Batch) -> Tensor:
        if not self.config.queue_size:
            return super().contrast(z_a, z_b, heads, batch)
        return nt_xent_queue(z_a, z_b, heads.queue.newest(), temperature=self.config.temperature)

    def loss(self, encoder: Encoder, heads: Any, batch: Batch) -> dict[str, Tensor]:
        terms = super().loss(encoder, heads, batch)
        if self.config.queue_size:
            with torch.no_grad():
                self._fresh = heads.mlp(heads.slow.eval()(batch.texts))
        return terms

    def after_update(self, encoder: Encoder, heads: Any) -> None:
        """Put the batch's vectors into the queue, and move the slow encoder."""
        if self._fresh is not None:
            heads.queue.push(self._fresh)
            follow(heads.slow, encoder, self.config.momentum)
            self._fresh = None
