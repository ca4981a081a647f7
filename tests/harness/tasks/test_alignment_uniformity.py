"""Geometry: alignment, uniformity and spread against closed forms and naive numpy; which pairs and
sentences enter.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.sources import PairSet, Subset
from harness.tasks.geometry import (
    GeometryTask,
    alignment,
    effective_rank,
    feature_std,
    mean_cosine,
    uniformity,
)
from tests.support.errors import raises_input_error

Array = np.ndarray[Any, Any]


def naive_uniformity(x: Array, t: float) -> float:
    unit = x.astype(np.float64) / np.linalg.norm(x.astype(np.float64), axis=1, keepdims=True)
    terms = [math.exp(-t * float(((a - b) ** 2).sum())) for a, b in itertools.combinations(unit, 2)]
    return math.log(sum(terms) / len(terms))


@given(
    st.integers(2, 40),
    st.integers(1, 12),
    st.sampled_from([0.5, 2.0, 25.0]),
    st.integers(0, 2**32 - 1),
)
def test_uniformity_equals_naive(n: int, d: int, t: float, seed: int) -> None:
    x = np.random.default_rng(seed).standard_normal((n, d)) + 0.5
    assert uniformity(x, t=t) == pytest.approx(naive_uniformity(x, t), abs=2e-6)


@pytest.mark.parametrize("n", [2047, 2048, 2049, 4500])
def test_uniformity_over_several_blocks(n: int) -> None:
    x = np.random.default_rng(n).standard_normal((n, 5))
    unit = x / np.linalg.norm(x, axis=1, keepdims=True)
    i, j = np.triu_indices(n, 1)
    expected = np.log(np.mean(np.exp(-2 * (2 - 2 * (unit @ unit.T)[i, j]))))
    assert uniformity(x) == pytest.approx(expected, abs=1e-7)


def test_uniformity_by_hand() -> None:
    # Three vectors on a circle at 0, 90 and 180 degrees: squared distances 2, 2 and 4; lengths do
    # not matter.
    x = np.array([[1, 0], [0, 5], [-0.1, 0]])
    assert uniformity(x) == pytest.approx(math.log((2 * math.exp(-4) + math.exp(-8)) / 3), abs=1e-6)
    assert uniformity(x, t=1) == pytest.approx(
        math.log((2 * math.exp(-2) + math.exp(-4)) / 3), abs=1e-6
    )


def test_uniformity_of_collapsed_vectors_is_zero() -> None:
    # A product of two unit vectors of d float32 numbers is wrong by at most about d 2^-24, however
    # it is summed, and the kernel by 2t times that: 1.8e-4 here. (Found: 1.0e-5 on one processor,
    # 1.2e-5 on another.)
    d, t = 768, 2
    assert uniformity(np.full((300, d), 0.1), t=t) == pytest.approx(0.0, abs=2 * t * d * 2**-24)


def test_uniformity_of_random_unit_vectors_is_slightly_above_minus_four() -> None:
    # For two random unit vectors in d dimensions the cosine has mean 0 and variance 1 / d, so the
    # log of the mean of exp(-4 + 4 cos) is about -4 + 16 / (2 d).
    value = uniformity(np.random.default_rng(1).standard_normal((3000, 768)))
    assert value == pytest.approx(-4 + 8 / 768, abs=1e-3)


def test_uniformity_keeps_its_input_and_takes_tensors() -> None:
    import torch

    x = torch.randn(50, 8, generator=torch.Generator().manual_seed(0), requires_grad=True)
    before = x.detach().clone()
    assert uniformity(x) == pytest.approx(naive_uniformity(before.numpy(), 2), abs=1e-6)
    assert torch.equal(x, before)


def test_alignment_is_zero_for_equal_directions() -> None:
    x = np.random.default_rng(0).standard_normal((20, 7))
    assert alignment(x, x) == 0.0
    assert alignment(x, 3 * x) == pytest.approx(0.0, abs=1e-12)


def test_alignment_by_hand() -> None:
    # Pairs at 90 and 180 degrees: distances sqrt(2) and 2.
    x, y = np.array([[2.0, 0], [1, 0]]), np.array([[0, 1.0], [-3, 0]])
    assert alignment(x, y) == pytest.approx((2 + 4) / 2)
    assert alignment(x, y, alpha=1) == pytest.approx((math.sqrt(2) + 2) / 2)


def test_shapes_that_make_no_sense_are_refused() -> None:
    with pytest.raises(ValueError, match="alignment needs two"):
        alignment(np.ones((2, 3)), np.ones((3, 3)))
    with pytest.raises(ValueError, match="n > 1"):
        uniformity(np.ones((1, 3)))


@pytest.mark.parametrize("shape", [(6, 40), (40, 6)])
def test_effective_rank_equals_svd(shape: tuple[int, int]) -> None:
    x = np.random.default_rng(2).standard_normal(shape) + 3
    s = np.linalg.svd(x - x.mean(axis=0), compute_uv=False)
    p = s[s > 1e-9] / s.sum()
    assert effective_rank(x) == pytest.approx(float(np.exp(-(p * np.log(p)).sum())), rel=1e-5)


def test_effective_rank_of_known_spectra() -> None:
    square = np.array([[1, 1], [1, -1], [-1, 1], [-1, -1]], dtype=np.float32)
    assert effective_rank(square) == pytest.approx(2.0)
    assert effective_rank(square @ np.array([[1.0, 1.0], [0.0, 0.0]])) == pytest.approx(
        1.0, abs=1e-3
    )  # a line
    assert effective_rank(np.full((9, 4), 0.1, dtype=np.float32)) == 0.0  # a point
    assert effective_rank(np.zeros((9, 4))) == 0.0


def test_feature_std_and_mean_cosine() -> None:
    x = np.random.default_rng(3).standard_normal((400, 32))
    assert feature_std(x) == pytest.approx(1.0, abs=0.01)
    assert feature_std(np.full((5, 4), 0.1)) == pytest.approx(0.0, abs=1e-9)
    unit = x / np.linalg.norm(x, axis=1, keepdims=True)
    assert mean_cosine(x) == pytest.approx(
        (unit @ unit.T)[np.triu_indices(400, 1)].mean(), abs=1e-12
    )
    assert mean_cosine([[1, 0], [0, 2], [3, 0]]) == pytest.approx(1 / 3)


def part(split: str, rows: list[tuple[str, str, float]]) -> PairSet:
    subset = Subset(
        name=split,
        sentences1=[r[0] for r in rows],
        sentences2=[r[1] for r in rows],
        gold=np.array([r[2] for r in rows]),
    )
    return PairSet(
        task="STS-B",
        source="senteval",
        split=split,
        subsets=(subset,),
        sha256=split * 2,
        preparation="as written",
    )


PARTS = [
    part("train", [("0", "90", 5.0), ("0", "180", 4.0)]),
    part("dev", [("0", "90", 4.0)]),
    part("test", [("90", "91", 4.2), ("0", "180", 1.0)]),
]


def on_circle(texts: Sequence[str]) -> Array:
    angle = np.radians([float(t) for t in texts])
    return np.stack([np.cos(angle), np.sin(angle)], axis=1)


def values() -> dict[str, tuple[float, int]]:
    result = GeometryTask.of(PARTS).evaluate(on_circle, pooling="mean")
    assert result.pairs is None
    assert {s.task for s in result.scores} == {"geometry:STS-B"}
    assert len(result.protocols) == 2 * len(result.scores)
    return {s.metric: (s.value, s.n) for s in result.scores}


def test_task_takes_pairs_above_four_and_all_slots() -> None:
    scored = values()
    one_degree = 2 - 2 * math.cos(math.radians(1))
    assert scored["alignment"] == (pytest.approx((2 + one_degree) / 2), 2)
    slots = on_circle(["0", "0", "0", "90", "0", "90", "180", "90", "91", "180"])
    assert scored["uniformity"] == (pytest.approx(naive_uniformity(slots, 2), abs=1e-6), 10)
    spread = {"effective_rank", "rankme", "isoscore", "partition_isotropy", "mean_cosine", "std"}
    assert set(scored) == {"alignment", "uniformity"} | spread


def test_nothing_above_the_threshold_is_an_error() -> None:
    with raises_input_error(key="geometry:STS-B"):
        GeometryTask.of([PARTS[1]]).evaluate(on_circle, pooling="mean")


@pytest.mark.hub
@pytest.mark.parametrize("source", ["senteval", "mteb"])
def test_counts_of_the_whole_sts_benchmark(source: str) -> None:
    from harness.tasks.catalogue import resolve_tasks

    (task,) = resolve_tasks(["geometry"], source=source)
    assert isinstance(task, GeometryTask)
    assert len(task.positives()[0]) == 1491
    assert len(task.texts()) == 17256


def test_pair_sets_that_were_cut_are_told() -> None:
    cut = PairSet(
        "STS-B",
        "senteval",
        "test",
        (Subset("test", ["a", "b"], ["c", "d"], np.array([5.0, 5.0])),),
        "",
        "",
    )
    task = GeometryTask.of([cut])
    (note,) = task.evaluate(
        lambda texts: np.eye(5)[[ord(t) - ord("a") for t in texts]], pooling="mean"
    ).notes
    assert note.startswith(f"{task.name}: examples: 2 in test (not 1,379); files cut short")


def test_histograms_are_of_the_test_pairs_alone() -> None:
    split = {part.split: part for part in PARTS}
    count = sum(len(subset.gold) for subset in split["test"].subsets)
    figures = GeometryTask.of(PARTS).evaluate(on_circle, pooling="mean").figures
    (kept,) = figures.values()
    assert kept["cosines"]["split"] == "test"
    assert sum(bucket["n"] for bucket in kept["cosines"]["buckets"]) == count
    total = sum(len(subset.gold) for part in PARTS for subset in part.subsets)
    assert count < total
