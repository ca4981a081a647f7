"""Echo: a sentence given twice inside a template, and the tokens of its second copy, which the vector is made of.

Under causal attention the first tokens of a sentence know nothing of its last ones; those of a second copy have read it
all. The template and both copies are a part of the tokenizer (its post-processor), so that a saved model brings them
along, and a long sentence is cut before it is doubled: both copies are always the same.

Source: Springer et al., "Repetition improves language model embeddings", ICLR 2025 (arXiv 2402.15449).
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING, Self

import torch
from tokenizers.normalizers import Prepend, Sequence
from tokenizers.processors import TemplateProcessing
from torch import Tensor

from harness.encoder.prompts import SENTENCE, frame_of, require_fast
from harness.errors import InputError

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

DEFAULT = f"Rewrite the sentence: {SENTENCE}, rewritten sentence: {SENTENCE}"
HOW = f"{SENTENCE} stands for the sentence, twice, with something between"


@dataclass(frozen=True)
class Echo:
    """A template such as `Rewrite the sentence: [X], rewritten sentence: [X]`.

    A blank before both `[X]` belongs to the sentence: tokenizers that glue it to the next word see the word as they
    know it. `[X]` is tokenised by itself, the template around it once.
    """

    before: str
    between: str
    after: str

    @classmethod
    def parse(cls, template: str) -> Self:
        """The echo that `template` writes.

        Raises:
            ValueError: it has not two `[X]` with something between.
        """
        parts = template.split(SENTENCE)
        if len(parts) != 3 or not parts[1].strip():
            raise ValueError(f"must be a template, not {template!r}: {HOW}")
        return cls(*parts)

    def apply(self, tokenizer: PreTrainedTokenizerBase) -> None:
        """Make `tokenizer` put every text into the template, twice; padding goes to the right.

        Raises:
            InputError: it is none of the library "tokenizers".
        """
        require_fast(tokenizer)
        first, last = frame_of(tokenizer)

        def ids(text: str) -> list[int]:
            return [int(i) for i in tokenizer(text, add_special_tokens=False)["input_ids"]]

        spaced = self.before.endswith(" ") and self.between.endswith(" ")
        glued = spaced and ids("a a") != [*ids("a"), *ids("a")]  # the blank is a part of the word that follows
        cut = -1 if spaced else None
        pieces = {
            "before": [*first, *ids(self.before[:cut])],
            "between": ids(self.between[:cut]),
            "after": [*ids(self.after), *last],
        }
        specials = [
            {"id": name, "ids": piece, "tokens": tokenizer.convert_ids_to_tokens(piece)}
            for name, piece in pieces.items()
            if piece
        ]
        order = [name for name in ("before", "$A", "between", "$A", "after") if name == "$A" or pieces[name]]
        backend = tokenizer.backend_tokenizer
        backend.post_processor = TemplateProcessing(single=" ".join(order), special_tokens=specials)
        if glued:
            blank = Prepend(" ")
            backend.normalizer = blank if backend.normalizer is None else Sequence([backend.normalizer, blank])
        tokenizer.padding_side = "right"
        if tokenizer.pad_token is None:  # as causal models have none; what stands at padding is never read
            tokenizer.pad_token = tokenizer.eos_token


@dataclass(frozen=True)
class EchoFrame:
    """How many tokens stand before, between and after the two copies of a sentence.

    >>> frame = EchoFrame(before=5, between=4, after=1)
    >>> frame.cut(32), frame.longest(32)  # a sentence of 11 tokens: 10 + 2 * 11
    (21, 32)
    >>> frame.longest(31)
    30
    """

    before: int
    between: int
    after: int

    @classmethod
    def of(cls, tokenizer: PreTrainedTokenizerBase) -> Self:
        """Of a tokenizer to which an echo was applied.

        Raises:
            InputError: none was.
        """
        mask = tokenizer("a", return_special_tokens_mask=True)["special_tokens_mask"]
        runs = [(special, len(list(run))) for special, run in groupby(mask)]
        before = runs.pop(0)[1] if runs[0][0] else 0
        after = runs.pop()[1] if runs[-1][0] else 0
        if len(runs) != 3:
            raise InputError("echo: this tokenizer gives a sentence once, not twice; save the model anew")
        return cls(before, runs[1][1], after)

    def pieces(self, tokenizer: PreTrainedTokenizerBase) -> tuple[list[int], list[int], list[int]]:
        """The ids before, between and after the copies of every sentence of `tokenizer`."""
        row = tokenizer("a")["input_ids"]
        middle = (len(row) - self.total) // 2 + self.before
        return row[: self.before], row[middle : middle + self.between], row[len(row) - self.after :]

    @property
    def total(self) -> int:
        """Tokens that are not the sentence's."""
        return self.before + self.between + self.after

    def cut(self, limit: int) -> int:
        """Where a tokenizer has to cut, which counts the sentence once, for rows of at most `limit` tokens.

        One token is left of every sentence, however small the limit.
        """
        return self.total + max((limit - self.total) // 2, 1)

    def longest(self, limit: int) -> int:
        """Tokens of the longest row within `limit`: one less where a half token would be left to each copy."""
        return 2 * self.cut(limit) - self.total

    def second(self, ids: Tensor, mask: Tensor) -> Tensor:
        """`mask` (n, length) without all but the second copy in rows of `ids` (n, length), padded on the right.

        A row without a sentence keeps all of its tokens: an empty text has a vector, too.

        >>> frame = EchoFrame(before=1, between=1, after=0)
        >>> ids = torch.tensor([[9, 4, 5, 8, 4, 5], [9, 4, 8, 4, 0, 0]])
        >>> frame.second(ids, (ids > 0).long()).tolist()
        [[0, 0, 0, 0, 1, 1], [0, 0, 0, 1, 0, 0]]

        Raises:
            InputError: the copies of a row are not alike.
        """
        words = mask.sum(dim=1, keepdim=True) - self.total
        n = words // 2
        place = torch.arange(ids.shape[1], device=ids.device)
        start = self.before + n + self.between
        second = (place >= start) & (place < start + n)
        first = ids.gather(1, (place - n - self.between).clamp(min=0))
        alike = (ids == first) | ~second
        if not bool((alike.all(dim=1, keepdim=True) & (words % 2 == 0) & (words >= 0)).all()):
            raise InputError(
                'pooling "echo": this method changes the tokens of a sentence, so that the second copy is not the '
                "first again; choose another pooling"
            )
        return torch.where(n == 0, mask, second.to(mask.dtype))
