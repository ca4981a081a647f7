"""Rows of text: lines, CSV, TSV, JSON lines (also gzipped), Parquet and data sets of the hub, one
after another.

The readers of `datasets` guess types: a label
"02" becomes 2, a text "2020-01-01" a date, and an unquoted comma in the only column drops the text
before it.
"""

from __future__ import annotations

import glob
import gzip
import json
import logging
import time
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, NamedTuple, cast

from harness.errors import InputError
from harness.files.printable import first_line, tell_error
from harness.files.reading import require_ordinary
from harness.files.tables import name_remedy, read_objects, read_separated_rows
from harness.sources.corpus.catalogue import Location
from harness.sources.remote.hub import dataset_errors, quiet_datasets

if TYPE_CHECKING:
    from datasets import IterableDataset

_LOG = logging.getLogger(__name__)
FORMATS = (".txt", ".csv", ".tsv", ".jsonl", ".parquet")
# bytes of a line, or of one value of a table; more is no text but a fault or an attack
LONGEST = 16 * 2**20
_AT_ONCE = 1000  # rows of a table that are read at once
_SILENT_SECONDS = 20.0  # between two messages about a long download
_BOM = b"\xef\xbb\xbf"
_UTF16 = (b"\xff\xfe", b"\xfe\xff")  # how such a file begins


class Place(NamedTuple):
    """Where a row is, for messages, and where the names of its columns are."""

    row: str
    names: str


Rows = Iterator[tuple[Place, Mapping[str, Any]]]  # column -> value


def text_format(path: Path) -> tuple[str, bool]:
    """The format of a file by the end of its name (one of `FORMATS`), and whether it is gzipped.

    Raises:
        InputError: another ending.
    """
    name = path.name.lower()
    zipped = name.endswith(".gz")
    ending = Path(name.removesuffix(".gz")).suffix
    if ending not in FORMATS or (zipped and ending == ".parquet"):
        raise InputError(
            f"unknown kind of file; expected a name ending in {', '.join(FORMATS)}, or .gz "
            "after a text format",
            file=path,
            remedy=name_remedy(path),
        )
    return ending, zipped


def file_rows(path: Path) -> Rows:
    """The rows of a file.

    A .txt file has one column, "text". CSV and TSV are read as all tables are
    (`harness.files.tables`).

    Raises:
        InputError: not UTF-8, or a row of the wrong length.
    """
    ending, zipped = text_format(path)
    if ending == ".parquet":
        yield from _parquet_rows(path)
        return

    def read_lines() -> Iterator[str]:
        with open_stream(path, zipped) as stream:
            for number, line in enumerate(byte_lines(path, stream), 1):
                yield decode_line(path, number, line)

    if ending == ".jsonl":
        yield from _json_rows(path, enumerate(read_lines(), 1))
    elif ending == ".txt":
        for number, line in enumerate(read_lines(), 1):
            text = without_end(path, number, line)
            yield Place(str(path), str(path)), {"text": text}
    else:
        yield from _read_separated_rows(path, read_lines)


def hub_rows(source: Location, commit: str) -> Rows:
    """The rows of a data set of the hub at a commit; it is streamed, and whole-number labels are
    given by name.

    Raises:
        InputError: no such config or split.
        RunError: the connection broke.
    """
    from datasets import load_dataset

    with dataset_errors(source.data_set, source.repository, source.revision or None):
        for split in source.split.split("+"):
            data = load_dataset(
                source.repository,
                source.config or None,
                split=split,
                revision=commit,
                streaming=True,
            )
            yield from _set_rows(source.data_set, data, source.labels)


def values_of(rows: Rows, columns: Sequence[str], required: Sequence[str]) -> Iterator[list[str]]:
    """The values of `columns` in each row without white space around them, "" where there is none.

    Raises:
        InputError: a column of `required` is missing, or a value is no text.
    """
    for number, (place, row) in enumerate(rows):
        if not number:
            for column in columns:
                if column not in required:
                    warn_of_unread(place.names, column, list(row))
        values = [row.get(column) for column in columns]
        if not all(type(value) is str for value in values):
            _check_row(place, row, columns, required)
        yield [(value or "").strip() for value in values]


def warn_of_unread(where: str, column: str, names: Sequence[str]) -> None:
    """Log a column that may be meant by one that is missing, as "hard_negative" by "negative"."""
    if column in names:
        return
    for name in names:
        if column.casefold() in name.casefold():
            _LOG.warning(
                '%s: column "%s" is not read; columns = { %s = "%s" } names it',
                where,
                name,
                column,
                name,
            )
            return


def _check_row(
    place: Place,
    row: Mapping[str, Any],
    columns: Sequence[str],
    required: Sequence[str],
) -> None:
    """Raise the error for a row that lacks a column, or has a value that is no text."""
    for column in columns:
        value = row.get(column)
        if column in required and column not in row:
            raise InputError(
                f'no column "{column}"; its columns are: {", ".join(row) or "none"}',
                file=place.names,
                key=column,
                remedy=f'name the right one, as {{ uri = "...", columns = {{ {column} = "..." }} }}'
                f" (of an hf:// address: ?columns={column}:NAME)",
            )
        if value is not None and not isinstance(value, str):
            raise InputError(
                f'column "{column}" holds no text but {type(value).__name__} {value!r:.40}',
                file=place.row,
                key=column,
            )


