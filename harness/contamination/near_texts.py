"""Finds the texts that occur in a stream of other texts: equal in normal form, or nearly equal by
shared word n-grams.

Two rules make a text nearly equal to one text of the stream:

- resemblance: both share `RESEMBLANCE` of their word 3-grams, with two marks before and after each
  text so that every word counts alike (Broder, "On the resemblance and containment of documents",
  1997; there over sets, here n-grams that repeat within a text are counted each time). One added
  word is found from 8 words on, one changed word from 10 words.
- containment: of the word 8-grams of a text of `LONG_WORDS` words or more, the other holds
  `CONTAINMENT` (the share of PaLM's rule, Chowdhery et al., JMLR 2023, which accepts the n-grams
  from anywhere in the training text).

The search is exact. A text is compared with a line of the stream only where the line has one of the
text's rarest n-grams: of m n-grams of which a share t is required, every match has one of the m -
ceil(t m) + 1 rarest (prefix filtering; Bayardo, Ma & Srikant, WWW 2007). Memory does not grow with
the length of the stream.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

RULE = "word n-grams 1"  # changes whenever the texts found change; stored results of another rule are recomputed
SHORT = 3
RESEMBLANCE = 0.6
LONG = 8
CONTAINMENT = 0.7
LONG_WORDS = 12
_CHUNK = 250_000  # words of the stream that are compared at once
# In scripts without spaces between words every character is a word.
_ALONE = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
_WORD = re.compile(rf"[{_ALONE}]|[^\W_{_ALONE}]+")
Ints = NDArray[np.int64]


def _lower_ascii() -> dict[int, str]:
    """Return what each character of ASCII is replaced by: its small letter, or a space."""
    table = {}
    for code in range(128):
        character = chr(code)
        if character.isalnum():
            table[code] = character.lower()
        else:
            table[code] = " "
    return table


_PLAIN = _lower_ascii()


def normal_form(text: str) -> str:
    """The words of a text in NFC, case-folded and separated by one space; empty for a text without
    words.

    Punctuation, white space and underscores only separate words: "Don't!" equals "don 't", but not
    "do n't".
    """
    if text.isascii():  # the same result, three times as fast
        return " ".join(text.translate(_PLAIN).split())
    folded = unicodedata.normalize("NFC", text).casefold()
    return " ".join(_WORD.findall(folded))


@dataclass(frozen=True)
class Found:
    """Which of n texts were found: (n,) masks, and for each near match the number of the text ->
    the other text.
    """

    equal: NDArray[np.bool_]
    near: NDArray[np.bool_]  # nearly equal, and not equal
    example: dict[int, str]


def find_texts(texts: Sequence[str], stream: Iterable[str]) -> Found:
    """Find `texts` in `stream`. A text without words is never found."""
    forms, members = _number_forms(texts)
    known = [form.split() for form in forms]
    short_grams = []
    long_grams = []
    for words in known:
        short_grams.append(_short(words))
        if len(words) >= LONG_WORDS:
            long_grams.append(_long(words))
        else:
            long_grams.append([])
    short = _Index(short_grams, RESEMBLANCE)
    long = _Index(long_grams, CONTAINMENT)
    sizes = _sizes(known)
    equal: set[int] = set()
    example: dict[int, str] = {}
    for chunk in _chunks(stream):
        lines = [" ".join(words) for words in chunk]
        for line in lines:
            if line in forms:
                equal.add(forms[line])

        grams = [_short(words) for words in chunk]
        rows, places, shared = short.find(grams)
        of_both = sizes[places] + _sizes(chunk)[rows]
        union = of_both - shared
        resembles = shared >= RESEMBLANCE * union
        similar = zip(rows[resembles], places[resembles], strict=True)

        grams = [_long(words) for words in chunk]
        rows, places, shared = long.find(grams)
        contained = shared >= CONTAINMENT * long.sizes[places]
        holding = zip(rows[contained], places[contained], strict=True)

        for row, place in [*similar, *holding]:
            example.setdefault(int(place), lines[row])
    near = example.keys() - equal
    examples = {}
    for number, place in enumerate(members.tolist()):
        if place in near:
            examples[number] = example[place]
    return Found(
        np.isin(members, list(equal)),
        np.isin(members, list(near)),
        examples,
    )


def _number_forms(texts: Sequence[str]) -> tuple[dict[str, int], NDArray[np.int64]]:
    """Return the normal forms of texts with their numbers, and the number of each text's form, (n,);
    -1 for a text without words.
    """
    forms: dict[str, int] = {}
    numbers = []
    for text in texts:
        form = normal_form(text)
        number = -1
        if form:
            number = forms.setdefault(form, len(forms))
        numbers.append(number)
    return forms, np.array(numbers, np.int64)


def _chunks(stream: Iterable[str]) -> Iterator[list[list[str]]]:
    """The words of the stream's texts, some `_CHUNK` words at a time."""
    chunk: list[list[str]] = []
    size = 0
    for text in stream:
        words = normal_form(text).split()
        chunk.append(words)
        size += len(words)
        if size > _CHUNK:
            yield chunk
            chunk = []
            size = 0
    yield chunk


