"""Barlow Twins on sentences: the cross-correlation of two views' projections becomes the identity."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from harness.config import option
from harness.method import MethodCard, MethodConfig
from methods.objectives import barlow_twins
from methods.parts.two_views import TwoViewConfig, TwoViewMethod

if TYPE_CHECKING:
    from torch import Tensor


class BarlowTwinsConfig(TwoViewConfig):
    """The protocol of `TwoViewConfig` and the options of the objective."""

    off_diagonal_weight: float = option(
        5e-3,
        "weight of the off-diagonal correlations (lambda)",
        ge=0,
        sweep=[5e-4, 1e-3, 2.5e-3, 5e-3, 7.5e-3, 1e-2, 2.5e-2],
    )
    unbiased: bool = option(False, "divide variances by n - 1, as the vision paper's pseudo-code does")


class BarlowTwins(TwoViewMethod):
    """L = sum_i (1 - r_ii)^2 + lambda sum_{i != j} r_ij^2, r = Pearson correlation over the batch."""

    name = "barlow_twins"
    card = MethodCard(
        title="Barlow Twins",
        paper="Farina & Pappadopulo, Non-contrastive sentence representations, Findings of NAACL 2024",
        equations="Eq. 2",
        reference="none published; facebookresearch/barlowtwins for the objective",
        text="sentences",
        supervision="unsupervised",
        cost="two epochs, both views in one forward, a wide projector",
        published=(
            "noncontrastive.csv:Barlow Twins (p_do=0.05)",
            "noncontrastive.csv:Barlow Twins (p_shuffle=0.5)",
            "noncontrastive.csv:Barlow Twins (p_do=0.1)",
            "noncontrastive.csv:Barlow Twins (NLI)",
            "noncontrastive.csv:Barlow Twins (WikiAuto)",
        ),
        notes="The paper does not print its final lambda, optimiser, lengths, or how it treats special tokens; "
        "the vision code's projector has no biases (preset code), the paper follows VICReg's. "
        "With view = paraphrase it learns from pairs, one side per branch, and no negatives.",
    )
    Config: ClassVar[type[MethodConfig]] = BarlowTwinsConfig
    presets: ClassVar[dict[str, dict[str, Any]]] = {
        # The augmentations and rates of the models in the paper's Table 2; EDA's best in Table 1.
        "paper": {"view": "dropout", "dropout": 0.05},
        "paper-shuffle": {"view": "shuffle", "shuffle": 0.5},
        "paper-eda": {"view": "eda", "eda": 0.1},
        "paper-roberta": {"view": "dropout", "dropout": 0.1},
        "paper-roberta-shuffle": {"view": "shuffle", "shuffle": 0.5},
        "paper-roberta-eda": {"view": "eda", "eda": 0.2},
        "paper-pairs": {"view": "paraphrase"},
        "code": {"projector_bias": "none"},
        # Both found by studies/search_embedded.py on the embedded dev part.
        "mini": {
            "pooling": "cls",
            "batch_size": 64,
            "learning_rate": 1e-4,
            "off_diagonal_weight": 0.025,
            "epochs": 1,
            "eval_every": 10,
            "projector": (1024, 1024, 1024),
        },
        "mini-shuffle": {
            "view": "shuffle",
            "pooling": "cls",
            "batch_size": 64,
            "learning_rate": 3e-4,
            "off_diagonal_weight": 0.005,
            "epochs": 1,
            "eval_every": 10,
            "projector": (1024, 1024, 1024),
        },
    }

    def objective(self, z_a: Tensor, z_b: Tensor) -> Tensor:
        config = self.config
        return barlow_twins(z_a, z_b, off_diagonal_weight=config.off_diagonal_weight, unbiased=config.unbiased)
