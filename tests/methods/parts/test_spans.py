"""The span sampler: what holds for every draw, its distributions, and both readings of the anchor
rule.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from methods.parts.spans import (
    ANCHOR_LENGTHS,
    POSITIVE_LENGTHS,
    SpanSampler,
    anchors_apart,
    anchors_on_grid,
    place_positives,
    span_lengths,
)

DRAWS = 100_000


@st.composite
def cases(draw: st.DrawFn) -> tuple[SpanSampler, int, int]:
    """A sampler, a document length that it accepts, and a seed."""
    l_min = draw(st.integers(1, 40))
    sampler = SpanSampler(
        l_min=l_min,
        l_max=l_min + draw(st.integers(0, 40)),
        anchors=draw(st.integers(1, 6)),
        positives=draw(st.integers(1, 4)),
        strategy=draw(st.sampled_from(["both", "adjacent", "subsuming"])),
        grid=draw(st.booleans()),
    )
    return sampler, sampler.needed + draw(st.integers(0, 500)), draw(st.integers(0, 2**32))


@settings(max_examples=400)
@given(cases())
def test_every_draw_keeps_the_rules(case: tuple[SpanSampler, int, int]) -> None:
    sampler, n, seed = case
    spans = sampler.sample(n, np.random.default_rng(seed))
    assert spans.shape == (sampler.anchors, 1 + sampler.positives, 2)
    lengths = spans[..., 1] - spans[..., 0]
    assert (spans >= 0).all()
    assert (spans[..., 1] <= n).all()
    assert (lengths <= sampler.l_max).all()
    assert (lengths[:, 0] >= sampler.l_min).all()
    for anchor, *positives in spans.tolist():
        for start, end in positives:
            if (
                sampler.strategy == "both"
            ):  # overlapping, adjacent or inside: never with a token between them
                assert start <= anchor[1]
                assert end >= anchor[0]
                assert end - start >= sampler.l_min
            elif sampler.strategy == "subsuming":
                assert anchor[0] <= start < end <= anchor[1]
                assert end - start >= sampler.l_min
            else:
                assert (start == anchor[1]) != (end == anchor[0])
                # half the room of the shortest document may be all there is on the longer side
                assert end - start >= min(sampler.l_min, max(anchor[0], n - anchor[1]))
    first = sorted(spans[:, 0].tolist())
    for (_, end), (start, _) in itertools.pairwise(first):
        assert (
            start - end >= sampler.l_max
        )  # both readings keep anchors of one document this far apart
    again = sampler.sample(n, np.random.default_rng(seed))
    np.testing.assert_array_equal(spans, again)


@settings(max_examples=100)
@given(st.integers(1, 30), st.integers(1, 6), st.integers(0, 400), st.integers(0, 2**32))
def test_anchors_of_the_code_stay_in_their_cells(
    l_max: int, anchors: int, more: int, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    n = 2 * anchors * l_max + more
    lengths = rng.integers(1, l_max, size=anchors, endpoint=True)
    starts = anchors_on_grid(n, lengths, l_max, rng)
    cells = starts // l_max
    np.testing.assert_array_equal((starts + lengths - 1) // l_max, cells)
    assert cells.max() < n // l_max  # the tail that fills no cell holds no anchor
    assert len(set(cells)) == anchors


def test_grid_cells_by_hand() -> None:
    """8 cells, 2 anchors: the first cell is uniform; cell c takes c-1, c and c+1 away. With
    whole-cell anchors the starts are the cells.
    """
    seen: Counter[tuple[int, int]] = Counter()
    rng = np.random.default_rng(0)
    for _ in range(8000):
        a, b = anchors_on_grid(85, np.array([10, 10]), 10, rng).tolist()
        assert abs(a - b) >= 20
        seen[a // 10, b // 10] += 1
    expected = {}
    for a in range(8):
        rest = [b for b in range(8) if abs(a - b) > 1]
        expected.update({(a, b): 8000 / 8 / len(rest) for b in rest})
    assert set(seen) == set(expected)
    assert stats.chisquare([seen[k] for k in expected], list(expected.values())).pvalue > 0.001


def test_scarce_cells_are_taken_from_the_ends() -> None:
    """4 anchors in 8 cells: 8 // 4 < 4, so the first anchor lies in cell 0 or 7."""
    rng = np.random.default_rng(0)
    first = {int(anchors_on_grid(80, np.full(4, 10), 10, rng)[0]) for _ in range(50)}
    assert first == {0, 70}


