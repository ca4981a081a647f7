"""Training text: sentences, pairs (with optional hard negatives) or documents, with a hash of their
content.
"""

from __future__ import annotations

import hashlib
import json
import logging
import operator
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import chain, islice
from numbers import Number
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal, Protocol, overload

from typing_extensions import TypeVar

from harness.config import nearest
from harness.errors import InputError
from harness.files.hashing import content_id, sha256_of
from harness.files.reading import is_there, read_json, require_ordinary
from harness.sources.corpus.catalogue import CATALOGUE, Location, locate
from harness.sources.corpus.rows import (
    FORMATS,
    Rows,
    file_rows,
    hub_rows,
    is_sound,
    text_format,
    values_of,
)
from harness.sources.corpus.tables_in_hand import WHERE, is_table, items_of_table
from harness.sources.embedded import cached_by_model, resolve_model
from harness.sources.remote.cache_folder import cache_root, make_once
from harness.sources.remote.hub import hub_commit, hub_file, out_of_reach

if TYPE_CHECKING:
    import pyarrow as pa
    from tokenizers import Tokenizer

_LOG = logging.getLogger(__name__)
Kind = Literal["sentences", "pairs", "documents"]
_ROLES = {
    "sentences": ("text",),
    "documents": ("text",),
    "pairs": ("anchor", "positive", "negative", "label"),
}
_NEEDED = {
    "sentences": 1,
    "documents": 1,
    "pairs": 2,
}  # of these roles, the first must not be empty
_EXPECTED = {
    "sentences": "texts (str)",
    "documents": "texts (str)",
    "pairs": "pairs of texts (anchor, positive), optionally with a negative as a third",
}
_READER = 2  # 1: TSV without quotes, and padding counted as tokens; stored texts are read again
_SMALL = 16 * 2**20  # bytes of files that are read into memory without a copy in the cache
AT_ONCE = 1000  # items of every Arrow batch but the last
_EXAMINED = 256  # items that are tokenised together

