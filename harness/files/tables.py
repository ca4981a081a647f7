"""Read a table of a user's: the one reader of CSV, TSV, JSONL and Parquet files, and of frames.

Every cell is text, as it stands in the file, without blanks around it: nothing is guessed, so that
"02", "NA", "null" and "1e5" stay what they are. The index of the frame is the line of each row in
its file, for messages. Whoever needs numbers converts a column with `to_numbers`, and whoever needs
texts checks it with `require_texts`: JSONL and Parquet also have lists and objects.
"""

from __future__ import annotations

import csv
import gzip
import io
import math
import re
import unicodedata
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness.errors import InputError
from harness.files.printable import first_line
from harness.files.reading import parse_json, require_ordinary

if TYPE_CHECKING:
    import pandas as pd

SUFFIXES = (".csv", ".tsv", ".jsonl", ".parquet")
_WORKBOOKS = (".xlsx", ".xls", ".xlsm", ".xlsb", ".ods", ".numbers")
LARGEST = 1 << 29  # bytes of a file, unpacked: a packed one may claim to be endless
LONGEST = 1 << 24  # characters of a cell of CSV; more is no text but a quote that is never closed
MOST_ROWS = 20_000_000  # of a Parquet file, which packs equal values to nothing
_SEPARATORS = (",", ";", "\t")
_UNNAMED_INDEX = re.compile(r"__index_level_\d+__")  # of pandas, in Parquet files
_UNSEEN = dict.fromkeys(map(ord, "\u200b\u2060\ufeff\u00ad"))  # no width
_MARKS = {b"\xff\xfe": "UTF-16", b"\xfe\xff": "UTF-16"}
_NO_TEXT = (
    "\0"  # begins what `_cell` writes for a value that is no text; text has no such character
)


def is_table(path: Path) -> bool:
    """True if a file is a table by its name, in any case; text may be packed by gzip."""
    return _suffix_of(path) in SUFFIXES


def name_remedy(path: Path) -> str:
    """Return what to do with a file that is no table by its name.

    >>> name_remedy(Path("pairs.xlsx"))
    'save its sheet as CSV in UTF-8, and give that file'
    """
    if _suffix_of(path) in _WORKBOOKS:
        return "save its sheet as CSV in UTF-8, and give that file"
    return "rename the file"


def _suffix_of(path: Path) -> str:
    return Path(path.name.lower().removesuffix(".gz")).suffix


def read_table(source: Path | pd.DataFrame) -> pd.DataFrame:
    """Read a table as text.

    Args:
        source: a file of `SUFFIXES`, or such a file packed as `.gz`, or a frame of pandas.

    Returns:
        A frame of str. Its index, "line", is the line in the file; of frames and Parquet files the
        number of the row, from 1.

    Raises:
        InputError: a file that cannot be read, two columns of one name, or a line with more or
            fewer cells than the header; with file and line.
    """
    import pandas as pd

    if isinstance(source, pd.DataFrame):
        return _clean_frame(source, "frame")
    require_ordinary(source)
    suffix = _suffix_of(source)
    if suffix not in SUFFIXES:
        message = f"is no table by its name; expected {', '.join(SUFFIXES)}"
        raise InputError(message, file=source, remedy=name_remedy(source))
    if suffix == ".parquet":
        return _clean_frame(_read_parquet(source), str(source))
    text = _read_text(source)
    if suffix == ".jsonl":
        rows = _read_jsonl(source, text)
    else:
        rows = _read_csv(source, text)
    return _frame_of(rows, str(source))


def _read_parquet(path: Path) -> pd.DataFrame:
    """Return the columns of a Parquet file, a named index of pandas among them."""
    import pyarrow
    from pyarrow import parquet

    try:
        with parquet.ParquetFile(path) as file:
            rows = file.metadata.num_rows
            if rows > MOST_ROWS:
                message = f"has {rows:,} rows; expected at most {MOST_ROWS:,}"
                raise InputError(message, file=path, remedy="split it")
            frame: pd.DataFrame = file.read().to_pandas(ignore_metadata=True)
    except (OSError, ValueError, OverflowError, pyarrow.ArrowException) as error:
        message = f"cannot be read as Parquet ({first_line(error)})"
        raise InputError(message, file=path) from None
    unnamed = []
    for name in frame.columns:
        if _UNNAMED_INDEX.fullmatch(str(name)):
            unnamed.append(name)
    return frame.drop(columns=unnamed)


