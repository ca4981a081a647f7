"""Texts known by a number: equal sentences of different tasks have equal ids, and none of their
words is stored.
"""

from __future__ import annotations

import hashlib
import unicodedata
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    import pandas as pd

PAIR_IDS = ("text1", "text2")  # columns of the pairs of a run


def text_id(text: str) -> int:
    """The first 8 bytes, signed and little-endian, of the blake2b of a text in Unicode's form NFC,
    without regard to case, white space and punctuation: data sets keep one sentence raw, in lower
    case or cut into tokens.

    A text of punctuation alone is its own id.
    """
    composed = unicodedata.normalize("NFC", text).casefold()
    folded = unicodedata.normalize("NFC", composed)
    plain = folded.translate(_WORDS) or " ".join(folded.split())
    digest = hashlib.blake2b(plain.encode("utf-8", "surrogatepass")).digest()
    return int.from_bytes(digest[:8], "little", signed=True)


class _Words(dict[int, int | None]):
    """A table for `str.translate` that drops punctuation, separators, controls and lone accents
    (the quotes of treebanks), filled as characters come.
    """

    def __missing__(self, code: int) -> int | None:
        kind = unicodedata.category(chr(code))
        if kind[0] in "PZ" or kind in ("Cc", "Cf", "Sk"):
            self[code] = None
        else:
            self[code] = code
        return self[code]


_WORDS = _Words()


def text_ids(texts: Sequence[str]) -> NDArray[np.int64]:
    """The `text_id` of each of n texts, (n,)."""
    known = {text: text_id(text) for text in dict.fromkeys(texts)}
    ids = (known[text] for text in texts)
    return np.fromiter(ids, dtype=np.int64, count=len(texts))


def pair_units(first: Sequence[str], second: Sequence[str]) -> NDArray[np.int64]:
    """(n,): what is drawn together of n pairs. Pairs that share a sentence, or are joined by pairs
    that do, are one unit, known by the least id of its sentences.

    Where one unit would hold more than a tenth of all pairs (chains through a sentence that is in
    many), those with the same first sentence are one instead.
    """
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    left = text_ids(first)
    right = text_ids(second)
    texts, place = np.unique(
        np.concatenate([left, right]), return_inverse=True
    )  # ids, from the least
    n = len(left)
    pairs = (place[:n], place[n:])
    edges = coo_array((np.ones(n), pairs), shape=(len(texts), len(texts)))
    _, unit = connected_components(edges, directed=False)
    of_pairs = unit[place[:n]]
    most = max(n / 10, 1)
    if n and np.bincount(of_pairs).max() > most:
        return left
    _, least = np.unique(unit, return_index=True)
    ids: NDArray[np.int64] = texts[least][of_pairs]
    return ids


def stack(frames: Sequence[pd.DataFrame]) -> pd.DataFrame:
    """The rows of all frames, with new numbers."""
    import pandas as pd

    return pd.concat(frames, ignore_index=True)
