"""Training text as a caller has it in hand: lists, tables of the library `datasets`, paths; each made a corpus."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from harness.errors import InputError
from harness.sources.corpus.corpus import Corpus, Kind, Pair, load_corpus
from harness.sources.corpus.text_store import StoreWriter

_ROLES = ("anchor", "positive", "negative", "label")
_EXPECTED = {
    "sentences": "texts (str)",
    "documents": "texts (str)",
    "pairs": "pairs of texts (anchor, positive), a negative as a third where there is one",
}
_TEXT = ("text", "sentence", "document")  # columns of a data set that hold its text, in this order


class Table(Protocol):
    """A data set with named columns, as `datasets.Dataset` is one."""

    @property
    def column_names(self) -> Any: ...
    def __len__(self) -> int: ...
    def __getitem__(self, key: Any, /) -> Any: ...


TrainingText = Corpus | str | Path | Sequence[str] | Sequence[Pair] | Sequence[Sequence[str]] | Table
"""What `Method.fit` learns from: a corpus; a path, a catalogue's name or any other URI of `load_corpus`; a list of
texts (sentences or documents, as the method takes them); a list of pairs, each a `Pair`, a tuple (anchor, positive) or
(anchor, positive, negative), or a dict of these; a `datasets.Dataset` with a column "text" ("sentence", "document"),
or with "anchor" and "positive" (and "negative", "label")."""


def corpus_of(given: TrainingText, kind: Kind, *, limit: int | None = None) -> Corpus:
    """`given` as a corpus of a kind; one that is a corpus already is passed on, whatever it holds.

    Args:
        limit: the first so many of it.

    Raises:
        InputError: something else than `TrainingText`, an item that is no text or pair, fewer than two, or whatever is
            wrong with a file.
    """
    if isinstance(given, Corpus):
        return given
    if isinstance(given, str | Path):
        return load_corpus(str(given), kind=kind, limit=limit)
    if hasattr(given, "column_names"):
        return _stored(_rows(given, kind), kind, "given data set", limit)
    if isinstance(given, Iterable) and not isinstance(given, Mapping | bytes):
        return _stored(given, kind, f"given {kind}", limit)
    raise InputError(
        f"training text: expected a list of {_EXPECTED[kind]}, a datasets.Dataset, a path or a Corpus, "
        f"not {type(given).__name__}"
    )


def _rows(table: Table, kind: Kind) -> Iterable[Any]:
    """The texts or pairs of a data set."""
    names = table.column_names
    if isinstance(names, Mapping):
        raise InputError(f"training text: a set of splits ({', '.join(map(str, names))}): give one of them")
    if kind == "pairs":
        roles = [role for role in _ROLES if role in names]
        if roles[:2] != ["anchor", "positive"]:
            raise InputError(
                f'training text: pairs need columns "anchor" and "positive"; there are: {", ".join(names)}'
            )
        return (Pair(**{role: table[i][role] for role in roles}) for i in range(len(table)))
    column = next((name for name in _TEXT if name in names), None)
    if column is None:
        raise InputError(f'training text: {kind} need a column "text"; there are: {", ".join(names)}')
    return (table[i][column] for i in range(len(table)))


def _stored(items: Iterable[Any], kind: Kind, uri: str, limit: int | None) -> Corpus:
    every = [_pair(item, i) if kind == "pairs" else [_text(item, kind, i)] for i, item in enumerate(items)]
    whole = [texts for texts in every if all(texts[:2])]  # empty ones are skipped, as empty lines of a file are
    if len(whole[:limit]) < 2:
        raise InputError(f"training text: needs at least 2 {kind}, not {len(whole[:limit])}")
    labelled = kind == "pairs" and any(texts[3] for texts in whole)
    width = (4 if labelled else 3) if kind == "pairs" else 1  # as a file's, so that equal texts have equal hashes
    with StoreWriter(width) as writer:
        for texts in whole[:limit]:
            writer.add([text.encode() for text in texts[:width]])
        return Corpus(uri, kind, writer.finish(), path=None, skipped=len(every) - len(whole))


def _text(item: Any, kind: Kind, number: int) -> str:
    if not isinstance(item, str):
        raise InputError(f"training text: item {number}: expected {_EXPECTED[kind]}, not {_shown(item)}")
    return _sound(item, number)


def _pair(item: Any, number: int) -> list[str]:
    """Anchor, positive, negative and label; "" where there is none."""
    if isinstance(item, Pair):
        values: Sequence[Any] = [item.anchor, item.positive, item.negative, item.label]
    elif isinstance(item, Mapping):
        values = [item.get(role) for role in _ROLES]
    elif isinstance(item, Sequence) and not isinstance(item, str | bytes) and len(item) in (2, 3):
        values = item
    else:
        values = ()
    texts = ["" if value is None else value for value in values]
    if not texts or not all(isinstance(text, str) for text in texts):
        raise InputError(f"training text: item {number}: expected {_EXPECTED['pairs']}, not {_shown(item)}")
    return [_sound(text, number) for text in (*texts, "", "")[:4]]


def _sound(text: str, number: int) -> str:
    if any("\ud800" <= c <= "\udfff" for c in text):
        raise InputError(f"training text: item {number}: holds half a character (a lone surrogate)")
    return text.strip()


def _shown(item: Any) -> str:
    return f"{type(item).__name__} {str(item)[:40]!r}"
