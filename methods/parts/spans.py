"""DeCLUTR's anchor and positive spans: their places in a document, from its number of tokens alone,
and their text.

Source: Giorgi et al. 2021, section 3.1.1, and the sampler of its reference code. All positions
count tokens; a span is [start, end). A document of n tokens must have n >= 2 * anchors * l_max, so
that the anchors fit with room between them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray

from harness.encoder.loading import tokens_of
from harness.errors import InputError

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

    from harness.sources import Corpus

Strategy = Literal["both", "adjacent", "subsuming"]
# Parameters of Beta distributions: anchors are long, about 2/3 of the way from l_min to l_max, and
# positives short, about 1/3 of the way.
ANCHOR_LENGTHS = (4.0, 2.0)
POSITIVE_LENGTHS = (2.0, 4.0)


def span_lengths(
    shape: tuple[float, float],
    low: int,
    high: int,
    count: int,
    rng: np.random.Generator,
) -> NDArray[np.int64]:
    """floor(Beta(*shape) * (high - low) + low), `count` times: low..high - 1, or high where low =
    high.
    """
    return np.floor(rng.beta(*shape, size=count) * (high - low) + low).astype(np.int64)


def anchors_on_grid(
    n: int,
    lengths: NDArray[np.int64],
    l_max: int,
    rng: np.random.Generator,
) -> NDArray[np.int64]:
    """Starts of anchors of these lengths, as the reference code places them.

    The document is cut into whole cells of l_max tokens, and an anchor lies within a cell. A used
    cell is taken off the list together with its neighbours on the list, so that anchors are at
    least l_max apart. Where the list is short for the anchors still to come, its first or last cell
    is taken.
    """
    cells = list(range(0, n - l_max + 1, l_max))
    starts = np.empty(len(lengths), dtype=np.int64)
    for i, length in enumerate(lengths.tolist()):
        left = len(lengths) - i
        place = _draw_cell(len(cells), left, rng)
        starts[i] = cells[place] + rng.integers(l_max - length + 1)
        del cells[max(0, place - 1) : place + 2]
    return starts


def _draw_cell(cells: int, anchors: int, rng: np.random.Generator) -> int:
    """Draw one of `cells` for the next of `anchors`; of too few cells the first or the last."""
    if cells // anchors < anchors:
        return int(rng.integers(2)) * (cells - 1)
    return int(rng.integers(cells))


def anchors_apart(
    n: int,
    lengths: NDArray[np.int64],
    l_max: int,
    rng: np.random.Generator,
) -> NDArray[np.int64]:
    """Starts of anchors of these lengths, as the paper describes them: each uniform over 0..n -
    length, and at least l_max tokens between the end of one and the start of the next.

    Rejecting whole draws until they keep the distance may take for ever with many anchors. This
    draws from the same
    distribution at once: every order of the anchors has equally many placements, and a placement is
    a choice of how the tokens that are left over fall before, between and after them, all equally
    likely.
    """
    count = len(lengths)
    order = rng.permutation(count)
    free = n - int(lengths.sum()) - (count - 1) * l_max
    drawn = rng.choice(free + count, size=count, replace=False)
    before = np.sort(drawn) - np.arange(count)
    ends = np.cumsum(lengths[order] + l_max)
    starts = np.empty(count, dtype=np.int64)
    starts[order] = before + np.concatenate(([0], ends[:-1]))
    return starts


def place_positives(
    n: int,
    start: int,
    end: int,
    count: int,
    l_min: int,
    l_max: int,
    strategy: Strategy,
    rng: np.random.Generator,
) -> NDArray[np.int64]:
    """(count, 2) start and end of positives of the anchor [start, end) in a document of n tokens.

    - "both": anywhere from directly before to directly after the anchor: overlapping, adjacent or
      subsumed;
    - "subsuming": inside the anchor, and no longer than it;
    - "adjacent": directly before or after, on either side that has room. A positive that would
      begin the document is placed there only if the other side has no room (a strict inequality in
      the reference code).
    """

    def draw_lengths(longest: int) -> NDArray[np.int64]:
        return span_lengths(POSITIVE_LENGTHS, min(l_min, longest), longest, count, rng)

    if strategy == "both":
        lengths = draw_lengths(l_max)
        first = np.maximum(0, start - lengths)
        last = np.minimum(end, n - lengths)
        starts = rng.integers(first, last, endpoint=True)
    elif strategy == "subsuming":
        lengths = draw_lengths(end - start)
        starts = rng.integers(start, end - lengths, endpoint=True)
    else:
        lengths = draw_lengths(min(l_max, max(start, n - end)))
        fits_before = start - lengths > 0
        fits_after = end + lengths <= n
        prefers_before = fits_before & (rng.random(count) < 0.5)
        starts = np.where(fits_after & ~prefers_before, end, start - lengths)
    return np.stack([starts, starts + lengths], axis=1)


@dataclass(frozen=True)
class SpanSampler:
    """Draws the spans of documents.

    Attributes:
        l_min, l_max: shortest and longest span, in tokens.
        anchors, positives: anchors per document and positives per anchor.
        strategy: where positives lie, see `place_positives`.
        grid: `anchors_on_grid` (the code) or `anchors_apart` (the paper).
    """

    l_min: int
    l_max: int
    anchors: int = 2
    positives: int = 2
    strategy: Strategy = "both"
    grid: bool = True

    @property
    def needed(self) -> int:
        """Tokens that a document must have: 2 * anchors * l_max."""
        return 2 * self.anchors * self.l_max

    def sample(self, n: int, rng: np.random.Generator) -> NDArray[np.int64]:
        """(anchors, 1 + positives, 2): start and end of each anchor and, after it, of its
        positives.

        Raises:
            ValueError: n is less than `needed`.
        """
        if n < self.needed:
            raise ValueError(f"a document of {n} tokens is too short; {self.needed} are needed")
        lengths = span_lengths(ANCHOR_LENGTHS, self.l_min, self.l_max, self.anchors, rng)
        place_anchors = anchors_on_grid if self.grid else anchors_apart
        starts = place_anchors(n, lengths, self.l_max, rng)

        spans = np.empty((self.anchors, 1 + self.positives, 2), dtype=np.int64)
        for i, (start, length) in enumerate(zip(starts.tolist(), lengths.tolist(), strict=True)):
            spans[i, 0] = start, start + length
            spans[i, 1:] = place_positives(
                n,
                start,
                start + length,
                self.positives,
                self.l_min,
                self.l_max,
                self.strategy,
                rng,
            )
        return spans


Starts = NDArray[np.uint32]
"""(n + 1,): the first character of each of a document's n tokens, and the length of its text."""


