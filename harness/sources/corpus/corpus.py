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
from harness.sources.corpus.taking import Columns, columns_of, take
from harness.sources.corpus.text_store import TextStore
from harness.sources.corpus.uri import Location, locate

Kind = Literal["sentences", "pairs", "documents"]
_REQUIRED = {"sentences": ("text",), "documents": ("text",), "pairs": ("anchor", "positive")}
# "label" is read where it is named alone: a file that has a column of that name by chance has always been read without.
_OPTIONAL = {"sentences": (), "documents": (), "pairs": ("negative", "label")}

Item = TypeVar("Item", default=Any)


@dataclass(frozen=True)
class Pair:
    """Two texts that belong together and, where there is one, a text that resembles the anchor but does not.

    With a `label`, such as "neutral", they belong together as it says, and `positive` is just the second of them.
    """

    anchor: str
    positive: str
    negative: str | None = None
    label: str | None = None


class Corpus(Sequence[Item]):
    """Texts (str) or pairs (Pair) with cheap random access; what lies on disk is read as it is asked for.

    Attributes:
        uri: as it was asked for. kind: "sentences", "pairs" or "documents".
        sha256: hash of the texts themselves, in order: neither the file's format nor its name matters.
        path: the one file behind it, or None where there are several.
        skipped: how many empty lines (or rows without anchor or positive) were left out.
        name: that of the catalogue ("wiki1m") whose text it is, "" for any other.
        about: how it came about, where that is more than a file: source, revision, selection.
    """

    def __init__(
        self,
        uri: str,
        kind: Kind,
        store: TextStore,
        *,
        path: Path | None,
        skipped: int,
        name: str = "",
        about: Mapping[str, Any] | None = None,
    ) -> None:
        self.uri = uri
        self.kind = kind
        self.sha256 = store.sha256
        self.path = path
        self.skipped = skipped
        self.name = name
        self.about = dict(about or {})
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
            return cast(Item, Pair(texts[0], texts[1], *(text or None for text in texts[2:])))
        return cast(Item, texts[0])

    def describe(self) -> dict[str, Any]:
        """What a record keeps of it: uri, kind, count and sha256; name, source, revision (the hub's commit), selection
        and left_out (how many texts that had for too short or repeated) where there are such."""
        named = {"name": self.name} if self.name else {}
        return {"uri": self.uri, "kind": self.kind, "count": len(self), "sha256": self.sha256, **named, **self.about}


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
        uri: one of
            a name of the catalogue (`harness data list`): "wiki1m", "stsb-sentences?parts=train";
            "hf://datasets/ORG/NAME?config=...&split=...", a whole data set of the hub, read by `datasets` as a stream;
            "hf://datasets/ORG/NAME/FILE", a .txt (one text a line), .csv, .tsv or .jsonl file, or the .gz of one;
            "embedded:sentences" (pairs, documents);
            a path to such a file.
            After "?", joined by "&", all but paths take min_words=N, min_tokens=N with tokenizer=MODEL, distinct=yes
            (`harness.sources.corpus.selection`), and those of the hub revision=... and columns=ROLE:COLUMN,ROLE:COLUMN.
        kind: what to read from it.
        columns: role -> name of the column. Roles: text (sentences, documents; "a+b": both columns, one text each);
            anchor, positive, negative, label (pairs; the label is read only where it is named). Without it a column is
            called like its role.
        limit: only the first so many (empty ones not counted); the rest is neither read nor checked.

    Raises:
        InputError: unknown or missing source, a file that is not what it should be (file and line), fewer than 2 texts.
        RunError: the connection to the hub broke.
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
    taken = take(location, _columns(uri, kind, location, columns), limit)
    if len(taken.store) < 2:
        left_out = f" after {taken.left_out:,} were left out ({location.selection})" if taken.left_out else ""
        held = "is empty" if not len(taken.store) else f"holds only one of {kind}"
        raise InputError(f'corpus "{uri}": {held}{left_out}; training needs at least 2 {kind}')
    path = location.files[0] if len(location.files) == 1 else None
    about = {
        "source": location.source,
        "revision": taken.revision,
        "selection": str(location.selection),
        "left_out": taken.left_out,
    }
    return Corpus(
        uri,
        kind,
        taken.store,
        path=path,
        skipped=taken.skipped,
        name=location.name if columns is None else "",
        about={key: value for key, value in about.items() if value},
    )


def _columns(uri: str, kind: Kind, location: Location, given: Mapping[str, str] | None) -> Columns:
    required, optional = _REQUIRED[kind], _OPTIONAL[kind]
    roles = [*required, *optional]
    named = dict(given) if given is not None else dict(location.asked)
    for role in named:
        if role not in roles:
            raise InputError(
                f'corpus "{uri}": columns has the unknown key "{role}"{nearest(role, roles)}; '
                f"for {kind} they are: {', '.join(roles)}"
            )
    usual = dict(location.columns) | named
    read = tuple(role for role in optional if role != "label" or "label" in usual)
    return columns_of({role: usual.get(role) or role for role in roles}, required, read, set(named))
