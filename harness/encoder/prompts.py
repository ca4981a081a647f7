"""Templates around a sentence: a prompt, of which one token is read, and an echo, which repeats the
sentence.

A template becomes a part of the tokenizer (its post-processor), so that a saved model includes it,
every library that reads the folder puts it around sentences, and a long sentence is cut without
cutting the template.

Under causal attention the first tokens of a sentence cannot see its last ones; those of a second
copy can. An echo gives the sentence twice, and the vector is made of the tokens of the second copy.
A sentence is cut before it is doubled, so both copies are always equal.

In a prompt a sentence gets a full stop unless it ends in one of . ? " ', as the authors'
evaluations give it.

Sources: PromptBERT (Jiang et al., EMNLP 2022), which reads [MASK]; CoT-BERT (Zhang et al., ICANN
2024), which reads the last of two; PromptEOL (Jiang et al., EMNLP 2024), which reads
the last token of a causal model; Springer et al., "Repetition improves language model embeddings",
ICLR 2025 (arXiv 2402.15449).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING, Self

import torch
from tokenizers import Regex, normalizers
from tokenizers.processors import TemplateProcessing
from torch import Tensor

from harness.encoder.sentences import clean
from harness.errors import InputError

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

SENTENCE = "[X]"
MASK = "[MASK]"
HOW = f"{SENTENCE} is the place of the sentence, once; the last {MASK} is read, or without one the last token"
DEFAULT = f"Rewrite the sentence: {SENTENCE}, rewritten sentence: {SENTENCE}"
_TWICE = f"{SENTENCE} is the place of the sentence, twice, with something between"


@dataclass(frozen=True)
class Prompt:
    """A template such as `This sentence : "[X]" means [MASK].`

    `[MASK]` is the model's own mask token, whatever it is called; of several the last is read.
    Without one the template's last token is read, and what a tokenizer would put behind it ([SEP])
    is left off. `[X]` is tokenised separately, its template once. A blank before `[X]` belongs to
    the sentence: tokenizers that glue it to the next word see the word as they know it.
    """

    before: str
    after: str

    @classmethod
    def parse(cls, template: str) -> Self:
        """The prompt that `template` writes.

        Raises:
            ValueError: it has no `[X]`, or more than one, or `[X]` comes last and there is no
                `[MASK]`.
        """
        before, *rest = template.split(SENTENCE)
        reads_sentence = MASK in template or "".join(rest).strip()
        if len(rest) != 1 or not reads_sentence:
            raise ValueError(
                f"must be a template, not {template!r}: {HOW}, which then must not be the sentence's own"
            )
        return cls(before, rest[0])

    @property
    def reads_mask(self) -> bool:
        """Is the vector the mask token's state, and not the last token's?"""
        return MASK in self.before + self.after

    @property
    def several_masks(self) -> bool:
        """Does the template have more than one `[MASK]`?"""
        return (self.before + self.after).count(MASK) > 1

    def pieces(self, tokenizer: PreTrainedTokenizerBase) -> tuple[list[int], list[int]]:
        """The ids before and after a sentence, with those that frame every input of the model.

        `tokenizer` is one that no prompt was applied to.

        Raises:
            InputError: it has no mask token, where the prompt reads one.
        """
        if self.reads_mask and tokenizer.mask_token is None:
            raise InputError(
                "prompt: this base model's tokenizer has no mask token",
                key="prompt",
                remedy=f"leave {MASK} out, and the last token is read",
            )
        mask = str(tokenizer.mask_token)
        before, after = (
            [
                int(i)
                for i in tokenizer(part.replace(MASK, mask), add_special_tokens=False)["input_ids"]
            ]
            for part in (self.before.removesuffix(" "), self.after)
        )
        first, last = frame_of(tokenizer)
        if self.reads_mask:
            after = [*after, *last]
        return [*first, *before], after

    def sentence(self, tokenizer: PreTrainedTokenizerBase) -> normalizers.Normalizer:
        """Writes a sentence as the authors' evaluations do: with a full stop, apart where the
        template's own is, unless it ends in one of . ? " '. Where the last token is read
        (PromptEOL), double quotes become single ones, and a question mark at the end a full stop.
        The blank before `[X]` is added for a tokenizer that glues it.
        """
        if self.after.endswith(" ."):
            stop = " ."
        else:
            stop = "."
        changes = [(Regex(r"(?<=[^.?\"'\s])\s*\z"), stop)]
        if not self.reads_mask:
            changes += [(Regex('"'), "'"), (Regex(r"\?\z"), ".")]
        if self.before.endswith(" ") and _glues(tokenizer):
            blank = [normalizers.Prepend(" ")]
        else:
            blank = []
        return normalizers.Sequence(
            [*(normalizers.Replace(old, new) for old, new in changes), *blank]
        )

    def rows(
        self,
        texts: Sequence[str],
        tokenizer: PreTrainedTokenizerBase,
        words: int,
    ) -> list[list[int]]:
        """Token rows of sentences in the template, each sentence cut to `words` tokens; `tokenizer`
        as in `pieces`.
        """
        before, after = self.pieces(tokenizer)
        written = self.sentence(tokenizer)
        sentences = []
        for place, text in enumerate(texts):
            sentences.append(written.normalize_str(clean(text, place)))
        cut = tokenizer(
            sentences,
            add_special_tokens=False,
            truncation=True,
            max_length=max(words, 1),
        )["input_ids"]
        return [[*before, *row, *after] for row in cut]

    def apply(self, tokenizer: PreTrainedTokenizerBase) -> None:
        """Make `tokenizer` put the template around every text; padding goes to the right.

        Raises:
            InputError: it is none of the library "tokenizers", or lacks the mask token.
        """
        _require_fast(tokenizer)
        before, after = self.pieces(tokenizer)
        written = self.sentence(tokenizer)
        _set_template(tokenizer, ("before", "$A", "after"), {"before": before, "after": after})
        _normalise_first(tokenizer, written)


def _require_fast(tokenizer: PreTrainedTokenizerBase) -> None:
    if not tokenizer.is_fast:
        raise InputError(
            f"prompt: a tokenizer of type {type(tokenizer).__name__} cannot hold a template",
            key="prompt",
        )


def _set_template(
    tokenizer: PreTrainedTokenizerBase,
    order: Sequence[str],
    pieces: dict[str, list[int]],
) -> None:
    """Make `tokenizer` put `pieces` (name -> ids) around every text, which `order` calls "$A";
    padding on the right.
    """
    specials = []
    for name, ids in pieces.items():
        if ids:
            specials.append(
                {"id": name, "ids": ids, "tokens": tokenizer.convert_ids_to_tokens(ids)}
            )
    single = " ".join(name for name in order if name == "$A" or pieces[name])
    tokenizer.backend_tokenizer.post_processor = TemplateProcessing(
        single=single, special_tokens=specials
    )
    tokenizer.padding_side = "right"


def _glues(tokenizer: PreTrainedTokenizerBase) -> bool:
    """Is a blank a part of the word that follows it?"""
    once = tokenizer("a", add_special_tokens=False)["input_ids"]
    twice = tokenizer("a a", add_special_tokens=False)["input_ids"]
    return bool(twice != [*once, *once])


def _normalise_first(tokenizer: PreTrainedTokenizerBase, step: normalizers.Normalizer) -> None:
    """Make `step` the first change that `tokenizer` makes in a text."""
    backend = tokenizer.backend_tokenizer
    own = backend.normalizer
    if own is None:
        backend.normalizer = step
    else:
        backend.normalizer = normalizers.Sequence([step, own])


def frame_of(tokenizer: PreTrainedTokenizerBase) -> tuple[list[int], list[int]]:
    """The ids that a tokenizer puts before and after every text: special tokens, and a prompt's
    template.
    """
    plain = tokenizer("a", add_special_tokens=False)["input_ids"]
    framed = tokenizer("a")["input_ids"]
    length = len(plain)
    starts = [i for i in range(len(framed)) if framed[i : i + length] == plain]
    start = starts[0]
    return framed[:start], framed[start + length :]


@dataclass(frozen=True)
class Echo:
    """A template such as `Rewrite the sentence: [X], rewritten sentence: [X]`.

    A blank before both `[X]` belongs to the sentence: tokenizers that glue it to the next word see
    the word as they know it. `[X]` is tokenised separately, the template around it once.
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
            raise ValueError(f"must be a template, not {template!r}: {_TWICE}")
        return cls(*parts)

    def apply(self, tokenizer: PreTrainedTokenizerBase) -> None:
        """Make `tokenizer` put every text into the template, twice; padding goes to the right.

        Raises:
            InputError: it is none of the library "tokenizers".
        """
        _require_fast(tokenizer)
        first, last = frame_of(tokenizer)

        def ids(text: str) -> list[int]:
            found = tokenizer(text, add_special_tokens=False)["input_ids"]
            return [int(number) for number in found]

        spaced = self.before.endswith(" ") and self.between.endswith(" ")
        glued = spaced and _glues(tokenizer)
        cut = -1 if spaced else None
        pieces = {
            "before": [*first, *ids(self.before[:cut])],
            "between": ids(self.between[:cut]),
            "after": [*ids(self.after), *last],
        }
        _set_template(tokenizer, ("before", "$A", "between", "$A", "after"), pieces)
        if glued:
            _normalise_first(tokenizer, normalizers.Prepend(" "))


