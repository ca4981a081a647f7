"""Glow on single vectors: an invertible map with an exact log-determinant (Kingma & Dhariwal 2018,
as in BERT-flow).

A vector of D numbers is an image of one pixel with D channels: no spatial squeeze. A level is a few
steps (actnorm, mixing of the channels, coupling); between levels the second half of the channels
leaves the flow. All priors are standard normal.
"""

from __future__ import annotations

import math
from typing import Literal

import torch
from torch import Tensor, nn

from harness.errors import InputError

LOG_SCALE_FACTOR = 3.0  # log-scales are stored divided by this, which makes them learn faster


class Actnorm(nn.Module):
    """y = (x + shift) exp(3 log_scale) per channel; the first batch in training sets it to mean 0
    and variance 1.
    """

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.shift = nn.Parameter(torch.zeros(channels))
        self.log_scale = nn.Parameter(torch.zeros(channels))
        self.register_buffer("ready", torch.tensor(False))

    @torch.no_grad()
    def _initialise(self, x: Tensor) -> None:
        self.shift.copy_(-x.mean(0))
        moved = x + self.shift
        spread = moved.square().mean(0).sqrt()
        logs = (spread + 1e-6).log()
        self.log_scale.copy_(-logs / LOG_SCALE_FACTOR)
        self.ready: Tensor = torch.ones_like(self.ready)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """(n, channels) to the same, and log |det| (), the same for every row."""
        if self.training and not self.ready:
            self._initialise(x)
        logs = LOG_SCALE_FACTOR * self.log_scale
        moved = x + self.shift
        return moved * logs.exp(), logs.sum()


class Reversal(nn.Module):
    """Reverses the channels: log |det| = 0."""

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """(n, channels) to the same, and 0."""
        return x.flip(-1), x.new_zeros(())


class Mixing(nn.Module):
    """y = x W, the learned 1x1 convolution: W = P L (U + diag(sign exp(log_s))), at first a random
    rotation.
    """

    def __init__(self, channels: int) -> None:
        super().__init__()
        drawn = torch.rand(channels, channels, dtype=torch.float64)
        rotation = torch.linalg.qr(drawn).Q
        p, lower, upper = torch.linalg.lu(rotation)
        s = upper.diagonal()
        self.register_buffer("p", p.float())
        self.register_buffer("sign", s.sign().float())
        self.lower = nn.Parameter(lower.tril(-1).float())
        self.upper = nn.Parameter(upper.triu(1).float())
        self.log_s = nn.Parameter(s.abs().log().float())

    def _weight(self) -> Tensor:
        ones = torch.eye(
            len(self.lower),
            dtype=self.lower.dtype,
            device=self.lower.device,
        )
        lower = self.lower.tril(-1) + ones
        s = self.get_buffer("sign") * self.log_s.exp()
        upper = self.upper.triu(1) + s.diag()
        return self.get_buffer("p") @ lower @ upper

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """(n, channels) to the same, and log |det| ()."""
        return x @ self._weight(), self.log_s.sum()


class CouplingNetwork(nn.Module):
    """Dense, actnorm, ReLU, twice; then a dense layer of zeros with bias and log-scale: a new flow
    is linear.
    """

    def __init__(self, inputs: int, width: int, outputs: int) -> None:
        super().__init__()
        self.dense = nn.ModuleList(
            [nn.Linear(inputs, width, bias=False), nn.Linear(width, width, bias=False)]
        )
        self.norm = nn.ModuleList([Actnorm(width), Actnorm(width)])
        for layer in self.dense:
            nn.init.normal_(layer.weight, std=0.05)  # type: ignore[arg-type]
        self.weight = nn.Parameter(torch.zeros(outputs, width))
        self.bias = nn.Parameter(torch.zeros(outputs))
        self.log_scale = nn.Parameter(torch.zeros(outputs))

    def forward(self, x: Tensor) -> Tensor:
        """(n, inputs) to (n, outputs)."""
        for dense, norm in zip(self.dense, self.norm, strict=True):
            normal, _ = norm(dense(x))
            x = normal.relu()
        logs = LOG_SCALE_FACTOR * self.log_scale
        outputs = x @ self.weight.T + self.bias
        return outputs * logs.exp()


class Coupling(nn.Module):
    """First half unchanged; second half + shift(first half), and times sigmoid(scale(first half) +
    2) if affine.
    """

    def __init__(self, channels: int, width: int, kind: Literal["additive", "affine"]) -> None:
        super().__init__()
        self.affine = kind == "affine"
        half = channels // 2
        if self.affine:
            outputs = channels
        else:
            outputs = half
        self.network = CouplingNetwork(half, width, outputs)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """(n, channels) to the same, and log |det| (n,)."""
        first, second = x.chunk(2, -1)
        shift = self.network(first)
        logs = torch.zeros_like(second)
        if self.affine:
            shift, scale = shift.chunk(2, -1)
            logs = nn.functional.logsigmoid(scale + 2.0)
        changed = (second + shift) * logs.exp()
        both = torch.cat((first, changed), -1)
        return both, logs.sum(-1)


class Glow(nn.Module):
    """z (n, D) = what left the flow after level 1, after level 2 ..., then what came out of the
    last level.
    """

    def __init__(
        self,
        dimension: int,
        *,
        levels: int = 3,
        steps: int = 3,
        width: int = 32,
        coupling: Literal["additive", "affine"] = "additive",
        mixing: Literal["reversal", "learned"] = "reversal",
    ) -> None:
        """`width`: hidden units of the coupling networks.

        Raises:
            InputError: D cannot be halved once a level.
        """
        super().__init__()
        if dimension % 2**levels:
            remedy = "lower `levels`"
            if dimension % 2:
                remedy += ", or take a model with an even hidden size"
            raise InputError(
                f"flow: vectors of {dimension} dimensions cannot be halved {levels} times, once a level; {remedy}"
            )
        self.levels = nn.ModuleList()
        self.dimension = dimension
        for level in range(levels):
            channels = dimension >> level
            parts: list[nn.Module] = []
            for _ in range(steps):
                parts.append(Actnorm(channels))
                if mixing == "learned":
                    parts.append(Mixing(channels))
                else:
                    parts.append(Reversal())
                parts.append(Coupling(channels, width, coupling))
            self.levels.append(nn.ModuleList(parts))

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """x (n, D) to z (n, D), and log |det dz/dx| (n,)."""
        log_det = x.new_zeros(len(x))
        left: list[Tensor] = []
        for number, level in enumerate(self.levels):
            assert isinstance(level, nn.ModuleList)
            if number:
                x, out = x.chunk(2, -1)
                left.append(out)
            for part in level:
                x, change = part(x)
                log_det = log_det + change
        return torch.cat((*left, x), -1), log_det

    def bits_per_dimension(self, x: Tensor) -> Tensor:
        """-log2 p(x) / D of every row (n,): -(log N(z; 0, I) + log |det dz/dx|) / (D ln 2)."""
        z, log_det = self(x)
        constant = self.dimension * math.log(2 * math.pi)
        log_normal = -0.5 * (z.square().sum(-1) + constant)
        log_p = log_normal + log_det
        bits: Tensor = -log_p / (self.dimension * math.log(2))
        return bits
