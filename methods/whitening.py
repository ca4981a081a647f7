"""BERT-whitening: a linear map that gives a corpus's sentence vectors mean 0 and identity covariance."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from harness.config import option
from harness.errors import InputError
from harness.method import FitContext, FitReport, Method, MethodCard, MethodConfig, require_corpus

if TYPE_CHECKING:
    from harness.sources import Corpus

CHUNK = 8192  # sentences encoded at a time: memory stays the same however large the corpus is
RANK_TOLERANCE = 1e-10  # variances below this share of the largest are rounding noise of float32 vectors

Matrix = NDArray[np.float64]


class Moments:
    """Mean and covariance of rows that arrive in chunks, in float64; shifted by the first chunk's mean, so that a large
    mean does not swallow small variances."""

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
            self._shift, self._sum, self._products = x.mean(0), np.zeros(d), np.zeros((d, d))
        x -= self._shift
        self.count += len(x)
        self._sum += x.sum(0)
        self._products += x.T @ x

    def mean(self) -> Matrix:
        """(d,)"""
        assert self._shift is not None
        assert self._sum is not None
        return self._shift + self._sum / self.count

    def covariance(self) -> Matrix:
        """(d, d) with divisor n - 1."""
        assert self._sum is not None
        assert self._products is not None
        covariance: Matrix = (self._products - np.outer(self._sum, self._sum) / self.count) / (self.count - 1)
        return covariance


def whitening_matrix(covariance: Matrix, *, k: int | None, epsilon: float = 0.0) -> Matrix:
    """W (d, k) = U[:, :k] (S[:k] + epsilon)^(-1/2) of covariance = U S U^T (Su et al. 2021).

    `k=None` keeps every direction that has a variance: the exact rank, up to rounding. That may be d - 1, because the
    output of a LayerNorm lies in a hyperplane; dividing by the rounding noise of the missing direction, as the
    reference code does, would make the vectors irreproducible.

    Raises:
        InputError: k is larger than d, or than the rank while epsilon is 0.
    """
    d = len(covariance)
    if k is not None and k > d:
        raise InputError(f"whitening: k={k} is larger than the {d} dimensions of the vectors; lower k")
    u, s, _ = np.linalg.svd(covariance, hermitian=True)
    rank = int((s > RANK_TOLERANCE * s[0]).sum()) if s[0] > 0 else 0
    if rank == 0:
        raise InputError("whitening: all sentence vectors of the corpus are equal; give it more varied text")
    if epsilon == 0 and k is not None and k > rank:
        raise InputError(
            f"whitening: k={k}, but the corpus's vectors span {rank} dimensions; lower k, set epsilon or add text"
        )
    kept = k if k is not None else d if epsilon > 0 else rank
    matrix: Matrix = u[:, :kept] / np.sqrt(np.maximum(s[:kept], 0.0) + epsilon)
    return matrix


class WhiteningConfig(MethodConfig):
    """Pooling and length are the paper's."""

    pooling: str = option("first_last_avg", "cls, cls_pooler, mean, max, first_last_avg, last2_avg or layer:K:...")
    max_length: int | None = option(64, "word pieces kept, when fitting and when encoding", ge=4)
    k: int | None = option(None, "dimensions kept; empty: all that have a variance", ge=1, sweep=[128, 256, 384, 768])
    epsilon: float = option(0.0, "shrinkage added to the variances; the paper has none", ge=0)


class Whitening(Method):
    """y = (x - mean) W, kept as a Dense layer after the pooling; length-normalising is left to the cosine."""

    name = "whitening"
    card = MethodCard(
        title="BERT-whitening",
        paper="Su, Cao, Liu & Ou, Whitening sentence representations for better semantics, 2021",
        equations="algorithm 1",
        reference="github.com/bojone/BERT-whitening",
        text="sentences",
        supervision="unsupervised",
        deterministic=True,
        cost="one pass of encoding and one SVD of a d x d matrix",
        notes="Fitted on the comparison's corpus. The paper's rows are fitted on NLI sentences, or on the unlabelled "
        "test texts (a transductive setting). Directions without variance are dropped; the code divides by noise.",
    )
    Config: ClassVar[type[MethodConfig]] = WhiteningConfig
    presets: ClassVar[dict[str, dict[str, Any]]] = {
        "paper": {"pooling": "first_last_avg", "first_layer": 1, "max_length": 64, "k": None},
        "paper-256": {"pooling": "first_last_avg", "first_layer": 1, "max_length": 64, "k": 256},
        "mini": {"pooling": "first_last_avg", "first_layer": 1, "max_length": 64, "k": None},
    }

    def fit(self, corpus: Corpus | None = None, context: FitContext | None = None) -> Self:
        """Estimate mean and covariance of the corpus's vectors and set the map.

        Raises:
            InputError: no corpus, fewer than two sentences, or k out of reach.
        """
        import torch

        context = context or FitContext()
        corpus = require_corpus(self, corpus)
        if len(corpus) < 2:
            raise InputError(f"{corpus.uri}: whitening needs at least 2 sentences, this corpus has {len(corpus)}")
        started = time.perf_counter()
        encoder = self.load_base().to(context.device).eval()
        moments = Moments()
        for start in range(0, len(corpus), CHUNK):
            chunk = [str(corpus[i]) for i in range(start, min(start + CHUNK, len(corpus)))]
            moments.add(np.asarray(encoder.encode(chunk, device=context.device, precision="fp32")))
            if context.progress:
                context.progress(moments.count, len(corpus), "encoding the corpus")
        w = whitening_matrix(moments.covariance(), k=self.config.k, epsilon=self.config.epsilon)
        d, k = w.shape
        affine = torch.nn.utils.skip_init(torch.nn.Linear, d, k)  # type: ignore[no-untyped-call]
        assert isinstance(affine, torch.nn.Linear)
        with torch.no_grad():
            affine.weight.copy_(torch.from_numpy(w.T.copy()))
            affine.bias.copy_(torch.from_numpy(-moments.mean() @ w))
        encoder.affine = affine.to(context.device)
        self.fit_report = FitReport(
            training={"dimensions": d, "kept": k},
            cost={"train_seconds": time.perf_counter() - started, "corpus_sentences_seen": float(moments.count)},
        )
        self._encoder = encoder
        return self
