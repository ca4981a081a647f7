"""Rows of text files, streamed: plain lines, CSV, TSV and JSON lines, each also gzipped; errors name file and line."""

from __future__ import annotations

import csv
import gzip
import io
import json
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import IO, Any

from harness.errors import InputError
from harness.files.reading import require_ordinary

FORMATS = (".txt", ".csv", ".tsv", ".jsonl")
LONGEST = 16 * 2**20  # bytes of a line, or of one value of a table: more is no text but a fault or a trap
# Text packs ten times smaller, very monotonous text thirty times; a bomb a thousand times.
MOST_UNPACKED = 40  # times the packed bytes that were read for it,
LEAST_UNPACKED = 64 * 2**20  # or so many bytes where that is more
_STEP = 2**20  # bytes that are unpacked at a time
_BOM = b"\xef\xbb\xbf"
_UTF16 = (b"\xff\xfe", b"\xfe\xff")  # how such a file begins
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


class _Unpacking(io.RawIOBase):
    """The bytes of a gzip file. A bomb ends with its first block, before anybody has counted its empty lines."""

    def __init__(self, path: Path, packed: IO[bytes]) -> None:
        super().__init__()
        self._path, self._packed = path, packed
        self._unpacked = gzip.GzipFile(fileobj=packed, mode="rb")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        """Fill a buffer, or as much of it as there are bytes.

        Raises:
            InputError: the bytes so far are more than MOST_UNPACKED times those that they were packed in.
        """
        view, count = memoryview(buffer), 0
        while read := self._unpacked.readinto(view[count : count + _STEP]):
            count += read
        if self._unpacked.tell() > max(LEAST_UNPACKED, MOST_UNPACKED * self._packed.tell()):
            raise InputError(
                f"{self._path}: unpacks to more than {MOST_UNPACKED} times its size, which text does not; "
                "if it is right, unpack it and name the unpacked file"
            )
        return count


@contextmanager
def opened(path: Path, zipped: bool) -> Iterator[IO[bytes]]:
    """The file's (unpacked) bytes.

    Raises:
        InputError: missing, not readable, no ordinary file, or a gzip file that is damaged or a bomb.
    """
    require_ordinary(path)
    try:
        if zipped:
            with path.open("rb") as packed, io.BufferedReader(_Unpacking(path, packed), LEAST_UNPACKED + 1) as unpacked:
                yield unpacked
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
                yield number, (without_end(path, number, line), *(None for _ in optional))
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
    quotes = _Quotes(lines)
    # strict: a quote that is never closed would otherwise swallow the rest of the file into one value
    if tabs:
        reader = csv.reader((without_end(path, n, line) for n, line in lines), delimiter="\t", quoting=csv.QUOTE_NONE)
    else:
        reader = csv.reader(quotes, strict=True)
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
            quotes.opened_at = 0
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
            f"{path}, line {quotes.opened_at or reader.line_num}: not readable as {'TSV' if tabs else 'CSV'} ({error}"
            + (f" in line {reader.line_num}; the double quote is opened here" if quotes.opened_at else "")
            + ")"
        ) from None
    finally:
        csv.field_size_limit(limit)


class _Quotes:
    """The lines of a CSV file, and where a double quote was opened that is not yet closed (0: none is)."""

    def __init__(self, lines: Iterator[tuple[int, str]]) -> None:
        self.opened_at = 0
        self._lines = lines

    def __iter__(self) -> Iterator[str]:
        for number, line in self._lines:
            if line.count('"') % 2:  # doubled quotes stand for a quote in the text and change nothing
                self.opened_at = 0 if self.opened_at else number
            yield line


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
