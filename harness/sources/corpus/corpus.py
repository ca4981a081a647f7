"""Training text by URI: sentences, pairs (with optional hard negatives) or documents, with a fingerprint."""

from __future__ import annotations

import operator
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, cast, get_args, overload

from typing_extensions import TypeVar

from harness.config import nearest
from harness.errors import InputError
from harness.sources.corpus.rows import rows, text_format
from harness.sources.corpus.text_store import StoreWriter, TextStore, mapped_lines
from harness.sources.corpus.uri import Location, locate

Kind = Literal["sentences", "pairs", "documents"]
_REQUIRED = {"sentences": ("text",), "documents": ("text",), "pairs": ("anchor", "positive")}
_OPTIONAL = {"sentences": (), "documents": (), "pairs": ("negative",)}

Item = TypeVar("Item", default=Any)


@dataclass(frozen=True)
class Pair:
    """Two texts that belong together and, where there is one, a text that resembles the anchor but does not."""

    anchor: str
    positive: str
    negative: str | None = None


class Corpus(Sequence[Item]):
    """Texts (str) or pairs (Pair) with cheap random access; what lies on disk is read as it is asked for.

    Attributes:
        uri: as it was asked for. kind: "sentences", "pairs" or "documents".
        sha256: hash of the texts themselves, in order: neither the file's format nor its name matters.
        path: the one file behind it, or None where there are several.
        skipped: how many empty lines (or rows without anchor or positive) were left out.
    """

    def __init__(self, uri: str, kind: Kind, store: TextStore, *, path: Path | None, skipped: int) -> None:
        self.uri = uri
        self.kind = kind
        self.sha256 = store.sha256
        self.path = path
        self.skipped = skipped
        self._store = store

    def __len__(self) -> int:
        return len(self._store)

    @overload
    def __getitem__(self, index: int) -> Item: ...
    @overload
    def __getitem__(self, index: slice) -> list[Item]: ...
    def __getitem__(self, index: int | slice) -> Item | list[Item]:
        if isinstance(index, slice):
            return [self._item(i) for i in range(*index.indices(len(self)))]
        place = operator.index(index)
        if not -len(self) <= place < len(self):
            raise IndexError(f"{place} is outside of a corpus of {len(self)}")
        return self._item(place % len(self))

    def __iter__(self) -> Iterator[Item]:
        return (self._item(i) for i in range(len(self)))

    def __repr__(self) -> str:
        return f"Corpus({self.uri!r}, {len(self)} {self.kind}, sha256 {self.sha256[:12]})"

    def _item(self, index: int) -> Item:
        texts = self._store.row(index)
        if self.kind == "pairs":
            return cast(Item, Pair(texts[0], texts[1], texts[2] or None))
        return cast(Item, texts[0])

    def describe(self) -> dict[str, Any]:
        """What a record keeps of it: uri, kind, count, sha256."""
        return {"uri": self.uri, "kind": self.kind, "count": len(self), "sha256": self.sha256}


@overload
def load_corpus(
    uri: str,
    *,
    kind: Literal["sentences", "documents"] = "sentences",
    columns: Mapping[str, str] | None = None,
    limit: int | None = None,
) -> Corpus[str]: ...
@overload
def load_corpus(
    uri: str, *, kind: Literal["pairs"], columns: Mapping[str, str] | None = None, limit: int | None = None
) -> Corpus[Pair]: ...
@overload
def load_corpus(
    uri: str, *, kind: Kind, columns: Mapping[str, str] | None = None, limit: int | None = None
) -> Corpus: ...
def load_corpus(
    uri: str, *, kind: Kind = "sentences", columns: Mapping[str, str] | None = None, limit: int | None = None
) -> Corpus:
    """Open a corpus.

    Args:
        uri: "embedded:sentences" (pairs, documents), "hf://datasets/ORG/NAME/FILE" ("NAME@REVISION"), a path to a
            .txt (one text a line), .csv, .tsv or .jsonl file or the .gz of one, or a preset: "wiki1m", "nli".
        kind: what to read from it.
        columns: role -> name of the column. Roles: text (sentences, documents); anchor, positive, negative (pairs).
            Without it a column is called like its role.
        limit: only the first so many (empty ones not counted); the rest of the file is neither read nor checked.

    Raises:
        InputError: unknown or missing source, a file that is not what it should be (file and line), fewer than 2 texts.
    """
    if kind not in get_args(Kind):
        raise InputError(
            f'corpus "{uri}": unknown kind "{kind}"{nearest(kind, list(get_args(Kind)))}; known: '
            + ", ".join(get_args(Kind))
        )
    if limit is not None and limit < 2:
        raise InputError(f'corpus "{uri}": limit = {limit}; training needs at least 2 texts')
    location = locate(uri)
    if location.kind not in (None, kind) and columns is None:
        raise InputError(f'corpus "{uri}": holds {location.kind}, not {kind}; name the columns to use with `columns`')
    names = _columns(uri, kind, location, columns)
    store, skipped = _read(location.files, kind, names, limit, named=set(columns or ()))
    if len(store) < 2:
        raise InputError(
            f'corpus "{uri}": {"is empty" if not len(store) else f"holds only one of {kind}"}; '
            f"training needs at least 2 {kind}"
        )
    path = location.files[0] if len(location.files) == 1 else None
    return Corpus(uri, kind, store, path=path, skipped=skipped)


def _columns(uri: str, kind: Kind, location: Location, given: Mapping[str, str] | None) -> dict[str, str]:
    roles = [*_REQUIRED[kind], *_OPTIONAL[kind]]
    for role in given or ():
        if role not in roles:
            raise InputError(
                f'corpus "{uri}": columns has the unknown key "{role}"{nearest(role, roles)}; '
                f"for {kind} they are: {', '.join(roles)}"
            )
    return {role: (given or {}).get(role) or location.columns.get(role, role) for role in roles}


def _read(
    files: tuple[Path, ...], kind: Kind, names: Mapping[str, str], limit: int | None, *, named: set[str]
) -> tuple[TextStore, int]:
    """All rows of the files, and how many were skipped as empty."""
    if len(files) == 1 and text_format(files[0]) == (".txt", False) and list(names.values()) == ["text"]:
        return mapped_lines(files[0], limit)
    required = [names[role] for role in _REQUIRED[kind]]
    optional = [names[role] for role in _OPTIONAL[kind]]
    skipped, count = 0, 0
    with StoreWriter(len(names)) as writer:
        for file in files:
            # a column that the user named must be there, also where its role is optional
            must = required + [names[role] for role in _OPTIONAL[kind] if role in named]
            for _, values in rows(file, must, [column for column in optional if column not in must]):
                texts = [(value or "").strip() for value in values]
                if not all(texts[: len(required)]):
                    skipped += 1
                    continue
                writer.add([text.encode() for text in texts])
                count += 1
                if limit is not None and count >= limit:
                    return writer.finish(), skipped
        return writer.finish(), skipped
