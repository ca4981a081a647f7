"""How evenly vectors use their space: rank by entropy, IsoScore, partition isotropy, spectrum; histograms of cosines.

All take (n, d) arrays or tensors as they are, not normalised, and compute in float64.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from harness.tasks.base import as_array, unit_rows

Floats = NDArray[np.float64]
_FLAT = 1e-12  # share of the variance in the mean square below which it is float32 rounding noise, not spread
_CHUNK = 4096  # rows whose projections are held at a time


def _wide(x: Any) -> Floats:
    wide = np.asarray(as_array(x), dtype=np.float64)
    if wide.ndim != 2 or len(wide) < 2 or not wide.shape[1]:
        raise ValueError(f"expected an (n, d) array with n > 1, got {wide.shape}")
    return wide


def _centred(x: Any) -> Floats | None:
    """`x` less its mean; None when all rows are equal up to float32 rounding."""
    wide = _wide(x)
    centred = wide - wide.mean(axis=0)
    return centred if float(np.mean(centred**2)) > _FLAT * float(np.mean(wide**2)) else None


def singular_values(x: Any, *, centre: bool = True) -> Floats:
    """Singular values (min(n, d),), largest first, scaled to sum 1; all 0 where there is no spread.

    `centre` takes the mean off first.
    """
    wide = _centred(x) if centre else _wide(x)
    if wide is None or not wide.any():
        return np.zeros(min(_wide(x).shape))
    # Eigenvalues of the smaller Gram matrix are the squared singular values: far cheaper than an SVD of a tall matrix.
    gram = wide @ wide.T if len(wide) < wide.shape[1] else wide.T @ wide
    values: Floats = np.sqrt(np.clip(np.linalg.eigvalsh(gram / np.trace(gram))[::-1], 0.0, None))
    values /= values.sum()
    return values


def entropy_rank(shares: Any) -> float:
    """exp of the entropy of shares (k,) that sum to 1; 0 where all are 0."""
    positive = np.asarray(shares, dtype=np.float64)
    positive = positive[positive > 0]
    return float(np.exp(-(positive * np.log(positive)).sum())) if positive.size else 0.0


def rankme(x: Any) -> float:
    """RankMe (Garrido et al. 2023, equation 1): the entropy rank of the singular values of the vectors, mean included.

    Between 1 and min(n, d); 0 when all vectors are 0. It differs from the effective rank of
    `alignment_uniformity` by the mean alone, which dominates the spectrum of most language models. The paper's epsilon
    of 1e-7 is left out.
    """
    return entropy_rank(singular_values(x, centre=False))


def isoscore(x: Any) -> float:
    """IsoScore (Rudman et al. 2022, algorithm 1): the share of directions that carry variance, from 0 to 1.

    With variances s along the principal axes, scaled to length sqrt(d): defect = |s - 1| / sqrt(2 (d - sqrt d)),
    phi = (d - defect^2 (d - sqrt d))^2 / d^2, score = (d phi - 1) / (d - 1). Equal variance along k of d axes and none
    along the rest gives (k - 1) / (d - 1). 0 without spread; 1 for d = 1.
    """
    centred = _centred(x)
    if centred is None:
        return 0.0
    d = centred.shape[1]
    if d == 1:
        return 1.0
    variances = np.clip(np.linalg.eigvalsh(centred.T @ centred), 0.0, None)
    scaled = variances * np.sqrt(d) / np.linalg.norm(variances)
    defect = float(np.sum((scaled - 1) ** 2)) / (2 * (d - np.sqrt(d)))  # squared
    phi = (d - defect * (d - np.sqrt(d))) ** 2 / d**2
    return float(np.clip((d * phi - 1) / (d - 1), 0.0, 1.0))


def partition_isotropy(x: Any) -> float:
    """min over max of Z(c) = sum_i exp(c . x_i) over unit directions c (Mu and Viswanath 2018, section 2.2).

    1 when even, near 0 in a cone. As there, c runs over the eigenvectors of X^T X; over both signs of each, for the
    sign that an eigenvector is given with is arbitrary.
    """
    wide = _wide(x)
    directions = np.linalg.eigh(wide.T @ wide)[1]
    directions = np.concatenate([directions, -directions], axis=1)
    logs = np.full(directions.shape[1], -np.inf)  # of Z, which itself can overflow
    for start in range(0, len(wide), _CHUNK):
        exponents = wide[start : start + _CHUNK] @ directions
        peak = exponents.max(axis=0)
        logs = np.logaddexp(logs, peak + np.log(np.exp(exponents - peak).sum(axis=0)))
    return float(np.exp(logs.min() - logs.max()))


def cosine_histograms(
    x: Any, y: Any, gold: Any, *, edges: Sequence[float] = (0, 1, 2, 3, 4, 5), bins: int = 50
) -> dict[str, Any]:
    """How the cosines of pairs are spread, for the pairs of each range of gold scores.

    x, y (n, d); gold (n,). A pair belongs to the range [edge, next edge), in the last range the upper edge included.
    Returns "bins": the edges (bins + 1,) of equal bins over [-1, 1]; "buckets": one dict a range with "low", "high",
    "n", "mean" and "std" of its cosines (None without pairs) and "counts" (bins,).
    """
    cosine = np.clip(np.einsum("ij,ij->i", unit_rows(as_array(x)), unit_rows(as_array(y))), -1.0, 1.0)
    scores = np.asarray(as_array(gold), dtype=np.float64)
    limits = np.linspace(-1.0, 1.0, bins + 1)
    buckets = []
    for low, high in pairwise(edges):
        inside = cosine[(scores >= low) & ((scores < high) | ((high == edges[-1]) & (scores == high)))]
        buckets.append(
            {
                "low": float(low),
                "high": float(high),
                "n": len(inside),
                "mean": float(inside.mean()) if len(inside) else None,
                "std": float(inside.std()) if len(inside) else None,
                "counts": np.histogram(inside, limits)[0].tolist(),
            }
        )
    return {"bins": limits.round(10).tolist(), "buckets": buckets}
