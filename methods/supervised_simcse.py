"""Supervised SimCSE: entailment pairs as positives, contradictions as hard negatives."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from torch import Tensor, nn

from harness.config import option
from harness.encoder import Encoder
from harness.errors import InputError
from harness.recipes import RecipeFile
from harness.sources import Corpus, Pair
from harness.training import Batch, BatchStream
from methods.objectives import nt_xent
from methods.simcse import ContrastiveConfig, SimCSE


class SupervisedSimCSEConfig(ContrastiveConfig):
    """Defaults: the released script for base models."""

    batch_size: int = option(512, "pairs per training step", ge=2, sweep=[64, 128, 256, 512])
    learning_rate: float = option(
        5e-5,
        "peak learning rate of AdamW",
        gt=0,
        sweep=(1e-5, 1e-4),
        log=True,
    )
    epochs: int = option(3, "passes over the corpus", ge=1)
    head: Literal["training", "mlp", "none"] = option(
        "mlp", "tanh layer: in the loss only, also when encoding (mlp), or none"
    )
    hard_negatives: Literal["auto", "required", "ignore"] = option(
        "auto", "use the pairs' negatives where all have one, insist on them, or leave them out"
    )
    hard_negative_weight: float = option(
        0.0, "added to the logit of an anchor's own negative: the logarithm of the paper's alpha"
    )


class SupervisedSimCSE(SimCSE):
    """L = mean over i of -log softmax( cos(a_i, p_j) / t, cos(a_i, h_j) / t + w [j = i] ) at p_i;
    2N columns.
    """

    name = "simcse_supervised"
    version = 1
    sheet = RecipeFile.beside(__file__)
    Config = SupervisedSimCSEConfig

    def stream(self, corpus: Corpus, seed: int) -> BatchStream:
        self._uses_negatives(
            corpus, corpus.uri
        )  # a gap in the column is told before the first training step
        return super().stream(corpus, seed)

    def loss(self, encoder: Encoder, heads: nn.Module, batch: Batch) -> dict[str, Tensor]:
        config: SupervisedSimCSEConfig = self.config
        pairs: list[Pair] = batch.items
        texts = [pair.anchor for pair in pairs]
        texts += [pair.positive for pair in pairs]
        if self._uses_negatives(pairs, "the batch"):
            texts += [pair.negative or "" for pair in pairs]
        ids = encoder.tokenize(texts, max_length=config.train_length)
        anchors, positives, *rest = heads.mlp(encoder(encoder.collate(ids))).split(len(pairs))  # type: ignore[operator]
        contrast = nt_xent(
            anchors,
            positives,
            temperature=config.temperature,
            hard_negatives=rest[0] if rest else None,
            hard_negative_weight=config.hard_negative_weight,
            similarity=config.similarity,
        )
        return self.with_mlm(contrast, encoder, heads, ids, batch)

    def _uses_negatives(self, pairs: Iterable[Pair], where: str) -> bool:
        """True if hard negatives enter the loss.

        Raises:
            InputError: some pairs have one and some do not, or none has although they are required.
        """
        rule = self.config.hard_negatives
        if rule == "ignore":
            return False
        have = [pair.negative is not None for pair in pairs]
        if all(have):
            return True
        if rule == "auto" and not any(have):
            return False
        wanted = "others have" if any(have) else 'hard_negatives = "required" asks for'
        raise InputError(
            f"pair {have.index(False) + 1} has no negative, which {wanted}",
            file=where,
            remedy='give every pair one, or set hard_negatives = "ignore"',
        )
