"""Every objective against an independent float64 numpy implementation (loops over the printed
formulas), against cases worked by hand, and its gradients against finite differences.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import logsumexp
from scipy.stats import pearsonr

from methods import objectives

# ---------------------------------------------------------------- independent implementations, one
# loop per sum sign


def cos(u: np.ndarray, v: np.ndarray) -> float:
    return float(np.dot(u, v) / (math.sqrt(np.dot(u, u)) * math.sqrt(np.dot(v, v))))


def np_nt_xent(a, p, t, h=None, w=0.0):
    total = 0.0
    for i in range(len(a)):
        terms = [cos(a[i], p[j]) / t for j in range(len(p))]
        if h is not None:
            terms += [cos(a[i], h[j]) / t + (w if i == j else 0.0) for j in range(len(h))]
        total += logsumexp(terms) - cos(a[i], p[i]) / t
    return total / len(a)


def np_nt_xent_symmetric(a, b, t):
    rows = [*a, *b]
    n, total = len(a), 0.0
    for m, x in enumerate(rows):
        partner = m + n if m < n else m - n
        total += (
            logsumexp([cos(x, y) / t for k, y in enumerate(rows) if k != m])
            - cos(x, rows[partner]) / t
        )
    return total / (2 * n)


def np_moments_correlation(u, v, eps, ddof=0):
    mu, mv = sum(u) / len(u), sum(v) / len(v)
    su = math.sqrt(sum((x - mu) ** 2 for x in u) / (len(u) - ddof) + eps)
    sv = math.sqrt(sum((x - mv) ** 2 for x in v) / (len(v) - ddof) + eps)
    return sum((x - mu) * (y - mv) for x, y in zip(u, v, strict=True)) / (len(u) * su * sv)


def np_identity_penalty(c, w, sign=1.0):
    d = len(c)
    on = sum((1 - c[j][j]) ** 2 for j in range(d))
    return sign * on + w * sum(c[j][k] ** 2 for j in range(d) for k in range(d) if j != k)


def np_barlow(a, b, w, eps=1e-5, ddof=0):
    d = a.shape[1]
    return np_identity_penalty(
        [[np_moments_correlation(a[:, j], b[:, k], eps, ddof) for k in range(d)] for j in range(d)],
        w,
    )


def np_no_center(a, b, w, eps=1e-5):
    n, d = a.shape
    c = np.zeros((d, d))
    for j in range(d):
        for k in range(d):
            norm = math.sqrt(sum(a[:, j] ** 2) / n + eps) * math.sqrt(sum(b[:, k] ** 2) / n + eps)
            c[j, k] = sum(a[:, j] * b[:, k]) / n / norm
    return np_identity_penalty(c, w)


def np_literal(a, b, w, eps=1e-5, sign=1.0):
    d = a.shape[1]
    c = np.zeros((d, d))
    for j in range(d):
        for k in range(d):
            products = [x * y for x, y in zip(a[:, j], b[:, k], strict=True)]
            c[j, k] = sum(products) / math.sqrt(sum(q * q for q in products) + eps)
    return np_identity_penalty(c, w, sign)


def np_vicreg(a, b, inv, var, cov, gamma=1.0, eps=1e-4):
    n, d = a.shape
    total = inv / n * sum(np.linalg.norm(x - y) ** 2 for x, y in zip(a, b, strict=True))
    for z in (a, b):
        c = np.cov(z, rowvar=False)  # divisor n - 1
        total += var / d * sum(max(0.0, gamma - math.sqrt(c[j, j] + eps)) for j in range(d))
        total += cov / d * sum(c[j, k] ** 2 for j in range(d) for k in range(d) if j != k)
    return total


def np_self_contrast(a, b, t=1.0):
    return sum(cos(x, y) for x, y in zip(a, b, strict=True)) / len(a) / t


def np_self_guided(c, h, t, variant):  # h: (n, L, d)
    n, layers, _ = h.shape
    if variant == "base":
        return np_nt_xent_symmetric(c, h[:, 0], t)
    total = 0.0
    for i in range(n):
        for k in range(layers):
            own = cos(c[i], h[i, k]) / t
            terms = [own]
            for j in range(n):
                if j == i:
                    continue
                if variant == "opt1":
                    terms.append(cos(c[i], c[j]) / t)
                terms += [cos(c[i], h[j, m]) / t for m in range(layers)]
            total += logsumexp(terms) - own
    return total / (n * layers)


# name -> (how many (n, d) inputs, torch form, numpy form)
CASES: dict[str, tuple[int, Callable[..., Any], Callable[..., Any]]] = {
    "nt_xent": (
        2,
        lambda a, p: objectives.nt_xent(a, p, temperature=0.05),
        lambda a, p: np_nt_xent(a, p, 0.05),
    ),
    "nt_xent hard": (
        3,
        lambda a, p, h: objectives.nt_xent(
            a, p, temperature=0.1, hard_negatives=h, hard_negative_weight=0.7
        ),
        lambda a, p, h: np_nt_xent(a, p, 0.1, h, 0.7),
    ),
    "nt_xent_symmetric": (
        2,
        lambda a, b: objectives.nt_xent_symmetric(a, b, temperature=0.05),
        lambda a, b: np_nt_xent_symmetric(a, b, 0.05),
    ),
    "barlow_twins": (
        2,
        lambda a, b: objectives.barlow_twins_terms(a, b, off_diagonal_weight=0.005)["loss"],
        lambda a, b: np_barlow(a, b, 0.005),
    ),
    "barlow_twins unbiased": (
        2,
        lambda a, b: objectives.barlow_twins_terms(a, b, off_diagonal_weight=0.3, unbiased=True)[
            "loss"
        ],
        lambda a, b: np_barlow(a, b, 0.3, ddof=1),
    ),
    "vicreg": (
        2,
        lambda a, b: objectives.vicreg_terms(
            a, b, invariance=1.0, variance=25.0, covariance=0.1, gamma=1.5
        )["loss"],
        lambda a, b: np_vicreg(a, b, 1.0, 25.0, 0.1, gamma=1.5),
    ),
    "self_contrast": (2, objectives.self_contrast, np_self_contrast),
    "self_contrast t": (
        2,
        lambda a, b: objectives.self_contrast(a, b, temperature=0.05),
        lambda a, b: np_self_contrast(a, b, 0.05),
    ),
    "decorrelation": (
        2,
        lambda a, b: objectives.decorrelation(a, b, off_diagonal_weight=0.012),
        lambda a, b: np_barlow(a, b, 0.012),
    ),
    "decorrelation no_center": (
        2,
        lambda a, b: objectives.decorrelation(
            a, b, off_diagonal_weight=0.012, normalisation="no_center"
        ),
        lambda a, b: np_no_center(a, b, 0.012),
    ),
    "decorrelation literal": (
        2,
        lambda a, b: objectives.decorrelation(
            a, b, off_diagonal_weight=0.012, normalisation="literal", literal_sign=True
        ),
        lambda a, b: np_literal(a, b, 0.012, sign=-1.0),
    ),
    **{
        f"self_guided {variant}": (
            2,
            lambda c, h, v=variant: objectives.self_guided(c, h, temperature=0.07, variant=v),
            lambda c, h, v=variant: np_self_guided(c, h[:, None], 0.07, v),
        )
        for variant in ("base", "opt1", "opt2", "opt3")
    },
    "self_guided opt3, 3 layers": (
        4,
        lambda c, *h: objectives.self_guided(
            c, torch.stack(h, 1), temperature=0.07, variant="opt3"
        ),
        lambda c, *h: np_self_guided(c, np.stack(h, 1), 0.07, "opt3"),
    ),
}
EACH = pytest.mark.parametrize("name", CASES)


def draw(count: int, n: int, d: int, seed: int) -> list[np.ndarray]:
    rng = np.random.default_rng(seed)
    base = rng.normal(0.3, 1.0, (n, d))
    return [base + rng.normal(0.0, 0.8, (n, d)) for _ in range(count)]


@EACH
@settings(max_examples=12, deadline=None)
@given(n=st.integers(2, 7), d=st.integers(1, 9), seed=st.integers(0, 10**6))
def test_equals_numpy(name: str, n: int, d: int, seed: int) -> None:
    """Both more rows than features and the reverse: the two ways of summing squared correlations."""
    count, ours, reference = CASES[name]
    inputs = draw(count, n, d + 1, seed)
    value = ours(*(torch.from_numpy(x) for x in inputs))
    assert value.dtype == torch.float64
    assert value.shape == ()
    assert float(value) == pytest.approx(reference(*inputs), rel=1e-6, abs=1e-9)


@EACH
def test_float32_is_close_and_inputs_are_not_modified(name: str) -> None:
    count, ours, reference = CASES[name]
    inputs = draw(count, 6, 10, 1)
    tensors = [torch.from_numpy(x).float().requires_grad_() for x in inputs]
    before = [t.detach().clone() for t in tensors]
    value = ours(*tensors)
    value.backward()
    assert value.dtype == torch.float32
    assert float(value.detach()) == pytest.approx(reference(*inputs), rel=2e-5)
    assert all(torch.equal(t.detach(), b) for t, b in zip(tensors, before, strict=True))
    assert all(t.grad is not None and t.grad.abs().sum() > 0 for t in tensors), (
        "the gradient reaches every input"
    )


@EACH
def test_half_precision_inputs_under_autocast_give_the_float32_value(name: str) -> None:
    count, ours, _ = CASES[name]
    half = [torch.from_numpy(x).bfloat16() for x in draw(count, 6, 10, 2)]
    outside = ours(*(x.float() for x in half))
    with torch.autocast("cpu", torch.bfloat16):
        inside = ours(*half)
    assert inside.dtype == torch.float32
    assert float(inside) == float(outside)


@EACH
@pytest.mark.parametrize("shape", [(4, 3), (3, 5)])
def test_gradients_by_finite_differences(name: str, shape: tuple[int, int]) -> None:
    count, ours, _ = CASES[name]
    inputs = tuple(torch.from_numpy(x).requires_grad_() for x in draw(count, *shape, 3))
    assert torch.autograd.gradcheck(ours, inputs, eps=1e-6, atol=1e-5, rtol=1e-4)


def test_barlow_gradient_by_our_own_central_difference_of_the_numpy_form() -> None:
    """Independent of autograd on both sides: the numpy implementation differentiated numerically."""
    a, b = draw(2, 5, 4, 4)
    tensor = torch.from_numpy(a).requires_grad_()
    objectives.barlow_twins_terms(tensor, torch.from_numpy(b), off_diagonal_weight=0.1)[
        "loss"
    ].backward()
    assert tensor.grad is not None
    step = 1e-5
    for i in range(5):
        for j in range(4):
            up, down = a.copy(), a.copy()
            up[i, j] += step
            down[i, j] -= step
            slope = (np_barlow(up, b, 0.1) - np_barlow(down, b, 0.1)) / (2 * step)
            assert float(tensor.grad[i, j]) == pytest.approx(slope, abs=1e-7)


# ---------------------------------------------------------------- worked by hand

E = torch.eye(2, dtype=torch.float64)


def test_nt_xent_by_hand() -> None:
    # cos = [[1, 0], [0, 1]], t = 1: each row -log(e / (e + 1)) = log(1 + 1/e) = 0.3132616875
    assert float(objectives.nt_xent(E, 3 * E, temperature=1.0)) == pytest.approx(0.3132616875182228)
    # positives swapped: each row -log(1 / (1 + e)) = log(1 + e) = 1.3132616875
    assert float(objectives.nt_xent(E, E.flip(0), temperature=1.0)) == pytest.approx(
        1.3132616875182228
    )


def test_nt_xent_hard_negatives_by_hand() -> None:
    # own hard negative = the anchor's opposite: logits [1, 0 | -1, 0], denominator e + 1 + 1/e + 1
    e = math.e
    assert float(objectives.nt_xent(E, E, temperature=1.0, hard_negatives=-E)) == pytest.approx(
        math.log((e + 2 + 1 / e) / e)
    )
    # weight 2 turns the own negative's logit -1 into +1, that of the other anchors' negatives stays
    # 0
    weighted = objectives.nt_xent(
        E, E, temperature=1.0, hard_negatives=-E, hard_negative_weight=2.0
    )
    assert float(weighted) == pytest.approx(math.log((2 * e + 2) / e))


def test_nt_xent_symmetric_by_hand() -> None:
    # 4 rows e1 e2 e1 e2: a row sees its partner (cos 1) and two others (cos 0): log((e + 2) / e)
    assert float(objectives.nt_xent_symmetric(E, E, temperature=1.0)) == pytest.approx(
        math.log((math.e + 2) / math.e)
    )


def test_one_sentence_has_nothing_to_contrast_with() -> None:
    row = torch.ones(1, 3)
    assert float(objectives.nt_xent(row, -row, temperature=0.05)) == 0.0
    assert float(objectives.nt_xent_symmetric(row, -row, temperature=0.05)) == 0.0
    assert float(objectives.self_guided(row, -row, temperature=0.05)) == 0.0


def test_nt_xent_at_a_small_temperature_stays_finite() -> None:
    a, p = (torch.from_numpy(x).float() for x in draw(2, 8, 5, 9))
    assert math.isfinite(float(objectives.nt_xent(a, p, temperature=0.001)))


def test_correlation_objectives_by_hand() -> None:
    # Hadamard columns over 4 rows: mean 0, variance 1, mutually uncorrelated
    x = torch.tensor([[1, 1, 1], [1, -1, -1], [-1, 1, -1], [-1, -1, 1]], dtype=torch.float64)
    exact = {"off_diagonal_weight": 0.5, "eps": 0.0}
    barlow_twins = lambda *views, **more: objectives.barlow_twins_terms(*views, **more)["loss"]  # noqa: E731
    for objective in (barlow_twins, objectives.decorrelation):
        assert float(objective(x, x, **exact)) == pytest.approx(0.0, abs=1e-12)
        # the opposite view: c = -I, three terms (1 - -1)^2 = 12
        assert float(objective(x, -x, **exact)) == pytest.approx(12.0)
        # a shift and a scale per column change nothing
        assert float(objective(5 * x + 7, x, **exact)) == pytest.approx(0.0, abs=1e-12)
    # columns 1 and 2 equal: c_12 = c_21 = 1, so 0.5 * 2 = 1
    twice = x[:, [0, 0, 2]]
    assert float(barlow_twins(twice, twice, **exact)) == pytest.approx(1.0)
    # unbiased std, divisor n: the diagonal is (n-1)/n = 3/4 each, 3 * (1/4)^2 = 0.1875
    assert float(barlow_twins(x, x, unbiased=True, **exact)) == pytest.approx(0.1875)
    # with the sign as printed: -12
    assert float(objectives.decorrelation(x, -x, literal_sign=True, **exact)) == pytest.approx(
        -12.0
    )
    # Eq. 3 as printed: entries of the diagonal are 4 / sqrt(4) = 2 = sqrt(n), so 3 * (1 - 2)^2 = 3
    assert float(objectives.decorrelation(x, x, normalisation="literal", **exact)) == pytest.approx(
        3.0
    )
    # without centring a shift counts: column 1 + 1 = (2, 2, 0, 0) has cosine 4 / sqrt(8 * 4) =
    # 1/sqrt(2) with itself unshifted, and 0 with the other two: (1 - 1/sqrt 2)^2
    shifted = x + torch.tensor([1.0, 0.0, 0.0], dtype=torch.float64)
    no_center = objectives.decorrelation(shifted, x, normalisation="no_center", **exact)
    assert float(no_center) == pytest.approx((1 - 1 / math.sqrt(2)) ** 2)


def test_vicreg_by_hand() -> None:
    # A = (1, 0), (-1, 0): Cov = diag(2, 0); B = A + (0, 1): the same covariance
    a = torch.tensor([[1.0, 0.0], [-1.0, 0.0]], dtype=torch.float64)
    b = a + torch.tensor([0.0, 1.0], dtype=torch.float64)

    def value(i: float, v: float, c: float, eps: float = 0.0) -> float:
        return float(
            objectives.vicreg_terms(a, b, invariance=i, variance=v, covariance=c, eps=eps)["loss"]
        )

    assert value(1, 0, 0) == pytest.approx(1.0)  # (1 + 1) / 2: a sum over d, a mean over n
    assert value(0, 1, 0) == pytest.approx(
        1.0
    )  # hinge 0 and 1 in each branch, / d = 1/2, two branches
    assert value(0, 1, 0, eps=0.25) == pytest.approx(0.5)  # hinge 1 - sqrt(0.25) = 0.5
    assert value(0, 0, 1) == pytest.approx(0.0)
    # perfectly correlated columns (1, 1), (-1, -1): Cov_12 = 2; (1/2) (4 + 4) a branch = 8
    c = torch.tensor([[1.0, 1.0], [-1.0, -1.0]], dtype=torch.float64)
    assert float(
        objectives.vicreg_terms(c, c, invariance=1, variance=0, covariance=1)["loss"]
    ) == pytest.approx(8.0)


def test_self_contrast_by_hand() -> None:
    a = torch.tensor([[1.0, 0.0], [0.0, 2.0]], dtype=torch.float64)
    b = torch.tensor([[1.0, 1.0], [0.0, -1.0]], dtype=torch.float64)
    # cosines 1/sqrt(2) and -1
    assert float(objectives.self_contrast(a, b)) == pytest.approx((1 / math.sqrt(2) - 1) / 2)
    assert float(objectives.self_contrast(a, b, temperature=0.05)) == pytest.approx(
        10 * (1 / math.sqrt(2) - 1)
    )


def test_self_guided_by_hand() -> None:
    # n = 2, t = 1, c = e1, e2; layers of sentence 1: e1, e2; of sentence 2: e2, e2
    h = torch.stack([torch.stack([E[0], E[1]]), torch.stack([E[1], E[1]])])
    e = math.e
    # i=1: others are e2, e2 (cos 0): denominators own + 2; own = e (k=1), 1 (k=2)
    # i=2: others are e1 (cos 0), e2 (cos 1): denominators own + 1 + e; own = e (both)
    expected = (math.log((e + 2) / e) + math.log(3) + 2 * math.log((2 * e + 1) / e)) / 4
    assert float(objectives.self_guided(E, h, temperature=1.0, variant="opt3")) == pytest.approx(
        expected
    )
    # one layer each, h = c: opt2 denominators e + 1; opt1 adds the other c: e + 2, as does base
    assert float(objectives.self_guided(E, E, temperature=1.0, variant="opt2")) == pytest.approx(
        math.log((e + 1) / e)
    )
    for variant in ("opt1", "base"):
        assert float(
            objectives.self_guided(E, E, temperature=1.0, variant=variant)
        ) == pytest.approx(math.log((e + 2) / e))


# ---------------------------------------------------------------- facts others rely on


def test_correlation_without_eps_is_scipys_pearson() -> None:
    a, b = draw(2, 9, 2, 5)
    r = [[pearsonr(a[:, j], b[:, k]).statistic for k in range(2)] for j in range(2)]
    expected = np_identity_penalty(r, 0.25)
    ours = objectives.barlow_twins_terms(
        torch.from_numpy(a), torch.from_numpy(b), off_diagonal_weight=0.25, eps=0.0
    )["loss"]
    assert float(ours) == pytest.approx(expected, rel=1e-10)


def test_barlow_equals_an_affine_free_batchnorm() -> None:
    a, b = (torch.from_numpy(x) for x in draw(2, 6, 4, 6))
    norm = torch.nn.BatchNorm1d(4, affine=False).double()
    c = norm(a).T @ norm(b) / 6
    expected = sum((1 - c[j, j]) ** 2 for j in range(4)) + 0.3 * sum(
        c[j, k] ** 2 for j in range(4) for k in range(4) if j != k
    )
    assert float(
        objectives.barlow_twins_terms(a, b, off_diagonal_weight=0.3)["loss"]
    ) == pytest.approx(float(expected), rel=1e-10)


@pytest.mark.parametrize("temperature", [0.0, -1.0, float("nan")])
def test_temperature_must_be_positive(temperature: float) -> None:
    with pytest.raises(ValueError, match="temperature"):
        objectives.nt_xent(E, E, temperature=temperature)


def test_wrong_shapes_are_refused() -> None:
    with pytest.raises(ValueError, match="one shape"):
        objectives.nt_xent(E, torch.eye(3), temperature=1.0)
    with pytest.raises(ValueError, match="at least 2 rows"):
        objectives.barlow_twins_terms(E[:1], E[:1], off_diagonal_weight=0.1)["loss"]
    with pytest.raises(ValueError, match="one layer view"):
        objectives.self_guided(E, torch.ones(2, 3, 2), temperature=1.0, variant="opt1")


def test_zero_and_constant_inputs_stay_finite() -> None:
    """A collapsed batch gives a value and a gradient that the collapse guard can report, not NaN."""
    for fill in (0.0, 1.0):
        z = torch.full((4, 3), fill, requires_grad=True)
        for _, ours, _ in (CASES[name] for name in CASES if CASES[name][0] == 2):
            z.grad = None
            value = ours(z, z.detach().clone())
            value.backward()
            assert math.isfinite(float(value.detach()))
            assert z.grad is not None
            assert torch.isfinite(z.grad).all()
