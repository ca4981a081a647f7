"""Mini-batch descent of logistic regressions that train on the same rows: the loops, compiled by numba.

Rows of features `x` are (N, width): the features, a one for the bias, zeros up to a multiple of `LANES`. Weights are
(fits, classes, width). Class 0 of a fit is the one that its others are measured against: what counts is by how much
their logits exceed its own, so that two classes cost one product. Loops run over views of single rows (`u = w[o]`),
which numba turns into vector instructions; over `w[o, j]` it does not.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar, cast

import numpy as np
from numba import njit
from numpy.typing import NDArray

Floats = NDArray[np.float32]
Whole = NDArray[np.int64]
Loop = TypeVar("Loop", bound=Callable[..., Any])

LANES = 32  # floats that a product takes at a time
_LINE = 16  # floats in a cache line: to read across its end costs twice
_BLOCK = 64  # rows classified together

# Sums in any order, but infinities and not-a-numbers as ever.
_njit = partial(njit, fastmath={"reassoc", "contract", "nsz"}, nogil=True, error_model="numpy")


def compiled(loop: Loop) -> Loop:
    """Compiled on its first call, and kept beside this file or in the user's cache folder."""
    try:
        return cast(Loop, _njit(loop, cache=True))
    except RuntimeError:  # neither can be written to: every process compiles anew
        return cast(Loop, _njit(loop))


@compiled
def aligned(shape: tuple[int, int]) -> Floats:
    """Zeros that begin at a cache line."""
    size = shape[0] * shape[1]
    room = np.zeros(size + _LINE, dtype=np.float32)
    begin = -room.ctypes.data // 4 % _LINE
    return room[begin : begin + size].reshape(shape)


@compiled
def descend(
    x: Floats, y: Whole, rows: Whole, batch: int, state: Floats, decay: Floats, rule: Floats, rates: Floats,
    floors: Floats,
) -> None:  # fmt: skip
    """One pass over x[rows] with the labels y[rows], in batches.

    The gradient g of the mean cross-entropy, plus decay[fit] times the weights, enters two moments:
    first = rule[0] first + rule[1] g and second = rule[2] second + rule[3] g^2.
    Step s adds -rates[s] first / (sqrt(second) + floors[s]) to the weights.

    Args:
        state: (3, fits, classes, width), the weights and their moments; changed in place.
    """
    weights, first, second = state[0], state[1], state[2]
    fits, classes, width = weights.shape
    each = classes - 1
    at, w, z = room(weights, batch)
    label = np.zeros(len(at), dtype=np.int64)
    top, total = np.zeros(len(at), dtype=np.float32), np.zeros(len(at), dtype=np.float32)
    g = aligned(w.shape)
    rest = np.zeros(width, dtype=np.float32)
    excess(weights, w)
    for step in range(len(rates)):
        count = min(batch, len(rows) - step * batch)
        for i in range(count):
            at[i] = rows[step * batch + i]
            label[i] = y[at[i]]
        multiply(x, at, w, z)
        for f in range(fits):
            _errors(z[f * each : (f + 1) * each], label, top, total)
        z[:, count:] = 0
        g[:] = 0
        accumulate(x, at, z, g)
        share = np.float32(1 / count)
        for f in range(fits):
            rest[:] = 0  # class 0: the gradients of all classes add up to zero
            for c in range(1, classes):
                by = g[f * each + c - 1]
                for j in range(width):
                    rest[j] -= by[j]
                update(weights[f, c], first[f, c], second[f, c], by, share, decay[f], rule, rates[step], floors[step])
            update(weights[f, 0], first[f, 0], second[f, 0], rest, share, decay[f], rule, rates[step], floors[step])
        excess(weights, w)


@compiled
def classify(x: Floats, rows: Whole, weights: Floats) -> Whole:
    """(fits, len(rows)): the class that each fit finds likeliest for x[rows]."""
    fits, classes, _ = weights.shape
    each = classes - 1
    at, w, z = room(weights, _BLOCK)
    excess(weights, w)
    labels = np.zeros((fits, len(rows)), dtype=np.int64)
    for begin in range(0, len(rows), _BLOCK):
        count = min(_BLOCK, len(rows) - begin)
        for i in range(count):
            at[i] = rows[begin + i]
        multiply(x, at, w, z)
        for f in range(fits):
            for i in range(count):
                top = np.float32(0)
                for c in range(1, classes):
                    if z[f * each + c - 1, i] > top:
                        top = z[f * each + c - 1, i]
                        labels[f, begin + i] = c
    return labels


