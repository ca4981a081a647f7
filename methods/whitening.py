"""BERT-whitening: a linear map that gives a corpus's sentence vectors mean 0 and identity
covariance.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from harness.config import option
from harness.errors import InputError
from harness.method import FitContext, FitReport
from harness.recipes import RecipeFile
from methods.parts.vector_maps import VectorMap, VectorMapConfig, text_chunks

if TYPE_CHECKING:
    import torch

    from harness.encoder import Encoder

# Variances below this share of the largest are rounding noise of float32 vectors.
RANK_TOLERANCE = 1e-10

Matrix = NDArray[np.float64]


class Moments:
    """Mean and covariance of rows that arrive in chunks, in float64; shifted by the first chunk's
    mean, so that a large mean does not swallow small variances.
    """

    def __init__(self) -> None:
        self.count = 0
        self._shift: Matrix | None = None
        self._sum: Matrix | None = None
        self._products: Matrix | None = None

    def add(self, rows: NDArray[Any]) -> None:
        """Take in a chunk (n, d)."""
        x = rows.astype(np.float64)
        if self._shift is None or self._sum is None or self._products is None:
            d = x.shape[1]
            self._shift = x.mean(0)
            self._sum = np.zeros(d)
            self._products = np.zeros((d, d))
        x -= self._shift
        self.count += len(x)
        self._sum += x.sum(0)
        self._products += x.T @ x

    def mean(self) -> Matrix:
        """Return the mean (d,)."""
        assert self._shift is not None
        assert self._sum is not None
        return self._shift + self._sum / self.count

    def covariance(self) -> Matrix:
        """Return the covariance (d, d), with divisor n - 1."""
        assert self._sum is not None
        assert self._products is not None
        products = self._products - np.outer(self._sum, self._sum) / self.count
        covariance: Matrix = products / (self.count - 1)
        return covariance


def moments_of(encoder: Encoder, items: Sequence[Any], context: FitContext) -> Moments:
    """Return mean and covariance of the vectors of a corpus's texts."""
    moments = Moments()
    for texts in text_chunks(items, context):
        moments.add(encoder.encode(texts, device=context.device, precision="fp32"))
        if context.progress:
            context.progress(min(moments.count, len(items)), len(items), "encoding the corpus")
    return moments


def whitening_matrix(covariance: Matrix, *, k: int | None, epsilon: float = 0.0) -> Matrix:
    """Return W (d, k) = U[:, :k] (S[:k] + epsilon)^(-1/2) of covariance = U S U^T (Su et al. 2021).

    `k=None` keeps every direction that has a variance: the exact rank, up to rounding. That may be
    d - 1, because the output of a LayerNorm lies in a hyperplane; dividing by the rounding noise of
    the missing direction, as the reference code does, would make the vectors irreproducible.

    Raises:
        InputError: k is larger than d, or than the rank while epsilon is 0.
    """
    d = len(covariance)
    if k is not None and k > d:
        raise InputError(
            f"whitening: k={k} is larger than the {d} dimensions of the vectors",
            key="k",
            remedy="lower k",
        )
    u, s, _ = np.linalg.svd(covariance, hermitian=True)
    if s[0] > 0:
        rank = int((s > RANK_TOLERANCE * s[0]).sum())
    else:
        rank = 0
    if rank == 0:
        raise InputError(
            "whitening: all sentence vectors of the corpus are equal",
            remedy="give it more varied text",
        )
    if epsilon == 0 and k is not None and k > rank:
        raise InputError(
            f"whitening: k={k}, but the corpus's vectors span {rank} dimensions",
            key="k",
            remedy="lower k, set epsilon or add text",
        )
    if k is None:
        k = d if epsilon > 0 else rank
    matrix: Matrix = u[:, :k] / np.sqrt(np.maximum(s[:k], 0.0) + epsilon)
    return matrix


def affine_layer(matrix: Matrix, mean: Matrix) -> torch.nn.Linear:
    """Return y = (x - mean) matrix as a layer in float32."""
    import torch

    affine = torch.nn.utils.skip_init(torch.nn.Linear, *matrix.shape)  # type: ignore[no-untyped-call]
    assert isinstance(affine, torch.nn.Linear)
    with torch.no_grad():
        affine.weight.copy_(torch.from_numpy(matrix.T.copy()))
        affine.bias.copy_(torch.from_numpy(-mean @ matrix))
    return affine


class WhiteningConfig(VectorMapConfig):
    """Number of dimensions, and shrinkage."""

    k: int | None = option(
        None,
        "number of dimensions; empty: all that have a variance",
        ge=1,
        sweep=[128, 256, 384, 768],
    )
    epsilon: float = option(0.0, "shrinkage added to the variances; the paper has none", ge=0)


class Whitening(VectorMap):
    """y = (x - mean) W, saved as a Dense layer after the pooling; length-normalising is left to the
    cosine.
    """

    name = "whitening"
    version = 1
    sheet = RecipeFile.beside(__file__)
    Config = WhiteningConfig

    def _learn(self, encoder: Encoder, items: Sequence[Any], context: FitContext) -> FitReport:
        moments = moments_of(encoder, items, context)
        w = whitening_matrix(moments.covariance(), k=self.config.k, epsilon=self.config.epsilon)
        d, k = w.shape
        if self.transductive and self.config.epsilon == 0:
            distinct = len(set(items))
            if k >= distinct - 1:
                raise InputError(
                    f"whitening: the task has {distinct} distinct sentences: with {k} "
                    "dimensions whitened, any two of them would be equally far apart",
                    remedy="lower k, set epsilon, or fit_on another text",
                )
        encoder.affine = affine_layer(w, moments.mean()).to(context.device)
        return FitReport(
            training={"dimensions": d, "kept": k},
            cost={"corpus_sentences_seen": float(moments.count)},
        )
