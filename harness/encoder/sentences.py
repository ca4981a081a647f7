"""Sentences that an encoder accepts, and batches of them."""

from __future__ import annotations

from collections.abc import Sequence

from harness.errors import InputError


def clean(text: str, row: int = 0) -> str:
    """`text` as valid Unicode: a lone surrogate becomes "?".

    Raises:
        InputError: not a string; `row` says where.
    """
    if not isinstance(text, str):
        raise InputError(
            f"sentence {row} is {type(text).__name__}, not a string: {text!r:.80}",
            key=f"sentence {row}",
        )
    if text.isascii():
        return text
    return text.encode("utf-8", "replace").decode("utf-8")


def token_budget_batches(lengths: Sequence[int], budget: int) -> list[list[int]]:
    """Group sentence indices into batches whose padded size (rows x longest) stays within `budget`
    tokens.

    Longest first, so that the batch that needs the most memory comes first and padding stays near
    zero. A sentence longer than the budget is a batch of its own. Every index occurs exactly once;
    ties keep their order.
    """
    batches: list[list[int]] = []
    current: list[int] = []
    longest = 0
    longest_first = sorted(range(len(lengths)), key=lambda i: -lengths[i])
    for index in longest_first:
        if current and (len(current) + 1) * longest > budget:
            batches.append(current)
            current = []
        if not current:
            longest = max(1, lengths[index])
        current.append(index)
    if current:
        batches.append(current)
    return batches
