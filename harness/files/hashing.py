"""Hashes of values."""

from __future__ import annotations

import hashlib
import json
from typing import Any


def content_id(value: Any, digits: int = 16) -> str:
    """The first hex digits of the sha256 of a value's canonical JSON."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:digits]
