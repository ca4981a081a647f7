"""Which of some texts stand in a long stream of others: equal in normal form, or nearly equal by shared word n-grams.

Two rules for "nearly", each about one text of the stream, as what many texts say together is no copy:

- resemblance: of the word 3-grams of both texts, with two marks before and after each text so that every word counts
  alike, the two share `RESEMBLANCE` (Broder, "On the resemblance and containment of documents", 1997; there of sets,
  here n-grams that repeat within a text are counted each time). One word more is nearly equal from 8 words on, another
  word from 10 words on.
- containment: of the word 8-grams of a text of `LONG_WORDS` words or more, one other text holds `CONTAINMENT` (the
  share of PaLM's rule, Chowdhery et al., JMLR 2023, which asks for them anywhere in the training text).

The texts looked for are held as hashes; the stream passes in chunks, so a million sentences take no more memory than
ten thousand. A text is compared where one of its rarest n-grams occurs: of m n-grams of which a share t is asked for,
any match has one of the m - ceil(t m) + 1 rarest (prefix filtering; Bayardo, Ma & Srikant, WWW 2007), so nothing is
missed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from harness.contamination.normal_form import normal_form, words

RULE = "word n-grams 1"  # raised with any change that changes what is found: what was kept is found anew
SHORT, RESEMBLANCE = 3, 0.6
LONG, CONTAINMENT, LONG_WORDS = 8, 0.7, 12
_CHUNK = 250_000  # words that are looked at together
_UNKNOWN, _BEFORE, _AFTER = 0, 1, 2  # ids of words: one that no text has, and the marks around a text
_FILTER_BITS = 22

Hashes = NDArray[np.uint64]


@dataclass(frozen=True)
class Found:
    """(n,) each, in the order of the texts that were looked for; `example` holds a nearly equal text of the stream."""

    equal: NDArray[np.bool_]
    near: NDArray[np.bool_]  # and not equal
    example: dict[int, str]


def look_for(texts: Sequence[str], stream: Iterable[str]) -> Found:
    """Which of `texts` stand in `stream`. A text without a word stands nowhere."""
    search = _Search([words(text) for text in texts])
    for chunk in _chunks(stream):
        search.look_at(chunk)
    return search.found()


def _chunks(stream: Iterable[str]) -> Iterator[list[list[str]]]:
    chunk: list[list[str]] = []
    size = 0
    for text in stream:
        chunk.append(words(text))
        size += len(chunk[-1])
        if size > _CHUNK:
            yield chunk
            chunk, size = [], 0
    if chunk:
        yield chunk


class _Search:
    def __init__(self, texts: list[list[str]]) -> None:
        self._forms: dict[str, list[int]] = {}
        for number, text in enumerate(texts):
            if text:
                self._forms.setdefault(normal_form(" ".join(text)), []).append(number)
        distinct = [form.split() for form in self._forms]
        self._members = list(self._forms.values())
        self._vocabulary = {
            word: number for number, word in enumerate(dict.fromkeys(w for t in distinct for w in t), _AFTER + 1)
        }
        flat, starts, lengths = self._ids(distinct)
        self._sizes = lengths + SHORT - 1
        short, long = n_gram_hashes(flat, SHORT), n_gram_hashes(flat, LONG)
        self._short = _Index(
            [short[start : start + size] for start, size in zip(starts, self._sizes, strict=True)], RESEMBLANCE
        )
        self._long = _Index(
            [
                long[start + SHORT - 1 :][: length - LONG + 1 if length >= LONG_WORDS else 0]
                for start, length in zip(starts, lengths, strict=True)
            ],
            CONTAINMENT,
        )
        self._place = {form: number for number, form in enumerate(self._forms)}
        self._equal = np.zeros(len(distinct), dtype=bool)
        self._near = np.zeros(len(distinct), dtype=bool)
        self._example: dict[int, str] = {}
        self._count = len(texts)

    def _ids(self, texts: list[list[str]]) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
        """Ids of all words, marks around each text; where each text begins; how many words it has."""
        known = self._vocabulary.get
        flat: list[int] = []
        for text in texts:
            flat += (_BEFORE,) * (SHORT - 1)
            flat += [known(word, _UNKNOWN) for word in text]
            flat += (_AFTER,) * (SHORT - 1)
        lengths = np.array([len(text) for text in texts], dtype=np.int64)
        ends = np.cumsum(lengths + 2 * (SHORT - 1))
        return np.array(flat, dtype=np.int64), ends - lengths - 2 * (SHORT - 1), lengths

    def look_at(self, chunk: list[list[str]]) -> None:
        """Compare with a part of the stream."""
        for words_of_one in chunk:
            if (place := self._place.get(" ".join(words_of_one))) is not None:
                self._equal[place] = True
        flat, starts, lengths = self._ids(chunk)
        short, sizes = n_gram_hashes(flat, SHORT), lengths + SHORT - 1
        lines, texts = self._candidates(self._short, short, starts)
        fits = np.minimum(self._sizes[texts], sizes[lines]) >= RESEMBLANCE * np.maximum(
            self._sizes[texts], sizes[lines]
        )
        for line, group in _by_line(lines[fits], texts[fits]):
            own = set(short[starts[line] : starts[line] + sizes[line]].tolist())
            for text in group:
                shared = len(own & self._short.grams(text))
                if shared >= RESEMBLANCE * (self._sizes[text] + sizes[line] - shared):
                    self._keep(text, chunk[line])
        long = n_gram_hashes(flat, LONG)
        for line, group in _by_line(*self._candidates(self._long, long, starts)):
            first = starts[line] + SHORT - 1
            own = set(long[first : first + max(0, lengths[line] - LONG + 1)].tolist())
            for text in group:
                wanted = self._long.grams(text)
                if len(own & wanted) >= CONTAINMENT * len(wanted):
                    self._keep(text, chunk[line])

    def _candidates(
        self, index: _Index, hashes: Hashes, starts: NDArray[np.int64]
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """(line, text) of what may be nearly equal and is not found yet."""
        places, texts = index.meetings(hashes)
        lines = np.searchsorted(starts, places, side="right") - 1
        open_ = ~(self._near | self._equal)[texts]
        both = np.unique(np.stack([lines[open_], texts[open_]], axis=1), axis=0)
        return both[:, 0], both[:, 1]

    def _keep(self, text: int, other: list[str]) -> None:
        if not self._near[text]:
            self._near[text] = True
            self._example[text] = " ".join(other)

    def found(self) -> Found:
        """For every text, those of one normal form alike."""
        equal, near = np.zeros(self._count, dtype=bool), np.zeros(self._count, dtype=bool)
        example: dict[int, str] = {}
        for number, members in enumerate(self._members):
            equal[members] = self._equal[number]
            near[members] = self._near[number] and not self._equal[number]
            if self._near[number] and not self._equal[number]:
                example |= dict.fromkeys(members, self._example[number])
        return Found(equal, near, example)


def _by_line(lines: NDArray[np.int64], texts: NDArray[np.int64]) -> Iterator[tuple[int, list[int]]]:
    """Each line with its texts; `lines` ascend."""
    ends = np.flatnonzero(np.append(lines[1:] != lines[:-1], True)) + 1 if len(lines) else lines
    start = 0
    for end in ends.tolist():
        yield int(lines[start]), texts[start:end].tolist()
        start = end


def n_gram_hashes(ids: NDArray[np.int64], n: int) -> Hashes:
    """64-bit hashes of the n-grams of words that begin at each place; (len(ids) - n + 1,), or none.

    n-grams over the end of a text hold its marks, and those of unknown words a 0: no text has them.
    """
    factors = np.random.default_rng(n).integers(0, 2**64, size=n, dtype=np.uint64) | np.uint64(1)
    count = max(0, len(ids) - n + 1)
    hashes = np.zeros(count, dtype=np.uint64)
    for place, factor in enumerate(factors):
        hashes += ids[place : place + count].astype(np.uint64) * factor  # wraps around
    return hashes


class _Index:
    """The n-grams of texts, and who has the rarest of them."""

    def __init__(self, grams: list[Hashes], share: float) -> None:
        self._grams = grams
        self._sets: dict[int, set[int]] = {}  # of those that were compared
        every = np.concatenate([*grams, np.zeros(0, dtype=np.uint64)])
        owner = np.repeat(np.arange(len(grams)), [len(own) for own in grams])
        order = np.lexsort((every, owner))
        every, owner = every[order], owner[order]
        new = np.append(True, (every[1:] != every[:-1]) | (owner[1:] != owner[:-1]))[: len(every)]
        every, owner = every[new], owner[new]
        sizes = np.bincount(owner, minlength=len(grams))
        _, inverse, counts = np.unique(every, return_inverse=True, return_counts=True)
        order = np.lexsort((counts[inverse], owner))  # text by text, the rarest first
        rank = np.arange(len(order)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        rarest = order[rank < (sizes - np.ceil(share * sizes) + 1)[owner]]
        rarest = rarest[np.argsort(every[rarest], kind="stable")]
        self._owners = owner[rarest]
        self._values, self._starts = np.unique(every[rarest], return_index=True)
        self._ends = np.append(self._starts[1:], len(rarest))
        self._filter = np.zeros(1 << _FILTER_BITS, dtype=bool)  # most n-grams of a stream are none of these
        self._filter[self._values >> np.uint64(64 - _FILTER_BITS)] = True

    def grams(self, text: int) -> set[int]:
        """The distinct n-grams of a text."""
        if text not in self._sets:
            self._sets[text] = set(self._grams[text].tolist())
        return self._sets[text]

    def meetings(self, hashes: Hashes) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """(place in `hashes`, text) wherever one of the text's rarest n-grams stands."""
        places = np.flatnonzero(self._filter[hashes >> np.uint64(64 - _FILTER_BITS)])
        if not len(self._values):
            return places[:0], places[:0]
        at = np.minimum(np.searchsorted(self._values, hashes[places]), len(self._values) - 1)
        same = self._values[at] == hashes[places]
        places, at = places[same], at[same]
        counts = self._ends[at] - self._starts[at]
        offset = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
        return np.repeat(places, counts), self._owners[np.repeat(self._starts[at], counts) + offset]
