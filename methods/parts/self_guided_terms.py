"""What SG needs besides `methods.objectives.self_guided`: its regulariser, and Eq. opt2 as its code computes it.

Source: SG (Kim, Yoo & Lee, ACL 2021) and its code, galsang/SG-BERT.
"""

from __future__ import annotations

from collections.abc import Iterable

import torch
from torch import Tensor
from torch.nn import functional

from methods.parts.row_vectors import check_rows, check_temperature, full_precision, unit


@full_precision
def opt2_as_coded(cls: Tensor, views: Tensor, *, temperature: float) -> Tensor:
    """`self_guided(variant="opt2")` with the code's slip: the first h_j of each denominator is missing.

    L = mean over i of -log[ f(c_i,h_i) / ( f(c_i,h_i) + sum over j != i, j != first(i) of f(c_i,h_j) ) ],
    f(u, v) = exp(cos(u, v)/t), first(i) the smallest j other than i: n - 2 negatives instead of n - 1.

    Args:
        cls, views: (n, d). n <= 2 leaves no negative, and the loss is 0.
    """
    check_rows(cls, views)
    check_temperature(temperature)
    n = len(cls)
    logits = unit(cls) @ unit(views).T / temperature
    row = torch.arange(n, device=logits.device)
    dropped = torch.zeros_like(logits, dtype=torch.bool)
    if n > 1:
        dropped[row, (row == 0).long()] = True
    return functional.cross_entropy(logits.masked_fill(dropped, float("-inf")), row)


def squared_distance(parameters: Iterable[Tensor], start: Iterable[Tensor]) -> Tensor:
    """L_reg = sum over all parameters of (p - p_0)^2, a scalar; gradient 2 (p - p_0) through `parameters`.

    Parameters that do not learn are still where they started, so leaving them out changes nothing.
    """
    terms = [(p - p_0.detach()).square().sum() for p, p_0 in zip(parameters, start, strict=True) if p.requires_grad]
    return torch.stack(terms).sum() if terms else torch.zeros(())
