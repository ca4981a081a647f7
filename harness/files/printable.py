"""Text made safe: on a terminal, inside Markdown, without credentials, as the name of a file. All
output of the program is made so.
"""

from __future__ import annotations

import codecs
import errno
import io
import json
import logging
import os
import re
import sys
from collections.abc import Sequence
from typing import Any
from unicodedata import east_asian_width

# Credentials: of tracking servers, databases and mirrors of the hub.
HIDDEN = "***"

_URI = re.compile(r"""(?P<scheme>[A-Za-z][A-Za-z0-9+.-]{0,40})://(?P<rest>[^\s"'<>]+)""")
_KEY = (  # of a credential: "token", "OPENAI_API_KEY", "clientSecret"
    r"(?<![A-Za-z0-9])(?:[A-Za-z0-9]{1,40}[_-]){0,6}(?:(?-i:[a-z]{1,40}(?=[A-Z])))?"
    r"(?:(?P<weak>token|auth|sig|signature|credentials?)|"
    r"password|passwd|pwd|passphrase|secret|apikey|(?:api|access|secret|private)[ _-]?key)"
)
# "token=", also in the middle of what is no URI: the key-value form in which libpq and its drivers
# tell of a connection
_ASSIGNED = re.compile(
    rf"""(?P<key>{_KEY}=)(?P<value>"[^"]*"|'[^']*'|[^&;,\s"')]+)""", re.IGNORECASE
)
# "token: X" of YAML and headers, "'token': 'X'" of JSON, "token = X" of TOML, "--token X"
_STATED = re.compile(
    rf"""(?P<key>{_KEY}\b["']?\s*[:=]\s*|--{_KEY.replace("<weak>", "<flag>")}\s+)"""
    r"""(?P<value>"[^"\n]+"|'[^'\n]+'|[^\s"'&;,)}\]]+)""",
    re.IGNORECASE,
)
_PROSE = re.compile(r"[a-z]{1,11}")
_IN_QUOTES = re.compile(r"""["']\s*[:=]\s*$""")  # of a key: a value that is a text is in quotes too
_WORDS = ("expected", "must", "is", "not", "missing", "required", "unknown", "needed", "wrong")
# "Not a directory": what the system says of a file, whose name may be that of a credential
_FAULTS = tuple({os.strerror(number) for number in errno.errorcode if " " in os.strerror(number)})
_HEADER = re.compile(
    r"""(?P<key>\b(?:(?:proxy-)?authorization|(?:set-)?cookie)["']?\s*[:=]\s*["']?)[^"'\n]+""",
    re.IGNORECASE,
)
_BEARER = re.compile(r"(?P<key>\bBearer\s+)(?=\S*[^a-z\s])[\w.~+/=-]{4,}", re.IGNORECASE)
_PRIVATE = re.compile(
    r"-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*-----|\Z)", re.DOTALL
)
_KNOWN = re.compile(  # as their issuers write them
    r"\b(?:hf_[A-Za-z0-9]{16,}|(?:sk|rk|pk)[-_](?=[\w-]*\d)[\w-]{8,}|gh[pousr]_[A-Za-z0-9]{16,}|"
    r"github_pat_\w{16,}|glpat-[\w-]{16,}|xox[abeoprs]-[\w-]{8,}|(?:AKIA|ASIA)[A-Z0-9]{12,}|AIza[\w-]{20,}|"
    r"ya29\.[\w.-]{16,}|npm_[A-Za-z0-9]{20,}|pypi-[\w-]{32,}|dapi[0-9a-f]{32}\w*|"
    r"eyJ[\w-]{8,}\.[\w-]+(?:\.[\w-]*)?)"
)


def redacted(text: str) -> str:
    """The text with what may be a credential as "***".

    Of a URI that is all between "://" and its last "@": a password may hold "@", "/" and ":"
    itself, and a user's name alone may be a token. Too much is hidden rather than too little,
    except in `hf://`, where "@" is before a revision. Also hidden are values of keys such as
    `password=`, `token:` and `--api-key`, of the headers Authorization and Cookie, private keys,
    and tokens that are known by their beginning (of the hub, GitHub, OpenAI, AWS, Slack and others).
    """
    text = _PRIVATE.sub(HIDDEN, _URI.sub(_without_user, text))
    for named in (_HEADER, _BEARER, _ASSIGNED):
        text = named.sub(_hide_value, text)
    return _KNOWN.sub(HIDDEN, _STATED.sub(_without_value, text))


