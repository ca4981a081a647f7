"""Batches of similar length under a budget of tokens, padding included."""

from __future__ import annotations

from collections.abc import Sequence


def token_budget_batches(lengths: Sequence[int], budget: int) -> list[list[int]]:
    """Group sentence indices into batches whose padded size (rows x longest) stays within `budget` tokens.

    Longest first, so that the batch that needs the most memory comes first and padding stays near zero. A sentence
    longer than the budget is a batch of its own. Every index occurs exactly once; ties keep their order.
    """
    batches: list[list[int]] = []
    current: list[int] = []
    longest = 0
    for index in sorted(range(len(lengths)), key=lambda i: -lengths[i]):
        if current and (len(current) + 1) * longest > budget:
            batches.append(current)
            current = []
        if not current:
            longest = max(1, lengths[index])
        current.append(index)
    if current:
        batches.append(current)
    return batches
