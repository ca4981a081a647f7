"""EDA, easy data augmentation: synonym replacement, random insertion, random swap and random
deletion of words.

Source: Wei & Zou (EMNLP-IJCNLP 2019) and the semantics of their code
(github.com/jasonwei20/eda_nlp). Different here: the random numbers come from the generator passed
in, the synonym that is inserted is drawn (the code takes the first of an unordered set), a text
without a letter a-z is left alone (the code fails on it), and the last of four and of ten tries
counts (the code makes it, and gives up all the same).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    import numpy as np

Synonyms = Callable[[str], Sequence[str]]
Operations = Literal["one", "all"]

# The English function words that EDA never replaces.
_FUNCTION_WORDS = """
i me my myself we our ours ourselves you your yours yourself yourselves he him his himself she her hers herself
it its itself they them their theirs themselves what which who whom this that these those
am is are was were be been being have has had having do does did doing can will should just don now
a an the and but if or because as until while of at by for with about against between into through during before
after above below to from up down in out on off over under again further then once here there when where why how
all any both each few more most other some such no nor not only own same so than too very s t
"""
STOP_WORDS = frozenset(_FUNCTION_WORDS.split())
_TRIES_INSERTION = 10
_TRIES_SWAP = 4


def augment(
    text: str,
    alpha: float,
    rng: np.random.Generator,
    *,
    synonyms: Synonyms,
    operations: Operations = "one",
) -> str:
    """A changed copy of `text`, cleaned: lower-case words of a-z.

    Args:
        alpha: max(1, floor(alpha * words)) words are replaced, inserted or swapped; each is deleted
            with this probability.
        synonyms: a word's synonyms, in a fixed order; see `harness.views.wordnet`.
        operations: "one" of the four, drawn uniformly, as EDA's generator makes a single
            augmentation; or "all" of them, one after the other.
    """
    words = clean(text)
    if not words:
        return text
    n = max(1, int(alpha * len(words)))
    steps = range(4) if operations == "all" else (int(rng.integers(4)),)
    for step in steps:
        if step == 0:
            words = replace_synonyms(words, n, rng, synonyms)
        elif step == 1:
            words = insert_synonyms(words, n, rng, synonyms)
        elif step == 2:
            words = swap_words(words, n, rng)
        else:
            words = delete_words(words, alpha, rng)
    return " ".join(words)


def clean(text: str) -> list[str]:
    """The words as EDA sees them: apostrophes dropped, all but letters a-z turned into space, lower
    case.
    """
    return re.sub("[^a-z]+", " ", re.sub("['’]", "", text).lower()).split()


def replace_synonyms(
    words: Sequence[str],
    n: int,
    rng: np.random.Generator,
    synonyms: Synonyms,
) -> list[str]:
    """Up to `n` distinct words that are no stop words and have a synonym, in random order: each is
    replaced by one of its synonyms, the same one wherever it occurs.
    """
    candidates = list(dict.fromkeys(word for word in words if word not in STOP_WORDS))
    chosen: dict[str, str] = {}
    for i in rng.permutation(len(candidates)):
        known = synonyms(candidates[i])
        if known:
            chosen[candidates[i]] = _draw(known, rng)
        if len(chosen) == n:
            break
    return " ".join(chosen.get(word, word) for word in words).split()


def insert_synonyms(
    words: Sequence[str],
    n: int,
    rng: np.random.Generator,
    synonyms: Synonyms,
) -> list[str]:
    """`n` times: a synonym of a random word put before a random word (so never at the very end).

    A time is skipped where ten random words have no synonym. Stop words take part.
    """
    changed = list(words)
    for _ in range(n):
        for _ in range(_TRIES_INSERTION):
            known = synonyms(_draw(changed, rng))
            if known:
                changed.insert(int(rng.integers(len(changed))), _draw(known, rng))
                break
    return " ".join(changed).split()


def swap_words(words: Sequence[str], n: int, rng: np.random.Generator) -> list[str]:
    """`n` times: two random words change places. A time is skipped where the second draw equals the
    first in each of four tries.
    """
    changed = list(words)
    for _ in range(n):
        first = rng.integers(len(changed))
        for _ in range(_TRIES_SWAP):
            second = rng.integers(len(changed))
            if second != first:
                changed[first], changed[second] = changed[second], changed[first]
                break
    return changed


def delete_words(words: Sequence[str], alpha: float, rng: np.random.Generator) -> list[str]:
    """Each word stays with probability 1 - alpha; where none stays, one drawn uniformly does; a
    single word stays.
    """
    if len(words) == 1:
        return list(words)
    kept = []
    for word, draw in zip(words, rng.random(len(words)), strict=True):
        if draw >= alpha:
            kept.append(word)
    return kept or [_draw(words, rng)]


def _draw(items: Sequence[str], rng: np.random.Generator) -> str:
    return items[int(rng.integers(len(items)))]
