"""What a pair of texts (or a text) is like, by simple rules on its words: the traits that examples are sliced by.

A word is a run of letters, digits and apostrophes, compared without regard to case. The rules are for English, know no
syntax, and are wrong at times; they are the same for every method, so that a comparison within a slice is fair.

    length      words of the longer text: up to 8, 9 to 16, more
    overlap     words that both texts have, as a share of those that one of them has (Jaccard): below 1/3, to 2/3, above
    negation    not, no, never, none, nobody, nothing, nowhere, neither, nor, cannot, without, or a word in n't
    numbers     a word with a digit, or a number's name from two to twenty, then by tens, hundred, thousand, million
    names       a word with a capital that does not begin the text or a sentence, other than I; of lower-cased data
                nothing is known
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

Words = list[str]

_WORD = re.compile(r"[^\W_]+(?:['’][^\W_]+)*")
_BEGINS = re.compile(r"(?:^|[.!?:]['\"”’)]*\s+|[\"“(]\s*)$")  # what stands before a word that begins a sentence
_NEGATIONS = frozenset(
    ("not", "no", "never", "none", "nobody", "nothing", "nowhere", "neither", "nor", "cannot", "without")
)
_NUMBERS = frozenset(
    (
        "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve", "thirteen",
        "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen", "twenty", "thirty", "forty", "fifty",
        "sixty", "seventy", "eighty", "ninety", "hundred", "thousand", "million", "billion",
    )
)  # fmt: skip


def words(text: str) -> Words:
    """In lower case, in order."""
    return [word.replace("’", "'").casefold() for word in _WORD.findall(text)]


def negations(text: str) -> set[str]:
    """The words of a text that negate."""
    return {word for word in words(text) if word in _NEGATIONS or word.endswith("n't") or word == "nt"}


def numbers(text: str) -> set[str]:
    """The numbers of a text, as they are written."""
    return {word for word in words(text) if word in _NUMBERS or any(sign.isdigit() for sign in word)}


def names(text: str) -> set[str]:
    """The capitalised words of a text that do not begin a sentence."""
    found = set()
    for match in _WORD.finditer(text):
        word = match[0]
        own = word != "I" and not word.startswith(("I'", "I’"))
        if word[0].isupper() and own and not _BEGINS.search(text[: match.start()]):
            found.add(word.casefold())
    return found


def overlap(first: str, second: str) -> float:
    """Jaccard's share of two texts' words, 0 to 1; 0 where neither has one."""
    a, b = set(words(first)), set(words(second))
    return len(a & b) / len(a | b) if a | b else 0.0


def _length(texts: Sequence[str]) -> int:
    longest = max(len(words(text)) for text in texts)
    return 0 if longest <= 8 else 1 if longest <= 16 else 2


def _overlap(texts: Sequence[str]) -> int:
    share = overlap(*texts)
    return 0 if share < 1 / 3 else 1 if share <= 2 / 3 else 2


def _has(part: Callable[[str], set[str]]) -> Callable[[Sequence[str]], int]:
    """In no text, in all, in one of two alone."""

    def bucket(texts: Sequence[str]) -> int:
        have = [bool(part(text)) for text in texts]
        return 0 if not any(have) else 1 if all(have) else 2

    return bucket


def _same(part: Callable[[str], set[str]]) -> Callable[[Sequence[str]], int]:
    """In no text; the same in both; not the same."""

    def bucket(texts: Sequence[str]) -> int:
        have = [part(text) for text in texts]
        return 0 if not any(have) else 1 if all(one == have[0] for one in have) else 2

    return bucket


@dataclass(frozen=True)
class Trait:
    """One way to slice examples.

    Attributes:
        pair, single: names of its slices for two texts and for one; none where it has no meaning.
        bucket: the number of the slice of an example's texts.
    """

    key: str
    title: str
    pair: tuple[str, ...]
    single: tuple[str, ...]
    bucket: Callable[[Sequence[str]], int]

    def slices(self, texts: Sequence[Sequence[str]]) -> tuple[tuple[str, ...], list[int]]:
        """Names of the slices, and the number of the slice of each example; no names where nothing can be said."""
        if not texts or not all(texts):
            return (), []
        named = self.pair if len(texts[0]) == 2 else self.single
        if self.key == "names" and not any(sign.isupper() for some in texts for text in some for sign in text):
            return (), []
        return (named, [self.bucket(some) for some in texts]) if named else ((), [])


_LENGTHS = ("up to 8 words", "9 to 16 words", "over 16 words")
_WITHOUT = ("without", "with")
TRAITS = (
    Trait("length", "Length", _LENGTHS, _LENGTHS, _length),
    Trait("overlap", "Word overlap", ("below 1/3", "1/3 to 2/3", "above 2/3"), (), _overlap),
    Trait("negation", "Negation", ("in neither", "in both", "in one alone"), _WITHOUT, _has(negations)),
    Trait("numbers", "Numbers", ("none", "the same", "not the same"), _WITHOUT, _same(numbers)),
    Trait("names", "Names", ("none", "the same", "not the same"), _WITHOUT, _same(names)),
)
