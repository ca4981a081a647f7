"""The fits of `harness.tasks.senteval.fits.solve` on a processor, for heads without a hidden layer.

At a step a fit reads 64 rows and writes a few hundred weights: too little for torch, whose every operation passes over
memory again. `numba_descent` keeps them near; numba compiles it on its first use, in a few seconds.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from harness.tasks.senteval.fits.numba_descent import LANES, aligned, classify, descend
from harness.tasks.senteval.fits.parallel import on_all_cores, shuffler
from harness.tasks.senteval.fits.problem import Array, Classifier, Solution, Split, optimizer_settings

# torch's optimisers with their default settings as `descend` wants them: the moments' rule, the floor of the root.
_RULES = {
    "adam": ((0.9, 0.1, 0.999, 0.001), 1e-8),
    "rmsprop": ((0, 1, 0.99, 0.01), 1e-8),
    "adagrad": ((0, 1, 1, 1), 1e-10),
    "sgd": ((0, 1, 1, 0), 0),  # the second moment stays the one that it begins with
}


def solve_compiled(
    x: Array, y: Array, splits: Sequence[Split], l2: Array, classes: int, config: Classifier, threads: int
) -> Solution:
    """As `harness.tasks.senteval.fits.solve.solve`."""
    fits = _CompiledFits(x, y, classes, config)
    pieces = min(l2.shape[1], math.ceil(threads / len(splits)))  # few splits: their L2 values apart
    accuracy = np.zeros(l2.shape)
    predicted = [np.zeros((l2.shape[1], len(split.test)), dtype=np.int64) for split in splits]

    def fit(part: tuple[int, Array]) -> None:
        s, values = part
        accuracy[s, values], predicted[s][values] = fits.fit(splits[s], l2[s, values])

    on_all_cores(
        fit, [(s, v) for s in range(len(splits)) for v in np.array_split(np.arange(l2.shape[1]), pieces)], threads
    )
    return Solution(accuracy, predicted)


class _CompiledFits:
    """What the fits of a task share: rows, labels, the weights at the start, the shuffles."""

    def __init__(self, x: Array, y: Array, classes: int, config: Classifier) -> None:
        from harness.tasks.senteval.fits.torch_heads import fresh_weights

        n, d = x.shape
        width = math.ceil((d + 1) / LANES) * LANES
        self.x = aligned((n, width))
        self.x[:, :d], self.x[:, d] = x, 1
        self.y = np.ascontiguousarray(y, dtype=np.int64)
        self.start = np.zeros((classes, width), dtype=np.float32)
        weight, bias = fresh_weights(d, classes, config)
        self.start[:, :d], self.start[:, d] = weight.numpy(), bias.numpy()
        self.config = config
        self.kind, self.rate = optimizer_settings(config.optim)
        self.shuffles: dict[tuple[int, int], _Shuffles] = {}
        self.lock = threading.Lock()

    def fit(self, split: Split, l2: Array) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        """One fit for each L2 value: accuracy (R,) on the held-out rows and labels (R, n) of the test rows."""
        c = self.config
        n, held = len(split.train), np.ascontiguousarray(split.held_out)
        with self.lock:
            shuffles = self.shuffles.setdefault((n, split.drawn), _Shuffles(c.seed, n, split.drawn))
        rule, decay = (np.array(values, dtype=np.float32) for values in (_RULES[self.kind][0], l2))
        state = np.zeros((3, len(l2), *self.start.shape), dtype=np.float32)  # of the fits that are still running
        state[0], state[2] = self.start, self.kind == "sgd"
        best, best_correct, failures = state[0].copy(), np.full(len(l2), -1), np.zeros(len(l2), dtype=np.int64)
        running = np.arange(len(l2))
        passes = 0
        while len(running) and passes <= c.max_epoch:
            for _ in range(c.epoch_size):
                rows, steps = split.train[shuffles[passes]], self._steps(passes, n)
                descend(self.x, self.y, rows, c.batch_size, state, decay[running], rule, *steps)
                passes += 1
            correct = (classify(self.x, held, state[0]) == self.y[held]).sum(axis=1)
            better = correct > best_correct[running]
            best[running[better]] = state[0][better]
            best_correct[running[better]] = correct[better]
            go_on = better | (failures[running] < c.tenacity)
            failures[running[~better]] += 1
            running, state = running[go_on], np.compress(go_on, state, axis=1)
        return best_correct / max(1, len(held)), classify(self.x, np.ascontiguousarray(split.test), best)

    def _steps(self, passes: int, n: int) -> tuple[Array, Array]:
        """Rate and floor of each step of the next pass; Adam's moments begin at zero, for which both make up."""
        (kept, _, kept_square, _), floor = _RULES[self.kind]
        count = math.ceil(n / self.config.batch_size)
        step = passes * count + np.arange(1, count + 1)
        root = np.sqrt(1 - kept_square**step) if self.kind == "adam" else np.ones(count)
        return (self.rate * root / (1 - kept**step)).astype(np.float32), (floor * root).astype(np.float32)


class _Shuffles:
    """The orders of n rows that a seeded generator gives pass after pass; drawn once for all fits that share them."""

    def __init__(self, seed: int, n: int, drawn: int) -> None:
        """`drawn`: rows that it has permuted before (`Split.drawn`)."""
        self.n, self.seed, self.drawn = n, seed, drawn
        self.generator: np.random.RandomState | None = None
        self.orders: list[NDArray[np.int32]] = []
        self.lock = threading.Lock()

    def __getitem__(self, i: int) -> NDArray[np.int32]:
        with self.lock:
            if self.generator is None:
                self.generator = shuffler(self.seed, self.drawn)
            while len(self.orders) <= i:
                self.orders.append(self.generator.permutation(self.n).astype(np.int32))
            return self.orders[i]
