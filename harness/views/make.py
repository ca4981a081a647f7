"""A batch of items, two views of each, and their vectors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np

from harness.encoder.prompts import frame_of
from harness.encoder.sentences import clean
from harness.errors import InputError
from harness.sources.corpus.corpus import Pair
from harness.views import eda, tokens, words
from harness.views.documents import crop_spans, draw_pair
from harness.views.settings import TEXT_VIEWS, TOKEN_VIEWS, WORD_VIEWS, ViewConfig

if TYPE_CHECKING:
    from torch import Tensor

    from harness.encoder import Encoder

Rates = tuple[float, float]
_CHANGES = {
    "shuffle": tokens.shuffle_tokens,
    "deletion": tokens.delete_tokens,
    "crop": tokens.crop_tokens,
}


@dataclass(frozen=True)
class Batch:
    """The items of one training step, and the generator that its views may draw from.

        >>> Batch(["A dog runs."], np.random.default_rng(1), step=0).texts
        ['A dog runs.']
        >>> batch = Batch([Pair("A dog runs.", "A dog is running.")], np.random.default_rng(1), step=0)
        >>> batch.texts, batch.positives
        (['A dog runs.'], ['A dog is running.'])

    Attributes:
        items: texts (str); of a method that learns from pairs, a `harness.sources.Pair` each:
            anchor, positive, and negative and label where the corpus has them.
        rng: the only source of random numbers, besides torch's global generator.
        step: of the training, from 0.
    """

    items: list[Any]
    rng: np.random.Generator
    step: int

    @property
    def texts(self) -> list[str]:
        """The sentences; of pairs the first texts, the anchors."""
        return [item if isinstance(item, str) else item.anchor for item in self.items]

    @property
    def positives(self) -> list[str]:
        """The second texts of pairs.

        Raises:
            InputError: the items are single texts.
        """
        return positives(self.items)


class Views(NamedTuple):
    """What `Encoder.two_views` takes: token ids of both views, and the dropout rates (a, b) or
    None.
    """

    ids_a: list[list[int]]
    ids_b: list[list[int]]
    hidden_dropout: Rates | None
    attention_dropout: Rates | None


class Template(NamedTuple):
    """How many ids of every row are those of a prompt, before a sentence and after it. They are
    part of no view: what reads a token of the template would read another one.

        >>> template = Template(before=1, after=2)
        >>> template.around([1, 7, 8, 9, 2, 3], lambda sentence: sentence[::-1])
        [1, 9, 8, 7, 2, 3]
    """

    before: int
    after: int

    @classmethod
    def of(cls, encoder: Encoder) -> Self:
        """The template of an encoder's pooling; without one, of no ids."""
        if encoder.pooling.prompt is None:
            return cls(0, 0)
        before, after = frame_of(encoder.tokenizer)
        return cls(len(before), len(after))

    @property
    def length(self) -> int:
        """How many ids it has."""
        return self.before + self.after

    def split(self, row: list[int]) -> tuple[list[int], list[int], list[int]]:
        """The ids before a sentence, its own, and those after it."""
        end = len(row) - self.after
        return row[: self.before], row[self.before : end], row[end:]

    def around(self, row: list[int], change: Callable[[list[int]], list[int]]) -> list[int]:
        """A row whose sentence is changed."""
        before, sentence, after = self.split(row)
        return [*before, *change(sentence), *after]


def make_views(
    items: Sequence[str | Pair],
    encoder: Encoder,
    config: ViewConfig,
    rng: np.random.Generator,
    *,
    max_length: int | None = None,
) -> Views:
    """Two views of each of `items`, as `config.view` says; each view draws for itself.

    Args:
        items: sentences; pairs for "paraphrase" (other views take a pair's anchor), documents for
            the crops of these.
        rng: the only source of randomness (dropout draws from torch's, when the views are encoded).
        max_length: maximum number of tokens of a sentence before they are changed; only
            "repetition" adds some.

    Raises:
        InputError: "paraphrase" without pairs, "sentence_crop" of a text with too few crops, "eda"
            or "synonym" without WordNet.
    """
    anchors = [item if isinstance(item, str) else item.anchor for item in items]
    if "paraphrase" in config.views:
        sides = [anchors, positives(items)]
    else:
        sides = [anchors, anchors]
    if "sentence_crop" in config.views:
        sides = _crop_documents(anchors, config, rng)
    sides = _change_texts(sides, config, rng)
    special = markers(encoder.tokenizer)
    template = Template.of(encoder)
    if "token_crop" in config.views:
        limit = min(max_length or encoder.max_length, encoder.max_length)
        ids_a, ids_b = _crop_tokens(
            anchors, encoder, config, rng, special=special, limit=limit, template=template
        )
    else:
        ids_a = encoder.tokenize(sides[0], max_length=max_length)
        ids_b = ids_a
        if any(name in TEXT_VIEWS for name in config.views):
            ids_b = encoder.tokenize(sides[1], max_length=max_length)

    def change(row: list[int]) -> list[int]:
        for name in config.views:
            if name == "repetition":
                longest = encoder.max_length - template.length
                row = tokens.repeat_tokens(
                    row, config.repetition, rng, special=special, limit=longest
                )
            elif name in TOKEN_VIEWS:
                row = _CHANGES[name](row, getattr(config, name), rng, special=special)
        return row

    ids_a = [template.around(row, change) for row in ids_a]
    ids_b = [template.around(row, change) for row in ids_b]
    return Views(ids_a, ids_b, *config.dropout_rates)


