"""The descent of `harness.tasks.senteval.pair_regressor` on a processor, compiled by numba: one softmax layer whose
distributions come near those of the scores, by the squared error.

The layout of rows and weights is that of `numba_descent`, whose products are used. The derivatives of the error by the
logits add up to zero over the classes, as those of the cross-entropy do, so that here too class 0 costs no product.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from harness.tasks.senteval.fits.numba_descent import (
    LANES,
    Floats,
    Whole,
    accumulate,
    aligned,
    compiled,
    excess,
    exponential,
    multiply,
    room,
    update,
)
from harness.tasks.senteval.fits.problem import Array

_KEPT, _KEPT_SQUARE, _RATE, _FLOOR = 0.9, 0.999, 1e-3, 1e-8  # Adam's, torch's default settings


def trained(
    x: Array, target: Array, weight: Array, bias: Array, *, shuffle: np.random.RandomState, batch: int, passes: int
) -> Iterator[tuple[Array, Array]]:
    """Weights (classes, d) and biases (classes,) after each `passes` more passes over x (n, d), without an end.

    `target` (n, classes) is what the softmax should give; the loss is the mean of its squared errors over a batch and
    the classes. Each pass has an order from `shuffle`.
    """
    n, d = x.shape
    width = math.ceil((d + 1) / LANES) * LANES
    rows = aligned((n, width))
    rows[:, :d], rows[:, d] = x, 1
    wanted = np.ascontiguousarray(target, dtype=np.float32)
    state = np.zeros((3, 1, len(weight), width), dtype=np.float32)
    state[0, 0, :, :d], state[0, 0, :, d] = weight, bias
    steps, done = math.ceil(n / batch), 0
    while True:
        for _ in range(passes):
            step = done * steps + np.arange(1, steps + 1)
            root = np.sqrt(1 - _KEPT_SQUARE**step)
            rates, floors = _RATE * root / (1 - _KEPT**step), _FLOOR * root
            order = shuffle.permutation(n)
            descend_squared(rows, wanted, order, batch, state, rates.astype(np.float32), floors.astype(np.float32))
            done += 1
        yield state[0, 0, :, :d].copy(), state[0, 0, :, d].copy()


@compiled
def descend_squared(
    x: Floats, target: Floats, order: Whole, batch: int, state: Floats, rates: Floats, floors: Floats
) -> None:
    """One pass over x in this order, in batches; step s adds -rates[s] mean / (sqrt(square) + floors[s]).

    Args:
        state: (3, 1, classes, width), the weights and their two moments; changed in place.
    """
    weights, first, second = state[0], state[1], state[2]
    _, classes, width = weights.shape
    at, w, z = room(weights, batch)
    g = aligned(w.shape)
    rest = np.zeros(width, dtype=np.float32)
    rule = np.array([0.9, 0.1, 0.999, 0.001], dtype=np.float32)
    none = np.float32(0)
    excess(weights, w)
    for step in range(len(rates)):
        count = min(batch, len(order) - step * batch)
        for i in range(count):
            at[i] = order[step * batch + i]
        multiply(x, at, w, z)
        for i in range(count):
            _squared_errors(z[:, i], target[at[i]])
        z[:, count:] = 0
        g[:] = 0
        accumulate(x, at, z, g)
        share = np.float32(2 / (count * classes))
        rest[:] = 0
        for c in range(1, classes):
            by = g[c - 1]
            for j in range(width):
                rest[j] -= by[j]
            update(weights[0, c], first[0, c], second[0, c], by, share, none, rule, rates[step], floors[step])
        update(weights[0, 0], first[0, 0], second[0, 0], rest, share, none, rule, rates[step], floors[step])
        excess(weights, w)


@compiled
def _squared_errors(z: Floats, target: Floats) -> None:
    """Logits of one row, less that of class 0, to the derivatives by them of half the sum of squares."""
    classes = len(target)
    top = np.float32(0)
    for c in range(1, classes):
        top = max(top, z[c - 1])
    p0 = exponential(-top)
    total = p0
    for c in range(1, classes):
        z[c - 1] = exponential(z[c - 1] - top)
        total += z[c - 1]
    p0 /= total
    mean = (p0 - target[0]) * p0
    for c in range(1, classes):
        z[c - 1] /= total
        mean += (z[c - 1] - target[c]) * z[c - 1]
    for c in range(1, classes):
        z[c - 1] *= z[c - 1] - target[c] - mean
