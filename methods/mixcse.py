"""MixCSE: SimCSE with one more negative an anchor, a mixture of its own positive and of another
sentence's.
"""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor, nn
from torch.nn import functional

from harness.config import option
from harness.recipes import RecipeFile
from harness.training import Batch
from methods.parts.row_vectors import check_rows, check_temperature, full_precision, unit
from methods.simcse import SimCSE, SimCSEConfig


@full_precision
def mixed_negatives(
    anchors: Tensor,
    positives: Tensor,
    *,
    shift: int,
    mix: float,
    temperature: float,
) -> Tensor:
    """NT-Xent with a hard negative that is mixed on the unit sphere.

    L = -(1/n) sum_i log( exp(cos(a_i, p_i)/t) / [sum_j exp(cos(a_i, p_j)/t) + exp(cos(a_i, m_i)/t)]
    )
    m_i = stop_gradient( mix * u(p_i) + (1 - mix) * u(p_(i + shift mod n)) ),  u(x) = x / |x|

    Args:
        anchors, positives: (n, d); row i of one belongs to row i of the other.
        shift: 1 .. n - 1, which other sentence is mixed in; 0 where n = 1, which has no negatives
            and gives 0.
        mix: lambda, the share of the anchor's own positive.

    Source: Zhang et al., AAAI 2022.
    """
    check_rows(anchors, positives)
    check_temperature(temperature)
    n = len(anchors)
    if not (0 < shift < n or n == 1):
        raise ValueError(f"shift must be in 1 .. {n - 1}, got {shift}")
    a = unit(anchors)
    p = unit(positives)
    logits = a @ p.T
    if n > 1:
        mixed = unit(mix * p + (1 - mix) * p.roll(-shift, 0)).detach()
        logits = torch.cat([logits, (a * mixed).sum(1, keepdim=True)], dim=1)
    return functional.cross_entropy(logits / temperature, torch.arange(n, device=a.device))


class MixCSEConfig(SimCSEConfig):
    """Defaults: SimCSE's, and the paper's share."""

    similarity: Literal["cosine"] = option("cosine", "the mixture is defined on the unit sphere")
    mix: float = option(
        0.2, "share of the anchor's own positive in its mixed negative (lambda)", ge=0, lt=1
    )


class MixCSE(SimCSE):
    """SimCSE's loss with exp(cos(zA_i, m_i) / temperature) in the denominator, m_i the mixed
    negative.
    """

    name = "mixcse"
    version = 1
    sheet = RecipeFile.beside(__file__)
    Config = MixCSEConfig

    def contrast(self, z_a: Tensor, z_b: Tensor, heads: nn.Module, batch: Batch) -> Tensor:
        n = len(z_a)
        config = self.config
        if n > 1:
            shift = int(batch.rng.integers(1, n))
        else:
            shift = 0
        return mixed_negatives(
            z_a,
            z_b,
            shift=shift,
            mix=config.mix,
            temperature=config.temperature,
        )