def _crop_documents(
    documents: Sequence[str],
    config: ViewConfig,
    rng: np.random.Generator,
) -> list[list[str]]:
    """Two crops of each document, of sentences; those of one view in each list."""
    sides: list[list[str]] = [[], []]
    crops_of = [config.crops(text) for text in documents]
    if not all(crops_of):
        raise InputError(
            "a document has too few sentences of usable length to be cropped (shortest, longest)"
        )
    for crops in crops_of:
        pair = draw_pair(crops, config.sentence_crop, config.crop_pair, rng)
        sides[0].append(pair[0])
        sides[1].append(pair[1])
    return sides


def _change_texts(
    sides: list[list[str]],
    config: ViewConfig,
    rng: np.random.Generator,
) -> list[list[str]]:
    """The texts of both views with the changes that are made to words."""
    synonyms = _load_synonyms() if config.needs_wordnet else None

    def augment(text: str) -> str:
        assert synonyms is not None  # `needs_wordnet` of "eda"
        operations = config.eda_operations
        return eda.augment(text, config.eda, rng, synonyms=synonyms, operations=operations)

    if "eda" in config.views:
        sides = [[augment(text) for text in side] for side in sides]
    if not set(WORD_VIEWS).isdisjoint(config.views):
        sides = [
            [words.change_words(text, config, rng, synonyms) for text in side] for side in sides
        ]
    return sides


def _crop_tokens(
    texts: Sequence[str],
    encoder: Encoder,
    config: ViewConfig,
    rng: np.random.Generator,
    *,
    special: frozenset[int],
    limit: int,
    template: Template,
) -> tuple[list[list[int]], list[list[int]]]:
    """Token ids of two spans of at most `limit` tokens of each text."""
    cleaned = [clean(text) for text in texts]
    whole = encoder.tokenizer(cleaned, truncation=False, verbose=False)["input_ids"]
    room = limit - template.length
    ids_a = []
    ids_b = []
    for row in whole:
        before, text, after = template.split(row)
        a, b = crop_spans(text, config.chunk, config.token_crop, rng, special=special, limit=room)
        ids_a.append([*before, *a, *after])
        ids_b.append([*before, *b, *after])
    return ids_a, ids_b


def _load_synonyms() -> Callable[[str], Sequence[str]]:
    from harness.views.wordnet import load

    return load().synonyms


def encode_views(
    encoder: Encoder,
    batch: Batch,
    config: ViewConfig,
    *,
    max_length: int | None = None,
) -> tuple[Tensor, Tensor]:
    """Vectors (n, d) of both views of a batch's items, from one forward pass; arguments as
    `make_views`.
    """
    return encode(
        encoder,
        make_views(batch.items, encoder, config, batch.rng, max_length=max_length),
        config.differ_by,
    )


def encode(encoder: Encoder, views: Views, differ_by: str) -> tuple[Tensor, Tensor]:
    """Vectors (n, d) of both views, from one forward pass; `differ_by` as in `Encoder.two_views`."""
    return encoder.two_views(
        views.ids_a,
        views.ids_b,
        hidden_dropout=views.hidden_dropout,
        attention_dropout=views.attention_dropout,
        differ_by=differ_by,
    )


def markers(tokenizer: Any) -> frozenset[int]:
    """Ids of the tokens that frame and pad a sentence. An unknown word is an ordinary token, so
    [UNK] is not one.
    """
    ids = (
        getattr(tokenizer, f"{name}_token_id", None) for name in ("cls", "sep", "bos", "eos", "pad")
    )
    return frozenset(i for i in ids if i is not None)


def positives(items: Sequence[str | Pair]) -> list[str]:
    """The second texts of pairs.

    Raises:
        InputError: one of the items is a single text.
    """
    pairs = [item for item in items if not isinstance(item, str)]
    if len(pairs) < len(items):
        raise InputError(
            "the second texts of pairs are learned from, but the corpus holds single texts"
        )
    return [pair.positive for pair in pairs]
