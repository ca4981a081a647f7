"""Training text: sentences, pairs (with optional hard negatives) or documents, with a hash of their
content.
"""

from __future__ import annotations

import logging
import operator
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from numbers import Number
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Protocol, overload

from typing_extensions import TypeVar

from harness.config import nearest
from harness.errors import InputError
from harness.files.reading import is_there
from harness.sources.corpus.catalogue import CATALOGUE, locate
from harness.sources.corpus.rows import FORMATS, is_sound
from harness.sources.corpus.selected_texts import (
    AT_ONCE,
    ROLES,
    Kind,
    Texts,
    find_columns,
    read_texts,
    table_in_memory,
    with_text,
    write_texts,
)
from harness.sources.corpus.tables_in_hand import WHERE, is_table, items_of_table

if TYPE_CHECKING:
    import pyarrow as pa

_LOG = logging.getLogger(__name__)
_EXPECTED = {
    "sentences": "texts (str)",
    "documents": "texts (str)",
    "pairs": "pairs of texts (anchor, positive), optionally with a negative as a third",
}
Item = TypeVar("Item", default=Any)


@dataclass(frozen=True)
class Pair:
    """Two texts that belong together and, where there is one, a text that resembles the anchor but
    does not.

    With a `label`, such as "neutral", it says how the two texts relate, and `positive` is just the
    second of them.
    """

    anchor: str
    positive: str
    negative: str | None = None
    label: str | None = None


class Corpus(Sequence[Item]):
    """Texts (str) or pairs (Pair) with random access: an Arrow table in batches of `AT_ONCE` rows,
    memory-mapped where the text is large.

    Attributes:
        uri: as it was requested. kind: "sentences", "pairs" or "documents".
        sha256: hash of the texts in their order; the file's format and name do not matter.
        about: the catalogue's name of the text, its source, revision and selection, where there are
            such.
    """

    def __init__(
        self,
        uri: str,
        kind: Kind,
        table: pa.Table,
        sha256: str,
        about: Mapping[str, Any] = MappingProxyType({}),
    ) -> None:
        self.uri = uri
        self.kind = kind
        self.sha256 = sha256
        self.about = dict(about)
        self._table = table
        self._chunks = [column.chunks for column in table.columns]

    def __len__(self) -> int:
        return int(self._table.num_rows)

    @overload
    def __getitem__(self, index: int) -> Item: ...
    @overload
    def __getitem__(self, index: slice) -> list[Item]: ...
    def __getitem__(self, index: int | slice) -> Any:
        if isinstance(index, slice):
            rows = range(*index.indices(len(self)))
            return [self[row] for row in rows]
        size = len(self)
        place = operator.index(index)
        if not -size <= place < size:
            raise IndexError(f"{place} is outside of a corpus of {size}")
        chunk, row = divmod(place % size, AT_ONCE)
        texts = [chunks[chunk][row].as_py() for chunks in self._chunks]
        return self._item(texts)

    def __iter__(self) -> Iterator[Item]:
        for batch in self._table.to_batches():
            columns = [column.to_pylist() for column in batch.columns]
            for texts in zip(*columns, strict=True):
                yield self._item(texts)

    def __repr__(self) -> str:
        begin = self.sha256[:12]
        return f"Corpus({self.uri!r}, {len(self)} {self.kind}, sha256 {begin})"

    def _item(self, texts: Sequence[str]) -> Any:
        if self.kind == "pairs":
            first, second, *rest = texts
            return Pair(first, second, *(text or None for text in rest))
        return texts[0]

    def first(self, count: int) -> Corpus[Item]:
        """Its first items; itself where it has no more.

        Raises:
            InputError: fewer than two are wanted.
        """
        if count < 2:
            message = f"limit = {count}; training needs at least 2 texts"
            raise InputError(message, file=self.uri, key="limit")
        if count >= len(self):
            return self
        few = corpus_in_memory(self[:count], self.kind, self.uri)
        return Corpus(self.uri, self.kind, few._table, few.sha256, self.about)

    def describe(self) -> dict[str, Any]:
        """What a record says about it: uri, kind, count and sha256; name, source, written_by,
        revision (the hub's commit), selection and left_out (the number of texts that the selection
        excludes), and empty (the number of rows without text) where there are such.
        """
        return {
            "uri": self.uri,
            "kind": self.kind,
            "count": len(self),
            "sha256": self.sha256,
            **self.about,
        }


class DatasetTable(Protocol):
    """What has named columns: a `datasets.Dataset`, a table of Arrow, a frame of pandas or polars."""

    def __len__(self) -> int: ...
    def __getitem__(self, key: Any, /) -> Any: ...


