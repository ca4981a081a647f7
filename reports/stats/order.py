"""Does the order of rows by their mean over tasks hang on a single task, or on taking the mean?"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from harness.files.printable import join_some
from reports.stats.estimate import Floats

_NAMED = 3  # tasks that a sentence names


def describe_order(scores: Floats, labels: Sequence[str], tasks: Sequence[str]) -> str:
    """Say in one sentence whether the order of rows by their mean holds without any one task, by
    mean rank and by median; "" for fewer than two rows or three tasks.

    >>> scores = np.array([[0.9, 0.8, 0.7], [0.5, 0.6, 0.4]])
    >>> describe_order(scores, ["SCD", "mean"], ["STS12", "STS13", "STS14"])
    'The order of the 2 rows holds without any one of the 3 tasks, by mean rank and by median.'

    Args:
        scores: (rows, tasks), larger is better. A tie in either order is no other order.
    """
    from scipy.stats import rankdata  # takes a second, which a dry run does not need

    if len(labels) < 2 or len(tasks) < 3:
        return ""
    mean = scores.mean(axis=1)
    hangs: dict[str, str] = {}
    for place, task in enumerate(tasks):
        without = np.delete(scores, place, axis=1)
        swap = _first_swap(mean, without.mean(axis=1), labels)
        if swap:
            hangs[task] = swap

    ranks = [rankdata(column) for column in scores.T]
    others = {
        "by mean rank": np.mean(ranks, axis=0),
        "by median": np.median(scores, axis=1),
    }
    holds = []
    swaps = []
    for how, values in others.items():
        swap = _first_swap(mean, values, labels)
        if swap:
            swaps.append((how, swap))
        else:
            holds.append(how)

    if not hangs:
        exceptions = [f"but not {how} ({swap})" for how, swap in swaps]
        first = f"holds without any one of the {len(tasks)} tasks"
        clause = _join([first, *holds, *exceptions])
    else:
        first = next(iter(hangs))
        named = join_some(list(hangs), _NAMED)
        clause = f"hangs on {named} (without {first} {hangs[first]})"
        if holds:
            clause += f"; it holds {' and '.join(holds)}"
        for how, swap in swaps:
            clause += f"; {how} {swap}"
    return f"The order of the {len(labels)} rows {clause}."


def _first_swap(mean: Floats, other: Floats, labels: Sequence[str]) -> str:
    """Return the pair nearest in the first order that another one has the other way round."""
    order = np.argsort(-mean, kind="stable")
    for a, b in pairwise(order.tolist()):
        is_ahead = mean[a] > mean[b]
        if is_ahead and other[a] < other[b]:
            return f"{labels[b]} is before {labels[a]}"
    return ""


def _join(parts: Sequence[str]) -> str:
    if len(parts) < 2:
        return "".join(parts)
    *first, last = parts
    comma = "," if last.startswith("but") else " and"
    return f"{', '.join(first)}{comma} {last}"
