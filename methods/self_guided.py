"""SG and SG-OPT: the sentence vector is pulled toward the intermediate layers of a frozen copy of
the same model.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal, Self

import numpy as np
import torch
from pydantic import model_validator
from torch import Tensor, nn
from torch.nn import functional

from harness.config import option
from harness.encoder import Encoder
from harness.encoder.network import Features
from harness.encoder.pooling import reduce_tokens
from harness.errors import InputError
from harness.method import POOLING_HELP, Supervision, Text
from harness.recipes import RecipeFile
from harness.training import Batch, TrainedMethod, TrainingConfig
from methods.objectives import nt_xent_symmetric, self_guided
from methods.parts.row_vectors import check_rows, check_temperature, full_precision, unit

Variant = Literal["base", "opt1", "opt2", "opt3"]
Objective = Literal["base", "opt1", "opt2", "opt3", "back_translation", "back_translation+opt3"]


class SelfGuidedConfig(TrainingConfig):
    """Defaults: SG-OPT for BERT as the paper has it, and the released code where the paper is
    silent.
    """

    pooling: str = option("cls", POOLING_HELP)
    learning_rate: float = option(
        5e-5,
        "peak learning rate of AdamW",
        gt=0,
        sweep=(1e-5, 1e-4),
        log=True,
    )
    batch_size: int = option(16, "sentences (or pairs) per training step", ge=2, sweep=[16, 32, 64])
    train_length: int = option(
        128, "maximum number of tokens in training, special tokens included", ge=4
    )
    warmup: float = option(0.1, "share of the training steps with rising learning rate", ge=0, lt=1)
    weight_decay: float = option(
        0.01, "decoupled weight decay; the code's command says 0, its fit routine 0.01", ge=0
    )
    beta2: float = option(0.9, "AdamW's second beta (the usual one is 0.999)", ge=0, lt=1)
    eval_every: int = option(50, "training steps between two evaluations on the dev set", ge=1)
    patience: int | None = option(
        10,
        "stop after this many evaluations worse than the one before (the first: than 0); empty: never",
        ge=1,
    )
    objective: Objective = option(
        "opt3",
        "base (SG), opt1, opt2, opt3 (SG-OPT); back_translation and the sum with opt3 learn from pairs",
    )
    temperature: float = option(0.01, "divides the cosines (tau)", gt=0, sweep=[0.01, 0.1])
    regularisation: float = option(
        0.1, "weight of the squared distance to the initial weights", ge=0, sweep=[0, 0.1, 1]
    )
    layer_pooling: Literal["max", "mean"] = option(
        "max", "of the guide's layers over tokens; the code's default: mean"
    )
    guide_first: int = option(
        0, "first layer of the guide that is used; 0: the embedding block", ge=0
    )
    guide_last: int | None = option(
        None, "last layer of the guide that is used; empty: its last", ge=0
    )
    shift_layers: bool = option(
        True,
        "base, opt1, opt2 draw from guide_first on; the code adds guide_first twice: from 2 * guide_first on",
    )
    guide_dropout: bool = option(
        False, "drop in the frozen copy too, as the code ran against its intention"
    )
    freeze_embeddings: bool = option(True, "leave the embedding block of the tuned model unchanged")
    head: Literal["training", "none"] = option(
        "training", "Linear-GELU-Linear-GELU in the loss only; or none"
    )
    head_width: int = option(4096, "width of the head's two layers", ge=1)
    final_gelu: bool = option(
        True, "GELU after the head's second layer too (code; the paper does not say)"
    )
    base_reduction: Literal["mean", "sum/b"] = option(
        "mean",
        "of base and back_translation: mean over the 2b rows, or their sum over b as the code divides",
    )
    opt2_negatives: Literal["all", "code"] = option(
        "all", "of opt2: all b - 1, or b - 2 as the code slices"
    )

    @model_validator(mode="after")
    def _layers_in_order(self) -> Self:
        if self.guide_last is not None and self.guide_last < self.guide_first:
            raise ValueError(
                f"guide_last must be at least guide_first = {self.guide_first}, not {self.guide_last}"
            )
        return self


class Guide(nn.Module):
    """Frozen copy of the encoder, and the head f that vectors of both models pass through: (n, d) ->
    (n, D).
    """

    def __init__(self, frozen: Encoder, head: nn.Module) -> None:
        super().__init__()
        self.frozen = frozen.requires_grad_(False)
        self.head = head


class SelfGuided(TrainedMethod):
    """L = contrast of the tuned [CLS] with the guide's layers + lambda * squared distance to the
    initial weights.
    """

    name = "self_guided"
    version = 1
    sheet = RecipeFile.beside(__file__)
    Config = SelfGuidedConfig

    @property
    def text(self) -> Text:
        if self.config.objective.startswith("back_translation"):
            return "pairs"
        return "sentences"

    @property
    def supervision(self) -> Supervision:
        if self.config.objective.startswith("back_translation"):
            return "supervised"
        return "unsupervised"

    def heads(self, encoder: Encoder) -> nn.Module:
        config = self.config
        encoder.warn_without_dropout("choose a base model that has, as BERT and RoBERTa do")
        frozen = encoder.copy()
        self._layers(int(encoder.transformer.config.num_hidden_layers))
        if config.freeze_embeddings:
            block = getattr(encoder.transformer, "embeddings", None)
            if block is None:
                block = encoder.transformer.get_input_embeddings()
            block.requires_grad_(False)

        if config.head == "none":
            return Guide(frozen, nn.Identity())
        first = nn.Linear(encoder.dimension, config.head_width)
        second = nn.Linear(config.head_width, config.head_width)
        for layer in (first, second):
            nn.init.normal_(layer.weight, std=0.02)
            nn.init.zeros_(layer.bias)
        last = nn.GELU() if config.final_gelu else nn.Identity()
        return Guide(frozen, nn.Sequential(first, nn.GELU(), second, last))

    def optimizer(self, groups: list[dict[str, Any]]) -> torch.optim.Optimizer:
        """AdamW with both betas 0.9 by default, as the code has it."""
        return torch.optim.AdamW(
            groups,
            lr=self.config.learning_rate,
            betas=(0.9, self.config.beta2),
            fused=True,
        )

    def loss(self, encoder: Encoder, heads: Any, batch: Batch) -> dict[str, Tensor]:
        config = self.config
        t = config.temperature
        ids = encoder.tokenize(batch.texts, max_length=config.train_length)
        features = encoder.collate(ids)
        terms: dict[str, Tensor] = {}
        if config.objective.startswith("back_translation"):
            differ_by = "give pairs whose two sides are not the same text"
            h, h_p = encoder.two_views(batch.texts, batch.positives, differ_by=differ_by)
            c = heads.head(h)
            loss = nt_xent_symmetric(c, heads.head(h_p), temperature=t)
            terms["back_translation"] = self._scale(loss)
        else:
            c = heads.head(encoder(features))

        if config.objective != "back_translation":
            guides = self._guide(heads.frozen, features, batch.rng)
            views = heads.head(guides)
            terms["guide"] = self._guide_loss(c, views)

        if config.regularisation > 0:
            distance = sum_of_squared_differences(encoder.parameters(), heads.frozen.parameters())
            terms["regulariser"] = config.regularisation * distance
        return {"loss": torch.stack(list(terms.values())).sum(), **terms}

    def _guide_loss(self, c: Tensor, views: Tensor) -> Tensor:
        """Contrast of the tuned vectors c (n, D) with the guide's layers (n, L, D)."""
        config = self.config
        t = config.temperature
        if config.objective == "opt2" and config.opt2_negatives == "code":
            return opt2_as_coded(c, views[:, 0], temperature=t)
        if config.objective == "base":
            return self._scale(self_guided(c, views, temperature=t, variant="base"))
        if config.objective in ("opt1", "opt2"):
            variant: Variant = config.objective
        else:
            variant = "opt3"
        return self_guided(c, views, temperature=t, variant=variant)

    def _scale(self, mean: Tensor) -> Tensor:
        """Scale a mean over 2b rows as `base_reduction` has it: the sum over b is twice as much."""
        if self.config.base_reduction == "sum/b":
            return 2 * mean
        return mean

    def _layers(self, depth: int) -> tuple[range, range]:
        """Return the guide's layers that are used, and those that the objectives of one sampled layer
        draw from.

        Raises:
            InputError: the model has no such layer.
        """
        config = self.config
        if config.guide_last is None:
            last = depth
        else:
            last = config.guide_last
        if config.shift_layers:
            drawn = config.guide_first
        else:
            drawn = 2 * config.guide_first
        if max(last, config.guide_first, drawn) > depth or drawn > last:
            raise InputError(
                f"self_guided: layers {config.guide_first} to {last} of the guide were "
                f"requested (drawn from {drawn} on), but {self.base_model} has 0 to {depth}",
                remedy="set guide_first and guide_last",
            )
        return range(config.guide_first, last + 1), range(drawn, last + 1)

    def _guide(
        self,
        frozen: Encoder,
        features: Features,
        rng: np.random.Generator,
    ) -> Tensor:
        """Return pooled layers of the frozen copy (n, L, d), without gradient; L = 1, drawn per
        sentence, but for opt3.
        """
        every_layer = self.config.objective.endswith("opt3")
        frozen.train(self.config.guide_dropout)
        with torch.no_grad():
            states = frozen.hidden_states(features)
            mask = features["attention_mask"].to(states[0].device)
            used, drawn = self._layers(len(states) - 1)
            layers = used if every_layer else drawn
            vectors = [reduce_tokens(states[k], mask, self.config.layer_pooling) for k in layers]
            pooled = torch.stack(vectors, dim=1)
            if every_layer:
                return pooled

            choice = torch.from_numpy(rng.integers(len(layers), size=len(pooled)))
            rows = torch.arange(len(pooled), device=pooled.device)
            return pooled[rows, choice.to(pooled.device)].unsqueeze(1)