@dataclass(frozen=True)
class EchoFrame:
    """How many tokens are before, between and after the two copies of a sentence.

    >>> frame = EchoFrame(before=5, between=4, after=1)
    >>> frame.halve(32), frame.longest(32)  # a sentence of 11 tokens: 10 + 2 * 11
    (21, 32)
    >>> frame.longest(31)
    30
    """

    before: int
    between: int
    after: int

    @classmethod
    def of(cls, tokenizer: PreTrainedTokenizerBase) -> Self:
        """The frame of a tokenizer to which an echo was applied.

        Raises:
            InputError: no echo was applied.
        """
        mask = tokenizer("a", return_special_tokens_mask=True)["special_tokens_mask"]
        runs = []
        for special, run in groupby(mask):
            runs.append((special, len(list(run))))
        if runs[0][0]:
            before = runs.pop(0)[1]
        else:
            before = 0
        if runs[-1][0]:
            after = runs.pop()[1]
        else:
            after = 0
        if len(runs) != 3:
            raise InputError(
                "echo: this tokenizer gives a sentence once, not twice",
                key="echo",
                remedy="save the model again",
            )
        return cls(before, runs[1][1], after)

    def pieces(self, tokenizer: PreTrainedTokenizerBase) -> tuple[list[int], list[int], list[int]]:
        """The ids before, between and after the copies of every sentence of `tokenizer`."""
        row = tokenizer("a")["input_ids"]
        middle = (len(row) - self.total) // 2 + self.before
        before = row[: self.before]
        between = row[middle : middle + self.between]
        after = row[len(row) - self.after :]
        return before, between, after

    @property
    def total(self) -> int:
        """Tokens that are not the sentence's."""
        return self.before + self.between + self.after

    def halve(self, limit: int) -> int:
        """Where a tokenizer has to cut, which counts the sentence once, for rows of at most `limit`
        tokens.

        One token is left of every sentence, however small the limit.
        """
        return self.total + max((limit - self.total) // 2, 1)

    def longest(self, limit: int) -> int:
        """Tokens of the longest row within `limit`: one less where a half token would be left to
        each copy.
        """
        return 2 * self.halve(limit) - self.total

    def second(self, ids: Tensor, mask: Tensor) -> Tensor:
        """`mask` (n, length) without all but the second copy in rows of `ids` (n, length), padded
        on the right.

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
        place_in_first = (place - n - self.between).clamp(min=0)
        first = ids.gather(1, place_in_first)
        alike = (ids == first) | ~second
        is_twice = alike.all(dim=1, keepdim=True) & (words % 2 == 0)
        if not bool((is_twice & (words >= 0)).all()):
            raise InputError(
                'pooling "echo": this method changes the tokens of a sentence, so that the '
                "second copy is not the first again",
                key="pooling",
                remedy="choose another pooling",
            )
        return torch.where(n == 0, mask, second.to(mask.dtype))