@pytest.mark.parametrize("lengths", [(2, 3), (3, 3), (1, 2, 3)])
def test_anchors_of_the_paper_are_a_rejection_sampler(lengths: tuple[int, ...]) -> None:
    """All placements that a rejection sampler would accept occur, equally often, and no others."""
    l_max, n = 3, 2 * len(lengths) * 3 + 2
    allowed = [
        starts
        for starts in itertools.product(*(range(n - length + 1) for length in lengths))
        if all(
            starts[i] + lengths[i] + l_max <= starts[j]
            or starts[j] + lengths[j] + l_max <= starts[i]
            for i, j in itertools.combinations(range(len(lengths)), 2)
        )
    ]
    rng = np.random.default_rng(1)
    draws = 40 * len(allowed)
    seen = Counter(
        tuple(anchors_apart(n, np.array(lengths), l_max, rng).tolist()) for _ in range(draws)
    )
    assert set(seen) <= set(allowed)
    assert stats.chisquare([seen[starts] for starts in allowed]).pvalue > 0.001


@pytest.mark.parametrize("shape", [ANCHOR_LENGTHS, POSITIVE_LENGTHS])
@pytest.mark.parametrize(("low", "high"), [(32, 512), (8, 30)])
def test_lengths_have_the_moments_of_the_beta_distribution(
    shape: tuple[float, float], low: int, high: int
) -> None:
    """Mean and variance within 3 standard errors of those of floor(Beta(a, b) (high - low) + low),
    computed from its distribution function.
    """
    drawn = span_lengths(shape, low, high, DRAWS, np.random.default_rng(2))
    values = np.arange(low, high)
    edges = np.append(values, high)
    chance = np.diff(stats.beta.cdf((edges - low) / (high - low), *shape))
    mean = float(np.sum(chance * values))
    second, fourth = (float(np.sum(chance * (values - mean) ** k)) for k in (2, 4))
    assert abs(drawn.mean() - mean) < 3 * math.sqrt(second / DRAWS)
    assert abs(drawn.var() - second) < 3 * math.sqrt((fourth - second**2) / DRAWS)
    # and the plain Beta moments a/(a+b) and ab/((a+b)^2 (a+b+1)), up to the half token that
    # rounding down costs
    a, b = shape
    assert mean == pytest.approx(low + (high - low) * a / (a + b) - 0.5, abs=0.02)
    assert second == pytest.approx(
        (high - low) ** 2 * a * b / ((a + b) ** 2 * (a + b + 1)), rel=0.01, abs=0.15
    )


def test_positives_lie_uniformly_around_their_anchor() -> None:
    """With l_min = l_max the length is fixed, and "both" is uniform from end-to-start to
    start-to-end contact.
    """
    rng = np.random.default_rng(3)
    starts = place_positives(100, 40, 47, 30_000, 5, 5, "both", rng)[:, 0]
    counts = Counter(starts.tolist())
    assert set(counts) == set(range(35, 48))
    assert stats.chisquare(list(counts.values())).pvalue > 0.001
    at_edge = place_positives(100, 0, 7, 5000, 5, 5, "both", rng)[:, 0]
    assert set(at_edge.tolist()) == set(range(8))
    at_end = place_positives(100, 93, 100, 5000, 5, 5, "both", rng)[:, 0]
    assert set(at_end.tolist()) == set(range(88, 96))


def test_adjacent_positives_choose_their_side_fairly_and_never_begin_the_document_if_they_can_help_it() -> (
    None
):
    rng = np.random.default_rng(4)
    middle = place_positives(100, 40, 50, 10_000, 5, 5, "adjacent", rng)
    before = int((middle[:, 1] == 40).sum())
    assert abs(before - 5000) < 3 * math.sqrt(2500)
    assert (
        place_positives(100, 5, 15, 50, 5, 5, "adjacent", rng)[:, 0].tolist() == [15] * 50
    )  # 0 is excluded
    assert place_positives(100, 90, 98, 50, 5, 5, "adjacent", rng)[:, 0].tolist() == [85] * 50
    # no room for 8 on either side: as long as the longer side allows, 6
    assert set(map(tuple, place_positives(14, 6, 12, 50, 8, 8, "adjacent", rng).tolist())) == {
        (0, 6)
    }


def test_subsumed_positives_are_no_longer_than_their_anchor() -> None:
    """In an anchor of l_min tokens there is one place only."""
    spans = place_positives(100, 40, 48, 100, 8, 30, "subsuming", np.random.default_rng(5))
    assert set(map(tuple, spans.tolist())) == {(40, 48)}


def test_a_short_document_is_refused() -> None:
    sampler = SpanSampler(l_min=4, l_max=10, anchors=2)
    assert sampler.needed == 40
    sampler.sample(40, np.random.default_rng(0))
    with pytest.raises(ValueError, match="39 tokens is too short; 40"):
        sampler.sample(39, np.random.default_rng(0))