def _hide_value(found: re.Match[str]) -> str:
    return f"{found['key']}{HIDDEN}"


def has_known_token(text: str) -> bool:
    """True if a text has a token that is known by its beginning, or a private key.

    >>> has_known_token("token = tokenizer.next()"), has_known_token("key = hf_" + 20 * "a1")
    (False, True)
    """
    return bool(_KNOWN.search(text) or _PRIVATE.search(text))


def _without_value(stated: re.Match[str]) -> str:
    """Return a key without its value. A word after "token:" may be prose, as in "token: expected a
    number", "/etc/passwd: cannot be read" or "my/token: Not a directory", which is not hidden.
    """
    text = stated.string
    if text.startswith(_FAULTS, stated.start("value")):
        return stated[0]
    is_last = stated.end() == len(text) or text[stated.end()] in "\n}]"
    is_prose = _PROSE.fullmatch(stated["value"]) is not None
    is_file = text[: stated.start()].endswith(("/", "\\"))
    may_be_a_name = stated["weak"] or is_file or _IN_QUOTES.search(stated["key"])
    if may_be_a_name:
        is_plain = not is_last
    else:
        is_plain = stated["value"] in _WORDS
    if is_prose and is_plain:
        return stated[0]
    return f"{stated['key']}{HIDDEN}"


def _without_user(uri: re.Match[str]) -> str:
    scheme = uri["scheme"]
    rest = uri["rest"]
    _, at, host = rest.rpartition("@")
    # sqlite:///FILE@1 names no host
    nobody = not at or rest.startswith("/") or scheme.lower() == "hf"
    if nobody:
        return uri[0]
    return f"{scheme}://{HIDDEN}@{host}"


# C0 and C1 controls (a terminal obeys them), and the marks that turn the direction of the text
# after them (Unicode UAX 9): "Trojan Source" (Boucher & Anderson, 2021) shows what those do. Line
# breaks and tabs stay. Lone surrogates, as in names of files that are not UTF-8, are no text that
# could be written at all.
ACTING = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff\ud800-\udfff]"
)


def visible(text: str) -> str:
    """The text with each acting character as its picture ("␛") or its code point ("<U+202E>")."""
    unified = text.replace("\r\n", "\n").replace("\r", "\n")
    return ACTING.sub(_picture, unified)


def _picture(acting: re.Match[str]) -> str:
    code = ord(acting[0])
    if code < 0x20:
        return chr(0x2400 + code)
    if code == 0x7F:
        return "\u2421"
    return f"<U+{code:04X}>"


def one_line(text: str) -> str:
    """`visible`, with white space folded: what a message on a terminal may hold."""
    return " ".join(visible(text).split())


def width_of(text: str) -> int:
    """Return how many columns of a terminal a text takes: signs of East Asia take two.

    >>> width_of("abc"), width_of("\u65e5\u672c")
    (3, 4)
    """
    return len(text) + sum(east_asian_width(sign) in "WF" for sign in text)


def join_some(names: Sequence[str], most: int = 5) -> str:
    """ "a, b, c and 4 more": the first `most` names, and how many follow."""
    if len(names) > most:
        more = f" and {len(names) - most} more"
    else:
        more = ""
    return ", ".join(names[:most]) + more


def first_line(error: BaseException) -> str:
    """The first line with text of an error's message, without credentials, or the error's type."""
    try:
        message = str(error)
    except Exception:  # of a class of somebody else's
        message = ""
    for line in message.splitlines():
        if line.strip():
            return redacted(line.strip())
    return type(error).__name__


def describe_error(error: BaseException) -> str:
    """The type of an error and the first line of its message, in at most 200 characters of it."""
    return f"{type(error).__name__}: {first_line(error):.200}"


def safe_line(line: str) -> str:
    """A line as it may leave for a terminal or a log: `visible`, without credentials, and one line;
    blanks stay.
    """
    return redacted(" ".join(visible(line).splitlines()))


