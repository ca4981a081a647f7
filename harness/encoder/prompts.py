"""Prompts: a sentence inside a template, and the one token of it whose state is the sentence's vector.

The template becomes a part of the tokenizer (its post-processor), so that a saved model brings it along, every library
that reads the folder puts it around sentences, and cutting a long sentence never cuts the template.

Sources: PromptBERT (Jiang et al., EMNLP 2022), which reads [MASK]; PromptEOL (Jiang et al., EMNLP 2024), which reads
the last token of a causal model.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

from tokenizers.processors import TemplateProcessing

from harness.encoder.sentences import clean
from harness.errors import InputError

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

SENTENCE, MASK = "[X]", "[MASK]"
HOW = f"{SENTENCE} stands for the sentence, once; {MASK}, once, for the token that is read, or the last token is"


@dataclass(frozen=True)
class Prompt:
    """A template such as `This sentence : "[X]" means [MASK].`

    `[MASK]` is the model's own mask token, whatever it is called. Without one the template's last token is read, and
    what a tokenizer would put behind it ([SEP]) is left off. `[X]` is tokenised by itself, the template around it once.
    """

    before: str
    after: str

    @classmethod
    def parse(cls, template: str) -> Self:
        """The prompt that `template` writes.

        Raises:
            ValueError: it has no `[X]`, or more than one of either, or `[X]` comes last and there is no `[MASK]`.
        """
        before, *rest = template.split(SENTENCE)
        masks = template.count(MASK)
        if len(rest) != 1 or masks > 1 or not (masks or rest[0].strip()):
            raise ValueError(f"must be a template, not {template!r}: {HOW}, which then must not be the sentence's own")
        return cls(before, rest[0])

    @property
    def reads_mask(self) -> bool:
        """Is the vector the mask token's state, and not the last token's?"""
        return MASK in self.before + self.after

    def pieces(self, tokenizer: PreTrainedTokenizerBase) -> tuple[list[int], list[int]]:
        """The ids before and after a sentence, with those that frame every input of the model.

        `tokenizer` is one that no prompt was applied to.

        Raises:
            InputError: it has no mask token, where the prompt reads one.
        """
        if self.reads_mask and tokenizer.mask_token is None:
            raise InputError(
                f"prompt: this base model's tokenizer has no mask token; leave {MASK} out, and the last token is read"
            )
        mask = str(tokenizer.mask_token)
        before, after = (
            [int(i) for i in tokenizer(part.replace(MASK, mask), add_special_tokens=False)["input_ids"]]
            for part in (self.before, self.after)
        )
        first, last = frame_of(tokenizer)
        return [*first, *before], [*after, *(last if self.reads_mask else [])]

    def apply(self, tokenizer: PreTrainedTokenizerBase) -> None:
        """Make `tokenizer` put the template around every text; padding goes to the right.

        Raises:
            InputError: it is none of the library "tokenizers", or lacks the mask token.
        """
        require_fast(tokenizer)
        before, after = self.pieces(tokenizer)
        specials = [
            {"id": name, "ids": ids, "tokens": tokenizer.convert_ids_to_tokens(ids)}
            for name, ids in (("before", before), ("after", after))
            if ids
        ]
        names = [str(special["id"]) for special in specials]
        single = " ".join(part for part in ("before", "$A", "after") if part == "$A" or part in names)
        tokenizer.backend_tokenizer.post_processor = TemplateProcessing(single=single, special_tokens=specials)
        tokenizer.padding_side = "right"
        if tokenizer.pad_token is None:  # as causal models have none; what stands at padding is never read
            tokenizer.pad_token = tokenizer.eos_token


def require_fast(tokenizer: PreTrainedTokenizerBase) -> None:
    """Refuse a tokenizer that cannot hold a template.

    Raises:
        InputError: it is none of the library "tokenizers".
    """
    if not tokenizer.is_fast:
        raise InputError(f"prompt: a tokenizer of type {type(tokenizer).__name__} cannot hold a template")


def frame_of(tokenizer: PreTrainedTokenizerBase) -> tuple[list[int], list[int]]:
    """The ids that a tokenizer puts before and after every text: special tokens, and a prompt's template."""
    plain = tokenizer("a", add_special_tokens=False)["input_ids"]
    framed = tokenizer("a")["input_ids"]
    start = next(i for i in range(len(framed)) if framed[i : i + len(plain)] == plain)
    return framed[:start], framed[start + len(plain) :]


def rows(
    texts: Sequence[str], tokenizer: PreTrainedTokenizerBase, pieces: tuple[list[int], list[int]], words: int
) -> list[list[int]]:
    """Token rows of sentences, cut to `words` tokens each, between the two `pieces` of a prompt."""
    before, after = pieces
    cleaned = [clean(text, place) for place, text in enumerate(texts)]
    cut = tokenizer(cleaned, add_special_tokens=False, truncation=True, max_length=max(words, 1))["input_ids"]
    return [[*before, *row, *after] for row in cut]
