"""VICReg on sentences: views agree, every feature varies, and different features do not covary."""

from __future__ import annotations

from typing import Literal

from torch import Tensor

from harness.config import option
from harness.recipes import RecipeFile
from methods.objectives import vicreg_terms
from methods.parts.two_views import TwoViewConfig, TwoViewMethod


class VICRegConfig(TwoViewConfig):
    """Protocol of `TwoViewConfig` and the options of the objective; weights inside the paper's
    search ranges.
    """

    scaling: Literal["paper", "code"] = option(
        "paper",
        "Eq. 3 as printed, or the vision code: invariance averaged over features, variance term halved",
    )
    invariance_weight: float = option(1.0, "weight of the views' squared distance (lambda_I)", ge=0)
    variance_weight: float = option(
        1000.0,
        "weight of the hinge on standard deviations (lambda_V)",
        ge=0,
        sweep=(10.0, 1e4),
        log=True,
    )
    covariance_weight: float = option(
        0.01,
        "weight of the squared covariances (lambda_C)",
        ge=0,
        sweep=(1e-3, 1e-1),
        log=True,
    )
    eps: float = option(1e-4, "added to a variance before its root", gt=0)


class VICReg(TwoViewMethod):
    """L = l_I/n sum_i |zA_i - zB_i|^2 + l_V/d sum_{A,B} sum_j max(0, 1 - sqrt(Cov_jj + eps))
    + l_C/d sum_{A,B} sum_{j != k} Cov_jk^2."""

    name = "vicreg"
    version = 1
    sheet = RecipeFile.beside(__file__)
    Config = VICRegConfig

    def terms(self, z_a: Tensor, z_b: Tensor, *_: object) -> dict[str, Tensor]:
        config = self.config
        code = config.scaling == "code"
        return vicreg_terms(
            z_a,
            z_b,
            invariance=config.invariance_weight / (z_a.shape[1] if code else 1),
            variance=config.variance_weight / (2 if code else 1),
            covariance=config.covariance_weight,
            eps=config.eps,
        )
