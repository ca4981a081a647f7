"""Mean removal and all-but-the-top: takes out of each vector what the sentences of a corpus share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from harness.config import option
from harness.errors import InputError
from harness.method import POOLING_HELP, FitContext, FitReport
from harness.recipes import RecipeFile
from methods.parts.vector_maps import VectorMap, VectorMapConfig
from methods.whitening import Matrix, Moments, affine_layer, moments_of

if TYPE_CHECKING:
    from torch import nn

    from harness.encoder import Encoder

Form = Literal["r1", "r2", "abtt"]


class MeanRemovalConfig(VectorMapConfig):
    """Choice of the part of the vectors that is removed."""

    pooling: str = option("mean", POOLING_HELP)
    max_length: int | None = option(
        None,
        "maximum number of tokens, when fitting and when encoding; empty: as many as the model takes",
        ge=4,
    )
    form: Form = option(
        "r2",
        "r1: subtract the mean; r2: remove the mean's direction; abtt: subtract the mean, and remove k directions",
        sweep=["r1", "r2", "abtt"],
    )
    k: int | None = option(
        None,
        "abtt: number of principal directions that are removed; empty: a hundredth of the dimensions",
        ge=1,
    )
    unit: bool = option(True, "scale the vectors to length 1 afterwards")


def removal(moments: Moments, form: Form, k: int | None) -> tuple[Matrix, Matrix]:
    """Return P (d, d) and c (d,) of the map y = (x - c) P.

    r1: P = I, c = mu. r2: P = I - m m^T with m = mu / |mu|, c = 0. abtt: P = I - U U^T with U (d,
    k) the first k principal directions of the centred vectors, c = mu.

    Source: R1 and R2 of Ren, Sun & Liang 2025 (arXiv 2511.11041); all-but-the-top of Mu & Viswanath
    2018.

    Raises:
        InputError: k is not smaller than d, or the mean is 0, so that it has no direction (r2).
    """
    mean = moments.mean()
    d = len(mean)
    if form == "r1":
        return np.eye(d), mean
    if form == "r2":
        if not mean.any():
            raise InputError(
                "mean_removal: the mean of the corpus's vectors is 0",
                remedy="use form = r1, or another text",
            )
        direction = mean / np.linalg.norm(mean)
        return np.eye(d) - np.outer(direction, direction), np.zeros(d)
    if k is None:
        k = max(1, round(d / 100))
    if k >= d:
        raise InputError(
            f"mean_removal: k={k} leaves nothing of the {d} dimensions of the vectors",
            key="k",
            remedy="lower k",
        )
    top = np.linalg.eigh(moments.covariance())[1][:, d - k :]
    return np.eye(d) - top @ top.T, mean


class MeanRemoval(VectorMap):
    """y = x - mu, or x - (x m) m, or (x - mu) - U U^T (x - mu); saved as a Dense layer after the
    pooling.
    """

    name = "mean_removal"
    version = 1
    sheet = RecipeFile.beside(__file__)
    Config = MeanRemovalConfig

    def _learn(self, encoder: Encoder, items: Sequence[Any], context: FitContext) -> FitReport:
        from torch import nn

        from harness.encoder.pooling import Normalize

        moments = moments_of(encoder, items, context)
        matrix, centre = removal(moments, self.config.form, self.config.k)
        layer = affine_layer(matrix, centre).to(context.device)
        if self.config.unit:
            encoder.head = nn.Sequential(*encoder.head, layer, Normalize())
        else:
            encoder.affine = layer

        count = moments.count
        length = float(np.linalg.norm(moments.mean()))
        variance = float(np.trace(moments.covariance())) * (count - 1) / count
        squares = variance + length**2
        training = {
            "dimensions": len(layer.weight),
            "mean_length": length,
            "mean_share": length**2 / squares,
        }
        return FitReport(training, {"corpus_sentences_seen": float(count)})

    def _has_unit_vectors(self) -> bool:
        """True if the encoder ends with the map and the scaling."""
        from harness.encoder.pooling import Normalize

        layers: list[nn.Module] = [*self.encoder.head]
        return bool(layers) and isinstance(layers[-1], Normalize)

    def _without_map(self) -> Encoder:
        from torch import nn

        encoder = super()._without_map()
        if self._has_unit_vectors():
            encoder.head = nn.Sequential(*[*encoder.head][:-2])
        return encoder

    def _stands_alone(self) -> bool:
        return super()._stands_alone() or self._has_unit_vectors()
