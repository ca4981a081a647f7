"""Rows of text files, streamed: plain lines, CSV, TSV and JSON lines, each also gzipped; errors name file and line."""

from __future__ import annotations

import csv
import gzip
import json
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import IO, cast

from harness.errors import InputError
from harness.files.reading import require_ordinary

FORMATS = (".txt", ".csv", ".tsv", ".jsonl")
LONGEST = 16 * 2**20  # bytes of a line, or of one value of a table: more is no text but a fault or a trap
_BOM = b"\xef\xbb\xbf"
NumberedRow = tuple[int, tuple[str | None, ...]]  # line number, one value for each column asked for


def text_format(path: Path) -> tuple[str, bool]:
    """The format of a file by its name (".txt", ".csv", ".tsv" or ".jsonl"), and whether it is gzipped.

    Raises:
        InputError: another ending.
    """
    name = path.name.lower()
    zipped = name.endswith(".gz")
    ending = Path(name.removesuffix(".gz")).suffix
    if ending not in FORMATS:
        raise InputError(
            f"{path}: unknown kind of file; expected a name ending in {', '.join(FORMATS)}, or .gz after it"
        )
    return ending, zipped


@contextmanager
def opened(path: Path, zipped: bool) -> Iterator[IO[bytes]]:
    """The file's (unpacked) bytes.

    Raises:
        InputError: missing, not readable, no ordinary file, or a damaged gzip file.
    """
    require_ordinary(path)
    try:
        if zipped:
            with gzip.open(path, "rb") as unpacked:
                yield cast(IO[bytes], unpacked)
        else:
            with path.open("rb") as plain:
                yield plain
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise InputError(f"{path}: damaged or truncated gzip file ({error})") from None
    except (FileNotFoundError, IsADirectoryError, PermissionError) as error:
        raise InputError(f"{path}: cannot be read ({error.strerror})") from None


def byte_lines(path: Path, stream: IO[bytes]) -> Iterator[bytes]:
    """The lines as they stand, split at newlines only and without a byte-order mark at the start.

    Raises:
        InputError: a line longer than LONGEST, such as that of a gzip bomb; it is not read to its end.
    """
    for number, line in enumerate(iter(partial(stream.readline, LONGEST + 1), b""), 1):
        if len(line) > LONGEST:
            raise InputError(
                f"{path}, line {number}: longer than {LONGEST // 2**20} MiB; put one text on a line, and shorter ones"
            )
        yield line.removeprefix(_BOM) if number == 1 else line


def decoded(path: Path, number: int, line: bytes) -> str:
    """The text of one line.

    Raises:
        InputError: not UTF-8; the message names file and line.
    """
    try:
        return line.decode("utf-8")
    except UnicodeDecodeError as error:
        raise InputError(
            f"{path}, line {number}: not UTF-8 (byte 0x{line[error.start]:02x} at position {error.start + 1}); "
            "save the file as UTF-8"
        ) from None


def rows(path: Path, required: Sequence[str], optional: Sequence[str] = ()) -> Iterator[NumberedRow]:
    """Line number and the values of the columns `required` then `optional` (None: no such column, or null).

    A .txt file has one column, "text". CSV is read with double quotes as quoting character; TSV has no quoting (as in
    GLUE's and SemEval's files), so a tab or a newline cannot be inside of a value.

    Raises:
        InputError: not UTF-8, a column that is missing, a row of the wrong length, JSON that is no object of texts.
    """
    ending, zipped = text_format(path)
    with opened(path, zipped) as stream:
        lines = ((n, decoded(path, n, line)) for n, line in enumerate(byte_lines(path, stream), 1))
        if ending == ".txt":
            missing = [column for column in required if column != "text"]
            if missing:
                raise InputError(f'{path}: no column "{missing[0]}": a .txt file has only "text", one a line')
            for number, line in lines:
                yield number, (line, *(None for _ in optional))
        elif ending == ".jsonl":
            yield from _json_rows(path, lines, required, optional)
        else:
            yield from _table_rows(path, lines, required, optional, tabs=ending == ".tsv")


def missing_column(path: Path, column: str, has: Sequence[str]) -> InputError:
    """The error for a column that a file does not have; it lists those that it has."""
    listed = ", ".join(has) if has else "none"
    return InputError(f'{path}: no column "{column}"; its columns are: {listed}; name the right one with `columns`')


def _table_rows(
    path: Path, lines: Iterator[tuple[int, str]], required: Sequence[str], optional: Sequence[str], *, tabs: bool
) -> Iterator[NumberedRow]:
    texts = (line for _, line in lines)
    # strict: a quote that is never closed would otherwise swallow the rest of the file into one value
    reader = csv.reader(texts, delimiter="\t", quoting=csv.QUOTE_NONE) if tabs else csv.reader(texts, strict=True)
    limit = csv.field_size_limit(LONGEST)  # documents exceed the default of 131,072 characters
    try:
        first = next(reader, None)
        if first is None:
            return
        header = [name.strip() for name in first]
        for column in required:
            if column not in header:
                raise missing_column(path, column, header)
        for column in {*required, *optional} & set(header):
            if header.count(column) > 1:
                raise InputError(f'{path}: the column "{column}" is there {header.count(column)} times')
        wanted = [header.index(column) if column in header else -1 for column in (*required, *optional)]
        for row in reader:
            if not row:
                continue
            if len(row) != len(header):
                raise InputError(
                    f"{path}, line {reader.line_num}: {len(row)} values, but the header has {len(header)} columns"
                    + ("" if tabs else '; put values that hold a comma or a newline in "double quotes"')
                )
            yield reader.line_num, tuple(row[place] if place >= 0 else None for place in wanted)
    except csv.Error as error:
        raise InputError(
            f"{path}, line {reader.line_num}: not readable as {'TSV' if tabs else 'CSV'} ({error})"
        ) from None
    finally:
        csv.field_size_limit(limit)


def _json_rows(
    path: Path, lines: Iterator[tuple[int, str]], required: Sequence[str], optional: Sequence[str]
) -> Iterator[NumberedRow]:
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
        values = []
        for column in (*required, *optional):
            value = row.get(column)
            if column in required and column not in row:
                raise missing_column(Path(where), column, list(row))
            if value is not None and not isinstance(value, str):
                raise InputError(f'{where}: column "{column}" is not a text but {json.dumps(value)[:40]}')
            try:
                (value or "").encode()
            except UnicodeEncodeError:
                raise InputError(
                    f'{where}: column "{column}" holds half of a surrogate pair, which is no character'
                ) from None
            values.append(value)
        yield number, tuple(values)
