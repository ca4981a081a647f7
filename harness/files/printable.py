"""Text from data made safe to look at: on a terminal, and inside Markdown. All output of the program is made so."""

from __future__ import annotations

import json
import logging
import re
import sys
from collections.abc import Sequence
from typing import Any

from harness.files.redaction import redacted

# C0 and C1 controls (a terminal obeys them), and the marks that turn the direction of the text after them (Unicode
# UAX 9): "Trojan Source" (Boucher & Anderson, 2021) shows what those do. Line breaks and tabs stay. Lone surrogates,
# as in names of files that are not UTF-8, are no text that could be written at all.
ACTING = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff\ud800-\udfff]"
)


def visible(text: str) -> str:
    """The text with each acting character as its picture ("␛") or its code point ("<U+202E>")."""
    return ACTING.sub(_picture, text.replace("\r\n", "\n").replace("\r", "\n"))


def _picture(acting: re.Match[str]) -> str:
    code = ord(acting[0])
    if code < 0x20:
        return chr(0x2400 + code)
    return "\u2421" if code == 0x7F else f"<U+{code:04X}>"


def one_line(text: str) -> str:
    """`visible`, with white space folded: what a message on a terminal may hold."""
    return " ".join(visible(text).split())


def join_some(names: Sequence[str], most: int = 5) -> str:
    """ "a, b, c and 4 more": the first `most` names, and how many follow."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more


def first_line(error: BaseException) -> str:
    """The first line with text of an error's message, without credentials, or the error's type."""
    return redacted(next((line.strip() for line in str(error).splitlines() if line.strip()), type(error).__name__))


def safe_line(line: str) -> str:
    """A line as it may leave for a terminal or a log: `visible`, without credentials, and one line; blanks stay."""
    return redacted(" ".join(visible(line).splitlines()))


def tell(line: str = "") -> None:
    """Write a line on standard output; see `safe_line`."""
    print(safe_line(line), flush=True)


def tell_error(line: str) -> None:
    """Write a line on standard error; see `safe_line`."""
    print(safe_line(line), file=sys.stderr, flush=True)


def tell_lines(text: str, *, error: bool = False) -> None:
    """Write every line of a longer text, such as a file or a traceback; see `safe_line`."""
    for line in text.splitlines():
        (tell_error if error else tell)(line)


def tell_json(tree: Any) -> None:
    """Write a tree on standard output as JSON, which escapes in texts what is no plain character."""
    print(json.dumps(tree, indent=1, default=str), flush=True)


class SafeFormatter(logging.Formatter):
    """Each entry of a log as `safe_line`."""

    def format(self, record: logging.LogRecord) -> str:
        """One line; the lines of a traceback after it."""
        return "\n".join(safe_line(line) for line in super().format(record).splitlines())


# Also what Markdown only reads in places (lists, links, tables, emphasis, code): escaping more than needed is harmless,
# missing one is not. HTML's own characters become entities, which hold inside and outside of HTML blocks.
_MARKDOWN = re.compile(r"([\\`*_{}\[\]#|~$])")
_ENTITIES = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;"})
_LISTED = re.compile(r"^(\d{1,9})(?=[.)](\s|$))")  # the number of a list's item
_RULED = re.compile(r"^(?=[-+](\s|$)|[-=]+$)")  # an item, a rule, the line below a heading


def markdown_text(text: str) -> str:
    """Text that Markdown and the HTML in it leave alone; one line."""
    escaped = _MARKDOWN.sub(r"\\\1", one_line(text)).translate(_ENTITIES)
    return _RULED.sub(r"\\", _LISTED.sub(r"\1\\", escaped))
