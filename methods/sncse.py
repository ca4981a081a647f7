"""SNCSE: PromptBERT's two templates, and a sentence's negation, which is to be a little less like
it than itself.
"""

from __future__ import annotations

from typing import Any, Literal, Self

import torch
from pydantic import model_validator
from torch import Tensor

from harness.config import option
from harness.encoder import Encoder
from harness.encoder.network import TokenIds
from harness.errors import InputError
from harness.method import Supervision, Text
from harness.recipes import RecipeFile
from harness.training import Batch
from methods.parts.negation import negate
from methods.parts.row_vectors import check_rows, full_precision, unit
from methods.promptbert import PromptBERT, PromptBERTConfig

TEMPLATES = {
    "pooling": 'prompt:This sentence : " [X] " means [MASK] .',
    "second": 'This sentence of " [X] " means [MASK] .',
}


@full_precision
def bidirectional_margin(
    anchors: Tensor,
    positives: Tensor,
    negatives: Tensor,
    *,
    lower: float,
    upper: float,
) -> Tensor:
    """Penalty where a soft negative's cosine is not lower than the positive's by at least `lower`
    and at most `upper`.

    L = (1/n) sum_i max(0, D_i + lower) + max(0, -D_i - upper), D_i = cos(a_i, n_i) - cos(a_i, p_i)

    Args:
        anchors, positives, negatives: (n, d); rows i belong together.

    >>> import torch
    >>> a = torch.tensor([[1.0, 0.0]])
    >>> bidirectional_margin(a, a, a, lower=0.1, upper=0.3).item()  # no nearer and no farther than the positive
    0.10000000149011612

    Source: Wang et al. 2022 (arXiv 2201.05979), the bidirectional margin loss, as in the code.
    """
    check_rows(anchors, positives)
    check_rows(anchors, negatives)
    a = unit(anchors)
    p = unit(positives)
    n = unit(negatives)
    gap = (a * n).sum(dim=1) - (a * p).sum(dim=1)
    return (torch.relu(gap + lower) + torch.relu(-gap - upper)).mean()


class SNCSEConfig(PromptBERTConfig):
    """Defaults: the released script for BERT-base."""

    pooling: str = option(
        TEMPLATES["pooling"],
        "prompt:TEMPLATE of the first view, also used when encoding, as for promptbert",
    )
    second: str = option(TEMPLATES["second"], "template of the second view and of the negation")
    denoise: Literal[False] = option(False, "promptbert's denoising, which this method has not")
    negatives: Literal["rules", "given"] = option(
        "rules",
        "soft negatives: English negation by rules, or those of pairs (their negative, else their second text)",
    )
    negatives_are_labelled: bool = option(
        True, "given: people wrote or judged them (the row counts as supervised)"
    )
    margin_weight: float = option(
        1e-3,
        "weight of the bidirectional margin (lambda); 0: none",
        ge=0,
        sweep=(1e-4, 1.0),
        log=True,
    )
    margin_lower: float = option(
        0.1,
        "a negation's cosine is to be lower by this at least (alpha)",
        ge=0,
        le=2,
        sweep=(0.0, 0.3),
    )
    margin_upper: float = option(0.3, "and by this at most (beta)", ge=0, le=2, sweep=(0.3, 1.0))
    train_length: int = option(
        32,
        "maximum number of tokens of a row in training, template and special tokens included",
        ge=4,
    )

    @model_validator(mode="after")
    def _margins_are_in_order(self) -> Self:
        if self.margin_lower > self.margin_upper:
            raise ValueError(
                'keys "margin_lower" and "margin_upper": the lower one is above the upper one'
            )
        return self


class SNCSE(PromptBERT):
    """NT-Xent(zA, zB) + lambda * `bidirectional_margin`(zA, zB, zN), N the sentence's negation in
    B's template.
    """

    name = "sncse"
    version = 2  # 1: no full stop behind a sentence
    sheet = RecipeFile.beside(__file__)
    Config = SNCSEConfig

    @property
    def text(self) -> Text:
        if self.config.negatives == "given":
            return "pairs"
        return "sentences"

    @property
    def supervision(self) -> Supervision:
        if self.config.negatives == "given" and self.config.negatives_are_labelled:
            return "supervised"
        return "unsupervised"

    def check(self, corpus: Any) -> None:
        """Also refuse a train_length that leaves nothing of a sentence, before any run."""
        super().check(corpus)
        template = self._template_length()
        if self.config.train_length <= template:
            raise InputError(
                f'sncse: key "train_length" = {self.config.train_length}: the template alone '
                f"has {template} tokens on this base model, and the sentence comes with it",
                key="train_length",
                remedy="give more, such as 32",
            )

    def loss(self, encoder: Encoder, heads: Any, batch: Batch) -> dict[str, Tensor]:
        config: SNCSEConfig = self.config
        if not config.margin_weight:
            return super().loss(encoder, heads, batch)
        ids_a, ids_b = self.views(encoder, batch)
        ids_n = self._negations(encoder, batch)
        z_a, z_b, z_n = self._project_three(encoder, heads, ids_a, ids_b, ids_n)
        contrast = self.contrast(z_a, z_b, heads, batch)
        terms = self.with_mlm(contrast, encoder, heads, [*ids_a, *ids_b], batch)
        margin = config.margin_weight * bidirectional_margin(
            z_a, z_b, z_n, lower=config.margin_lower, upper=config.margin_upper
        )
        return {
            **terms,
            "loss": terms["loss"] + margin,
            "contrast": contrast,
            "margin": margin,
        }

    def _negations(self, encoder: Encoder, batch: Batch) -> list[list[int]]:
        """Return the token rows of the soft negatives, in the second template."""
        if self.config.negatives == "rules":
            texts = [negate(text) for text in batch.texts]
        else:
            texts = [
                pair.positive if pair.negative is None else pair.negative for pair in batch.items
            ]
        return self._prompt(1).rows(texts, self._plain_tokenizer(), self._sentence_length(encoder))

    def _project_three(
        self,
        encoder: Encoder,
        heads: Any,
        ids_a: TokenIds,
        ids_b: TokenIds,
        ids_n: TokenIds,
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Return the projections (n, d) of both views and of the negations, of which half the rows
        go with each view: one forward pass, one kind of dropout.
        """
        n = len(ids_n)
        half = (n + 1) // 2
        missing = half - (n - half)  # 1 where n is odd: then the first negation occurs twice
        rest = [*ids_n[half:], *ids_n[:missing]]
        h_1, h_2 = self.encode_views(encoder, [*ids_a, *ids_n[:half]], [*ids_b, *rest])
        negations = torch.cat([h_1[n:], h_2[n:]])[:n]
        return heads.mlp(h_1[:n]), heads.mlp(h_2[:n]), heads.mlp(negations)

    def _sentence_length(self, encoder: Encoder) -> int:
        """Return the maximum number of tokens of a sentence, with which the longer template is within
        train_length.
        """
        words: int = min(self.config.train_length, encoder.max_length) - self._template_length()
        return words
