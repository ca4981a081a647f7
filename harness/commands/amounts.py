"""Bytes and seconds in words."""

from __future__ import annotations


def size(count: float) -> str:
    """Bytes, as "1.3 GB" or "15 MB"."""
    return f"{count / 1e9:.1f} GB" if count >= 1e8 else f"{count / 1e6:.0f} MB"


def duration(seconds: float) -> str:
    """Seconds, as "50 s", "35 min", "6.5 h" or "12.0 days"."""
    if seconds < 120:
        return f"{seconds:.0f} s"
    if seconds < 7200:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h" if seconds < 360_000 else f"{seconds / 86_400:.1f} days"
