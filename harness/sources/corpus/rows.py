"""Rows of text: lines, CSV, TSV, JSON lines (also gzipped), Parquet and data sets of the hub, one after another.

CSV and JSON lines are read by the standard library. The readers of `datasets` guess types: a label "02" becomes 2, a
text "2020-01-01" a date, and an unquoted comma in the only column drops the text before it.
"""

from __future__ import annotations

import csv
import gzip
import json
import time
import zlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, cast

from harness.errors import InputError
from harness.files.printable import tell_error
from harness.files.reading import require_ordinary
from harness.sources.corpus.catalogue import HubSet
from harness.sources.remote.hub import dataset_errors, first_line

if TYPE_CHECKING:
    from datasets import IterableDataset

FORMATS = (".txt", ".csv", ".tsv", ".jsonl", ".parquet")
LONGEST = 16 * 2**20  # bytes of a line, or of one value of a table; more is no text but a fault or an attack
_AT_ONCE = 1000  # rows of a table that are read at once
_SILENT_SECONDS = 20.0  # between two messages about a long download
_BOM = b"\xef\xbb\xbf"
_UTF16 = (b"\xff\xfe", b"\xfe\xff")  # how such a file begins
Row = tuple[str | None, ...]  # one value for each requested column; None: no such column, or null


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
            f"{path}: unknown kind of file; expected a name ending in {', '.join(FORMATS)}, or .gz after a text format"
        )
    return ending, zipped


def file_rows(path: Path, required: Sequence[str], optional: Sequence[str] = ()) -> Iterator[Row]:
    """The values of the columns `required`, then `optional`, of each row of a file.

    A .txt file has one column, "text". CSV uses double quotes for quoting. TSV has no quoting, as in GLUE's files, so
    that a value cannot hold a tab or a newline.

    Raises:
        InputError: not UTF-8, a missing column, a row of the wrong length, or a value that is not a text.
    """
    ending, zipped = text_format(path)
    if ending == ".parquet":
        yield from _parquet_rows(path, required, optional)
        return
    with opened(path, zipped) as stream:
        lines = ((number, decoded(path, number, line)) for number, line in enumerate(byte_lines(path, stream), 1))
        if ending == ".jsonl":
            yield from _json_rows(path, lines, required, optional)
        elif ending == ".txt":
            if missing := [column for column in required if column != "text"]:
                raise InputError(f'{path}: no column "{missing[0]}": a .txt file has only "text", one a line')
            nothing = (None,) * len(optional)
            yield from ((without_end(path, number, line), *nothing) for number, line in lines)
        else:
            yield from _csv_rows(path, lines, required, optional, tabs=ending == ".tsv")


def hub_rows(source: HubSet, commit: str, required: Sequence[str], optional: Sequence[str] = ()) -> Iterator[Row]:
    """The same of a data set of the hub at a commit; it is streamed, and whole-number labels are given by name.

    Raises:
        InputError: no such config, split or column, or a column that holds no text.
        RunError: the connection broke.
    """
    from datasets import load_dataset

    with dataset_errors(str(source), source.repository, source.revision or None):
        for split in source.split.split("+"):
            data = load_dataset(source.repository, source.config or None, split=split, revision=commit, streaming=True)
            yield from _set_rows(str(source), data, required, optional, source.labels)


@contextmanager
def opened(path: Path, zipped: bool) -> Iterator[IO[bytes]]:
    """The bytes of a file, unpacked where it is gzipped.

    Raises:
        InputError: missing, not readable, no ordinary file, or a damaged gzip file.
    """
    require_ordinary(path)
    try:
        with cast(IO[bytes], gzip.open(path) if zipped else path.open("rb")) as stream:
            yield stream
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise InputError(f"{path}: damaged or truncated gzip file ({error})") from None
    except (FileNotFoundError, IsADirectoryError, PermissionError) as error:
        raise InputError(f"{path}: cannot be read ({error.strerror})") from None


def byte_lines(path: Path, stream: IO[bytes]) -> Iterator[bytes]:
    """The lines of a file with their ends, split at newlines only, without a byte-order mark at the start.

    Raises:
        InputError: a line longer than LONGEST, which is not read to its end.
    """
    for number, line in enumerate(iter(partial(stream.readline, LONGEST + 1), b""), 1):
        if len(line) > LONGEST:
            raise InputError(
                f"{path}, line {number}: longer than {LONGEST // 2**20} MiB; put one text on a line, and shorter ones"
            )
        yield line.removeprefix(_BOM) if number == 1 else line


def decoded(path: Path, number: int, line: bytes, encoding: str = "utf-8") -> str:
    """The text of one line, in UTF-8 or an encoding that has a character for every byte.

    Raises:
        InputError: not UTF-8, UTF-16, or a NUL byte; the message names file and line.
    """
    if b"\0" in line or (number == 1 and line.startswith(_UTF16)):
        raise InputError(f"{path}, line {number}: UTF-16 or not a text (NUL bytes); save the file as UTF-8")
    try:
        return line.decode(encoding)
    except UnicodeDecodeError as error:
        raise InputError(
            f"{path}, line {number}: not UTF-8 (byte 0x{line[error.start]:02x} at position {error.start + 1}); "
            "save the file as UTF-8"
        ) from None


