"""CoT-BERT: templates with two [MASK]s, of which the last is read; a template that negates gives
hard negatives.
"""

from __future__ import annotations

from typing import Any, Literal

import torch
from pydantic import field_validator
from torch import Tensor
from torch.nn import functional

from harness.config import option
from harness.encoder import Encoder
from harness.encoder.network import Features
from harness.encoder.prompts import HOW, Prompt
from harness.recipes import RecipeFile
from harness.training import Batch
from methods.parts.row_vectors import check_rows, check_temperature, full_precision, unit
from methods.promptbert import PROMPT, PromptBERT, PromptBERTConfig

TEMPLATES = {
    "pooling": 'prompt:The sentence of "[X]" means [MASK] , so it can be summarized as [MASK] .',
    "second": 'The sentence : "[X]" means [MASK] , so it can be summarized as [MASK] .',
    "negative": 'The sentence : "[X]" does not mean [MASK] , so it cannot be summarized as [MASK] .',
}


@full_precision
def extended_nt_xent(
    anchors: Tensor,
    positives: Tensor,
    negatives: Tensor,
    *,
    temperature: float,
) -> Tensor:
    """`nt_xent` with hard negatives, from which the positives are pushed away too: 3n columns.

    L = -(1/n) sum_i log( e(a_i, p_i) / sum_j [e(a_i, p_j) + e(a_i, n_j) + e(p_i, n_j)] ),  e(x, y)
    = exp(cos(x, y)/t)

    Args:
        anchors, positives, negatives: (n, d); rows i belong together.

    >>> import torch
    >>> x = torch.eye(2)  # negatives opposite to their sentences: log(1 + 3/e + 2/e^2)
    >>> round(float(extended_nt_xent(x, x, -x, temperature=1.0)), 4)
    0.8647

    Source: Zhang et al., ICANN 2024 (arXiv 2309.11143), the extended InfoNCE loss; paper and code
        agree.
    """
    check_rows(anchors, positives)
    check_rows(anchors, negatives)
    check_temperature(temperature)
    a = unit(anchors)
    p = unit(positives)
    n = unit(negatives)
    logits = torch.cat([a @ p.T, a @ n.T, p @ n.T], dim=1) / temperature
    return functional.cross_entropy(logits, torch.arange(len(a), device=a.device))


class CoTBERTConfig(PromptBERTConfig):
    """Defaults: the released script for BERT-base."""

    pooling: str = option(
        TEMPLATES["pooling"], f"prompt:TEMPLATE of the first view, also used when encoding; {HOW}"
    )
    second: str = option(TEMPLATES["second"], "template of the second view")
    negative: str = option(
        TEMPLATES["negative"], "template of the hard negatives, which denies the sentence"
    )
    similarity: Literal["cosine"] = option("cosine", "of two sentences in the loss")
    denoise_by: Literal["pad", "position"] = option(
        "pad",
        "denoise: padding in place of the sentence (pad), or its words hidden (position), as promptbert has it",
    )
    parts: int = option(
        1, "equal parts of a batch that have negatives of their own, as on so many GPUs", ge=1
    )

    @field_validator("negative")
    @classmethod
    def _is_a_third_template(cls, value: str) -> str:
        Prompt.parse(value)
        return value


class CoTBERT(PromptBERT):
    """`extended_nt_xent` of head(h - h0), h = the state at the last [MASK] of each of three
    templates.
    """

    name = "cot_bert"
    version = 1
    sheet = RecipeFile.beside(__file__)
    Config = CoTBERTConfig

    def loss(self, encoder: Encoder, heads: Any, batch: Batch) -> dict[str, Tensor]:
        config: CoTBERTConfig = self.config
        ids_a, ids_b = self.views(encoder, batch)
        z_a, z_b = self.project_views(encoder, heads, ids_a, ids_b)
        ids_n = self._prompt(2).rows(
            batch.texts,
            self._plain_tokenizer(),
            self._sentence_length(encoder),
        )
        # The negatives in one pass, a half as each view; the middle row of an odd number twice.
        half = len(ids_n) // 2
        first, second = self.encode_views(
            encoder,
            ids_n[: len(ids_n) - half],
            ids_n[half:],
            templates=(2, 2),
        )
        z_n = heads.mlp(torch.cat([first[:half], second]))

        losses: list[Tensor] = []
        parts = config.parts
        for a, p, n in zip(z_a.chunk(parts), z_b.chunk(parts), z_n.chunk(parts), strict=True):
            losses.append(extended_nt_xent(a, p, n, temperature=config.temperature))
        return self.with_mlm(torch.stack(losses).mean(), encoder, heads, [*ids_a, *ids_b], batch)

    def _templates(self) -> tuple[str, ...]:
        return self.config.pooling.removeprefix(PROMPT), self.config.second, self.config.negative

    def _hide(self, features: Features, row: int, words: slice) -> None:
        """Put padding, which the template attends to, in place of the sentence; or as promptbert."""
        if self.config.denoise_by == "position":
            super()._hide(features, row, words)
        else:
            features["input_ids"][row, words] = self._plain_tokenizer().pad_token_id