def require_texts(frame: pd.DataFrame, columns: Iterable[str], where: str) -> None:
    """Refuse columns with a list, an object or bytes in place of a text.

    Raises:
        InputError: with the line of the first.
    """
    for column in columns:
        for line, text in zip(frame.index, frame[column], strict=True):
            if _NO_TEXT in text:
                message = f"expected a text, not {_show(text)}"
                raise InputError(message, file=where, line=line, key=f'column "{column}"')


def _show(cell: str) -> str:
    """Return a cell as messages quote it."""
    if cell.startswith(_NO_TEXT):
        return cell.removeprefix(_NO_TEXT)
    return f"{cell!r:.60}"


def to_numbers(frame: pd.DataFrame, column: str, where: str) -> pd.Series[float]:
    """Return a column as finite numbers.

    Raises:
        InputError: a cell is no number, with its line.
    """
    import pandas as pd

    numbers = []
    for line, text in zip(frame.index, frame[column], strict=True):
        number = _parse_number(text)
        if number is None:
            message = f"expected a number, not {_show(text)}"
            raise InputError(
                message,
                file=where,
                line=line,
                key=f'column "{column}"',
                remedy=_mend_number(text),
            )
        numbers.append(number)
    return pd.Series(numbers, index=frame.index, dtype=float)


def _parse_number(text: str) -> float | None:
    try:
        number = float(text)
    except ValueError:
        return None
    # Python reads 1_000, and digits of every script.
    is_plain = text.isascii() and "_" not in text
    if not is_plain or not math.isfinite(number):
        return None
    return number


_THOUSANDS = re.compile(r"[+-]?[1-9]\d{0,2}(,\d{3})+(\.\d*)?", re.ASCII)


def _mend_number(text: str) -> str | None:
    """Return how a text becomes the number that it is meant to be; None where that is not known."""
    if not re.search(r"\d", text):  # "", "-", "n/a", "missing"
        return "remove the line if there is none"
    if _THOUSANDS.fullmatch(text):  # or a decimal comma: only its author knows
        return "leave out commas between thousands; write a decimal comma as a point"
    with_point = text.replace(",", ".")
    if text.count(",") == 1 and _parse_number(with_point) is not None:
        return "write a point in place of the comma"
    without_end = text[:-1].strip()
    if text.endswith("%") and _parse_number(without_end) is not None:
        return "leave out the sign %"
    without_sign = text[1:]
    if text[0] in "\u2212\u2013" and _parse_number(without_sign) is not None:
        return "write the minus sign as -"
    return None


def clean(text: object) -> str:
    """Return a cell as text: composed characters, no byte-order mark, no blanks around it."""
    content = str(text)
    if content.isascii():  # nothing to compose, and no mark
        return content.strip()
    composed = unicodedata.normalize("NFC", content).strip()
    return composed.strip("\ufeff\u200b").strip()


def clean_name(text: object) -> str:
    """Return a name without what cannot be seen: characters of no width, and blanks in a row.

    >>> clean_name(" new  model\u200b ")
    'new model'
    """
    return " ".join(clean(text).translate(_UNSEEN).split())


def _read_text(path: Path) -> str:
    """Return the text of a file; a packed one is unpacked up to `LARGEST` bytes."""
    try:
        if path.suffix.lower() == ".gz":
            with gzip.open(path) as stream:
                content = stream.read(LARGEST + 1)
        else:
            with path.open("rb") as stream:
                content = stream.read(LARGEST + 1)
    except (OSError, EOFError, zlib.error) as error:
        raise InputError(f"cannot be read ({first_line(error)})", file=path) from None
    if len(content) > LARGEST:
        raise InputError(
            f"holds more than {LARGEST >> 20} MiB of text",
            file=path,
            remedy="split it",
        )
    for mark, encoding in _MARKS.items():
        if content.startswith(mark):
            raise InputError(f"its text is {encoding}", file=path, remedy="save the file as UTF-8")
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        place = f"{path}, line {line}"
        raise InputError("not UTF-8", file=place, remedy="save the file as UTF-8") from None
    if "\0" in text:
        before = text[: text.index("\0")]
        line = before.count("\n") + 1
        place = f"{path}, line {line}"
        raise InputError("holds NUL, so is no text", file=place, remedy="save the file as UTF-8")
    return text


def _read_csv(path: Path, text: str) -> Iterator[tuple[int, dict[str, str]]]:
    """Yield line number and cells of each row that is not empty."""
    rows = read_separated_rows(path, lambda: io.StringIO(text, newline=""))
    _, header = next(rows)
    # pandas writes the numbers of rows without a name above them
    if not header[0]:
        named = header[1:]
    else:
        named = header
    _check_header(named, str(path))
    for line, cells in rows:
        texts = map(clean, cells)
        row = dict(zip(header, texts, strict=True))
        if any(row.values()):
            row.pop("", None)  # the numbers that pandas gives to rows, in a column without a name
            yield line, row