Item = TypeVar("Item", default=Any)
Texts = Sequence[
    str
]  # of one item: a text, or anchor, positive, negative ("" for none) and label where it is read


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
    if kind not in _ROLES:
        raise InputError(
            f'corpus "{uri}": unknown kind "{kind}"{nearest(kind, list(_ROLES))}; known: {", ".join(_ROLES)}',
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
    read = _columns(uri, kind, location, columns)
    table, facts = _read(location, read, kind, limit)
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
    """`given` as a corpus of a kind; a `Corpus` is returned unchanged, whatever its kind.

    Args:
        limit: use only the first `limit` items.
        columns: role -> name of the column, of a file or a table; see `load_corpus`.

    Raises:
        InputError: `given` is no `TrainingText`, an item is no text or pair, there are fewer than
            two, or a file is wrong.
    """
    if isinstance(given, Corpus):
        return given
    if isinstance(given, str | Path):
        return load_corpus(str(given), kind=kind, limit=limit, columns=columns)
    if is_table(given):
        roles = _ROLES[kind]
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
    if columns is not None:
        message = f"goes with a file or a table, not with {type(given).__name__}"
        raise InputError(message, file=WHERE, key="columns", remedy="leave it out")
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
    whole = list(islice(_with_text(every, kind, counts), limit))
    has_labels = kind == "pairs" and any(texts[3] for texts in whole)
    if kind == "pairs" and not has_labels:
        whole = [texts[:3] for texts in whole]  # as a file's, so that equal texts have equal hashes
    if whole:
        width = len(whole[0])
    else:
        width = 1
    table, sha256 = _table_in_memory(lambda sink: _write(sink, whole, width))
    _report_empty(uri, counts["empty"], len(whole))
    if counts["empty"]:
        about = {"empty": counts["empty"]}
    else:
        about = {}
    return Corpus(uri, kind, table, sha256, about)


def _with_text(items: Iterable[Texts], kind: Kind, counts: Counter[str]) -> Iterator[Texts]:
    """Yield the items whose needed texts are not empty; counts["empty"] is the number of others."""
    for texts in items:
        if all(texts[: _NEEDED[kind]]):
            yield texts
        else:
            counts["empty"] += 1


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
            values = [fields.get(role) for role in _ROLES[kind]]
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


@dataclass(frozen=True)
class _Columns:
    """The columns of an item in the order of their roles; the rows must have those in `required`.

    `each`: every column holds an item of its own (sentences in two columns).
    """

    names: tuple[str, ...]
    required: tuple[str, ...]
    each: bool = False


def _columns(uri: str, kind: Kind, location: Location, given: Mapping[str, str] | None) -> _Columns:
    roles = _ROLES[kind]
    named = dict(location.named if given is None else given)
    for role in named:
        if role not in roles:
            raise InputError(
                f'corpus "{uri}": columns has the unknown key "{role}"{nearest(role, list(roles))}; '
                f"for {kind} they are: {', '.join(roles)}",
                file=uri,
                key=role,
            )
    usual = dict(location.columns) | named
    if kind != "pairs":
        text = usual.get("text") or "text"
        names = tuple(filter(None, text.split("+"))) or ("",)
        return _Columns(names, names, each=len(names) > 1)
    # A label is read only where it is named: many files have a column of that name with another
    # meaning.
    read = [role for role in roles if role != "label" or "label" in usual]
    column = {}
    needed = []
    for i, role in enumerate(read):
        column[role] = usual.get(role) or role
        if i < _NEEDED[kind] or role in named:
            needed.append(column[role])
    return _Columns(tuple(column.values()), tuple(needed))


def _read(
    location: Location,
    columns: _Columns,
    kind: Kind,
    limit: int | None,
) -> tuple[pa.Table, dict[str, Any]]:
    """The selected texts of a location; their sha256, how many the selection left out, and the
    hub's commit.
    """
    files = location.files
    commit = location.revision

    def write(sink: Any) -> dict[str, Any]:
        return _write_selected(sink, location, commit, columns, kind, limit)

    request: dict[str, Any] = {
        "columns": asdict(columns),
        "selection": location.selection,
        "limit": limit,
        "kind": kind,
    }
    formats = [text_format(file) for file in files]
    has_separators = any(ending in (".csv", ".tsv") for ending, _ in formats)
    if location.min_tokens or has_separators:
        request["reader"] = _READER
    own_tokenizer = Path(location.tokenizer) / "tokenizer.json"
    if location.tokenizer and own_tokenizer.is_file():  # a folder, whose files may change
        request["tokenizer"] = sha256_of(own_tokenizer)
    if not files:
        commit = _commit_of_set(location, request)
        return _load_or_store(request, commit, write)
    for file in files:
        require_ordinary(file)
    total = sum(file.stat().st_size for file in files)
    is_small = total <= _SMALL
    if is_small and not any(zipped for _, zipped in formats):
        return _table_in_memory(write)
    request["files"] = [
        [ending, sha256_of(file)] for file, ending in zip(files, formats, strict=True)
    ]
    table, facts = _load_or_store(request, "", write)
    return table, facts | {"revision": commit}


def _write_selected(
    sink: Any,
    location: Location,
    commit: str,
    columns: _Columns,
    kind: Kind,
    limit: int | None,
) -> dict[str, Any]:
    """Write the selected texts of a location; their sha256, how many the selection left out, and
    the hub's commit.
    """
    if location.files:
        rows: Rows = chain.from_iterable(map(file_rows, location.files))
    else:
        rows = hub_rows(location, commit)
    items: Iterator[Texts] = values_of(rows, columns.names, columns.required)
    width = len(columns.names)
    if columns.each:
        items = ([text] for row in items for text in row)
        width = 1
    counts: Counter[str] = Counter()
    items = _with_text(items, kind, counts)
    if location.min_tokens:
        items = _long_enough(items, location.min_tokens, _tokenizer(location.tokenizer), counts)
    sha256 = _write(sink, islice(items, limit), width)
    return {
        "sha256": sha256,
        "revision": commit,
        "left_out": counts["left_out"],
        "empty": counts["empty"],
    }


def _write(sink: Any, items: Iterable[Texts], width: int) -> str:
    """Write items of `width` texts to a file or buffer as an Arrow stream.

    Returns:
        The sha256 of the texts: each after its length in bytes, so that it does not depend on how
            they are stored.
    """
    import pyarrow as pa

    digest = hashlib.sha256(f"harness-texts-1 {width}\n".encode())
    fields = [(str(place), pa.string()) for place in range(width)]
    schema = pa.schema(fields)
    items = iter(items)
    with pa.ipc.new_stream(sink, schema) as writer:
        while chunk := list(islice(items, AT_ONCE)):
            encoded = [[text.encode() for text in texts] for texts in chunk]
            digest.update(
                b"".join(b"%d:%b" % (len(text), text) for texts in encoded for text in texts)
            )
            arrays = []
            for column in zip(*encoded, strict=True):
                arrays.append(pa.array(column, pa.string()))
            writer.write_batch(pa.record_batch(arrays, schema=schema))
    return digest.hexdigest()


T = TypeVar("T")


def _table_in_memory(write: Callable[[Any], T]) -> tuple[pa.Table, T]:
    import pyarrow as pa

    sink = pa.BufferOutputStream()
    written = write(sink)
    return pa.ipc.open_stream(sink.getvalue()).read_all(), written


_ABOUT = "about.json"
_ARROW = "texts.arrow"


def _folder(request: dict[str, Any], commit: str) -> Path:
    name = f"{content_id(request)}-{commit or 'files'}"
    return cache_root() / "corpora" / name


def _commit_of_set(location: Location, request: dict[str, Any]) -> str:
    """Add the set of the hub to a request, and return the commit that it is read at.

    Raises:
        OutOfReach: the hub does not answer, and no such text is stored.
    """
    keys = ("repository", "revision", "config", "split", "labels")
    request["set"] = {key: getattr(location, key) for key in keys}
    newest = hub_commit(location.repository, location.revision or None)
    commit = newest or _newest(request)
    if not commit:
        raise out_of_reach(location.data_set)
    return commit


def _newest(request: dict[str, Any]) -> str:
    """The commit of the text that was stored last for a request, "" where there is none."""
    found = []
    corpora = _folder(request, "*").parent
    for file in corpora.glob(f"{content_id(request)}-*/{_ABOUT}"):
        found.append(file.parent)
    if found:
        last = max(found, key=lambda folder: folder.stat().st_mtime)
        return last.name.partition("-")[2]
    return ""


def _load_or_store(
    request: dict[str, Any], commit: str, write: Callable[[Any], dict[str, Any]]
) -> tuple[pa.Table, dict[str, Any]]:
    """What `write` writes, or wrote for the same request and commit before.

    Raises:
        InputError: no space left, or what `write` raises.
    """
    import pyarrow as pa

    def make(part: Path) -> None:
        with pa.OSFile(str(part / _ARROW), "wb") as sink:
            facts = write(sink)
        about = json.dumps({"request": request, **facts})
        (part / _ABOUT).write_text(about, encoding="utf-8")

    folder = _folder(request, commit)
    make_once(
        folder,
        "the texts of a corpus",
        make,
        is_sound=lambda folder: _open_stored(folder) is not None,
    )
    found = _open_stored(folder)
    assert found is not None
    return found


def _open_stored(folder: Path) -> tuple[pa.Table, dict[str, Any]] | None:
    """The table in a folder; None where there is none, or it is damaged."""
    import pyarrow as pa

    try:
        return pa.ipc.open_stream(pa.memory_map(str(folder / _ARROW))).read_all(), read_json(
            folder / _ABOUT
        )
    except (OSError, ValueError, InputError):
        return None


def _long_enough(
    items: Iterator[Texts],
    min_tokens: int,
    tokenizer: Tokenizer,
    counts: Counter[str],
) -> Iterator[Texts]:
    """The items whose first text has so many tokens; counts["left_out"] is the number of the
    others.
    """
    while chunk := list(islice(items, _EXAMINED)):
        encoded = tokenizer.encode_batch_fast(
            [texts[0] for texts in chunk], add_special_tokens=False
        )
        for texts, encoding in zip(chunk, encoded, strict=True):
            if len(encoding) >= min_tokens:
                yield texts
            else:
                counts["left_out"] += 1


@cached_by_model
def _tokenizer(model: str) -> Tokenizer:
    """The tokenizer of a model of the hub, or an embedded one, without truncation.

    Raises:
        InputError: no such model, or no readable tokenizer.json in it.
    """
    from tokenizers import Tokenizer

    folder = Path(resolve_model(model))
    if folder.is_dir():
        file = folder / "tokenizer.json"
    else:
        file = hub_file(model, "tokenizer.json", kind="model")
    try:
        tokenizer: Tokenizer = Tokenizer.from_file(str(file))
    except Exception as error:  # the library raises bare Exceptions
        raise InputError(f"is no readable tokenizer.json ({error})", file=file) from None
    tokenizer.no_truncation()
    tokenizer.no_padding()  # many files declare a length; padding is no token of a text
    return tokenizer