def _short(words: list[str]) -> list[int]:
    """Hashes of the 3-grams of a text with its marks."""
    padded = ["", "", *words, " ", " "]
    triples = zip(padded, padded[1:], padded[2:], strict=False)
    return list(map(hash, triples))


def _long(words: list[str]) -> list[int]:
    """Hashes of the 8-grams of a text."""
    found = []
    for start in range(len(words) - LONG + 1):
        gram = tuple(words[start : start + LONG])
        found.append(hash(gram))
    return found


def _sizes(texts: Sequence[Sequence[str]]) -> Ints:
    """(n,) how many 3-grams each text has, repeated ones included."""
    sizes = [len(words) + SHORT - 1 for words in texts]
    return np.array(sizes, dtype=np.int64)


class _Index:
    """An inverted index of the n-grams of some texts. sizes: (texts,) distinct n-grams of each."""

    def __init__(self, texts: Sequence[Sequence[int]], share: float) -> None:
        from scipy.sparse import csr_array

        self._columns: dict[int, int] = {}
        for text in texts:
            for gram in text:
                self._columns.setdefault(gram, len(self._columns))
        self._grams = self._matrix(texts)
        self.sizes = np.diff(self._grams.indptr)
        column = self._grams.indices
        frequency = np.bincount(column, minlength=len(self._columns))
        numbers = np.arange(len(texts))
        owner = np.repeat(numbers, self.sizes)
        rarest_first = np.lexsort((frequency[column], owner))
        first = self._grams.indptr[owner]
        rank = np.arange(len(owner)) - first
        least = np.ceil(share * self.sizes)
        enough = self.sizes - least + 1
        kept = rarest_first[rank < enough[owner]]
        ones = np.ones(len(kept), np.int32)
        where = (column[kept], owner[kept])
        shape = self._grams.shape[::-1]
        self._owners = csr_array((ones, where), shape=shape)

    def _matrix(self, texts: Sequence[Sequence[int]]) -> Any:
        """(texts, n-grams) of 0 and 1; n-grams of no indexed text are left out."""
        from scipy.sparse import csr_array

        columns = self._columns
        rows = []
        sizes = [0]
        for text in texts:
            row = {columns[gram] for gram in text if gram in columns}
            rows.append(row)
            sizes.append(len(row))
        ends = np.cumsum(sizes)
        every = chain.from_iterable(rows)
        indices = np.fromiter(every, np.int64, ends[-1])
        ones = np.ones(len(indices), np.int32)
        shape = (len(texts), len(columns))
        return csr_array((ones, indices, ends), shape=shape)

    def find(self, texts: Sequence[Sequence[int]]) -> tuple[Ints, Ints, Ints]:
        """(text, indexed text, number of shared n-grams) of all pairs that may match, in the order
        of `texts`.
        """
        grams = self._matrix(texts)
        row, text = (grams @ self._owners).nonzero()
        in_both = grams[row].multiply(self._grams[text])
        shared = np.asarray(in_both.sum(axis=1))
        return row, text, shared.astype(np.int64)
