"""Barlow Twins and VICReg in the gradient paradigm: changes to which rows are pushed apart, by which
weights, and how hard rows are pulled.
"""

from __future__ import annotations

from typing import Any, Literal

import torch
from torch import Tensor, nn

from harness.config import option
from harness.encoder import Encoder
from harness.recipes import RecipeFile
from methods.parts.projection_heads import Widths
from methods.parts.row_vectors import check_rows, full_precision, unit
from methods.parts.two_views import TwoViewConfig, TwoViewMethod

Base = Literal["barlow_twins", "vicreg"]


@full_precision
def gradient_surrogate(
    a: Tensor,
    b: Tensor,
    *,
    base: Base,
    redundancy: float,
    margin: float | None = None,
    temperature: float | None = None,
    ratio: float | None = None,
) -> Tensor:
    """A loss whose gradient is that of the paradigm; its value means nothing.

    L = sum over both orders (u, v) of sum_i [P_i + l sum_k W_ik u_i . sg(u_k)],  u, v = rows of
    unit length

    | | original | with a switch |
    |---|---|---|
    | W, Barlow Twins | 2/n^2 v_i . v_k | `temperature` t: exp(v_i . v_k / t) / sum_{a != b} exp(v_a . v_b / t) |
    | W, VICReg | 2/n^2 u_i . u_k | the same with u |
    | P, VICReg | -2/n u_i . sg(v_i) | `ratio` r: -l r (sum_{k != i} W_ik) u_i . v_i, gradient through both |
    | P, Barlow Twins | -2/n sum_d (1 - (1-l) C_dd) u_id sg(v_id), C = u'v/n | the same |
    | rows with a gradient | all | `margin` m: those with another row of their view at a cosine above 1 - m |

    Without switches this is the gradient of sum_d (1 - C_dd)^2 + l sum_{d != e} C_de^2 (Barlow
    Twins), and of mean_i |u_i - v_i|^2 + l/2 (|u'u/n|^2 + |v'v/n|^2) (VICReg), neither centred.

    Args:
        a, b: (n, d), n >= 2. redundancy: l.

    Source: Li, Zhang & Nie, ACL 2024 (arXiv 2402.18281) and BDBC-KG-NLP/UnderstandingCSE.
    """
    check_rows(a, b, rows=2)
    first = unit(a)
    second = unit(b)
    if margin is not None:
        first = _stop_gradient_of_distant(first, margin)
        second = _stop_gradient_of_distant(second, margin)
    n = len(first)
    itself = _identity(n, first)

    def surrogate_of(u: Tensor, v: Tensor) -> Tensor:
        if base == "barlow_twins":
            like = v.detach()
        else:
            like = u.detach()
        if temperature is None:
            weights = like @ like.T * 2 / n**2
        else:
            logits = like @ like.T / temperature
            total = logits.masked_fill(itself, float("-inf")).flatten().logsumexp(0)
            weights = torch.exp(logits - total)

        apart = redundancy * (weights * (u @ u.detach().T)).sum()
        if ratio is not None:
            others = weights.masked_fill(itself, 0.0).sum(1)
            return apart - redundancy * ratio * (others * (u * v).sum(1)).sum()

        together = u * v.detach()
        if base == "barlow_twins":
            together = (1 - (1 - redundancy) * together.detach().mean(0)) * together
        return apart - 2 / n * together.sum()

    return surrogate_of(first, second) + surrogate_of(second, first)


def _identity(n: int, like: Tensor) -> Tensor:
    return torch.eye(n, dtype=torch.bool, device=like.device)


def _stop_gradient_of_distant(x: Tensor, margin: float) -> Tensor:
    """Return rows `x` (n, d) of unit length, without gradient where no other row has a cosine above
    1 - `margin`.
    """
    nearest = (x @ x.T).detach().masked_fill(_identity(len(x), x), float("-inf")).amax(1)
    is_near = (nearest > 1 - margin).unsqueeze(1)
    return torch.where(is_near, x, x.detach())


class GradientParadigmConfig(TwoViewConfig):
    """Defaults: the original losses; presets switch the paper's changes on."""

    learning_rate: float = option(
        1e-5,
        "peak learning rate of AdamW",
        gt=0,
        sweep=(1e-6, 1e-4),
        log=True,
    )
    batch_size: int = option(
        128,
        "sentences (or pairs) per training step",
        ge=2,
        sweep=[64, 128, 256, 512],
    )
    epochs: int = option(1, "passes over the corpus", ge=1)
    eval_every: int = option(125, "training steps between two evaluations on the dev set", ge=1)
    projector: Widths | None = option(
        None, "widths of the head's layers; empty: one layer as wide as the vectors"
    )
    projector_bias: Literal["first", "hidden", "none", "all"] = option(
        "all", "which layers of the head have a bias"
    )
    projector_init: Literal["normal", "pytorch"] = option(
        "normal", "N(0, 0.02) as in BERT, or PyTorch's default"
    )
    tanh: bool = option(False, "tanh before the head, which the code has for RoBERTa")
    target: Literal["none"] = option(
        "none", "none: the changes are to the gradients of two trained views"
    )
    base: Base = option("barlow_twins", "the loss whose gradient is changed")
    redundancy: float = option(
        30.0,
        "weight of what pushes rows apart (lambda)",
        ge=0,
        sweep=(0.3, 100.0),
        log=True,
    )
    margin: float | None = option(
        None,
        "gradient dissipation: rows whose nearest other row is at a cosine of 1 - this or less get none; empty: off",
        gt=0,
        le=2,
        sweep=(0.1, 1.0),
    )
    temperature: float | None = option(
        None,
        "weights: softmax of the cosines over this, in place of the loss's own; empty: off",
        gt=0,
        sweep=(0.01, 1.0),
        log=True,
    )
    ratio: float | None = option(
        None,
        "ratio: a row is pulled to its other view by this times what pushes it; empty: as the loss does",
        gt=0,
        sweep=(0.5, 3.0),
    )


class GradientParadigm(TwoViewMethod):
    """`gradient_surrogate` of two views behind one linear layer."""

    name = "gradient_paradigm"
    version = 1
    sheet = RecipeFile.beside(__file__)
    Config = GradientParadigmConfig

    def widths(self, encoder: Encoder) -> Widths:
        return self.config.projector or (encoder.dimension,)

    def heads(self, encoder: Encoder) -> nn.Module:
        head = super().heads(encoder)
        if self.config.tanh:
            return nn.Sequential(nn.Tanh(), head)
        return head

    def terms(self, z_a: Tensor, z_b: Tensor, *_: Any) -> dict[str, Tensor]:
        c: GradientParadigmConfig = self.config
        loss = gradient_surrogate(
            z_a,
            z_b,
            base=c.base,
            redundancy=c.redundancy,
            margin=c.margin,
            temperature=c.temperature,
            ratio=c.ratio,
        )
        return {"loss": loss}
