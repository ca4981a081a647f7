"""From the items of a batch to two views of each, and to their vectors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from harness.errors import InputError
from harness.sources.corpus.corpus import Pair
from harness.views import eda, tokens
from harness.views.batch import Batch
from harness.views.settings import TEXT_VIEWS, TOKEN_VIEWS, ViewConfig

if TYPE_CHECKING:
    import numpy as np
    from torch import Tensor

    from harness.encoder import Encoder

Rates = tuple[float, float]


class Views(NamedTuple):
    """What `Encoder.two_views` takes: token ids of both views, and the dropout rates (a, b) or None."""

    ids_a: list[list[int]]
    ids_b: list[list[int]]
    hidden_dropout: Rates | None
    attention_dropout: Rates | None


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
        items: sentences; pairs for "paraphrase" (other views take a pair's anchor).
        rng: the only source of randomness (dropout draws from torch's, when the views are encoded).
        max_length: tokens kept of a sentence before its tokens are changed; only "repetition" makes it longer.

    Raises:
        InputError: "paraphrase" without pairs, "eda" without WordNet.
    """
    anchors = [item if isinstance(item, str) else item.anchor for item in items]
    sides = [anchors, anchors]
    if "paraphrase" in config.views:
        sides[1] = [_positive(item) for item in items]
    if "eda" in config.views:
        from harness.views.wordnet import load

        synonyms = load().synonyms
        sides = [
            [eda.augment(text, config.eda, rng, synonyms=synonyms, operations=config.eda_operations) for text in side]
            for side in sides
        ]
    ids_a = encoder.tokenize(sides[0], max_length=max_length)
    same = not any(name in TEXT_VIEWS for name in config.views)
    ids_b = ids_a if same else encoder.tokenize(sides[1], max_length=max_length)
    changes = [name for name in config.views if name in TOKEN_VIEWS]
    if changes:
        special = markers(encoder.tokenizer)
        ids_a, ids_b = ([_change(row, changes, encoder, config, rng, special) for row in ids] for ids in (ids_a, ids_b))
    return Views(ids_a, ids_b, *config.dropout_rates)


def encode_views(
    encoder: Encoder, batch: Batch, config: ViewConfig, *, max_length: int | None = None
) -> tuple[Tensor, Tensor]:
    """Vectors (n, d) of both views of a batch's items, from one forward pass; arguments as `make_views`."""
    views = make_views(batch.items, encoder, config, batch.rng, max_length=max_length)
    return encoder.two_views(
        views.ids_a,
        views.ids_b,
        hidden_dropout=views.hidden_dropout,
        attention_dropout=views.attention_dropout,
        differ_by=config.differ_by,
    )


def markers(tokenizer: Any) -> frozenset[int]:
    """Ids of the tokens that frame and pad a sentence. An unknown word is an ordinary token, so [UNK] is not one."""
    ids = (getattr(tokenizer, f"{name}_token_id", None) for name in ("cls", "sep", "bos", "eos", "pad"))
    return frozenset(i for i in ids if i is not None)


def _positive(item: str | Pair) -> str:
    if isinstance(item, str):
        raise InputError('view "paraphrase" learns from pairs, but the corpus holds single texts')
    return item.positive


def _change(
    row: list[int],
    changes: Sequence[str],
    encoder: Encoder,
    config: ViewConfig,
    rng: np.random.Generator,
    special: frozenset[int],
) -> list[int]:
    for name in changes:
        if name == "shuffle":
            row = tokens.shuffle_tokens(row, config.shuffle, rng, special=special)
        elif name == "deletion":
            row = tokens.delete_tokens(row, config.deletion, rng, special=special)
        elif name == "repetition":
            row = tokens.repeat_tokens(row, config.repetition, rng, special=special, limit=encoder.max_length)
        else:
            row = tokens.crop_tokens(row, config.crop, rng, special=special)
    return row