def extract_text(text: str, starts: Starts, first: int, end: int) -> str:
    """Return the text of tokens first..end - 1, as written; a span that begins inside a word begins
    with its rest.
    """
    begin = int(starts[first])
    # Several tokens may share one character (the bytes of an emoji): that character at least
    # belongs to the span.
    return text[begin : max(int(starts[end]), begin + 1)].strip()


class DocumentTokens:
    """Token starts of documents.

    Raises:
        InputError: the tokenizer does not say where its tokens lie (a "slow" one).
    """

    def __init__(self, tokenizer: PreTrainedTokenizerBase) -> None:
        if not tokenizer.is_fast:
            raise InputError(
                f"the tokenizer {type(tokenizer).__name__} does not say where in a text its "
                "tokens lie",
                remedy="take a base model with a fast tokenizer (a tokenizer.json)",
            )
        self._tokenizer = tokenizer
        self._long: dict[tuple[str, str, int], NDArray[np.intp]] = {}

    def starts(self, texts: Sequence[str]) -> list[Starts]:
        """Return the token starts of each text."""
        if not texts:
            return []
        offsets = self._tokenizer(
            list(texts),
            add_special_tokens=False,
            return_offsets_mapping=True,
            return_attention_mask=False,
            return_token_type_ids=False,
            verbose=False,
        )["offset_mapping"]
        result: list[Starts] = []
        for pairs, text in zip(offsets, texts, strict=True):
            firsts = [start for start, _ in pairs]
            result.append(np.array([*firsts, len(text)], dtype=np.uint32))
        return result

    def at_least(self, text: str, count: int) -> bool:
        """True if the text has `count` tokens. It is tokenised only if it has fewer words, of a token
        or more each.
        """
        words = 0
        for word in text.split():
            words += any(map(str.isalnum, word))
            if words >= count:
                return True
        return len(self.starts([text])[0]) > count

    def long_enough(
        self,
        corpus: Corpus,
        count: int,
        prepare: Callable[[str], str],
        preparation: str,
    ) -> NDArray[np.intp]:
        """Return the places (n,) of the documents with at least `count` tokens, cached for the other
        rows of a comparison.

        `prepare` makes the text whose tokens count, and `preparation` names it in the cache.
        """
        key = (corpus.sha256, preparation, count)
        if key not in self._long:
            places = []
            for place, text in enumerate(corpus):
                if self.at_least(prepare(text), count):
                    places.append(place)
            self._long[key] = np.array(places, dtype=np.intp)
        return self._long[key]


def tokens_for(base_model: str, max_length: int | None) -> tuple[DocumentTokens, int]:
    """Return the `DocumentTokens` of a base model, and its maximum length in tokens; shared by its
    runs.

    Raises:
        InputError: no such model, or its tokenizer does not do.
    """
    tokenizer, limit = tokens_of(base_model, max_length)
    return _tokens_by(tokenizer), limit


_tokens_by = lru_cache(maxsize=2)(DocumentTokens)
