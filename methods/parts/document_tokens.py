"""Where the tokens of a document begin, so that a span of tokens can be cut out of its text."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from hashlib import blake2b
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from harness.encoder.loading import tokens_of
from harness.errors import InputError

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

    from harness.sources import Corpus

KEPT_TOKENS = 32_000_000  # of 4 bytes: 128 MB at most

Starts = NDArray[np.uint32]  # (n + 1,): the first character of each of n tokens, and the length of the text


def cut(text: str, starts: Starts, first: int, end: int) -> str:
    """The text of tokens first..end - 1, as written; a span that begins inside a word begins with its rest."""
    begin = int(starts[first])
    # Several tokens may share one character (the bytes of an emoji): that character at least belongs to the span.
    return text[begin : max(int(starts[end]), begin + 1)].strip()


class DocumentTokens:
    """Token starts of documents; cached from epoch to epoch, for as many documents as the cache of tokens holds.

    Raises:
        InputError: the tokenizer does not say where its tokens lie (a "slow" one).
    """

    def __init__(self, tokenizer: PreTrainedTokenizerBase, *, kept: int = KEPT_TOKENS) -> None:
        if not tokenizer.is_fast:
            raise InputError(
                f"the tokenizer {type(tokenizer).__name__} does not say where in a text its tokens lie; "
                "take a base model with a fast tokenizer (a tokenizer.json)"
            )
        self._tokenizer = tokenizer
        self._room = kept
        self._kept: dict[bytes, Starts] = {}
        self._long: dict[tuple[str, str, int], NDArray[np.intp]] = {}

    def starts(self, texts: Sequence[str]) -> list[Starts]:
        """The token starts of each text."""
        keys = [blake2b(text.encode(), digest_size=16).digest() for text in texts]
        known = {key: self._kept[key] for key in keys if key in self._kept}
        new = {key: text for key, text in zip(keys, texts, strict=True) if key not in known}
        for key, starts in zip(new, self._tokenize(list(new.values())), strict=True):
            known[key] = starts
            if starts.size <= self._room:
                self._kept[key] = starts
                self._room -= starts.size
        return [known[key] for key in keys]

    def at_least(self, text: str, count: int) -> bool:
        """Has the text so many tokens? It is tokenised only if its words, of a token or more each, do not say so."""
        words = 0
        for word in text.split():
            words += any(map(str.isalnum, word))
            if words >= count:
                return True
        return len(self.starts([text])[0]) > count

    def long_enough(
        self, corpus: Corpus, count: int, prepared: Callable[[str], str], preparation: str
    ) -> NDArray[np.intp]:
        """The places (n,) of the documents with so many tokens; looked for once, as a comparison's rows ask alike.

        `prepared` makes the text that a document's tokens are of, and `preparation` says which text that is.
        """
        asked = (corpus.sha256, preparation, count)
        if asked not in self._long:
            places = [place for place, text in enumerate(corpus) if self.at_least(prepared(text), count)]
            self._long[asked] = np.array(places, dtype=np.intp)
        return self._long[asked]

    def _tokenize(self, texts: list[str]) -> list[Starts]:
        if not texts:
            return []
        offsets = self._tokenizer(
            texts,
            add_special_tokens=False,
            return_offsets_mapping=True,
            return_attention_mask=False,
            return_token_type_ids=False,
            verbose=False,
        )["offset_mapping"]
        return [
            np.array([*(start for start, _ in pairs), len(text)], dtype=np.uint32)
            for pairs, text in zip(offsets, texts, strict=True)
        ]


@lru_cache(maxsize=2)
def tokens_for(base_model: str, max_length: int | None) -> tuple[DocumentTokens, int]:
    """The tokens of documents as a base model has them, and how many of them it takes; shared by its runs.

    Raises:
        InputError: no such model, or its tokenizer does not do.
    """
    tokenizer, limit = tokens_of(base_model, max_length)
    return DocumentTokens(tokenizer), limit