# Signs of ours that an encoding may lack, such as ASCII, Latin-1 and code pages of Windows.
_PLAIN = str.maketrans(
    {
        "\u2212": "-",
        "\u2013": "-",
        "\u2014": "-",
        "\u00b1": "+/-",
        "\u00d7": "x",
        "\u00b7": "*",
        "\u2026": "...",
        "\u2192": "->",
        "\u2264": "<=",
        "\u2265": ">=",
        "\u2020": "+",
        "\u2018": "'",
        "\u2019": "'",
        "\u201c": '"',
        "\u201d": '"',
        "\u00a0": " ",
    }
)
_ERRORS = "harness.plain"


def _replace_signs(error: UnicodeError) -> tuple[str, int]:
    """Return what stands for characters that an encoding lacks: the sign in ASCII, else "?"."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    signs = error.object[error.start : error.end].translate(_PLAIN)
    plain = [sign if sign.isascii() else "?" for sign in signs]
    return "".join(plain), error.end


codecs.register_error(_ERRORS, _replace_signs)


def write_plain_signs() -> None:
    """Have standard output and error replace signs that their encoding lacks, in place of an
    error.
    """
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper) and not _is_unicode(stream):
            stream.reconfigure(errors=_ERRORS)


def _is_unicode(stream: Any) -> bool:
    encoding = getattr(stream, "encoding", None) or "utf-8"
    return encoding.lower().replace("_", "-").startswith("utf")


def encodable(line: str, stream: Any) -> str:
    """The line as a stream can write it; see `write_plain_signs`."""
    if _is_unicode(stream):
        return line
    return line.encode(stream.encoding, _ERRORS).decode(stream.encoding)


def tell(line: str = "") -> None:
    """Write a line on standard output; see `safe_line`."""
    print(encodable(safe_line(line), sys.stdout), flush=True)


def shorten(text: str, most: int = 2000) -> str:
    """Return a text of at most `most` characters: of a longer one, its beginning and its end.

    >>> shorten("a" * 50 + "b" * 50, 21)
    'aaaaaaaa ... bbbbbbbb'
    """
    if len(text) <= most:
        return text
    half = (most - 5) // 2
    return f"{text[:half]} ... {text[-half:]}"


def tell_error(line: str) -> None:
    """Write a line on standard error; see `safe_line`."""
    shown = encodable(safe_line(line), sys.stderr)
    print(shown, file=sys.stderr, flush=True)


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
        lines = super().format(record).splitlines()
        return "\n".join(safe_line(line) for line in lines)


# Also what Markdown only reads in places (lists, links, tables, emphasis, code): escaping more than
# needed is harmless, missing one is not. HTML's own characters become entities, which hold inside
# and outside of HTML blocks.
_MARKDOWN = re.compile(r"([\\`*_{}\[\]#|~$])")
_ENTITIES = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;"})
_LISTED = re.compile(r"^(\d{1,9})(?=[.)](\s|$))")  # the number of a list's item
_RULED = re.compile(r"^(?=[-+](\s|$)|[-=]+$)")  # an item, a rule, the line below a heading


def markdown_text(text: str) -> str:
    """Text that Markdown and the HTML in it leave alone; one line."""
    escaped = _MARKDOWN.sub(r"\\\1", one_line(text)).translate(_ENTITIES)
    return _RULED.sub(r"\\", _LISTED.sub(r"\1\\", escaped))


# Names that become files and folders: one rule for all, so that none leads out of where it belongs.
LONGEST = 100  # bytes of a name: a file system's 255, with room for what is put around a name
_NAME = re.compile(r"[^\W_]([\w .,+()=-]*[\w)+])?")


def name_fault(name: str) -> str | None:
    """What keeps `name` from becoming the name of a file, as one phrase; None where nothing does.

    Letters and digits of any script, blanks inside and the signs . _ - , + = ( ) are allowed.
    """
    if not name.strip():
        return "a name is needed, not an empty text"
    if (size := len(name.encode(errors="replace"))) > LONGEST:
        begin = one_line(name)[:40]
        return f'a name is at most {LONGEST} bytes long, not {size}: "{begin}..."'
    if not _NAME.fullmatch(name):
        return (
            "becomes the name of a file, so it begins with a letter or digit and holds letters, digits, blanks and "
            f'. _ - , + = ( ) alone, not "{one_line(name)}"'
        )
    return None