def read_separated_rows(
    path: Path,
    read_lines: Callable[[], Iterable[str]],
    *,
    longest: int = LONGEST,
) -> Iterator[tuple[int, list[str]]]:
    """Yield the names of a header, then the cells of each row, as they stand in the file.

    Commas, semicolons or tabs separate them; those that part the header into most names. Text with
    tabs is read with quotes if all of it can be, and no row is lost so; else quotes are ordinary
    characters, as in the files of GLUE.

    Args:
        path: for messages, and for its suffix: a header of one name in a .tsv file has tabs.
        read_lines: opens the text anew, and gives its lines with their ends.
        longest: characters of a cell.

    Returns:
        The first line of each row, and as many cells as the header has names.

    Raises:
        InputError: an empty file, more or fewer cells than names, or a quote that is not closed;
            with file and line.
    """
    separator, skipped = _find_separator(path, read_lines())
    table = _Separated(path, separator, skipped, longest)
    quoted = separator != "\t" or _has_quotes(table, read_lines)
    yield from table.rows(read_lines(), quoted=quoted)


@dataclass(frozen=True)
class _Separated:
    """How the rows of a text are written."""

    path: Path
    separator: str
    skipped: int  # lines before the header
    longest: int

    def rows(self, lines: Iterable[str], *, quoted: bool) -> Iterator[tuple[int, list[str]]]:
        """Yield the first line and the cells of the header and of each row."""
        reader = csv.reader(
            lines,
            delimiter=self.separator,
            skipinitialspace=quoted,
            strict=True,
            quoting=csv.QUOTE_MINIMAL if quoted else csv.QUOTE_NONE,
        )
        limit = csv.field_size_limit(self.longest)  # documents exceed the default
        count = width = 0  # names of the header, and cells of its line
        line = 1  # the first of a row, which may have line breaks in quotes
        try:
            for cells in reader:
                first = line
                line = reader.line_num + 1
                if first <= self.skipped or not cells:
                    continue
                if not count:
                    if not any(map(clean, cells)):
                        continue
                    names = _clean_header(cells)
                    count = len(names)
                    width = len(cells)
                    yield first, names
                    continue
                if count < len(cells) <= width:
                    cells = _without_empty_end(cells, count)
                if len(cells) == count:
                    yield first, cells
                elif any(cell.strip() for cell in cells):
                    message = f"has {len(cells)} cells, but the header has {count}"
                    remedy = "put text that has the separator into quotes"
                    raise InputError(message, file=self.path, line=first, remedy=remedy)
        except csv.Error as error:
            if "new-line character" in str(error):
                message = "a carriage return within the line"
                remedy = "end lines by LF or CRLF"
                raise InputError(message, file=self.path, line=line, remedy=remedy) from None
            remedy = "close each quote that is opened"
            raise InputError(
                f"not CSV ({error})",
                file=self.path,
                line=line,
                remedy=remedy,
            ) from None
        finally:
            csv.field_size_limit(limit)

    def columns(self, lines: Iterable[str]) -> int:
        """Return how many names the header has."""
        _, names = next(self.rows(lines, quoted=False))
        return len(names)

    def readable_rows(self, lines: Iterable[str], *, quoted: bool) -> tuple[int, InputError | None]:
        """Return how many rows can be read, and what is wrong with the next one."""
        count = 0
        try:
            for _ in self.rows(lines, quoted=quoted):
                count += 1
        except InputError as error:
            return count, error
        return count, None


def _has_quotes(table: _Separated, read_lines: Callable[[], Iterable[str]]) -> bool:
    """True if a text with tabs is written with quotes, like CSV: all of it can be read so, and no
    quoted cell holds what are whole rows without quotes.

    Raises:
        InputError: it cannot be read in either way, and with quotes more of it can.
    """
    with_quotes, fault = table.readable_rows(read_lines(), quoted=True)
    without, other = table.readable_rows(read_lines(), quoted=False)
    if fault is None:
        # a line break in a quoted cell leaves too few cells on its line, unless there is one column
        is_ambiguous = other is None and without > with_quotes
        return not is_ambiguous or table.columns(read_lines()) == 1
    if other is not None and with_quotes >= without:
        raise fault
    return False


