"""Projection heads: used by the loss while training, dropped at test time.

Initialisation draws from the generator that is passed in, or from torch's global one (which
training seeds for the purpose "init" before it asks a method for its heads); no number is drawn
that is not used.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from typing import Annotated, Literal

import torch
from pydantic import Field
from torch import nn

Bias = Literal["first", "hidden", "none", "all"]
Init = Literal["normal", "pytorch"]
_BERT_BASE = 768
Widths = Annotated[
    tuple[Annotated[int, Field(ge=1)], ...], Field(min_length=1)
]  # of a projector, in a config


def _linear(
    inputs: int,
    outputs: int,
    *,
    bias: bool,
    init: Init,
    generator: torch.Generator | None,
) -> nn.Linear:
    """A linear layer, initialised "normal" (N(0, 0.02), bias 0: the Hugging Face BERT scheme) or
    "pytorch" (uniform in +-1/sqrt(inputs) for weight and bias, `nn.Linear`'s own).
    """
    layer = nn.utils.skip_init(nn.Linear, inputs, outputs, bias=bias)  # type: ignore[no-untyped-call]
    assert isinstance(layer, nn.Linear)
    with torch.no_grad():
        if init == "normal":
            layer.weight.normal_(0.0, 0.02, generator=generator)
            if bias:
                layer.bias.zero_()
        elif init == "pytorch":
            bound = 1 / math.sqrt(inputs)
            layer.weight.uniform_(-bound, bound, generator=generator)
            if bias:
                layer.bias.uniform_(-bound, bound, generator=generator)
        else:
            raise ValueError(f'init must be "normal" or "pytorch", got {init!r}')
    return layer


def tanh_mlp(dimension: int, *, generator: torch.Generator | None = None) -> nn.Sequential:
    """SimCSE's training-only head, (n, d) -> (n, d): z = tanh(W h + b), W ~ N(0, 0.02), b = 0."""
    return nn.Sequential(
        _linear(dimension, dimension, bias=True, init="normal", generator=generator), nn.Tanh()
    )


def widths_for(dimension: int, usual: int) -> Widths:
    """Return three layers of the `usual` width, or of four times the width of a base model that is
    narrower than BERT-base.
    """
    if dimension >= _BERT_BASE:
        width = usual
    else:
        width = 4 * dimension
    return (width, width, width)


def projector(
    dimension: int,
    widths: Sequence[int],
    *,
    bias: Bias,
    init: Init,
    generator: torch.Generator | None = None,
) -> nn.Sequential:
    """(n, dimension) -> (n, widths[-1]): Linear - BatchNorm - ReLU for every width but the last,
    then a final Linear.

    The BatchNorms have weight 1 and bias 0 to start with. Apply the projector to the two views in
    two calls, so that each call sees one view's statistics and the running ones move twice a step,
    as all the reference codes do.

    Args:
        bias: which linear layers have one. SCD's code: "first"; VICReg's: "hidden" (all but the
            last); Barlow Twins'
            vision code: "none"; "all" for the ablation.
        init: SCD uses "normal" (N(0, 0.02), as its encoder does), the vision codes "pytorch".
    """
    if not widths or min(widths) < 1:
        raise ValueError(f"widths must be one or more positive numbers, got {list(widths)}")
    last = len(widths) - 1
    if bias not in ("first", "hidden", "none", "all"):
        raise ValueError(f'bias must be "first", "hidden", "none" or "all", got {bias!r}')
    layers: list[nn.Module] = []
    inputs = dimension
    for place, width in enumerate(widths):
        has_bias = (
            bias == "all" or (bias == "first" and place == 0) or (bias == "hidden" and place < last)
        )
        layers.append(_linear(inputs, width, bias=has_bias, init=init, generator=generator))
        if place < last:
            layers += [nn.BatchNorm1d(width), nn.ReLU(inplace=True)]
        inputs = width
    return nn.Sequential(*layers)


def blocks(
    dimension: int,
    count: int,
    *,
    init: Init,
    generator: torch.Generator | None = None,
) -> nn.Sequential:
    """(n, dimension) -> (n, dimension) by `count` blocks, each Linear - BatchNorm - ReLU - Linear -
    ReLU - Linear.

    Inside a block the width is ten times the outer one; all linear layers have a bias. Source:
    asparius/UNSEE.
    """
    wide = 10 * dimension
    linear = partial(_linear, bias=True, init=init, generator=generator)
    layers: list[nn.Module] = []
    for _ in range(count):
        layers += [
            linear(dimension, wide),
            nn.BatchNorm1d(wide),
            nn.ReLU(inplace=True),
            linear(wide, wide),
            nn.ReLU(inplace=True),
            linear(wide, dimension),
        ]
    return nn.Sequential(*layers)
