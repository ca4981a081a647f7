"""LeJEPA: SIGReg against closed values, its limit in moments, and an implementation in loops; the
loss by hand.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch

from methods.lejepa import LeJEPA
from methods.objectives import lejepa, sigreg
from tests.support.errors import raises_input_error


def np_sigreg(
    z: np.ndarray, directions: np.ndarray, points: int, limit: float, power: float
) -> float:
    """One loop per sum sign, with complex numbers; w(t) = exp(-power t^2)."""
    values = []
    for a in directions.T:
        x = z @ (a / math.sqrt(a @ a))
        ts = [-limit + 2 * limit * k / (points - 1) for k in range(points)]
        heights = []
        for t in ts:
            empirical = sum(np.exp(1j * t * v) for v in x) / len(x)
            heights.append(abs(empirical - math.exp(-t * t / 2)) ** 2 * math.exp(-power * t * t))
        area = sum(
            (ts[k + 1] - ts[k]) * (heights[k] + heights[k + 1]) / 2 for k in range(points - 1)
        )
        values.append(len(x) * area)
    return sum(values) / len(values)


@pytest.mark.parametrize(("window", "power"), [("half", 0.5), ("full", 1.0)])
@pytest.mark.parametrize("shape", [(6, 3), (2, 5)])
def test_equals_numpy_and_its_gradient_finite_differences(
    window: Any, power: float, shape: tuple[int, int]
) -> None:
    rng = np.random.default_rng(0)
    z, directions = rng.normal(0.3, 1.4, shape), rng.normal(size=(shape[1], 4))
    value = sigreg(
        torch.from_numpy(z), torch.from_numpy(directions), points=9, limit=4.0, window=window
    )
    assert float(value) == pytest.approx(np_sigreg(z, directions, 9, 4.0, power), rel=1e-9)
    a, b = (torch.from_numpy(rng.normal(size=shape)).requires_grad_() for _ in range(2))

    def loss(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        return lejepa(a, b, torch.from_numpy(directions), weight=0.3, window=window)["loss"]

    assert torch.autograd.gradcheck(loss, (a, b))


# Of int (1 - exp(-t^2/2))^2 w(t) dt, and of its expectation for a normal sample, int (1 -
# exp(-t^2)) w(t) dt, by the trapezoid rule; on the whole line the first is sqrt(2 pi) (1 - sqrt(2)
# + 1/sqrt(3)) = 0.40893 for the half window.
CLOSED = [
    (17, 5.0, "half", 0.40892, 1.0594),
    (33, 3.0, "half", 0.40205, 1.0525),
    (17, 5.0, "full", 0.13137, 0.5191),
]


@pytest.mark.parametrize(("points", "limit", "window", "collapsed", "normal"), CLOSED)
@pytest.mark.parametrize("n", [8, 128])
def test_closed_values(
    points: int, limit: float, window: Any, collapsed: float, normal: float, n: int
) -> None:
    options: dict[str, Any] = {"points": points, "limit": limit, "window": window}
    zeros = torch.zeros(n, 4, dtype=torch.float64)
    assert float(sigreg(zeros, torch.eye(4), **options)) == pytest.approx(collapsed * n, rel=2e-5)
    rng = np.random.default_rng(
        1
    )  # each feature is a sample of its own: 4,000 independent statistics
    each = [
        sigreg(torch.from_numpy(rng.normal(size=(n, 1))), torch.ones(1, 1), **options)
        for _ in range(4000)
    ]
    found = np.array([float(value) for value in each])
    assert abs(found.mean() - normal) < 4 * found.std() / math.sqrt(len(found))


def test_on_a_narrow_range_it_is_vicregs_penalty_of_variances_and_covariances() -> None:
    """For small t, f(t) = 1 - t^2 v/2 + ..., so that T/n = int (t^2/2)^2 (1 - v)^2 dt = R^5/10 (1 -
    v)^2 for centred z; the mean over directions of (a'Ca - 1)^2 is [2 |C - I|^2 + tr(C - I)^2] / (d
    (d + 2)), how far variances are from 1 and covariances from 0.
    """
    rng = np.random.default_rng(2)
    z = rng.normal(size=(50, 3)) @ np.array([[1.3, 0.4, 0.0], [0.0, 0.8, -0.3], [0.0, 0.0, 1.1]])
    z -= z.mean(0)
    excess = z.T @ z / len(z) - np.eye(3)
    penalty = (2 * (excess**2).sum() + np.trace(excess) ** 2) / (3 * 5)
    every = rng.normal(size=(3, 400_000))
    every /= np.linalg.norm(every, axis=0)
    assert ((every * (excess @ every)).sum(0) ** 2).mean() == pytest.approx(penalty, rel=0.01)
    some, limit = every[:, :100], 0.05
    value, shifted = (
        float(sigreg(torch.from_numpy(x), torch.from_numpy(some), points=101, limit=limit))
        for x in (z, z + 2.0)
    )
    assert value / len(z) == pytest.approx(
        limit**5 / 10 * ((some * (excess @ some)).sum(0) ** 2).mean(), rel=0.01
    )
    means = (2.0 * some.sum(0)) ** 2  # of a mean other than 0 the first term is t^2 (a.mu)^2
    assert shifted / len(z) == pytest.approx(2 * limit**3 / 3 * means.mean(), rel=0.02)


def test_loss_by_hand() -> None:
    a = torch.tensor([[1.0, 0.0], [0.0, 1.0]], dtype=torch.float64)
    b = -a  # mu = 0: the squared distance of a view from it is 1/2 per entry
    directions = torch.eye(2, dtype=torch.float64)
    terms = lejepa(a, b, directions, weight=0.25)
    assert float(terms["similarity"]) == pytest.approx(0.75 * 0.5)
    assert float(terms["gaussianity"]) == pytest.approx(
        0.25 * float(sigreg(a, directions))
    )  # symmetric: as of b
    assert float(terms["loss"]) == pytest.approx(float(terms["similarity"] + terms["gaussianity"]))
    both = float(lejepa(a, b, directions, weight=1.0, stacked=True)["loss"])
    assert both == pytest.approx(float(sigreg(torch.cat([a, b]), directions)))
    scaled = sigreg(a, 7 * directions)
    assert float(scaled) == pytest.approx(float(sigreg(a, directions))), (
        "directions count, not lengths"
    )


def test_half_precision_is_computed_in_float32() -> None:
    z = torch.randn(8, 4, generator=torch.Generator().manual_seed(0)).bfloat16()
    with torch.autocast("cpu", torch.bfloat16):
        value = lejepa(z, z, torch.eye(4), weight=0.5)["loss"]
    assert value.dtype == torch.float32
    assert float(value) == pytest.approx(
        float(lejepa(z.float(), z.float(), torch.eye(4), weight=0.5)["loss"])
    )
    with pytest.raises(ValueError, match=r"\(d, m\)"):
        sigreg(z, torch.eye(5))


@pytest.mark.parametrize(
    "values", [{"weight": 1.5}, {"slices": 0}, {"points": 1}, {"range": 0.0}, {"window": "sigma"}]
)
def test_bad_settings_are_refused_in_one_line(values: dict[str, Any]) -> None:
    with raises_input_error(key=next(iter(values))):
        LeJEPA.configure(values)
