"""The texts that the columns and the selection of a location give, as an Arrow table with a hash:
made in memory, or stored in the cache and memory-mapped from there.
"""

from __future__ import annotations

import hashlib
import json
from array import array
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import accumulate, chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from typing_extensions import TypeVar

from harness.config import nearest
from harness.errors import InputError
from harness.files.hashing import content_id, sha256_of
from harness.files.reading import read_json, require_ordinary
from harness.sources.corpus.catalogue import Location
from harness.sources.corpus.rows import Rows, file_rows, hub_rows, text_format, values_of
from harness.sources.embedded import cached_by_model, resolve_model
from harness.sources.remote.cache_folder import cache_root, make_once
from harness.sources.remote.hub import hub_commit, hub_file, out_of_reach

if TYPE_CHECKING:
    import pyarrow as pa
    from tokenizers import Tokenizer

Kind = Literal["sentences", "pairs", "documents"]
ROLES = {
    "sentences": ("text",),
    "documents": ("text",),
    "pairs": ("anchor", "positive", "negative", "label"),
}
_NEEDED = {
    "sentences": 1,
    "documents": 1,
    "pairs": 2,
}  # of these roles, the first must not be empty
# 1: TSV without quotes, and padding counted as tokens; 2: rows of TSV between two quotes as one;
# stored texts are read again
_READER = 3
_SMALL = 16 * 2**20  # bytes of files that are read into memory without a copy in the cache
AT_ONCE = 1000  # items of every Arrow batch but the last
_EXAMINED = 256  # items that are tokenised together
Texts = Sequence[
    str
]  # of one item: a text, or anchor, positive, negative ("" for none) and label where it is read


@dataclass(frozen=True)
class Columns:
    """The columns of an item in the order of their roles; the rows must have those in `required`.

    `each`: every column holds an item of its own (sentences in two columns).
    """

    names: tuple[str, ...]
    required: tuple[str, ...]
    each: bool = False


def find_columns(
    uri: str, kind: Kind, location: Location, given: Mapping[str, str] | None
) -> Columns:
    roles = ROLES[kind]
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
        return Columns(names, names, each=len(names) > 1)
    # A label is read only where it is named: many files have a column of that name with another
    # meaning.
    read = [role for role in roles if role != "label" or "label" in usual]
    column = {}
    needed = []
    for i, role in enumerate(read):
        column[role] = usual.get(role) or role
        if i < _NEEDED[kind] or role in named:
            needed.append(column[role])
    return Columns(tuple(column.values()), tuple(needed))


def read_texts(
    location: Location,
    columns: Columns,
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
        return table_in_memory(write)
    request["files"] = [
        [ending, sha256_of(file)] for file, ending in zip(files, formats, strict=True)
    ]
    table, facts = _load_or_store(request, "", write)
    return table, facts | {"revision": commit}


def _write_selected(
    sink: Any,
    location: Location,
    commit: str,
    columns: Columns,
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
    items = with_text(items, kind, counts)
    if location.min_tokens:
        items = _long_enough(items, location.min_tokens, _tokenizer(location.tokenizer), counts)
    sha256 = write_texts(sink, islice(items, limit), width)
    return {
        "sha256": sha256,
        "revision": commit,
        "left_out": counts["left_out"],
        "empty": counts["empty"],
    }


def write_texts(sink: Any, items: Iterable[Texts], width: int) -> str:
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
            arrays = [_string_array(column) for column in zip(*encoded, strict=True)]
            writer.write_batch(pa.record_batch(arrays, schema=schema))
    return digest.hexdigest()


def _string_array(texts: Sequence[bytes]) -> pa.StringArray:
    """Return texts in UTF-8 as a column; `pa.array` would import pandas, which a plan does not need."""
    import pyarrow as pa

    ends = array("i", accumulate(map(len, texts), initial=0))
    content = b"".join(texts)
    return pa.StringArray.from_buffers(len(texts), pa.py_buffer(ends), pa.py_buffer(content))


T = TypeVar("T")


def table_in_memory(write: Callable[[Any], T]) -> tuple[pa.Table, T]:
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


def with_text(items: Iterable[Texts], kind: Kind, counts: Counter[str]) -> Iterator[Texts]:
    """Yield the items whose needed texts are not empty; counts["empty"] is the number of others."""
    for texts in items:
        if all(texts[: _NEEDED[kind]]):
            yield texts
        else:
            counts["empty"] += 1
