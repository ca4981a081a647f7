"""What an encoder takes as a sentence."""

from __future__ import annotations

from harness.errors import InputError


def clean(text: str, row: int = 0) -> str:
    """`text` as valid Unicode: a lone surrogate becomes "?".

    Raises:
        InputError: not a string; `row` says where.
    """
    if not isinstance(text, str):
        raise InputError(f"sentence {row} is {type(text).__name__}, not a string: {text!r:.80}")
    if text.isascii():
        return text
    return text.encode("utf-8", "replace").decode("utf-8")
