"""DeCLUTR: spans from nearby in one document agree, spans from elsewhere do not; with
masked-language modelling.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any, Literal, Self

import numpy as np
import torch
from pydantic import model_validator
from torch import Tensor, nn
from torch.utils.data import Subset

from harness.config import option
from harness.encoder import Encoder
from harness.encoder.masked_lm import IGNORED, MaskedLM, mask_tokens, masked_lm_loss, pad_labels
from harness.encoder.pooling import PROMPT, average_layers
from harness.encoder.prompts import MASK
from harness.encoder.sentences import clean
from harness.errors import InputError
from harness.method import DEFAULT_BASE_MODEL, POOLING_HELP, MethodConfig
from harness.recipes import RecipeFile
from harness.sources import Corpus
from harness.training import Batch, BatchStream, TrainedMethod, TrainingConfig
from methods.objectives import nt_xent_symmetric
from methods.parts.cross_batch_memory import CrossBatchMemory
from methods.parts.optimizers import adamw
from methods.parts.spans import DocumentTokens, SpanSampler, Strategy, extract_text, tokens_for

# Tokens that a span of l_max may lose to the cut at train_length: the paper's 512 are cut to 510.
_TOLERATED = 2

Schedule = Literal["updates", "instances", "released"]


class DeCLUTRConfig(TrainingConfig):
    """Defaults: the released configuration, with the learning-rate schedule that it meant to have."""

    pooling: str = option("mean", POOLING_HELP)
    learning_rate: float = option(
        5e-5,
        "peak learning rate of AdamW",
        gt=0,
        sweep=(1e-5, 3e-4),
        log=True,
    )
    batch_size: int = option(16, "documents per training step", ge=2, sweep=[8, 16, 32])
    train_length: int = option(
        510, "maximum number of tokens of a span, special tokens included", ge=4
    )
    warmup: float = option(0.1, "share of the schedule with rising learning rate", ge=0, lt=1)
    weight_decay: float = option(0.1, "decoupled weight decay (none on biases and LayerNorm)", ge=0)
    select: Literal["best", "last"] = option(
        "last", "which weights are used: the best on the dev set, or the last"
    )
    bucket: int = option(1, "batches per length-sorted megabatch; documents need no sorting", ge=1)
    lr_schedule: Schedule = option(
        "updates",
        "slanted triangle over the training steps (intended) or the training instances (as printed), or stuck at its "
        "floor during the first epoch (as released)",
    )
    bias_correction: bool = option(
        False, "AdamW's bias correction; the released configuration turns it off"
    )
    l_min: int = option(32, "shortest span, in tokens", ge=1)
    l_max: int = option(512, "longest span, in tokens; documents need 2 * anchors * l_max", ge=1)
    anchors: int = option(2, "anchor spans per document", ge=1, sweep=[1, 2])
    positives: int = option(2, "positive spans per anchor, averaged", ge=1, sweep=[1, 2, 4])
    strategy: Strategy = option(
        "both",
        "where positives lie: both (overlapping, adjacent or inside), adjacent, or subsuming (inside)",
        sweep=["both", "adjacent", "subsuming"],
    )
    anchor_grid: bool = option(
        True, "anchors in the cells of a grid (code), or anywhere l_max apart (paper)"
    )
    lower: bool = option(
        False, "lower-case the documents, as the released script for OpenWebText does"
    )
    objective: Literal["both", "contrastive", "mlm"] = option(
        "both", "contrastive + masked-language modelling, or one"
    )
    temperature: float = option(0.05, "divides the cosines", gt=0, sweep=(5e-4, 0.5), log=True)
    reduction: Literal["mean", "sum"] = option(
        "mean", "of the contrastive terms: mean (code) or sum (paper's Eq. 1)"
    )
    contrastive_weight: float = option(
        1.0,
        "weight of the contrastive loss; 0.25 is what four GPUs made of it in the paper's runs",
        ge=0,
    )
    mlm_probability: float = option(
        0.15, "share of an anchor's tokens that are predicted", gt=0, lt=1
    )
    masked_anchors: bool = option(
        True, "masked anchors enter the contrastive loss too (code), or clean ones"
    )
    projection: int | None = option(
        None, "width of a projection head for the contrastive loss; empty: none", ge=1
    )
    projection_activation: Literal["relu", "linear"] = option(
        "relu", "between the head's two layers"
    )
    projection_bias: bool = option(
        True, "biases in the head: its framework has them, the paper's equation does not"
    )
    memory: int = option(0, "embeddings in the cross-batch memory; 0: none", ge=0)
    memory_terms: Literal["library", "in_batch"] = option(
        "library",
        "read batch and queue back without gradient (code), or in-batch terms with it, plus the queue",
    )

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if self.l_min > self.l_max:
            raise ValueError(f"l_min ({self.l_min}) must not be greater than l_max ({self.l_max})")
        if self.warmup_steps is not None:
            raise ValueError(
                "warmup_steps has no effect on the schedules of declutr; set warmup, a share"
            )
        masks = self.objective == "both" and self.masked_anchors
        if masks and self.pooling.startswith(PROMPT) and MASK in self.pooling:
            raise ValueError(
                'keys "pooling" and "masked_anchors": masked tokens would be read for that of the template; set '
                "masked_anchors = false"
            )
        if self.memory and self.matryoshka:
            raise ValueError(
                'keys "memory" and "matryoshka": a batch would join the memory once for each width, and be its own '
                "negative"
            )
        rows = 2 * self.anchors * self.batch_size
        if self.memory and self.memory_terms == "library" and self.memory < rows:
            raise ValueError(
                f"memory ({self.memory}) must hold the 2 * anchors * batch_size = {rows} embeddings of one batch; "
                'raise it, or set memory_terms = "in_batch"'
            )
        return self


def slanted_triangular_rate(
    update: int,
    length: int,
    *,
    cut: float = 0.1,
    ratio: float = 32.0,
) -> float:
    """Share of the peak learning rate at `update` (1 is the first) of a schedule of `length`
    updates.

    (1 + r (ratio - 1)) / ratio, where r rises from 0 to 1 over the first `cut` of the schedule and
    falls back to 0 at its end (Howard & Ruder, ACL 2018, Eq. 3, as AllenNLP has it).
    """
    peak = int(length * cut)
    if update < peak:
        rise = update / peak
    else:
        rise = 1 - (update - peak) / (length - peak)
    return (1 + rise * (ratio - 1)) / ratio


class DeCLUTR(TrainedMethod):
    """L = w * mean over the 2AN span embeddings of -log softmax( cos / temperature )[partner] +
    masked-LM loss.

    The partner of an anchor's embedding is the mean of its P positives' embeddings. Spans of the
    same document that do not belong together are negatives too.
    """

    name = "declutr"
    version = 1
    sheet = RecipeFile.beside(__file__)
    Config = DeCLUTRConfig

    def __init__(
        self,
        config: MethodConfig | None = None,
        *,
        base_model: str = DEFAULT_BASE_MODEL,
    ) -> None:
        super().__init__(config, base_model=base_model)
        c = self.config
        self.sampler = SpanSampler(
            c.l_min,
            c.l_max,
            c.anchors,
            c.positives,
            c.strategy,
            c.anchor_grid,
        )

    @cached_property
    def _tokens(self) -> DocumentTokens:
        """Tokenizer of documents, after a check that the longest span fits into the base model.

        Raises:
            InputError: it does not fit.
        """
        c = self.config
        tokens, positions = tokens_for(self.base_model, c.max_length)
        limit = min(c.train_length, positions)
        if c.l_max > limit + _TOLERATED:
            raise InputError(
                f'method "declutr": spans of l_max = {c.l_max} tokens do not fit into the '
                f"{limit} that {self.base_model} takes here (its positions, max_length, "
                "train_length)",
                key="l_max",
                remedy=f'set l_max to {limit - 2} or less (preset "mini": 30)',
            )
        return tokens

    def heads(self, encoder: Encoder) -> nn.Module:
        c = self.config
        heads = nn.Module()
        width = encoder.dimension
        if c.objective != "contrastive":
            heads.masked_lm = MaskedLM.from_base(self.base_model, encoder)
        if c.objective != "mlm":
            heads.projection = nn.Sequential()
            if c.projection is not None:
                between = nn.ReLU() if c.projection_activation == "relu" else nn.Identity()
                first = nn.Linear(width, c.projection, bias=c.projection_bias)
                second = nn.Linear(c.projection, c.projection, bias=c.projection_bias)
                heads.projection = nn.Sequential(first, between, second)
                width = c.projection
            if c.memory:
                heads.memory = CrossBatchMemory(c.memory, width)
        return heads

    def stream(self, corpus: Corpus, seed: int) -> BatchStream:
        """Batches of the documents that are long enough, shuffled every epoch; the run reports how
        many those are.

        Raises:
            InputError: fewer than two documents are, or the encoder is too short for spans of
                l_max.
        """
        needed = self.sampler.needed
        how = "lower" if self.config.lower else "as it is"
        long = self._tokens.long_enough(corpus, needed, self._prepare, how)
        if len(long) < 2:
            raise InputError(
                f"corpus {corpus.uri}: {len(long)} of {len(corpus)} documents have the "
                f"{needed} tokens that {self.config.anchors} anchors of at most "
                f"{self.config.l_max} need",
                file=corpus.uri,
                remedy="give longer documents, or lower l_max or anchors",
            )
        c = self.config
        return BatchStream(
            Subset(corpus, long),  # type: ignore[arg-type]
            batch_size=c.batch_size,
            bucket=c.bucket,
            seed=seed,
            length_cap=1,
            drop_last=c.drop_last,
            about={"documents": len(long), "documents_too_short": len(corpus) - len(long)},
        )

    def optimizer(self, groups: list[dict[str, Any]]) -> torch.optim.Optimizer:
        c = self.config
        return adamw(
            groups, learning_rate=c.learning_rate, eps=1e-6, bias_correction=c.bias_correction
        )

    def schedule(self, step: int, steps: int) -> float:
        """Share of the peak learning rate, see `slanted_triangular_rate`.

        "updates": over all updates. "instances": over as many updates as documents are seen,
        batch_size times too long.
        "released": AllenNLP did not know the length of the first epoch and took every update for
        the last one.
        """
        c = self.config
        if c.lr_schedule == "released" and step < steps // c.epochs:
            return slanted_triangular_rate(steps, steps, cut=c.warmup)
        if c.lr_schedule == "instances":
            length = steps * c.batch_size
        else:
            length = steps
        return slanted_triangular_rate(step + 1, length, cut=c.warmup)

    def loss(self, encoder: Encoder, heads: Any, batch: Batch) -> dict[str, Tensor]:
        c = self.config
        anchors, positives = self._draw_spans(encoder, batch)
        terms: dict[str, Tensor] = {}
        embedded: Tensor | None = None
        if c.objective != "contrastive":
            embedded, terms["mlm"] = self._mask_and_embed(encoder, heads, anchors, batch.rng)
        if c.objective != "mlm":
            if embedded is None or not c.masked_anchors:
                embedded = encoder(encoder.collate(anchors))
            others = encoder(encoder.collate(positives))
            of_anchors = others.view(len(anchors), c.positives, -1)
            a = heads.projection(embedded)
            b = heads.projection(of_anchors.mean(1))
            if c.memory:
                contrast = heads.memory.loss(a, b, temperature=c.temperature, terms=c.memory_terms)
            else:
                contrast = nt_xent_symmetric(a, b, temperature=c.temperature)
            if c.reduction == "sum":
                contrast = contrast * 2 * len(a)
            terms["contrastive"] = c.contrastive_weight * contrast

        return {"loss": sum(terms.values()), **terms}  # type: ignore[dict-item]

    def _prepare(self, text: str) -> str:
        text = clean(text)
        if self.config.lower:
            return text.lower()
        return text

    def _draw_spans(
        self,
        encoder: Encoder,
        batch: Batch,
    ) -> tuple[list[list[int]], list[list[int]]]:
        """Draw spans: ids of the AN anchors and, in the same order, of the P positives of each."""
        length = self.config.train_length
        texts = [self._prepare(text) for text in batch.texts]
        anchors: list[str] = []
        positives: list[str] = []
        for text, starts in zip(texts, self._tokens.starts(texts), strict=True):
            for spans in self.sampler.sample(len(starts) - 1, batch.rng).tolist():
                anchor, *near = [extract_text(text, starts, first, end) for first, end in spans]
                anchors.append(anchor)
                positives += near

        anchor_ids = encoder.tokenize(anchors, length)
        if self.config.objective == "mlm":
            return anchor_ids, []
        return anchor_ids, encoder.tokenize(positives, length)

    def _mask_and_embed(
        self,
        encoder: Encoder,
        heads: Any,
        ids: list[list[int]],
        rng: np.random.Generator,
    ) -> tuple[Tensor, Tensor]:
        """Return embeddings of the masked anchors, and their masked-language-modelling loss."""
        masked, labels = mask_tokens(
            ids, encoder.tokenizer, rng, probability=self.config.mlm_probability
        )
        features = encoder.collate(masked)
        states = encoder.hidden_states(features)
        tokens = average_layers(states, encoder.pooling.layers(len(states) - 1))
        targets = pad_labels(labels)
        chosen = targets != IGNORED
        logits = heads.masked_lm(states[-1][chosen.to(encoder.device)])
        embeddings = encoder.pool(tokens, encoder.pooling_mask(features))
        return embeddings, masked_lm_loss(logits, targets[chosen])