def without_end(path: Path, number: int, line: str) -> str:
    """One line without its LF or CRLF.

    Raises:
        InputError: a carriage return within the line: other programs would see two lines there.
    """
    text = line.rstrip("\r\n")
    if "\r" in text:
        raise InputError(
            f"{path}, line {number}: a carriage return at position {text.index(chr(13)) + 1}, not at the line's end; "
            "end lines by LF or CRLF"
        )
    return text


def _csv_rows(
    path: Path, lines: Iterable[tuple[int, str]], required: Sequence[str], optional: Sequence[str], *, tabs: bool
) -> Iterator[Row]:
    # strict: a quote that is never closed would otherwise swallow the rest of the file into one value
    if tabs:
        reader = csv.reader((without_end(path, n, line) for n, line in lines), delimiter="\t", quoting=csv.QUOTE_NONE)
    else:
        reader = csv.reader((line for _, line in lines), strict=True)
    limit = csv.field_size_limit(LONGEST)  # documents exceed the default of 131,072 characters
    begins = 1  # the first line of the row that is being read
    try:
        header = [name.strip() for name in next(reader, ())]
        if not header:
            return
        for column in (*required, *optional):
            if column in required and column not in header:
                raise _no_column(str(path), column, header)
            if header.count(column) > 1:
                raise InputError(f'{path}: the column "{column}" is there {header.count(column)} times')
        places = [header.index(column) if column in header else None for column in (*required, *optional)]
        begins = reader.line_num + 1
        for row in reader:
            if row and len(row) != len(header):
                raise InputError(
                    f"{path}, line {reader.line_num}: {len(row)} values, but the header has {len(header)} columns"
                    + ("" if tabs else '; put values that hold a comma or a newline in "double quotes"')
                )
            if row:
                yield tuple(row[place] if place is not None else None for place in places)
            begins = reader.line_num + 1
    except csv.Error as error:
        raise InputError(
            f"{path}, line {begins}: not readable as {'TSV' if tabs else 'CSV'} ({error} in line {reader.line_num})"
        ) from None
    finally:
        csv.field_size_limit(limit)


def _json_rows(
    path: Path, lines: Iterable[tuple[int, str]], required: Sequence[str], optional: Sequence[str]
) -> Iterator[Row]:
    for number, line in lines:
        if not line.strip():
            continue
        where = f"{path}, line {number}"
        try:
            row = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise InputError(f"{where}: not JSON ({error})") from None
        if not isinstance(row, dict):
            raise InputError(f'{where}: expected a JSON object such as {{"{required[0]}": "..."}}')
        if missing := [column for column in required if column not in row]:
            raise _no_column(where, missing[0], list(row))
        values = tuple(row.get(column) for column in (*required, *optional))
        for column, value in zip((*required, *optional), values, strict=True):
            if value is not None and not isinstance(value, str):
                raise InputError(f'{where}: column "{column}" is not a text but {json.dumps(value)[:40]}')
            if not is_sound(value or ""):
                raise InputError(f'{where}: column "{column}" holds half of a surrogate pair, which is no character')
        yield values


def is_sound(text: str) -> bool:
    """Whether a text can be written as UTF-8; one with half of a surrogate pair cannot."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _parquet_rows(path: Path, required: Sequence[str], optional: Sequence[str]) -> Iterator[Row]:
    from datasets import load_dataset

    require_ordinary(path)
    try:
        data = load_dataset("parquet", data_files=str(path), split="train", streaming=True)
        yield from _set_rows(str(path), data, required, optional)
    except (OSError, ValueError) as error:  # pyarrow's errors are ValueErrors
        raise InputError(f"{path}: not readable as Parquet ({first_line(error)})") from None


def _set_rows(
    name: str, data: IterableDataset, required: Sequence[str], optional: Sequence[str], labels: Sequence[str] = ()
) -> Iterator[Row]:
    begun = last = time.monotonic()
    read = 0
    for batch in data.iter(batch_size=_AT_ONCE):
        for column in required:
            if column not in batch:
                raise _no_column(name, column, list(batch))
        size = len(next(iter(batch.values())))
        columns = []
        for column in (*required, *optional):
            names = getattr((data.features or {}).get(column), "names", None) or labels
            columns.append([_as_text(name, column, value, names) for value in batch.get(column, [None] * size)])
        yield from zip(*columns, strict=True)
        read += size
        if time.monotonic() - last > _SILENT_SECONDS:
            last = time.monotonic()
            tell_error(f"{name}: {read:,} rows read in {last - begun:.0f} s")


def _as_text(name: str, column: str, value: Any, labels: Sequence[str]) -> str | None:
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, int) and not isinstance(value, bool) and labels:
        return labels[value] if 0 <= value < len(labels) else None  # -1: a row without a label
    raise InputError(f'{name}: column "{column}" holds no text but {str(value)[:40]!r} ({type(value).__name__})')


def _no_column(where: str, column: str, has: Sequence[str]) -> InputError:
    return InputError(
        f'{where}: no column "{column}"; its columns are: {", ".join(has) or "none"}; name the right one with '
        "`columns`, or columns=ROLE:COLUMN in an hf:// address"
    )
