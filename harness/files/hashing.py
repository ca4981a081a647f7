"""Hashes of values and files."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any


def content_id(value: Any, digits: int = 16) -> str:
    """The first hex digits of the sha256 of a value's canonical JSON."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:digits]


def sha256_of(file: Path) -> str:
    """The sha256 of a file's bytes, in hexadecimal digits."""
    with file.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def sha256_of_text(text: str) -> str:
    """The sha256 of a text, which may hold lone surrogates, in hexadecimal digits."""
    encoded = text.encode("utf-8", "surrogatepass")
    return hashlib.sha256(encoded).hexdigest()
