"""Barlow Twins on sentences: the cross-correlation of two views' projections becomes the identity."""

from __future__ import annotations

from torch import Tensor

from harness.config import option
from harness.recipes import RecipeFile
from methods.objectives import barlow_twins_terms
from methods.parts.two_views import TwoViewConfig, TwoViewMethod


class BarlowTwinsConfig(TwoViewConfig):
    """Protocol of `TwoViewConfig` and the options of the objective."""

    off_diagonal_weight: float = option(
        5e-3,
        "weight of the off-diagonal correlations (lambda)",
        ge=0,
        sweep=[5e-4, 1e-3, 2.5e-3, 5e-3, 7.5e-3, 1e-2, 2.5e-2],
    )
    unbiased: bool = option(
        False, "divide variances by n - 1, as the vision paper's pseudo-code does"
    )


class BarlowTwins(TwoViewMethod):
    """L = sum_i (1 - r_ii)^2 + lambda sum_{i != j} r_ij^2, r = Pearson correlation over the batch."""

    name = "barlow_twins"
    version = 1
    sheet = RecipeFile.beside(__file__)
    Config = BarlowTwinsConfig

    def terms(self, z_a: Tensor, z_b: Tensor, *_: object) -> dict[str, Tensor]:
        config = self.config
        return barlow_twins_terms(
            z_a, z_b, off_diagonal_weight=config.off_diagonal_weight, unbiased=config.unbiased
        )
