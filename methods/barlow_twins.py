"""Barlow Twins on sentences: the cross-correlation of two views' projections becomes the identity."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from harness.config import option
from harness.method import MethodCard, MethodConfig
from harness.recipes import Presets, Recipe, Recipes
from methods.objectives import barlow_twins_terms
from methods.parts.later_models import REHEARSAL, SEARCHED, later_models
from methods.parts.two_views import TwoViewConfig, TwoViewMethod

if TYPE_CHECKING:
    from torch import Tensor

NC = "Farina & Pappadopulo 2023"
VISION = "facebookresearch/barlowtwins: main.py, its lambda and projector; the rest as Farina & Pappadopulo train"
# Not in the recipe: learning rate and weights, which the paper searches and does not print for its models.
PROTOCOL = {
    "batch_size": 256,
    "epochs": 2,
    "train_length": 32,
    "eval_every": 60,
    "bucket": 1,
    "projector": (8192, 8192, 8192),
}
MINI = {
    "batch_size": 32,
    "pooling": "mean",
    "learning_rate": 1e-4,
    "off_diagonal_weight": 5e-3,
    "epochs": 1,
    "eval_every": 25,
    "projector": (1024, 1024, 1024),
    "bucket": 32,
}


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
    version = 1
    card = MethodCard(
        title="Barlow Twins",
        paper="Farina & Pappadopulo, Non-contrastive sentence representations, Findings of NAACL 2024",
        equations="Eq. 2",
        reference="none published; facebookresearch/barlowtwins for the objective",
        text="sentences",
        supervision="unsupervised",
        cost="two epochs, both views in one forward, a wide projector",
        precision="not stated",
        published=(
            "noncontrastive.csv:Barlow Twins (p_do=0.05)",
            "noncontrastive.csv:Barlow Twins (p_shuffle=0.5)",
            "noncontrastive.csv:Barlow Twins (p_do=0.1)",
            "noncontrastive.csv:Barlow Twins (NLI)",
            "noncontrastive.csv:Barlow Twins (WikiAuto)",
        ),
        notes="The paper does not print its final lambda, optimiser, lengths, or how it treats special tokens; "
        "the vision code's projector has no biases (preset code), the paper follows VICReg's. Optimisation is "
        "SimCSE's in every preset, not the LARS of the vision code. "
        "With view = paraphrase it learns from pairs, one side per branch, and no negatives.",
        when_it_collapses="a lower learning_rate, a larger batch_size, a higher off_diagonal_weight for rank",
    )
    Config: ClassVar[type[MethodConfig]] = BarlowTwinsConfig
    presets: ClassVar[Presets] = {
        # The augmentations and rates of the models in the paper's Table 2; EDA's best in Table 1.
        "paper": Recipes(
            {
                "bert-base": Recipe({"dropout": 0.05}, f"{NC}, Table 2"),
                "roberta-base": Recipe({"dropout": 0.1}, f"{NC}, Table 2"),
                **later_models({"dropout": 0.05}),
                "mini": Recipe({**MINI, "learning_rate": 3.5e-5, "dropout": 0.2}, SEARCHED),
            },
            shared={**PROTOCOL, "view": "dropout"},
            aliases={"paper-roberta": "roberta-base", "mini": "mini"},
        ),
        "paper-shuffle": Recipes(
            {
                "bert-base": Recipe({"shuffle": 0.5}, f"{NC}, Table 2"),
                "roberta-base": Recipe({"shuffle": 0.5}, f"{NC}, Table 2"),
                **later_models({"shuffle": 0.5}),
                "mini": Recipe({**MINI, "learning_rate": 5e-5, "off_diagonal_weight": 5e-4, "shuffle": 0.5}, SEARCHED),
            },
            shared={**PROTOCOL, "view": "shuffle"},
            aliases={"paper-roberta-shuffle": "roberta-base", "mini-shuffle": "mini"},
        ),
        "paper-eda": Recipes(
            {
                "bert-base": Recipe({"eda": 0.1}, f"{NC}, Table 1"),
                "roberta-base": Recipe({"eda": 0.2}, f"{NC}, Table 1"),
                **later_models({"eda": 0.1}),
                "mini": Recipe(MINI, REHEARSAL),
            },
            shared={**PROTOCOL, "view": "eda"},
            aliases={"paper-roberta-eda": "roberta-base"},
        ),
        "paper-pairs": Recipes(
            {
                "bert-base": Recipe({}, f"{NC}, section 3"),
                "roberta-base": Recipe({}, f"{NC}, section 3"),
                **later_models({}),
                "mini": Recipe(MINI, REHEARSAL),
            },
            shared={**PROTOCOL, "view": "paraphrase"},
        ),
        "code": Recipes(
            {
                "bert-base": Recipe({}, VISION),
                "roberta-base": Recipe({}, VISION),
                **later_models({}),
                "mini": Recipe(MINI, REHEARSAL),
            },
            shared={**PROTOCOL, "off_diagonal_weight": 0.0051, "projector_bias": "none"},
        ),
    }

    def terms(self, z_a: Tensor, z_b: Tensor) -> dict[str, Tensor]:
        config = self.config
        return barlow_twins_terms(z_a, z_b, off_diagonal_weight=config.off_diagonal_weight, unbiased=config.unbiased)
