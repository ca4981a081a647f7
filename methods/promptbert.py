"""PromptBERT: the state at [MASK] of a template around the sentence; two templates are the two
views.
"""

from __future__ import annotations

from typing import Any, ClassVar, Self

import torch
from pydantic import field_validator, model_validator
from torch import Tensor, nn

from harness.config import option
from harness.encoder import Encoder
from harness.encoder.loading import tokens_of
from harness.encoder.network import Features, TokenIds
from harness.encoder.prompts import HOW, Prompt
from harness.method import MethodConfig
from harness.recipes import RecipeFile
from harness.training import Batch
from methods.simcse import STATE_A_RATE, SimCSE, SimCSEConfig

PROMPT = "prompt:"
BERT = {
    "pooling": 'prompt:This sentence of "[X]" means [MASK].',
    "second": 'This sentence : "[X]" means [MASK].',
}


class PromptBERTConfig(SimCSEConfig):
    """Defaults: the released script for BERT-base."""

    pooling: str = option(
        BERT["pooling"], f"prompt:TEMPLATE of the first view, also used when encoding; {HOW}"
    )
    second: str = option(BERT["second"], "template of the second view")
    denoise: bool = option(
        True, "in training, take away what the template says without the sentence"
    )
    batch_size: int = option(256, "sentences per training step", ge=2, sweep=[64, 128, 256, 512])
    learning_rate: float = option(
        1e-5,
        "peak learning rate of AdamW",
        gt=0,
        sweep=(3e-6, 3e-4),
        log=True,
    )
    train_length: int = option(
        32,
        "maximum number of tokens of a sentence in training, template and special tokens not counted",
        ge=4,
    )

    @field_validator("pooling")
    @classmethod
    def _is_a_prompt(cls, value: str) -> str:
        if not value.startswith(PROMPT):
            raise ValueError(f"must be a template, such as {BERT['pooling']!r}")
        return value

    @field_validator("second")
    @classmethod
    def _is_a_template(cls, value: str) -> str:
        Prompt.parse(value)
        return value

    @model_validator(mode="after")
    def _read_the_same_token(self) -> Self:
        first = Prompt.parse(self.pooling.removeprefix(PROMPT))
        second = Prompt.parse(self.second)
        if first.reads_mask != second.reads_mask:
            raise ValueError(
                'keys "pooling" and "second": one template has [MASK] and the other has not'
            )
        return self


class PromptBERT(SimCSE):
    """NT-Xent(zA, zB), z = head(h - h0): h the state that a template reads, h0 the same without the
    sentence.
    """

    name = "promptbert"
    version = 2  # 1: no full stop behind a sentence; RoBERTa's quotes next to it; two tokens fewer of a sentence
    sheet = RecipeFile.beside(__file__)
    Config: ClassVar[type[MethodConfig]] = PromptBERTConfig

    def heads(self, encoder: Encoder) -> nn.Module:
        if self.config.dropout is None and self.config.attention_rate is None:
            encoder.warn_without_dropout(STATE_A_RATE)
        return super().heads(encoder)

    def views(self, encoder: Encoder, batch: Batch) -> tuple[list[list[int]], list[list[int]]]:
        """Return the token rows of every sentence in both templates."""
        tokenizer = self._plain_tokenizer()
        length = self._sentence_length(encoder)
        ids_a = self._prompt(0).rows(batch.texts, tokenizer, length)
        ids_b = self._prompt(1).rows(batch.texts, tokenizer, length)
        return ids_a, ids_b

    def encode_views(
        self,
        encoder: Encoder,
        ids_a: TokenIds,
        ids_b: TokenIds,
        templates: tuple[int, int] = (0, 1),
    ) -> tuple[Tensor, Tensor]:
        """Return the vectors (n, d) of both views, less those of their `templates` (by number) alone."""
        h_a, h_b = super().encode_views(encoder, ids_a, ids_b)
        if not self.config.denoise:
            return h_a, h_b
        alone_a = self._template_vectors(encoder, ids_a, templates[0])
        alone_b = self._template_vectors(encoder, ids_b, templates[1])
        return h_a - alone_a, h_b - alone_b

    def _template_vectors(
        self,
        encoder: Encoder,
        ids: TokenIds,
        which: int,
    ) -> Tensor:
        """Return the template's own vectors (n, d), its two sides as far apart as the sentences in
        `ids` hold them.
        """
        before, after = self._prompt(which).pieces(self._plain_tokenizer())
        lengths = sorted({len(row) for row in ids})
        like = {len(row): row for row in ids}
        features = encoder.collate([like[length] for length in lengths])
        for row, length in enumerate(lengths):
            self._hide(features, row, slice(len(before), length - len(after)))
        places = torch.tensor([lengths.index(len(row)) for row in ids])
        vectors: Tensor = encoder(features)
        return vectors[places.to(vectors.device)]

    def _hide(self, features: Features, row: int, words: slice) -> None:
        """Take the sentence out of a row of collated features; here its places stay, and nothing
        looks at them.
        """
        features["attention_mask"][row, words] = 0

    def _plain_tokenizer(self) -> Any:
        """Return the base model's tokenizer, without a template."""
        return tokens_of(self.base_model)[0]

    def _templates(self) -> tuple[str, ...]:
        return self.config.pooling.removeprefix(PROMPT), self.config.second

    def _prompt(self, which: int) -> Prompt:
        return Prompt.parse(self._templates()[which])

    def _template_length(self) -> int:
        """Return the number of tokens of the longest template, special tokens included."""
        tokenizer = self._plain_tokenizer()
        lengths: list[int] = []
        for text in self._templates():
            pieces = Prompt.parse(text).pieces(tokenizer)
            lengths.append(sum(map(len, pieces)))
        return max(lengths)

    def _sentence_length(self, encoder: Encoder) -> int:
        """Return the maximum number of tokens of a sentence: that of the config, or what the longer
        template leaves room for.
        """
        words: int = min(self.config.train_length, encoder.max_length - self._template_length())
        return words
