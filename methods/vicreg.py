"""VICReg on sentences: views agree, every feature varies, and different features do not covary."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Literal

from harness.config import option
from harness.method import MethodCard, MethodConfig
from harness.recipes import Presets, RecipeFile
from methods.objectives import vicreg_terms
from methods.parts.two_views import TwoViewConfig, TwoViewMethod

if TYPE_CHECKING:
    from torch import Tensor


class VICRegConfig(TwoViewConfig):
    """The protocol of `TwoViewConfig` and the options of the objective; weights inside the paper's search ranges."""

    scaling: Literal["paper", "code"] = option(
        "paper", "Eq. 3 as printed, or the vision code: invariance averaged over features, variance term halved"
    )
    invariance_weight: float = option(1.0, "weight of the views' squared distance (lambda_I)", ge=0)
    variance_weight: float = option(
        1000.0, "weight of the hinge on standard deviations (lambda_V)", ge=0, sweep=(10.0, 1e4), log=True
    )
    covariance_weight: float = option(
        0.01, "weight of the squared covariances (lambda_C)", ge=0, sweep=(1e-3, 1e-1), log=True
    )
    eps: float = option(1e-4, "added to a variance before its root", gt=0)


class VICReg(TwoViewMethod):
    """L = l_I/n sum_i |zA_i - zB_i|^2 + l_V/d sum_{A,B} sum_j max(0, 1 - sqrt(Cov_jj + eps))
    + l_C/d sum_{A,B} sum_{j != k} Cov_jk^2."""

    name = "vicreg"
    version = 1
    card = MethodCard(
        title="VICReg",
        paper="Farina & Pappadopulo, Non-contrastive sentence representations, Findings of NAACL 2024",
        equations="Eq. 3",
        reference="none published; facebookresearch/vicreg for the objective",
        text="sentences",
        supervision="unsupervised",
        cost="two epochs, both views in one forward, a wide projector",
        precision="not stated",
        published=(
            "noncontrastive.csv:VICReg (p_do=0.05)",
            "noncontrastive.csv:VICReg (p_shuffle=0.5)",
            "noncontrastive.csv:VICReg (p_do=0.2)",
        ),
        notes="The printed equation weighs invariance d times and variance twice as much as the vision code (preset "
        "code); the searched ranges fit the equation. The selected weights are not printed: the defaults lie in the "
        "ranges' part that the paper reports as good (large lambda_V, small lambda_C). Learning from pairs "
        "(view = paraphrase) is not reported. Optimisation is SimCSE's in every preset, not the vision code's LARS.",
        when_it_collapses="a higher variance_weight, a lower invariance_weight, a lower learning_rate",
    )
    Config: ClassVar[type[MethodConfig]] = VICRegConfig
    presets: ClassVar[Presets] = RecipeFile.beside(__file__)

    def terms(self, z_a: Tensor, z_b: Tensor) -> dict[str, Tensor]:
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
