"""Lines and fields of SentEval's text files, and the errors for files that do not have their format."""

from __future__ import annotations

import re
from pathlib import Path

from harness.errors import InputError
from harness.files.reading import read_bytes
from harness.sources.remote.cache_folder import cache_root

REPOSITORY = "princeton-nlp/datasets-for-simcse"
_SCORE = re.compile(r"[0-9]+(\.[0-9]*)?|\.[0-9]+")


def numbered_lines(file: Path, *, encoding: str = "utf-8", blank: bool = False) -> list[tuple[int, str]]:
    """Lines of a text file with their numbers from 1, split at newlines only.

    Args:
        blank: blank lines are empty sentences; else they are left out.

    Raises:
        InputError: no file, an empty one, or one that is no such text: UTF-16, NUL bytes, lone carriage returns.
    """
    if not file.exists():
        raise no_such_file(file)
    raw = read_bytes(file).removeprefix(b"\xef\xbb\xbf")
    try:
        text = raw.decode(encoding)
    except UnicodeDecodeError as error:
        number = raw.count(b"\n", 0, error.start) + 1
        raise InputError(f"{file}, line {number}: not {encoding} (byte 0x{raw[error.start]:02x})") from None
    if "\0" in text or raw.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise InputError(f"{file}: UTF-16 or not a text (NUL bytes); save the file as {encoding}")
    lines = text.split("\n")
    if not lines[-1]:
        lines.pop()
    numbered = [(n, line.rstrip("\r")) for n, line in enumerate(lines, 1) if blank or line.strip()]
    if not numbered:
        raise InputError(f"{file}: is empty")
    for number, line in numbered:
        if "\r" in line:
            raise InputError(f"{file}, line {number}: a carriage return within the line; end lines by LF or CRLF")
    return numbered


def table_rows(file: Path, header: str) -> list[tuple[int, list[str]]]:
    """Line number and fields of a tab-separated file whose first line begins with the column `header`.

    Raises:
        InputError: as `numbered_lines`; another first line, or nothing after it.
    """
    (first, names), *lines = numbered_lines(file)
    if names.strip().split("\t")[0] != header:
        raise damaged(file, first, f'the names of the columns, "{header}" the first')
    if not lines:
        raise InputError(f"{file}: no examples; the file is empty or truncated")
    return [(number, line.strip().split("\t")) for number, line in lines]


def damaged(file: Path, number: int, expected: str) -> InputError:
    """The error for a line that does not have the expected format."""
    return InputError(f"{file}, line {number}: expected {expected}; the file is damaged or truncated")


def gold_score(file: Path, number: int, text: str) -> float:
    """A human score.

    Raises:
        InputError: not a plain decimal number from 0 to 5.
    """
    if not _SCORE.fullmatch(text.strip()) or not 0 <= float(text) <= 5:
        raise damaged(file, number, f"a score from 0 to 5, not {text.strip()[:40]!r}")
    return float(text)


def no_such_file(file: Path, needed: str = "") -> InputError:
    """The error for a file that a SentEval folder lacks.

    Args:
        needed: what the files must be, for data that SentEval has in another form.
    """
    ours = cache_root() / "senteval"
    if not file.is_relative_to(ours):
        return InputError(f"{file}: no such file; {needed or 'the SentEval folder is not complete'}")
    name = "/".join(file.parts[-2:])
    text = f"{name}: not in the copy of {REPOSITORY}; set HARNESS_SENTEVAL to a SentEval data folder that has it"
    return InputError(f"{text}; {needed}" if needed else text)