TrainingText = (
    Corpus | str | Path | Sequence[str] | Sequence[Pair] | Sequence[Sequence[str]] | DatasetTable
)
"""What `Method.fit` learns from: a corpus; a path, a catalogue's name or any other URI of
`load_corpus`; a list of texts (sentences or documents, as the method needs them); a list of pairs,
each a `Pair`, a tuple (anchor, positive) or (anchor, positive, negative), or a dict of these; a
`datasets.Dataset`, a frame of pandas or polars or a table of Arrow, with a column "text"
("sentence", "document"), or with "anchor" and "positive" (and "negative", "label").
"""


def load_corpus(
    uri: str,
    *,
    kind: Kind = "sentences",
    columns: Mapping[str, str] | None = None,
    limit: int | None = None,
) -> Corpus:
    """Open a corpus.

    Small files are read into memory. The text of large files and of hub data sets is stored as an
    Arrow file in HARNESS_CACHE/corpora when it is first read, and memory-mapped from there.

    Args:
        uri: one of
            a name of the catalogue (`harness list data`): "wiki1m", "stsb-sentences?parts=train";
            "hf://datasets/ORG/NAME?config=...&split=...", a whole data set of the hub, which
            `datasets` streams; "hf://datasets/ORG/NAME/FILE", a .txt (one text a line), .csv, .tsv
            or .jsonl file, or the .gz of one, or a .parquet file;
            "embedded:sentences" (pairs, documents);
            a path to such a file.
            After "?", joined by "&", all but paths take min_tokens=N with tokenizer=MODEL (only
            texts of so many tokens), and those of the hub revision=... and
            columns=ROLE:COLUMN,ROLE:COLUMN.
        kind: the kind of items to read from it.
        columns: role -> name of the column. Roles: text (sentences, documents; "a+b": both columns,
            one text each); anchor, positive, negative, label (pairs; the label is read only where
            it is named). Without it a column is called like its role.
        limit: use only the first `limit` items, empty ones not counted; the rest is neither read
            nor checked.

    Raises:
        InputError: unknown or missing source, a file in another format (file and line), fewer than
            2 texts.
        RunError: the connection to the hub broke.
    """
    if kind not in ROLES:
        raise InputError(
            f'corpus "{uri}": unknown kind "{kind}"{nearest(kind, list(ROLES))}; known: {", ".join(ROLES)}',
            file=uri,
        )
    if limit is not None and limit < 2:
        raise InputError(
            f'corpus "{uri}": limit = {limit}; training needs at least 2 texts', file=uri
        )
    location = locate(uri)
    if location.kind not in (None, kind) and columns is None:
        raise InputError(
            f'corpus "{uri}": holds {location.kind}, not {kind}',
            file=uri,
            remedy="name the columns to use with `columns`",
        )
    read = find_columns(uri, kind, location, columns)
    table, facts = read_texts(location, read, kind, limit)
    if len(table) < 2:
        if facts["left_out"]:
            left_out = f" after {facts['left_out']:,} were left out ({location.selection})"
        else:
            left_out = ""
        if len(table):
            held = f"holds only one of {kind}"
        else:
            held = "is empty"
        raise InputError(
            f'corpus "{uri}": {held}{left_out}; training needs at least 2 {kind}', file=uri
        )
    about = {
        "name": location.name if columns is None else "",
        "source": location.source,
        "written_by": CATALOGUE[location.name].written_by if location.name else "",
        "revision": facts["revision"],
        "selection": location.selection,
        "left_out": facts["left_out"],
        "empty": facts.get("empty", 0),
    }
    _report_empty(f'corpus "{uri}"', about["empty"], len(table))
    return Corpus(
        uri, kind, table, facts["sha256"], {key: value for key, value in about.items() if value}
    )


def corpus_of(
    given: TrainingText,
    kind: Kind,
    *,
    limit: int | None = None,
    columns: Mapping[str, str] | None = None,
) -> Corpus:
    """`given` as a corpus of a kind; a `Corpus` keeps its kind, and is returned unchanged where it has
    no more than `limit` items.

    Args:
        limit: use only the first `limit` items.
        columns: role -> name of the column, of a file or a table; see `load_corpus`.

    Raises:
        InputError: `given` is no `TrainingText`, an item is no text or pair, there are fewer than
            two, or a file is wrong.
    """
    if isinstance(given, Corpus):
        _refuse_columns(given, columns)
        return given if limit is None else given.first(limit)
    if isinstance(given, str | Path):
        return load_corpus(str(given), kind=kind, limit=limit, columns=columns)
    if is_table(given):
        roles = ROLES[kind]
        corpus = corpus_in_memory(
            items_of_table(given, roles, columns), kind, "given data set", limit, rows=True
        )
    else:
        items = _list_items(given, kind, columns)
        corpus = corpus_in_memory(items, kind, f"given {kind}", limit)
    if len(corpus) < 2:
        raise InputError(
            f"training text: needs at least 2 {kind}, not {len(corpus)}", file="training text"
        )
    return corpus