@full_precision
def opt2_as_coded(cls: Tensor, views: Tensor, *, temperature: float) -> Tensor:
    """`self_guided(variant="opt2")` with the code's slip: the first h_j of each denominator is
    missing.

    L = mean over i of -log[ f(c_i,h_i) / ( f(c_i,h_i) + sum over j != i, j != first(i) of
    f(c_i,h_j) ) ], f(u, v) = exp(cos(u, v)/t), first(i) the smallest j other than i: n - 2
    negatives instead of n - 1.

    Args:
        cls, views: (n, d). n <= 2 leaves no negative, and the loss is 0.
    """
    check_rows(cls, views)
    check_temperature(temperature)
    n = len(cls)
    logits = unit(cls) @ unit(views).T / temperature
    row = torch.arange(n, device=logits.device)
    dropped = torch.zeros_like(logits, dtype=torch.bool)
    if n > 1:
        dropped[row, (row == 0).long()] = True
    return functional.cross_entropy(logits.masked_fill(dropped, float("-inf")), row)


def sum_of_squared_differences(parameters: Iterable[Tensor], start: Iterable[Tensor]) -> Tensor:
    """L_reg = sum over all parameters of (p - p_0)^2, a scalar; gradient 2 (p - p_0) through
    `parameters`.

    Parameters that do not learn are still where they started, so leaving them out changes nothing.
    """
    terms = []
    for p, p_0 in zip(parameters, start, strict=True):
        if p.requires_grad:
            terms.append((p - p_0.detach()).square().sum())
    if terms:
        return torch.stack(terms).sum()
    return torch.zeros(())
