"""Measures of isotropy against closed forms, hand-worked cases and naive transcriptions of the
papers.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from harness.tasks.geometry import (
    cosine_histograms,
    effective_rank,
    isoscore,
    partition_isotropy,
    rankme,
    singular_values,
)

Array = np.ndarray[Any, Any]


def axes(scales: list[float]) -> Array:
    """Vectors +-s_i e_i: mean 0, and singular values sqrt(2) s_i."""
    return np.concatenate([np.diag(scales), -np.diag(scales)])


def test_spectrum_and_ranks_by_hand() -> None:
    x = axes([4, 2, 2])
    np.testing.assert_allclose(singular_values(x), [0.5, 0.25, 0.25])
    expected = np.exp(0.5 * np.log(2) + 0.5 * np.log(4))  # exp of the entropy of (1/2, 1/4, 1/4)
    assert rankme(x) == pytest.approx(expected)
    assert effective_rank(x) == pytest.approx(expected)


@pytest.mark.parametrize("shape", [(200, 7), (7, 200)])
def test_spectrum_equals_an_svd(shape: tuple[int, int]) -> None:
    x = np.random.default_rng(0).standard_normal(shape) + 2.0
    raw = np.linalg.svd(x, compute_uv=False)
    centred = np.linalg.svd(x - x.mean(0), compute_uv=False)
    np.testing.assert_allclose(singular_values(x, centre=False), raw / raw.sum(), atol=1e-7)
    np.testing.assert_allclose(singular_values(x), centred / centred.sum(), atol=1e-7)
    assert rankme(x) < effective_rank(x)  # the mean is one strong direction


def test_without_spread_there_is_nothing() -> None:
    x = np.full((30, 5), 0.3, dtype=np.float32)
    assert (isoscore(x), effective_rank(x), float(singular_values(x).sum())) == (0.0, 0.0, 0.0)
    assert rankme(x) == pytest.approx(1.0, abs=1e-5)  # one direction, the mean
    assert rankme(np.zeros((30, 5))) == 0.0


@pytest.mark.parametrize(("k", "d"), [(1, 4), (2, 4), (5, 9), (9, 9)])
def test_isoscore_counts_the_axes_in_use(k: int, d: int) -> None:
    assert isoscore(7 + axes([3.0] * k + [0.0] * (d - k))) == pytest.approx(
        (k - 1) / (d - 1), abs=1e-12
    )


def test_isoscore_equals_the_paper_step_by_step() -> None:
    x = np.random.default_rng(3).standard_normal((80, 6)) * [5, 3, 1, 1, 0.5, 0.1]
    basis = np.linalg.svd(x - x.mean(0))[2]
    variances = np.diag(np.cov(((x - x.mean(0)) @ basis.T).T))
    n = 6
    normalised = variances * np.sqrt(n) / np.sqrt((variances**2).sum())
    defect = np.sqrt(((normalised - np.ones(n)) ** 2).sum()) / np.sqrt(2 * (n - np.sqrt(n)))
    phi = (n - defect**2 * (n - np.sqrt(n))) ** 2 / n**2
    assert isoscore(x) == pytest.approx((n * phi - 1) / (n - 1))


def test_partition_isotropy_by_hand_and_far_from_the_origin() -> None:
    # Axes of one length: every direction +-e_i sums to the same.
    assert partition_isotropy(axes([2, 2, 2])) == pytest.approx(1.0)
    # Axes 1 and 2 long: Z(+-e_1) = 2 + e + 1/e, Z(+-e_2) = 2 + e^2 + 1/e^2.
    assert partition_isotropy(axes([1, 2])) == pytest.approx(
        (2 + 2 * np.cosh(1)) / (2 + 2 * np.cosh(2))
    )
    rows = np.random.default_rng(1).standard_normal((5000, 3))
    far = np.concatenate([rows, [[2000.0, 0, 0]]])  # exp(2000) is beyond float64
    assert partition_isotropy(far) == 0.0
    vectors = np.linalg.eigh(rows.T @ rows)[1]
    z = [np.exp(rows @ (sign * c)).sum() for c in vectors.T for sign in (1, -1)]
    assert partition_isotropy(rows) == pytest.approx(min(z) / max(z))


def test_histograms_by_hand() -> None:
    x = np.array([[1, 0], [1, 0], [1, 0], [0, 2.0]])
    y = np.array([[5, 0], [0, 1], [-1, 0], [0, 1.0]])  # cosines 1, 0, -1, 1
    histograms = cosine_histograms(x, y, [5, 4, 0.5, 1], bins=4)
    assert histograms["bins"] == [-1, -0.5, 0, 0.5, 1]
    assert [b["counts"] for b in histograms["buckets"]] == [
        [1, 0, 0, 0],
        [0, 0, 0, 1],
        [0] * 4,
        [0] * 4,
        [0, 0, 1, 1],
    ]
    assert [b["n"] for b in histograms["buckets"]] == [1, 1, 0, 0, 2]
    assert histograms["buckets"][4]["mean"] == 0.5
    assert histograms["buckets"][2]["mean"] is None


@pytest.mark.parametrize("measure", [rankme, isoscore, partition_isotropy, singular_values])
def test_one_vector_is_no_sample(measure: Any) -> None:
    with pytest.raises(ValueError, match=r"n > 1, got \(1, 4\)"):
        measure(np.ones((1, 4)))
