"""SentEval's STS scores once more, pair by pair, from what its senteval/sts.py and
senteval/utils.py compute.

Nothing of the harness is used. The cosine of a pair is taken in the vectors' own dtype; Spearman's
rho is scipy's; the mean of a year is plain, or weighted by the subsets' numbers of pairs.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import stats

Array = np.ndarray[Any, Any]


def cosines(u: Array, v: Array) -> Array:
    """Return (n,) of two (n, d): a dot product over the product of two norms, one pair after the other."""
    pairs = zip(np.nan_to_num(u), np.nan_to_num(v), strict=True)
    return np.nan_to_num([np.dot(a, b) / (np.linalg.norm(a) * np.linalg.norm(b)) for a, b in pairs])


def rho(similarities: Array, gold: Array) -> float:
    """Spearman's rho in points (times 100)."""
    return 100 * float(stats.spearmanr(similarities, gold).statistic)


def means(subsets: list[tuple[Array, Array]]) -> tuple[float, float]:
    """`mean` and `wmean` in points of subsets of (similarities, gold)."""
    values = [rho(similarities, gold) for similarities, gold in subsets]
    sizes = [len(gold) for _, gold in subsets]
    return float(np.average(values)), float(np.average(values, weights=sizes))


def rescaled_copies(
    u: Array, v: Array, rng: np.random.Generator, times: int
) -> list[tuple[Array, Array]]:
    """Return the pairs `times` times, with their dimensions in another order and both sides scaled by
    one factor.

    No cosine changes by that; what a score changes by it is the rounding of its arithmetic.
    """
    changed = []
    for factor in rng.uniform(0.5, 2, times).astype(u.dtype):
        order = rng.permutation(u.shape[1])
        first = np.ascontiguousarray(u[:, order]) * factor
        second = np.ascontiguousarray(v[:, order]) * factor
        changed.append((first, second))
    return changed


def exact(u: Array, v: Array) -> Array:
    """Return cosines with 18 digits, rounded to 12: equally similar pairs are ties, and no others."""
    a = u.astype(np.longdouble)
    b = v.astype(np.longdouble)
    values = (a * b).sum(axis=1) / np.sqrt((a * a).sum(axis=1) * (b * b).sum(axis=1))
    return np.round(values.astype(np.float64), 12)
