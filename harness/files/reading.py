"""Small files of a user's read whole: each fault is one line that names the file. Values written as
TOML, one key a
line: experiment files that the program makes are read and edited by people.
"""

from __future__ import annotations

import json
import re
import stat
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness.errors import InputError
from harness.files.printable import one_line

if TYPE_CHECKING:
    from tomlkit.items import Item


LARGEST = 1 << 30  # bytes of a file that is read whole
MOST_DIGITS = 300  # of a whole number: a larger one is beyond all floats, and ends arithmetic
DEEPEST = 1000  # tables within each other: tomllib's time grows with the square of a dotted key


def require_ordinary(path: Path) -> None:
    """Refuse what is no file to read from: a pipe or a device would be waited for, or never end.

    Raises:
        InputError: missing, out of reach, or no ordinary file.
    """
    try:
        mode = path.stat().st_mode
    except (OSError, ValueError) as error:  # ValueError: a name with NUL
        raise _unreadable(path, error) from None
    if not stat.S_ISREG(mode):
        raise InputError(
            "is no ordinary file but a folder, pipe or device", file=path, remedy="name a file"
        )


def is_ordinary(path: Path) -> bool:
    """Is a file of that name there, and no folder, pipe or device?"""
    try:
        require_ordinary(path)
    except InputError:
        return False
    return True


def expand_user(path: str | Path) -> Path:
    """Return a path whose "~" is the home folder.

    Raises:
        InputError: it begins with "~", and this user has no home folder.
    """
    try:
        return Path(path).expanduser()
    except RuntimeError:
        message = '"~" is the home folder, and there is none of that user'
        raise InputError(message, file=path, remedy="write the whole path, or set HOME") from None


def is_there(path: Path) -> bool:
    """Is anything of that name there? What can be no name at all (too long, NUL) is not."""
    try:
        return path.exists()
    except (OSError, ValueError):
        return False


def read_bytes(path: Path) -> bytes:
    """Raises:
    InputError: missing, not readable, no ordinary file, or larger than `LARGEST`.
    """
    require_ordinary(path)
    try:
        if path.stat().st_size > LARGEST:
            size = f"{LARGEST >> 20} MiB"
            raise InputError(f"holds more than {size}", file=path, remedy="name another file")
        return path.read_bytes()
    except OSError as error:
        raise _unreadable(path, error) from None


def read_text(path: Path) -> str:
    """Return the text of a file, without the byte-order mark that some editors put before it.

    Raises:
        InputError: as `read_bytes`, or not UTF-8.
    """
    content = read_bytes(path)
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise InputError(
            "not UTF-8", file=path, line=line, remedy="save the file as UTF-8"
        ) from None


def read_lines(path: Path) -> list[str]:
    """Return the lines of a file of JSON lines, whose texts may hold any other line separator
    (U+2028, U+0085).

    Raises:
        InputError: as `read_text`.
    """
    lines = read_text(path).split("\n")
    return [line.removesuffix("\r") for line in lines]


def read_toml(path: Path) -> dict[str, Any]:
    """Raises:
    InputError: as `read_text`, or not TOML.
    """
    text = read_text(path)
    too_deep = "not a TOML file: its lists or tables are nested too deeply"
    for number, line in enumerate(text.split("\n"), 1):
        if _deepest_key(line) > DEEPEST:
            raise InputError(too_deep, file=path, line=number)
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise InputError(f"not a TOML file: {error}", file=path) from None
    except ValueError:  # of int()
        raise InputError("not a TOML file: a number has thousands of digits", file=path) from None
    except RecursionError:
        raise InputError(too_deep, file=path) from None


def _deepest_key(line: str) -> int:
    """Return how many dots the longest dotted key of a line of TOML has."""
    if line.count(".") <= DEEPEST:
        return 0
    is_header = line.lstrip().startswith("[")
    if is_header:
        before_signs = line.split("=")
    else:
        before_signs = line.split("=")[:-1]
    return max((part.rpartition(",")[2].count(".") for part in before_signs), default=0)


def parse_json(text: str) -> Any:
    """Return what a text of JSON holds, in which every whole number is one of a float's range.

    Raises:
        ValueError: not JSON, with a larger number, or an object has two values of one key.
        RecursionError: nested too deeply.
    """
    check_numbers(text)
    return _DECODER.decode(text)


def _object_of(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Raises:
    ValueError: a key occurs twice, of which json would take the last value.
    """
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f'two values of the key "{twice:.80}"')
    return found


_DECODER = json.JSONDecoder(object_pairs_hook=_object_of)  # making one takes longer than a line


def check_numbers(text: str) -> None:
    """Check that every whole number in a text of JSON is one of a float's range.

    Raises:
        ValueError: one is larger, or the text is not JSON.
        RecursionError: nested too deeply.
    """
    if re.search(rf"\d{{{MOST_DIGITS}}}", text):  # perhaps within a text
        json.loads(text, parse_int=_parse_whole_number)


def _parse_whole_number(digits: str) -> int:
    if len(digits) >= MOST_DIGITS:
        raise ValueError(f"a number has {len(digits):,} digits")
    return int(digits)


def read_json(path: Path) -> dict[str, Any]:
    """Raises:
    InputError: as `read_text`, or no JSON object.
    """
    try:
        tree = json.loads(read_text(path))
    except ValueError as error:
        raise InputError(f"damaged: not JSON ({error})", file=path) from None
    except RecursionError:
        raise InputError("damaged: nested too deeply", file=path) from None
    if not isinstance(tree, dict):
        raise InputError(f"damaged: expected a JSON object, not {type(tree).__name__}", file=path)
    return tree


def _unreadable(path: Path, error: OSError | ValueError) -> InputError:
    if isinstance(error, OSError):
        why = error.strerror or str(error)
    else:
        why = str(error)
    if len(str(path)) <= 200:
        shown = str(path)
    else:
        shown = f"{str(path)[:200]}..."
    return InputError(f"cannot be read ({why})", file=shown)


def inline(value: Any) -> Item:
    """A value as TOML on one line; mappings become `{key = value}` at any depth, and None an empty
    text, which empties an option.
    """
    import tomlkit

    if value is None:
        value = ""
    if isinstance(value, Mapping):
        table = tomlkit.inline_table()
        for key, part in value.items():
            table.append(key, inline(part))
        return table
    if isinstance(value, list | tuple):
        array = tomlkit.array()
        for part in value:
            array.append(inline(part))
        return array
    item: Item = tomlkit.item(value)
    return item


def toml_lines(values: Mapping[str, Any]) -> str:
    """`key = value` for each, without section headers, so that any header may precede it."""
    import tomlkit

    tables = {key: inline(value) for key, value in values.items()}
    return tomlkit.dumps(tables)


def toml_comment(text: str) -> str:
    """A comment of one line, whatever the text holds."""
    return f"# {one_line(text)}\n"
