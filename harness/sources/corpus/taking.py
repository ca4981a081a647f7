"""From rows of files or of a data set to the texts of a corpus: which columns, which rows, how many."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from itertools import islice
from typing import Any

from harness.sources.corpus.hub_table import HubTable
from harness.sources.corpus.kept_text import newest, stored
from harness.sources.corpus.rows import rows, text_format
from harness.sources.corpus.selection import Selection, Sieve
from harness.sources.corpus.text_store import StoreWriter, TextStore, mapped_lines
from harness.sources.corpus.uri import Location
from harness.sources.remote.hub import out_of_reach

_CHUNK = 256  # items that a selection looks at together
Values = tuple[str | None, ...]


@dataclass(frozen=True)
class Columns:
    """Where the texts of an item stand: the columns that must be there, then those that may be missing or empty.

    `order` says where among these the texts of an item are, in its own order; the first `needed` of them must not be
    empty. `each`: every column holds an item of its own (sentences in two columns).
    """

    required: tuple[str, ...]
    optional: tuple[str, ...]
    order: tuple[int, ...]
    needed: int
    each: bool = False

    @property
    def width(self) -> int:
        """Texts of an item."""
        return 1 if self.each else len(self.required) + len(self.optional)


@dataclass(frozen=True)
class Taken:
    """A corpus's texts; how many rows were empty, and how many the selection left out; the data set's commit."""

    store: TextStore
    skipped: int
    left_out: int = 0
    revision: str = ""


def take(location: Location, columns: Columns, limit: int | None) -> Taken:
    """The texts of a location, the first `limit` of those that are selected.

    Raises:
        InputError: whatever is wrong with a file or data set; hub out of reach.
        RunError: the connection broke.
    """
    if location.table is not None:
        return _take_table(location.table, columns, limit, location.selection)
    first = location.files[0]
    plain = columns.required == ("text",) and not columns.optional and not location.selection
    if len(location.files) == 1 and text_format(first) == (".txt", False) and plain:
        store, skipped = mapped_lines(first, limit)
        return Taken(store, skipped, revision=location.revision)
    of_files = (row for file in location.files for _, row in rows(file, columns.required, columns.optional))
    with StoreWriter(columns.width) as writer:
        counts = _fill(writer, of_files, columns, limit, location.selection)
        return Taken(writer.finish(), **counts, revision=location.revision)


def _take_table(table: HubTable, columns: Columns, limit: int | None, selection: Selection) -> Taken:
    asked = {"table": asdict(table), "columns": asdict(columns), "selection": asdict(selection), "limit": limit}
    request: dict[str, Any] = json.loads(json.dumps(asked))  # as it is read back: lists for tuples
    commit = table.commit() or newest(request)
    if commit is None:
        raise out_of_reach(str(table))

    def fill(writer: StoreWriter) -> dict[str, int]:
        return _fill(writer, table.rows(columns.required, columns.optional, commit), columns, limit, selection)

    store, about = stored(request, commit, columns.width, fill)
    return Taken(store, **about["counts"], revision=commit)


def _fill(
    writer: StoreWriter, source: Iterable[Values], columns: Columns, limit: int | None, selection: Selection
) -> dict[str, int]:
    sieve = Sieve(selection) if selection else None
    skipped = left_out = count = 0
    items = _items(source, columns)
    while chunk := list(islice(items, _CHUNK if sieve is not None else 1)):
        whole = [texts for texts in chunk if all(texts[: columns.needed])]
        skipped += len(chunk) - len(whole)
        for texts, taken in zip(whole, sieve.taken(whole) if sieve is not None else [True] * len(whole), strict=True):
            if not taken:
                left_out += 1
                continue
            writer.add([text.encode() for text in texts])
            count += 1
            if count == limit:
                return {"skipped": skipped, "left_out": left_out}
    return {"skipped": skipped, "left_out": left_out}


def _items(source: Iterable[Values], columns: Columns) -> Iterator[list[str]]:
    for values in source:
        texts = [(values[place] or "").strip() for place in columns.order]
        if columns.each:
            yield from ([text] for text in texts)
        else:
            yield texts


def columns_of(
    roles: Mapping[str, str], required: tuple[str, ...], optional: tuple[str, ...], named: set[str]
) -> Columns:
    """The columns of roles; one of an optional role must be there too where the user named it.

    "text" may name several columns, as in "sentence1+sentence2".
    """
    if required == ("text",):
        each = tuple(filter(None, roles["text"].split("+"))) or ("",)
        return Columns(each, (), tuple(range(len(each))), 1, each=len(each) > 1)
    must = [*required, *(role for role in optional if role in named)]
    may = [role for role in optional if role not in named]
    order = tuple([*must, *may].index(role) for role in (*required, *optional))
    return Columns(tuple(roles[role] for role in must), tuple(roles[role] for role in may), order, len(required))