def _list_items(given: Any, kind: Kind, columns: Mapping[str, str] | None) -> Sequence[Any]:
    """Return the items of something that has no columns.

    Raises:
        InputError: it is no list of texts or pairs.
    """
    _refuse_columns(given, columns)
    if isinstance(given, set | frozenset):
        message = "a set has no order, so no two runs would see the same text"
        raise InputError(message, file=WHERE, remedy="give sorted(...) of it")
    if hasattr(given, "to_pylist"):  # an array of Arrow
        given = given.to_pylist()
    is_number = getattr(given, "ndim", 1) == 0
    no_list = is_number or isinstance(given, Mapping | bytes)
    if no_list or not isinstance(given, Iterable):
        remedy = None
        if isinstance(given, Mapping):
            remedy = 'give columns as pandas.DataFrame(...), or a file as {"uri": "text.csv"}'
        elif hasattr(given, "__len__") and hasattr(given, "__getitem__"):  # a Dataset of torch
            remedy = "give its items as a list: [data[i] for i in range(len(data))]"
        raise InputError(
            f"training text: expected a list of {_EXPECTED[kind]}, a data frame or data set, a path or a Corpus, "
            f"not {type(given).__name__}",
            file="training text",
            remedy=remedy,
        )
    items = list(given)
    if items and all(map(_names_a_file, items)):
        message = f"holds names of files ({items[0]}), not texts"
        raise InputError(message, file=WHERE, remedy="give one path, not a list")
    return items


def _refuse_columns(given: Any, columns: Mapping[str, str] | None) -> None:
    if columns is not None:
        message = f"goes with a file or a table, not with {type(given).__name__}"
        raise InputError(message, file=WHERE, key="columns", remedy="leave it out")


def _names_a_file(item: Any) -> bool:
    """True for the name of a file of text that exists."""
    if not isinstance(item, str):
        return False
    name = item.lower().removesuffix(".gz")
    return name.endswith(FORMATS) and is_there(Path(item))


def corpus_in_memory(
    items: Iterable[Any],
    kind: Kind,
    uri: str,
    limit: int | None = None,
    *,
    rows: bool = False,
) -> Corpus:
    """A corpus of texts or pairs, in any form that `TrainingText` allows; empty ones are left out.

    Args:
        rows: items are the texts of the rows of a table.

    Raises:
        InputError: an item is no text or pair.
    """
    counts: Counter[str] = Counter()
    every = (
        _sound(item, number) if rows else _texts(item, kind, number)
        for number, item in enumerate(items)
    )
    whole = list(islice(with_text(every, kind, counts), limit))
    has_labels = kind == "pairs" and any(texts[3] for texts in whole)
    if kind == "pairs" and not has_labels:
        whole = [texts[:3] for texts in whole]  # as a file's, so that equal texts have equal hashes
    if whole:
        width = len(whole[0])
    else:
        width = 1
    table, sha256 = table_in_memory(lambda sink: write_texts(sink, whole, width))
    _report_empty(uri, counts["empty"], len(whole))
    if counts["empty"]:
        about = {"empty": counts["empty"]}
    else:
        about = {}
    return Corpus(uri, kind, table, sha256, about)


def _report_empty(uri: str, empty: int, count: int) -> None:
    """Log how many rows were left out because they have no text."""
    if empty:
        _LOG.warning(
            "%s: %s of %s rows have no text and are left out",
            uri,
            f"{empty:,}",
            f"{empty + count:,}",
        )


def _is_tuple(item: Any) -> bool:
    """True for a sequence of two or three, which is no text."""
    if not isinstance(item, Sequence) or isinstance(item, str | bytes):
        return False
    return len(item) in (2, 3)


def _texts(item: Any, kind: Kind, number: int) -> Texts:
    """The texts of one item: one, or anchor, positive, negative and label, "" where there is none."""
    values: Sequence[Any] = (item,)
    if kind == "pairs":
        if isinstance(item, Pair | Mapping):
            fields = item if isinstance(item, Mapping) else vars(item)
            values = [fields.get(role) for role in ROLES[kind]]
            if isinstance(values[3], Number):  # a score or a class, which no method reads
                values[3] = None
        elif _is_tuple(item):
            values = [*item, None, None][:4]
        else:
            values = (0,)  # no text
        values = ["" if value is None else value for value in values]
    if not all(isinstance(value, str) for value in values):
        begin = str(item)[:40]
        shown = f"{type(item).__name__} {begin!r}"
        raise InputError(
            f"training text: item {number}: expected {_EXPECTED[kind]}, not {shown}",
            file="training text",
            key=f"item {number}",
        )
    return _sound(values, number)


def _sound(values: Sequence[str], number: int) -> Texts:
    """Return the texts of an item without white space around them.

    Raises:
        InputError: one cannot be written as UTF-8.
    """
    if not all(map(is_sound, values)):
        raise InputError(
            f"training text: item {number}: holds half a character (a lone surrogate)",
            file="training text",
            key=f"item {number}",
        )
    return [value.strip() for value in values]