@compiled
def room(weights: Floats, count: int) -> tuple[Whole, Floats, Floats]:
    """For `count` rows, up to whole tiles: which rows, the weights of every class but the first, their products."""
    fits, classes, width = weights.shape
    outputs = fits * (classes - 1)
    at = np.zeros(-(-count // 4) * 4, dtype=np.int64)
    w = aligned((outputs + outputs % 2, width))
    return at, w, aligned((len(w), len(at)))


@compiled
def excess(weights: Floats, w: Floats) -> None:
    """Of every class but the first its weights less those of the first."""
    fits, classes, width = weights.shape
    for f in range(fits):
        for c in range(1, classes):
            own, first, by = weights[f, c], weights[f, 0], w[f * (classes - 1) + c - 1]
            for j in range(width):
                by[j] = own[j] - first[j]


@compiled
def multiply(x: Floats, at: Whole, w: Floats, z: Floats) -> None:
    """z[o, i] = w[o] . x[at[i]], in tiles of two outputs and four rows, whose sums stay in registers."""
    for i in range(0, len(at), 4):
        x0, x1, x2, x3 = x[at[i]], x[at[i + 1]], x[at[i + 2]], x[at[i + 3]]
        for o in range(0, len(w), 2):
            u, v = w[o], w[o + 1]
            u0 = u1 = u2 = u3 = v0 = v1 = v2 = v3 = np.float32(0)
            for j in range(len(u)):
                u0 += u[j] * x0[j]
                u1 += u[j] * x1[j]
                u2 += u[j] * x2[j]
                u3 += u[j] * x3[j]
                v0 += v[j] * x0[j]
                v1 += v[j] * x1[j]
                v2 += v[j] * x2[j]
                v3 += v[j] * x3[j]
            z[o, i], z[o, i + 1], z[o, i + 2], z[o, i + 3] = u0, u1, u2, u3
            z[o + 1, i], z[o + 1, i + 1], z[o + 1, i + 2], z[o + 1, i + 3] = v0, v1, v2, v3


@compiled
def accumulate(x: Floats, at: Whole, z: Floats, g: Floats) -> None:
    """g[o] += z[o, i] x[at[i]] for all i, in the same tiles."""
    for i in range(0, len(at), 4):
        x0, x1, x2, x3 = x[at[i]], x[at[i + 1]], x[at[i + 2]], x[at[i + 3]]
        for o in range(0, len(g), 2):
            u, v = g[o], g[o + 1]
            u0, u1, u2, u3 = z[o, i], z[o, i + 1], z[o, i + 2], z[o, i + 3]
            v0, v1, v2, v3 = z[o + 1, i], z[o + 1, i + 1], z[o + 1, i + 2], z[o + 1, i + 3]
            for j in range(len(u)):
                a, b, c, d = x0[j], x1[j], x2[j], x3[j]  # before u is stored, lest they be read again for v
                new_u = u[j] + u0 * a + u1 * b + u2 * c + u3 * d
                new_v = v[j] + v0 * a + v1 * b + v2 * c + v3 * d
                u[j], v[j] = new_u, new_v


@compiled
def _errors(z: Floats, label: Whole, top: Floats, total: Floats) -> None:
    """One fit's logits (classes - 1, rows) -> derivatives of the cross-entropy by them; `top` and `total` are room."""
    top[:] = 0
    for c in range(len(z)):
        own = z[c]
        for i in range(len(own)):
            top[i] = max(top[i], own[i])
    for i in range(len(top)):
        total[i] = exponential(-top[i])
    for c in range(len(z)):
        own = z[c]
        for i in range(len(own)):
            own[i] = exponential(own[i] - top[i])
            total[i] += own[i]
    for c in range(len(z)):
        own = z[c]
        for i in range(len(own)):
            own[i] = own[i] / total[i] - np.float32(label[i] == c + 1)


@compiled
def exponential(x: np.float32) -> np.float32:
    """e^x for x <= 0 to a float's precision, as (e^(x / 4096))^4096: np.exp would not become vector instructions."""
    t = np.float64(max(x, np.float32(-87))) / 4096
    power = 1 + t * (1 + t / 2 * (1 + t / 3 * (1 + t / 4)))
    for _ in range(12):
        power *= power
    return np.float32(power)


@compiled
def update(
    w: Floats, first: Floats, second: Floats, by: Floats, share: np.float32, decay: np.float32, rule: Floats,
    rate: np.float32, floor: np.float32,
) -> None:  # fmt: skip
    kept, new, kept_square, new_square = rule[0], rule[1], rule[2], rule[3]
    for j in range(len(w)):
        g = share * by[j] + decay * w[j]
        first[j] = kept * first[j] + new * g
        second[j] = kept_square * second[j] + new_square * g * g
        w[j] -= rate * first[j] / (np.sqrt(second[j]) + floor)