def _find_separator(path: Path, lines: Iterable[str]) -> tuple[str, int]:
    """Return what separates the names of the header, and after which line the header comes.

    A spreadsheet may state the separator in a first line, as "sep=;".
    """
    for number, line in enumerate(lines, 1):
        stated = re.fullmatch(r"sep=(.)", line.strip("\ufeff\r\n"), re.IGNORECASE)
        if stated and number == 1:
            return stated[1], 1
        if line.strip():
            tabs_first = _suffix_of(path) == ".tsv"
            if tabs_first:
                separators = _SEPARATORS[::-1]
            else:
                separators = _SEPARATORS
            return max(separators, key=lambda one: _count_names(line, one)), 0
    raise InputError("is empty", file=path, remedy="expected a line with names of columns")


def _count_names(header: str, separator: str) -> int:
    """Return how many names a header has; 0 if it cannot be read, which its reader then says."""
    try:
        return len(next(csv.reader([header], delimiter=separator, skipinitialspace=True)))
    except csv.Error:
        return 0


def _clean_header(cells: list[str]) -> list[str]:
    """Return the names of columns, without empty ones at the end."""
    names = [clean(cell) for cell in cells]
    while not names[-1]:
        names.pop()
    return names


def _without_empty_end(cells: list[str], count: int) -> list[str]:
    """Return cells without the empty ones after the first `count`."""
    end = len(cells)
    while end > count and not cells[end - 1].strip():
        end -= 1
    return cells[:end]


def _read_jsonl(path: Path, text: str) -> Iterator[tuple[int, dict[str, str]]]:
    """Yield line number and cells of each object."""
    lines = enumerate(text.split("\n"), 1)
    for number, _, row in read_objects(path, lines, "an object with a key a column"):
        cells = {name: _cell(value) for name, value in row.items()}
        yield number, cells


def read_objects(
    path: Path,
    lines: Iterable[tuple[int, str]],
    expected: str,
) -> Iterator[tuple[int, str, dict[str, Any]]]:
    """Yield number, text and JSON object of each line that is not blank; keys are clean names.

    Args:
        expected: what a line should hold, for messages.

    Raises:
        InputError: a line holds something else, or two values of one key; with file and line.
    """
    for number, line in lines:
        if not line.strip():
            continue
        place = f"{path}, line {number}"
        try:
            row = parse_json(line)
        except (ValueError, RecursionError) as error:
            raise InputError(f"not JSON ({first_line(error)})", file=place) from None
        if not isinstance(row, dict):
            message = f"expected {expected}, not {type(row).__name__}"
            raise InputError(message, file=place)
        named = {clean(name): value for name, value in row.items()}
        if len(named) < len(row):
            message = "two of its keys differ in blanks alone"
            raise InputError(message, file=place, remedy="remove one")
        yield number, line, named


def _frame_of(rows: Iterator[tuple[int, dict[str, str]]], where: str) -> pd.DataFrame:
    import pandas as pd

    lines: list[int] = []
    records: list[Mapping[str, str]] = []
    for line, row in rows:
        lines.append(line)
        records.append(row)
    if not records:
        raise InputError("has no rows below its header", file=where)
    index = pd.Index(lines, name="line")
    frame = pd.DataFrame.from_records(records, index=index)
    return frame.fillna("").astype(str)


def _clean_frame(frame: pd.DataFrame, where: str) -> pd.DataFrame:
    """Return a frame of numbers, categories or objects as text; what is missing is empty."""
    import pandas as pd

    header = [clean(name) for name in frame.columns]
    _check_header(header, where)
    if not len(frame):
        raise InputError("has no rows", file=where)
    lines = range(1, len(frame) + 1)
    index = pd.Index(lines, name="line")
    columns = {}
    for place, name in enumerate(header):
        values = frame.iloc[:, place].tolist()
        columns[name] = [_cell(value) for value in values]
    return pd.DataFrame(columns, index=index, dtype=str)


def _check_header(names: list[str], where: str) -> None:
    for name in names:
        if not name:
            remedy = "give it one; the names of the columns are in the first line"
            raise InputError("a column has no name", file=where, remedy=remedy)
        if names.count(name) > 1:
            raise InputError(f'two columns are called "{name}"', file=where, remedy="rename one")


def _cell(value: Any) -> str:
    """Return a value as text, a whole number without ".0", and 1 or 0 for true or false; of what is
    missing, none; of a list, an object or bytes, the name of its type, marked as no text.
    """
    import numpy as np
    import pandas as pd

    if value is None or value is pd.NaT or value is pd.NA:
        return ""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, bool):
        return str(int(value))
    if isinstance(value, float):
        if math.isnan(value):
            return ""
        if value.is_integer() and abs(value) < 2**53:
            return str(int(value))
        return repr(value)
    if isinstance(value, bytes | Mapping | Sequence | Set | np.ndarray) and not isinstance(
        value, str
    ):
        return f"{_NO_TEXT}{type(value).__name__}"
    return clean(value)