@contextmanager
def open_stream(path: Path, zipped: bool) -> Iterator[IO[bytes]]:
    """The bytes of a file, unpacked where it is gzipped.

    Raises:
        InputError: missing, not readable, no ordinary file, or a damaged gzip file.
    """
    require_ordinary(path)
    try:
        with cast(IO[bytes], gzip.open(path) if zipped else path.open("rb")) as stream:
            yield stream
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise InputError(f"damaged or truncated gzip file ({error})", file=path) from None
    except (FileNotFoundError, IsADirectoryError, PermissionError) as error:
        raise InputError(f"cannot be read ({error.strerror})", file=path) from None


def byte_lines(path: Path, stream: IO[bytes]) -> Iterator[bytes]:
    """The lines of a file with their ends, split at newlines only, without a byte-order mark at the
    start.

    Raises:
        InputError: a line longer than LONGEST, which is not read to its end.
    """
    lines = iter(partial(stream.readline, LONGEST + 1), b"")
    for number, line in enumerate(lines, 1):
        if len(line) > LONGEST:
            raise InputError(
                f"longer than {LONGEST // 2**20} MiB",
                file=path,
                line=number,
                remedy="put one text on a line, and shorter ones",
            )
        yield line.removeprefix(_BOM) if number == 1 else line


def decode_line(path: Path, number: int, line: bytes, encoding: str = "utf-8") -> str:
    """The text of one line, in UTF-8 or an encoding that has a character for every byte.

    Raises:
        InputError: not UTF-8, UTF-16, or a NUL byte; the message names file and line.
    """
    if b"\0" in line or (number == 1 and line.startswith(_UTF16)):
        raise InputError(
            "UTF-16 or not a text (NUL bytes)",
            file=path,
            line=number,
            remedy="save the file as UTF-8",
        )
    try:
        return line.decode(encoding)
    except UnicodeDecodeError as error:
        raise InputError(
            f"not {encoding.upper()} (byte 0x{line[error.start]:02x} at position "
            f"{error.start + 1})",
            file=path,
            line=number,
            remedy="save the file as UTF-8",
        ) from None


def without_end(path: Path, number: int, line: str) -> str:
    """One line without its LF or CRLF.

    Raises:
        InputError: a carriage return within the line: other programs would see two lines there.
    """
    text = line.rstrip("\r\n")
    if "\r" in text:
        raise InputError(
            f"a carriage return at position {text.index(chr(13)) + 1}, not at the line's end",
            file=path,
            line=number,
            remedy="end lines by LF or CRLF",
        )
    return text


def _read_separated_rows(path: Path, read_lines: Callable[[], Iterable[str]]) -> Rows:
    rows = read_separated_rows(path, read_lines, longest=LONGEST)
    first, names = next(rows)
    header = []
    for number, name in enumerate(names, 1):
        is_repeated = names.count(name) > 1
        header.append(f"{name} ({number})" if is_repeated else name)
    for line, cells in rows:
        row = dict(zip(header, cells, strict=True))
        yield Place(f"{path}, line {line}", f"{path}, line {first}"), row


def _json_rows(path: Path, lines: Iterable[tuple[int, str]]) -> Rows:
    expected = 'a JSON object such as {"text": "..."}'
    for number, line, row in read_objects(path, lines, expected):
        where = f"{path}, line {number}"
        has_escapes = "\\u" in line
        if has_escapes and not is_sound(json.dumps(row, ensure_ascii=False)):
            raise InputError("holds half of a surrogate pair, which is no character", file=where)
        yield Place(where, where), row


def is_sound(text: str) -> bool:
    """Whether a text can be written as UTF-8; one with half of a surrogate pair cannot."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _parquet_rows(path: Path) -> Rows:
    from datasets import load_dataset

    require_ordinary(path)
    try:
        if not _count_rows(path):  # which datasets cannot read
            return
        with quiet_datasets(offline=True):
            file = glob.escape(str(path))  # datasets reads a[1].parquet as a pattern, of a1.parquet
            data = load_dataset("parquet", data_files=file, split="train", streaming=True)
            yield from _set_rows(str(path), data)
    except (OSError, ValueError) as error:  # pyarrow's errors are ValueErrors
        raise InputError(f"not readable as Parquet ({first_line(error)})", file=path) from None


def _count_rows(path: Path) -> int:
    from pyarrow import parquet

    with parquet.ParquetFile(path) as file:
        return int(file.metadata.num_rows)


def _set_rows(name: str, data: IterableDataset, labels: Sequence[str] = ()) -> Rows:
    begun = last = time.monotonic()
    read = 0
    for batch in data.iter(batch_size=_AT_ONCE):
        for column, values in batch.items():
            feature = (data.features or {}).get(column)
            names = getattr(feature, "names", None) or labels
            if names and all(
                value is None or type(value) is int for value in values
            ):  # -1: a row without a label
                batch[column] = [
                    names[v] if v is not None and 0 <= v < len(names) else None for v in values
                ]
        rows = list(zip(*batch.values(), strict=True))
        for row in rows:
            yield Place(name, name), dict(zip(batch, row, strict=True))
        read += len(rows)
        if time.monotonic() - last > _SILENT_SECONDS:
            last = time.monotonic()
            seconds = last - begun
            tell_error(f"{name}: {read:,} rows read in {seconds:.0f} s")
