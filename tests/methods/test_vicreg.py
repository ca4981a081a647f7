"""VICReg: both scalings against a float64 transcription of the formulas, loops and all; what the
method promises.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch

from harness.method import FitContext
from harness.sources import load_corpus
from methods.vicreg import VICReg
from tests.support.bases import narrow_bert
from tests.support.errors import raises_input_error

WEIGHTS = {"invariance_weight": 0.7, "variance_weight": 3.0, "covariance_weight": 0.2}


def make(**values: Any) -> VICReg:
    return VICReg(VICReg.configure(values), base_model=narrow_bert())


def covariance(z: np.ndarray, j: int, k: int) -> float:
    n = len(z)
    mean_j, mean_k = sum(z[:, j]) / n, sum(z[:, k]) / n
    return sum((z[i, j] - mean_j) * (z[i, k] - mean_k) for i in range(n)) / (n - 1)


def paper(
    a: np.ndarray, b: np.ndarray, li: float, lv: float, lc: float, eps: float = 1e-4
) -> float:
    """Farina & Pappadopulo, Eq. 3."""
    n, d = a.shape
    total = li / n * sum((a[i, j] - b[i, j]) ** 2 for i in range(n) for j in range(d))
    for z in (a, b):
        total += lv / d * sum(max(0.0, 1 - math.sqrt(covariance(z, j, j) + eps)) for j in range(d))
        total += (
            lc / d * sum(covariance(z, j, k) ** 2 for j in range(d) for k in range(d) if j != k)
        )
    return total


def code(a: np.ndarray, b: np.ndarray, li: float, lv: float, lc: float, eps: float = 1e-4) -> float:
    """The vision code: mean squared error over rows and features, each branch's mean hinge halved."""
    total = li * float(
        np.mean([(a[i, j] - b[i, j]) ** 2 for i in range(len(a)) for j in range(a.shape[1])])
    )
    for z in (a, b):
        cov = np.cov(z, rowvar=False)
        hinge = np.maximum(0.0, 1 - np.sqrt(z.var(0, ddof=1) + eps))
        total += lv * float(hinge.mean()) / 2
        total += lc * float((cov**2).sum() - (np.diag(cov) ** 2).sum()) / a.shape[1]
    return total


def cases() -> dict[str, tuple[np.ndarray, np.ndarray]]:
    rng = np.random.default_rng(0)

    def draw(n: int, d: int, scale: float = 1.0) -> tuple[np.ndarray, np.ndarray]:
        a = rng.normal(0, scale, (n, d))
        return a, a + rng.normal(0, 0.3 * scale, (n, d))

    same = np.tile(rng.normal(0, 1, (1, 4)), (5, 1))
    flat_a, flat_b = draw(6, 4)
    flat_a[:, 1] = flat_b[:, 1] = 2.0
    return {
        "more rows than features": draw(9, 4, 0.4),
        "more features than rows": draw(4, 9, 0.4),
        "two rows": draw(2, 5, 0.4),
        "identical rows": (same, same + 0.1),
        "a feature without variance": (flat_a, flat_b),
        "equal views": (flat_a, flat_a),
    }


CASES = cases()


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize(("scaling", "reference"), [("paper", paper), ("code", code)])
def test_objective_equals_the_formula(name: str, scaling: str, reference: Any) -> None:
    a, b = CASES[name]
    method = make(scaling=scaling, **WEIGHTS)
    value = method.terms(torch.from_numpy(a), torch.from_numpy(b))["loss"]
    assert value.dtype == torch.float64
    assert float(value) == pytest.approx(reference(a, b, 0.7, 3.0, 0.2), rel=1e-9, abs=1e-12)


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize(("scaling", "reference"), [("paper", paper), ("code", code)])
def test_gradient_equals_finite_differences_of_the_formula(
    name: str, scaling: str, reference: Any
) -> None:
    a, b = CASES[name]
    method = make(scaling=scaling, **WEIGHTS)
    z = torch.from_numpy(a).clone().requires_grad_()
    method.terms(z, torch.from_numpy(b))["loss"].backward()
    assert z.grad is not None
    step = 1e-6
    for i in range(min(3, len(a))):
        for j in range(a.shape[1]):
            up, down = a.copy(), a.copy()
            up[i, j] += step
            down[i, j] -= step
            slope = (reference(up, b, 0.7, 3.0, 0.2) - reference(down, b, 0.7, 3.0, 0.2)) / (
                2 * step
            )
            assert float(z.grad[i, j]) == pytest.approx(slope, rel=1e-4, abs=1e-6)


