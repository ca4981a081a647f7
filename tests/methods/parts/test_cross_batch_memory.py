"""DeCLUTR's cross-batch memory: its loss against a float64 numpy transcription, and its queue."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import logsumexp

from methods.objectives import nt_xent_symmetric
from methods.parts.cross_batch_memory import CrossBatchMemory, nt_xent_memory


def np_cos(u: np.ndarray, v: np.ndarray) -> float:
    return float(u @ v / math.sqrt((u @ u) * (v @ v)))


def np_memory(a: np.ndarray, b: np.ndarray, older: np.ndarray, t: float) -> float:
    """The 2n terms l(i, partner) with their denominators over all but i itself, and over the queue."""
    rows, n, total = [*a, *b], len(a), 0.0
    for i, x in enumerate(rows):
        partner = rows[(i + n) % (2 * n)]
        others = [np_cos(x, y) / t for k, y in enumerate(rows) if k != i] + [
            np_cos(x, o) / t for o in older
        ]
        total += logsumexp(others) - np_cos(x, partner) / t
    return total / (2 * n)


@settings(max_examples=30)
@given(
    st.integers(1, 5),
    st.integers(0, 6),
    st.integers(1, 5),
    st.floats(0.02, 2),
    st.integers(0, 2**32),
)
def test_memory_loss_equals_numpy(n: int, m: int, d: int, t: float, seed: int) -> None:
    rng = np.random.default_rng(seed)
    a, b, older = (rng.normal(size=(k, d)) for k in (n, n, m))
    tensors = [torch.from_numpy(x) for x in (a, b, older)]
    expected = np_memory(a, b, older, t)
    for terms in ("library", "in_batch"):
        value = nt_xent_memory(*tensors, temperature=t, terms=terms)
        assert float(value) == pytest.approx(expected, rel=1e-9, abs=1e-9)
    if m == 0:
        assert expected == pytest.approx(
            float(nt_xent_symmetric(*tensors[:2], temperature=t)), rel=1e-9, abs=1e-9
        )


def test_two_anchors_and_their_partners_by_hand() -> None:
    """Orthogonal pairs at temperature 1: each of the 4 rows sees cosines 1 (partner), 0, 0: -log(e
    / (e + 2)); a queue of one more orthogonal row makes it e / (e + 3).
    """
    a = torch.tensor([[1.0, 0.0, 0.0], [0.0, 2.0, 0.0]])
    value = nt_xent_memory(
        a, 3 * a, torch.tensor([[0.0, 0.0, 5.0]]), temperature=1.0, terms="library"
    )
    assert float(value) == pytest.approx(math.log(math.e + 3) - 1)
    assert float(nt_xent_symmetric(a, 3 * a, temperature=1.0)) == pytest.approx(
        math.log(math.e + 2) - 1
    )


def test_gradient_flows_through_both_sides_in_batch_and_through_the_query_alone_in_the_library() -> (
    None
):
    generator = torch.Generator().manual_seed(0)
    a, b, older = (torch.randn(3, 4, dtype=torch.float64, generator=generator) for _ in range(3))
    a.requires_grad_()
    torch.autograd.gradcheck(
        lambda x: nt_xent_memory(x, b, older, temperature=0.5, terms="in_batch"), (a,)
    )
    library = torch.autograd.grad(nt_xent_memory(a, b, older, temperature=0.5, terms="library"), a)[
        0
    ]
    # central differences of the numpy form in which the queries move and what they are compared
    # with stays
    keys = np.concatenate([a.detach().numpy(), b.numpy(), older.numpy()])

    def value(queries: np.ndarray) -> float:
        total = 0.0
        for i, x in enumerate(queries):
            others = [np_cos(x, y) / 0.5 for k, y in enumerate(keys) if k != i]
            total += logsumexp(others) - np_cos(x, keys[(i + 3) % 6]) / 0.5
        return total / 6

    for i, j in np.ndindex(3, 4):
        step = np.zeros((6, 4))
        step[i, j] = 1e-6
        numeric = (value(keys[:6] + step) - value(keys[:6] - step)) / 2e-6
        assert float(library[i, j]) == pytest.approx(numeric, abs=1e-7)


class Ring:
    """pytorch-metric-learning's memory: rows enter in order, at a place that goes round, over what
    is there.
    """

    def __init__(self, size: int, dimension: int) -> None:
        self.rows, self.used, self.place = (
            np.zeros((size, dimension)),
            np.zeros(size, dtype=bool),
            0,
        )

    def add(self, rows: np.ndarray) -> np.ndarray:
        """The rows of earlier batches that are left when `rows` have entered."""
        places = np.arange(self.place, self.place + len(rows)) % len(self.rows)
        self.rows[places], self.used[places] = rows, True
        self.place = (self.place + len(rows)) % len(self.rows)
        return self.rows[self.used & ~np.isin(np.arange(len(self.rows)), places)]


@pytest.mark.parametrize("size", [8, 7, 10])  # batches have 4 rows, and the last one of an epoch 2
@pytest.mark.parametrize("terms", ["library", "in_batch"])
def test_the_queue_drops_its_oldest_rows(terms: Any, size: int) -> None:
    """ "library": the batch enters first and takes its places; "in_batch": all places hold earlier
    rows.
    """
    memory, ring = CrossBatchMemory(size, 3), Ring(size, 3)
    rng = np.random.default_rng(0)
    for n in (2, 2, 2, 1, 2, 2, 1, 2):
        a, b = rng.normal(size=(2, n, 3)).astype(np.float32)
        before = ring.rows[ring.used].copy()
        left = ring.add(np.concatenate([a, b]))
        value = memory.loss(torch.tensor(a), torch.tensor(b), temperature=0.3, terms=terms)
        older = left if terms == "library" else before
        assert float(value) == pytest.approx(np_memory(a, b, older, 0.3), rel=1e-5)
        again = CrossBatchMemory(size, 3)
        again.load_state_dict(memory.state_dict())
        assert int(again.filled) == ring.used.sum()
        held = again.rows[: int(again.filled)].numpy().tolist()
        assert sorted(held) == sorted(ring.rows[ring.used].tolist())


def test_a_queue_shorter_than_a_batch_is_refused() -> None:
    with pytest.raises(ValueError, match="fewer than the 10 of one batch"):
        CrossBatchMemory(8, 3).loss(
            torch.ones(5, 3), torch.ones(5, 3), temperature=1.0, terms="library"
        )
