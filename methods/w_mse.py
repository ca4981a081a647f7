"""W-MSE: whiten the projections of a batch, then pull the two views of a sentence together. No
negatives are needed, because whitened vectors cannot collapse.
"""

from __future__ import annotations

from typing import ClassVar, Literal

import numpy as np
import torch
from torch import Tensor, nn

from harness.config import option
from harness.encoder import Encoder
from harness.errors import InputError, TrainingStopped
from harness.method import POOLING_HELP
from harness.recipes import RecipeFile
from harness.sources import Corpus
from harness.training import Batch, BatchStream, TrainingConfig, ViewMethod
from harness.views import ViewConfig, encode_views
from methods.parts.projection_heads import Widths, projector
from methods.parts.row_vectors import check_rows, full_precision, unit

Statistics = Literal["view", "both"]


@full_precision
def whiten(x: Tensor, *, shrinkage: float = 0.0) -> Tensor:
    """Centre rows (n, d) and map them so that their covariance is the identity: y_i = L^-1 (x_i -
    mean).

    L is the lower Cholesky factor of (1 - shrinkage) S + shrinkage I, S the covariance with divisor
    n - 1.

    Raises:
        ValueError: n <= d without shrinkage, for S has rank n - 1 at most; or S is singular for
            another reason.

    Source: W-MSE Eq. 4 and its code.
    """
    n, d = x.shape
    if n < 2 or (n <= d and shrinkage == 0):
        raise ValueError(
            f"{n} rows cannot whiten {d} dimensions: give more rows than dimensions, or a shrinkage"
        )
    centred = x - x.mean(0)
    covariance = (1 - shrinkage) * (centred.T @ centred) / (n - 1)
    covariance = covariance + shrinkage * torch.eye(d, dtype=x.dtype, device=x.device)
    factor, failed = torch.linalg.cholesky_ex(covariance)
    # Values that are not finite stay so, and the guards of the training loop meet them.
    if bool(failed) and bool(covariance.isfinite().all()):
        raise ValueError(
            f"the covariance of {n} rows of {d} dimensions is singular: a shrinkage mends that"
        )
    whitened: Tensor = torch.linalg.solve_triangular(factor, centred.T, upper=False)
    return whitened.T


@full_precision
def whitened_mse(
    z_a: Tensor,
    z_b: Tensor,
    *,
    shrinkage: float = 0.0,
    statistics: Statistics = "view",
    normalise: bool = True,
) -> Tensor:
    """Mean squared distance of the two views after whitening.

    L = (1/n) sum_i |wA_i - wB_i|^2, of unit vectors with `normalise` (2 - 2 cos, in [0, 4]).

    Args:
        z_a, z_b: (n, d), n >= 2.
        statistics: whiten each view by its own covariance (code, batch slicing), or "both" by that
            of all 2n rows.

    Source: W-MSE Eq. 5 and its code, which without `normalise` divides by d as well.
    """
    check_rows(z_a, z_b, rows=2)
    if statistics == "both":
        w_a, w_b = whiten(torch.cat([z_a, z_b]), shrinkage=shrinkage).chunk(2)
    elif statistics == "view":
        w_a = whiten(z_a, shrinkage=shrinkage)
        w_b = whiten(z_b, shrinkage=shrinkage)
    else:
        raise ValueError(f'statistics must be "view" or "both", got {statistics!r}')
    if normalise:
        w_a = unit(w_a)
        w_b = unit(w_b)
    distance: Tensor = (w_a - w_b).square().sum(1).mean()
    return distance


def draw_slices(count: int, size: int, rng: np.random.Generator) -> list[np.ndarray]:
    """Draw a partition of 0 .. count - 1 into as many parts of `size` or more as there are; one
    where count < size.
    """
    return np.array_split(rng.permutation(count), max(1, count // size))


class WMSEConfig(ViewConfig, TrainingConfig):
    """Defaults: the released code's width and slice, with a slight shrinkage for short batches."""

    pooling: str = option("cls", POOLING_HELP)
    batch_size: int = option(256, "sentences per training step", ge=2, sweep=[64, 128, 256, 512])
    shrinkage: float = option(
        1e-3,
        "share of the identity in the covariance; 0 needs slices longer than the projector is wide",
        ge=0,
        lt=1,
    )
    slice: int = option(128, "rows that are whitened together (batch slicing)", ge=2)
    slicings: int = option(
        1, "random partitions of a batch into slices whose losses are averaged", ge=1
    )
    statistics: Statistics = option(
        "view", "whiten each view by its own covariance, or by that of both"
    )
    normalise: bool = option(
        True, "distance of unit vectors; false: of the whitened vectors themselves"
    )
    projector: Widths = option((1024, 64), "widths of the projector's layers")
    projector_init: Literal["normal", "pytorch"] = option(
        "pytorch", "N(0, 0.02) as in BERT, or PyTorch's default"
    )
    joint_head: bool = option(
        False, "the projector runs once on both views, whose batch statistics it shares (code)"
    )
    in_parts: ClassVar[bool] = True


class WMSE(ViewMethod):
    """L = mean over i of 2 - 2 cos(wA_i, wB_i), w = projections whitened slice by slice of the
    batch.
    """

    name = "w_mse"
    version = 1
    sheet = RecipeFile.beside(__file__)
    Config = WMSEConfig

    def stream(self, corpus: Corpus, seed: int) -> BatchStream:
        batches = super().stream(corpus, seed)
        config: WMSEConfig = self.config
        if config.shrinkage:
            return batches
        rows = min(config.slice, batches.batch_size)
        if config.statistics == "both":
            rows *= 2
        if rows <= config.projector[-1]:
            raise InputError(
                f"its {len(batches.corpus)} {corpus.kind} make batches of "
                f"{batches.batch_size}, whose slices of {rows} rows cannot whiten a "
                f"projector {config.projector[-1]} wide: narrow the projector, or set a "
                "shrinkage",
                file=corpus.uri,
            )
        return BatchStream(
            batches.corpus,
            batch_size=batches.batch_size,
            bucket=batches.bucket,
            seed=seed,
            length_cap=batches.length_cap,
            drop_last=True,  # a short batch could not be whitened
            about=batches.about,
        )

    def heads(self, encoder: Encoder) -> nn.Module:
        config: WMSEConfig = self.config
        return projector(
            encoder.dimension, config.projector, bias="hidden", init=config.projector_init
        )

    def loss(self, encoder: Encoder, heads: nn.Module, batch: Batch) -> dict[str, Tensor]:
        config: WMSEConfig = self.config
        h_a, h_b = encode_views(encoder, batch, config, max_length=config.train_length)
        if config.joint_head:
            z_a, z_b = heads(torch.cat([h_a, h_b])).chunk(2)
        else:
            z_a = heads(h_a)
            z_b = heads(h_b)

        total = torch.zeros((), device=z_a.device)
        for _ in range(config.slicings):
            for rows in draw_slices(len(z_a), config.slice, batch.rng):
                chosen = torch.from_numpy(rows).to(z_a.device)
                total = total + len(rows) * self._distance(z_a[chosen], z_b[chosen])
        return {"loss": total / (len(z_a) * config.slicings)}

    def _distance(self, z_a: Tensor, z_b: Tensor) -> Tensor:
        config: WMSEConfig = self.config
        try:
            return whitened_mse(
                z_a,
                z_b,
                shrinkage=config.shrinkage,
                statistics=config.statistics,
                normalise=config.normalise,
            )
        except ValueError as error:
            raise TrainingStopped("collapsed", str(error)) from None