def test_by_hand() -> None:
    # Cov of A = (1, 0), (-1, 0): diag(2, 0). Hinges 0 and 1 - sqrt(eps) = 0.99. B = A + (0, 1): the
    # same.
    a = torch.tensor([[1.0, 0.0], [-1.0, 0.0]], dtype=torch.float64)
    b = a + torch.tensor([0.0, 1.0], dtype=torch.float64)

    def value(scaling: str, i: float, v: float) -> float:
        weights = {"invariance_weight": i, "variance_weight": v, "covariance_weight": 0.0}
        return float(make(scaling=scaling, **weights).terms(a, b)["loss"])

    assert value("paper", 1, 0) == pytest.approx(1.0)  # (1 + 1) / 2 rows
    assert value("code", 1, 0) == pytest.approx(0.5)  # ... and over 2 features
    assert value("paper", 0, 1) == pytest.approx(0.99)  # two branches of 0.99 / 2 features
    assert value("code", 0, 1) == pytest.approx(0.495)  # half of it


def test_half_precision_and_one_row() -> None:
    a, b = (torch.from_numpy(x).bfloat16() for x in CASES["more rows than features"])
    with torch.autocast("cpu", torch.bfloat16):
        value = make(**WEIGHTS).terms(a, b)["loss"]
    assert value.dtype == torch.float32
    with pytest.raises(ValueError, match="2 rows"):
        make().terms(a[:1], b[:1])["loss"]


def test_sweeps_and_presets_are_those_of_paper_and_code() -> None:
    sweeps = VICReg.Config.sweeps()
    # Table 3 of the paper: log10 lambda_V in [1, 4], log10 lambda_C in [-3, -1], lambda_I = 1,
    # three learning rates
    assert sweeps["variance_weight"] == {"low": 10.0, "high": 1e4, "log": True}
    assert sweeps["covariance_weight"] == {"low": 1e-3, "high": 1e-1, "log": True}
    assert sweeps["learning_rate"] == {"choices": [1e-5, 2e-5, 5e-5]}
    assert VICReg.configure({}).invariance_weight == 1
    code = VICReg.configure({}, preset="code", family="bert-base")
    assert (code.scaling, code.invariance_weight, code.variance_weight, code.covariance_weight) == (
        "code",
        25,
        25,
        1,
    )


@pytest.mark.parametrize(
    "values",
    [
        {"eps": 0.0},
        {"variance_weight": -1.0},
        {"scaling": "vision"},
        {"dropout": 1.0},
        {"batch_size": 1},
    ],
)
def test_wrong_settings_are_one_line(values: dict[str, Any]) -> None:
    with raises_input_error(file='method "vicreg"'):
        VICReg.configure(values)


def test_it_trains_and_drops_its_projector() -> None:
    corpus = load_corpus("embedded:sentences", limit=24)
    method = make(
        view="shuffle", batch_size=8, train_length=12, projector=(32, 32, 32), learning_rate=1e-4
    )
    before = sum(p.numel() for p in method.load_base().parameters())
    method.fit(corpus, FitContext(precision="fp32", max_steps=2))
    assert method.num_parameters() == before
    assert np.isfinite(np.asarray(method.encode(["A dog runs.", "rain"]))).all()
