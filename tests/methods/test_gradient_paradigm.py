"""The gradient paradigm: without switches the gradients of the plain losses, each switch against
its definition.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch

from methods.gradient_paradigm import Base, GradientParadigm, gradient_surrogate
from methods.parts.row_vectors import unit
from tests.support.errors import raises_input_error

BASES: tuple[Base, ...] = ("barlow_twins", "vicreg")


def draw(n: int = 6, d: int = 4) -> tuple[torch.Tensor, torch.Tensor]:
    rng = np.random.default_rng(0)
    a = rng.normal(0.5, 1.0, (n, d))
    return torch.from_numpy(a).requires_grad_(), torch.from_numpy(
        a + rng.normal(0, 0.3, (n, d))
    ).requires_grad_()


def gradients(loss: torch.Tensor, *inputs: torch.Tensor) -> list[torch.Tensor]:
    return list(torch.autograd.grad(loss, inputs))


def plain(base: Base, a: torch.Tensor, b: torch.Tensor, weight: float) -> torch.Tensor:
    """The losses themselves, of rows of unit length, neither centred nor standardised."""
    u, v = unit(a), unit(b)
    n, d = u.shape
    if base == "barlow_twins":
        c = u.T @ v / n
        return (1 - c.diagonal()).square().sum() + weight * c[
            ~torch.eye(d, dtype=torch.bool)
        ].square().sum()
    covariances = ((u.T @ u / n).square().sum() + (v.T @ v / n).square().sum()) / 2
    return (u - v).square().sum() / n + weight * covariances


@pytest.mark.parametrize("base", BASES)
@pytest.mark.parametrize("weight", [1.0, 30.0])
@pytest.mark.parametrize("shape", [(6, 4), (3, 7)])
def test_without_switches_the_gradient_is_that_of_the_loss(
    base: Base, weight: float, shape: tuple[int, int]
) -> None:
    a, b = draw(*shape)
    found = gradients(gradient_surrogate(a, b, base=base, redundancy=weight), a, b)
    for own, theirs in zip(found, gradients(plain(base, a, b, weight), a, b), strict=True):
        torch.testing.assert_close(own, theirs)


@pytest.mark.parametrize("base", BASES)
def test_weight_and_ratio_by_loops(base: Base) -> None:
    """The gradient in u_i, before it passes the normalisation, of both orders: W as a softmax over
    all pairs of different rows; r times a row's W pulls it to its other view, in both orders.
    """
    t, ratio, weight = 0.3, 1.5, 0.7
    a, b = (unit(x).detach().requires_grad_() for x in draw())
    found, _ = gradients(
        gradient_surrogate(a, b, base=base, redundancy=weight, temperature=t, ratio=ratio), a, b
    )
    u, v = a.detach().numpy(), b.detach().numpy()
    n = len(u)

    def matrix(x: np.ndarray) -> list[list[float]]:
        total = sum(math.exp(x[i] @ x[k] / t) for i in range(n) for k in range(n) if i != k)
        return [[math.exp(x[i] @ x[k] / t) / total for k in range(n)] for i in range(n)]

    w_u, w_v = matrix(u), matrix(v)
    own, other = (
        (w_v, w_u) if base == "barlow_twins" else (w_u, w_v)
    )  # of the order (u, v), and of (v, u)
    for i in range(n):
        apart = sum((own[i][k] * u[k] for k in range(n)), np.zeros(4))
        pull = sum(own[i][k] + other[i][k] for k in range(n) if k != i) * v[i]
        free = weight * (apart - ratio * pull)
        tangent = free - (free @ u[i]) * u[i]  # what the normalisation lets through
        np.testing.assert_allclose(found[i].numpy(), tangent, atol=1e-12)


def test_rows_without_a_near_row_in_their_own_view_get_no_gradient() -> None:
    a = torch.tensor([[1.0, 0.1], [1.0, 0.0], [-1.0, 0.2]], dtype=torch.float64, requires_grad=True)
    b = torch.tensor([[0.2, 1.0], [1.0, 0.0], [0.1, 1.0]], dtype=torch.float64, requires_grad=True)
    with_margin = gradients(
        gradient_surrogate(a, b, base="vicreg", redundancy=1.0, margin=0.3), a, b
    )
    without = gradients(gradient_surrogate(a, b, base="vicreg", redundancy=1.0), a, b)
    for found, whole, near in zip(
        with_margin, without, ([True, True, False], [True, False, True]), strict=True
    ):
        kept = torch.tensor(near)
        torch.testing.assert_close(found[kept], whole[kept])
        assert not found[~kept].any()
        assert whole[~kept].any()


def test_the_head_is_one_linear_layer_behind_a_tanh_on_request() -> None:
    for tanh, kinds in ((False, ["Linear"]), (True, ["Tanh", "Linear"])):
        method = GradientParadigm(GradientParadigm.configure({"tanh": tanh}))
        leaves = [
            module
            for module in method.heads(method.load_base()).modules()
            if not list(module.children())
        ]
        assert [type(leaf).__name__ for leaf in leaves] == kinds
        assert leaves[-1].weight.shape == (256, 256)  # type: ignore[union-attr, operator]


@pytest.mark.parametrize(
    "values", [{"base": "mhe"}, {"margin": 0.0}, {"ratio": -1.0}, {"target": "ema"}]
)
def test_bad_settings_are_refused_in_one_line(values: dict[str, Any]) -> None:
    with raises_input_error(key=next(iter(values))):
        GradientParadigm.configure(values)
