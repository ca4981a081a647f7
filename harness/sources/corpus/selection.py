"""Which texts of a corpus are taken: those long enough, and each once where that is asked for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING

from harness.errors import InputError
from harness.sources.embedded import resolve_model
from harness.sources.remote.hub import hub_file

if TYPE_CHECKING:
    from tokenizers import Tokenizer


@dataclass(frozen=True)
class Selection:
    """What an item must be to be taken; lengths are those of a pair's anchor.

    Attributes:
        min_words: at least so many words, by white space.
        min_tokens: at least so many tokens, special ones not counted, by the `tokenizer` of a model.
        distinct: the first of several equal items alone.
    """

    min_words: int = 0
    min_tokens: int = 0
    tokenizer: str = ""
    distinct: bool = False

    def __bool__(self) -> bool:
        return self != NO_SELECTION

    def __str__(self) -> str:
        rules = [
            f"at least {self.min_words:,} words" if self.min_words else "",
            f"at least {self.min_tokens:,} tokens of {self.tokenizer}" if self.min_tokens else "",
            "each text once" if self.distinct else "",
        ]
        return ", ".join(filter(None, rules))


NO_SELECTION = Selection()


class Sieve:
    """A selection at work on one corpus; `distinct` remembers 16 bytes an item."""

    def __init__(self, selection: Selection) -> None:
        self._selection = selection
        self._seen: set[bytes] = set()
        self._tokenizer = _tokenizer(selection.tokenizer) if selection.min_tokens else None

    def taken(self, items: Sequence[list[str]]) -> list[bool]:
        """Which of the next items, each a list of texts, are in the selection."""
        s = self._selection
        fits = [len(texts[0].split()) >= s.min_words for texts in items]
        if self._tokenizer is not None:
            long = self._long([texts[0] if fit else "" for texts, fit in zip(items, fits, strict=True)])
            fits = [fit and enough for fit, enough in zip(fits, long, strict=True)]
        if s.distinct:
            fits = [fit and self._is_new(texts) for texts, fit in zip(items, fits, strict=True)]
        return fits

    def _long(self, texts: list[str]) -> list[bool]:
        """Which texts have min_tokens tokens. No token is shorter than a byte, and no word with a letter has none: only
        those between are tokenised, by all cores at once."""
        needed = self._selection.min_tokens
        words = [text.split() for text in texts]
        long = [len(w) >= needed and sum(any(map(str.isalnum, word)) for word in w) >= needed for w in words]
        unsure = [i for i, text in enumerate(texts) if not long[i] and len(text.encode()) >= needed]
        assert self._tokenizer is not None
        encoded = self._tokenizer.encode_batch_fast([texts[i] for i in unsure], add_special_tokens=False)
        for i, encoding in zip(unsure, encoded, strict=True):
            long[i] = len(encoding) >= needed
        return long

    def _is_new(self, texts: list[str]) -> bool:
        key = blake2b("\0".join(texts).encode(), digest_size=16).digest()
        if key in self._seen:
            return False
        self._seen.add(key)
        return True


@cache
def _tokenizer(model: str) -> Tokenizer:
    """The tokenizer of a model of the hub, or an embedded one, without truncation.

    Raises:
        InputError: no such model, or no tokenizer.json in it that can be read.
    """
    from tokenizers import Tokenizer

    folder = Path(resolve_model(model))
    file = folder / "tokenizer.json" if folder.is_dir() else hub_file(model, "tokenizer.json", kind="model")
    try:
        tokenizer: Tokenizer = Tokenizer.from_file(str(file))
    except Exception as error:  # the library raises bare Exceptions
        raise InputError(f"{file}: is no tokenizer.json that can be read ({error})") from None
    tokenizer.no_truncation()
    return tokenizer
