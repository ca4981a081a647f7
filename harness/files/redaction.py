"""Credentials taken out of text before anybody sees it: of tracking servers, databases and mirrors of the hub."""

from __future__ import annotations

import re

HIDDEN = "***"

_URI = re.compile(r"""(?P<scheme>[A-Za-z][A-Za-z0-9+.-]*)://(?P<rest>[^\s"'<>]+)""")
# "token=", also in the middle of what is no URI: the key-value form in which libpq and its drivers tell of a connection
_SECRETS = re.compile(
    r"(?P<key>\b(?:[A-Za-z0-9]+[_-])*"
    r"(?:password|passwd|pwd|passphrase|token|secret|apikey|(?:api|access|secret|private)[_-]?key|auth|sig|signature|"
    r"credentials?)=)"
    r"""(?P<value>"[^"]*"|'[^']*'|[^&;,\s"')]+)""",
    re.IGNORECASE,
)
_HUB_TOKEN = re.compile(r"\bhf_[A-Za-z0-9]{16,}")


def redacted(text: str) -> str:
    """The text with what may be a credential as "***".

    Of a URI that is all between "://" and its last "@": a password may hold "@", "/" and ":" itself, and a user's name
    alone may be a token. Too much is hidden rather than too little, except in `hf://`, where "@" is before a revision.
    Also hidden are values of keys such as `password=` and `token=`, and tokens of the hub.
    """
    text = _URI.sub(_without_user, text)
    return _HUB_TOKEN.sub(HIDDEN, _SECRETS.sub(lambda found: f"{found['key']}{HIDDEN}", text))


def _without_user(uri: re.Match[str]) -> str:
    scheme, rest = uri["scheme"], uri["rest"]
    _, at, host = rest.rpartition("@")
    nobody = not at or rest.startswith("/") or scheme.lower() == "hf"  # sqlite:///FILE@1 names no host
    return uri[0] if nobody else f"{scheme}://{HIDDEN}@{host}"
