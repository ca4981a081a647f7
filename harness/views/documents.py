"""Crops: two passages of one document, as its two views."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    import numpy as np

CropPair = Literal["different", "disjoint", "same"]


def sentence_crops(text: str, sentences: int, shortest: int, longest: int) -> list[str]:
    """Every crop of a document, in order: `sentences` consecutive ones of its sentences of usable
    length.

        >>> sentence_crops("One is here. No. Two is here. Three is here.", 2, 6, 20)
        ['One is here. Two is here.', 'Two is here. Three is here.']

    A sentence is what lies between two full stops (so "e.g." is cut too), usable with
    shortest..longest characters, the space before it included; other sentences are skipped, also
    between two that are joined.

    Source: González-Márquez, Berens & Kobak (TMLR 2026) and their code.
    """
    usable = []
    for piece in text.split("."):
        if shortest <= len(piece) <= longest:
            usable.append(piece.strip())
    found = []
    for i in range(len(usable) - sentences + 1):
        found.append(". ".join(usable[i : i + sentences]) + ".")
    return found


def crops_needed(sentences: int, pair: CropPair) -> int:
    """How many crops a document must have for a pair of them: two, or so many that two share no
    sentence.
    """
    if pair == "disjoint":
        return sentences + 1
    return 2


def draw_pair(
    crops: Sequence[str],
    sentences: int,
    pair: CropPair,
    rng: np.random.Generator,
) -> tuple[str, str]:
    """Two crops, all ordered pairs that `pair` allows equally likely: "different" ones, which may
    share sentences, "disjoint" ones, which do not, or the "same" crop twice (the paper's dropout
    arm).

    Raises:
        ValueError: there are fewer crops than `crops_needed`.
    """
    gap = crops_needed(sentences, pair) - 1
    first, second = map(int, rng.choice(len(crops) - gap + 1, size=2, replace=False))
    if pair == "same":
        second = first
    else:  # whichever comes later lies at least `gap` crops after the other
        if first > second:
            first += gap - 1
        else:
            second += gap - 1
    return crops[first], crops[second]


def crop_spans(
    ids: Sequence[int],
    chunk: int,
    shares: tuple[float, float],
    rng: np.random.Generator,
    *,
    special: Collection[int] = (),
    limit: int | None = None,
) -> tuple[list[int], list[int]]:
    """Two independent spans of one chunk of a document's tokens, each between the special tokens of
    `ids`.

    The chunk is `chunk` consecutive ordinary tokens (all of a shorter document); its place, a
    span's share of it, between `shares`, and where the span begins are uniform draws. A span has at
    least one token, and at most `limit` ids with the special ones. The two may overlap or coincide.

    Source: independent cropping of Izacard et al., Contriever (TMLR 2022), whose code then deletes
    tokens: the view "token_crop+deletion". There a document is cut into chunks that are training
    items of their own.
    """
    ordinary = [place for place, token in enumerate(ids) if token not in special]
    n = min(chunk, len(ordinary))
    if n == 0:
        return list(ids), list(ids)
    if limit is None:
        room = n
    else:
        room = max(1, limit - (len(ids) - len(ordinary)))
    begin = int(rng.integers(len(ordinary) - n + 1))

    def span() -> list[int]:
        length = min(max(1, int(rng.uniform(*shares) * n)), room)
        start = begin + int(rng.integers(n - length + 1))
        kept = set(ordinary[start : start + length])
        return [token for place, token in enumerate(ids) if place in kept or token in special]

    return span(), span()
