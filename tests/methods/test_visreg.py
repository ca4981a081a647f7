"""VISReg: its terms against loops, lightly's implementation and their limit at collapse."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from importlib import import_module
from statistics import NormalDist
from types import ModuleType
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from methods.objectives import sliced_wasserstein, visreg_terms

EPS = 1e-4


def by_loops(z: np.ndarray, directions: np.ndarray) -> tuple[float, float, float]:
    """Scale, shape and centre of one view."""
    n, d = z.shape
    mean = [sum(z[:, j]) / n for j in range(d)]
    sd = [math.sqrt(sum((x - mean[j]) ** 2 for x in z[:, j]) / n) for j in range(d)]
    scale = sum((1 - s) ** 2 for s in sd) / d
    centre = sum(m * m for m in mean) / d
    shape = 0.0
    for u in directions.T:
        length = math.sqrt(sum(x * x for x in u))
        along = sorted(
            sum((z[i, j] - mean[j]) / (sd[j] + EPS) * u[j] / length for j in range(d))
            for i in range(n)
        )
        wanted = [NormalDist().inv_cdf((i + 1) / (n + 1)) for i in range(n)]
        shape += sum((x - q) ** 2 for x, q in zip(along, wanted, strict=True)) / n
    return scale, shape / directions.shape[1], centre


def drawn(*shape: int, seed: int = 0) -> Tensor:
    return torch.from_numpy(np.random.default_rng(seed).normal(0.3, 1.4, shape))


@pytest.mark.parametrize("shape", [(6, 3), (2, 5), (17, 4)])
def test_terms_equal_loops(shape: tuple[int, int]) -> None:
    a, b, directions = drawn(*shape), drawn(*shape, seed=1), drawn(shape[1], 7, seed=2)
    found = visreg_terms(a, b, directions, weight=0.6, scale=2.0, shape=3.0, centre=5.0)
    views = [by_loops(z.numpy(), directions.numpy()) for z in (a, b)]
    scale, form, centre = (sum(pair) / 2 for pair in zip(*views, strict=True))
    mu = (a + b) / 2
    invariance = float(torch.stack([(z - mu).square().mean() for z in (a, b)]).mean())
    wanted = {
        "invariance": 0.4 * invariance,
        "scale": 0.6 * 2 * scale,
        "shape": 0.6 * 3 * form,
        "centre": 0.6 * 5 * centre,
    }
    assert {name: float(found[name]) for name in wanted} == pytest.approx(wanted, rel=1e-9)
    assert float(found["loss"]) == pytest.approx(sum(wanted.values()), rel=1e-9)


@pytest.fixture
def theirs_of(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    """lightly's class, from its file: other files of the package import torchvision."""
    lightly = pytest.importorskip("lightly", reason="needs lightly 1.6")
    package = ModuleType("lightly.loss")
    package.__path__ = [f"{path}/loss" for path in lightly.__path__]
    monkeypatch.setitem(sys.modules, "lightly.loss", package)
    found: Callable[..., Any] = import_module("lightly.loss.visreg_loss").VISRegLoss
    return found


@pytest.mark.parametrize("shape", [(8, 3), (64, 16), (5, 40)])
def test_equals_lightly_in_value_and_gradient(
    shape: tuple[int, int], theirs_of: Callable[..., Any]
) -> None:
    n, d = shape
    slices = 32
    a, b = (drawn(n, d, seed=s).requires_grad_() for s in (3, 4))
    theirs = theirs_of(lambda_param=0.6, num_slices=slices, eps=EPS)
    torch.manual_seed(7)
    value = theirs(local_proj=a.new_zeros(0, n, d), global_proj=torch.stack([a, b]))
    wanted = torch.autograd.grad(value, (a, b))
    torch.manual_seed(7)
    directions = torch.randn(d, slices, dtype=torch.float64)  # as it draws them
    ours = visreg_terms(a, b, directions, weight=0.6, eps=EPS)["loss"]
    found = torch.autograd.grad(ours, (a, b))
    assert float(ours.detach()) == pytest.approx(float(value.detach()), rel=1e-6)
    for mine, other in zip(found, wanted, strict=True):
        assert float((mine - other).abs().max() / other.abs().max()) < 1e-6


def test_gradients_are_those_of_finite_differences() -> None:
    """Of all but the standard deviation in the shape term, which is a constant."""
    a, b = (drawn(5, 3, seed=s).requires_grad_() for s in (5, 6))
    directions = drawn(3, 4, seed=7)

    def loss(a: Tensor, b: Tensor) -> Tensor:
        return visreg_terms(a, b, directions, weight=0.5, shape=0.0)["loss"]

    assert torch.autograd.gradcheck(loss, (a, b))
    scaled = (3.0 * drawn(9, 3)).requires_grad_()
    gradient = torch.autograd.grad(sliced_wasserstein(scaled, directions), scaled)[0]
    sd = scaled.detach().std(dim=0, correction=0)
    fixed = (drawn(9, 3) * 3.0 / (sd + EPS)).requires_grad_()

    def form(x: Tensor) -> Tensor:
        along = (x - x.mean(dim=0)) @ (directions / directions.norm(dim=0))
        ranks = torch.arange(1, 10, dtype=torch.float64) / 10
        return (along.sort(dim=0).values - torch.special.ndtri(ranks)[:, None]).square().mean()

    wanted = torch.autograd.grad(form(fixed), fixed)[0] / (sd + EPS)
    assert torch.allclose(gradient, wanted, rtol=1e-9, atol=1e-12)


def test_its_gradient_does_not_vanish_where_vectors_collapse() -> None:
    """d/d sd of (1 - sd)^2 tends to -2; VICReg's hinge has it too, sliced statistics do not."""
    directions = drawn(4, 8, seed=2)
    norms = []
    for size in (1e-2, 1e-4):
        z = (size * drawn(32, 4)).requires_grad_()
        loss = visreg_terms(z, z, directions, weight=1.0, shape=0.0, centre=0.0)["loss"]
        norms.append(float(torch.autograd.grad(loss, z)[0].norm()))
    assert norms[0] == pytest.approx(norms[1], rel=0.05)
    z = torch.zeros(6, 4, requires_grad=True)
    gradient = torch.autograd.grad(visreg_terms(z, z, directions, weight=0.6)["loss"], z)[0]
    assert torch.isfinite(gradient).all()


def test_shapes_are_checked() -> None:
    with pytest.raises(ValueError, match="shape"):
        visreg_terms(drawn(3, 2), drawn(4, 2), drawn(2, 3), weight=0.5)
