"""SentEval's classifier (Conneau and Kiela 2018, tools/classifier.py), all fits of a task trained side by side.

A task needs hundreds of fits (outer folds x inner folds x L2 values) of one small head on rows of one matrix. SentEval
seeds every fit anew with the same number, so fits on equally many rows draw the same weights and the same shuffles:
they can take their steps together, as one batched matrix product, and each still sees its own batches in the order in
which SentEval alone would have shown them. On a processor the fits of one split without a hidden layer go together
through compiled loops instead (`harness.tasks.senteval.fits.numba_fits`), and splits are shared out among the cores.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from harness.tasks.senteval.fits.parallel import on_all_cores, shuffler
from harness.tasks.senteval.fits.problem import (
    COMPILED,
    Array,
    Classifier,
    Rows,
    Solution,
    Split,
    optimizer_settings,
)

if TYPE_CHECKING:
    from torch import Tensor


# Splits whose batches are gathered together. On a CPU the batch should stay in the cache between its three uses.
_CPU_BYTES, _GPU_BYTES = 2 << 20, 1 << 29


def solve(x: Array, y: Array, splits: Sequence[Split], l2: Array, classes: int, config: Classifier) -> Solution:
    """Fit one head for each split s and L2 value l2[s, r].

    Args:
        x: (N, d) features. y: (N,) labels 0 .. classes - 1. l2: (len(splits), R).
    """
    import torch

    device = "cuda" if torch.cuda.is_available() else "cpu"
    threads = torch.get_num_threads() if device == "cpu" else 1
    if config.solver == "sklearn":
        from harness.tasks.senteval.fits.sklearn_fits import solve_by_sklearn

        return solve_by_sklearn(x, y, splits, l2, config, threads)
    if _goes_compiled(config, device):
        from harness.tasks.senteval.fits.numba_fits import solve_compiled

        return solve_compiled(x, y, splits, l2, classes, config, threads)
    features = torch.as_tensor(np.ascontiguousarray(x, dtype=np.float32), device=device)
    labels = torch.as_tensor(np.asarray(y, dtype=np.int64), device=device)
    if config.solver == "lbfgs":
        from harness.tasks.senteval.fits.exact import solve_convex

        return solve_convex(features, labels, splits, l2, classes)
    accuracy = np.zeros(l2.shape)
    predicted: list[NDArray[np.int64]] = [np.zeros((0, 0), dtype=np.int64)] * len(splits)
    room = _CPU_BYTES if device == "cpu" else _GPU_BYTES
    together = max(1, room // (4 * features.shape[1] * config.batch_size))
    alike = np.array([(len(split.train), split.drawn) for split in splits])  # what decides the shuffles
    groups = [np.flatnonzero((alike == one).all(axis=1)) for one in np.unique(alike, axis=0)]
    parts = [part for group in groups for part in np.array_split(group, math.ceil(len(group) / together))]

    def fit(part: Rows) -> None:
        with torch.no_grad():
            fits = _LockstepFits(features, labels, [splits[s] for s in part], l2[part], classes, config)
            fits.run()
            accuracy[part] = fits.accuracy()
            for s, prediction in zip(part, fits.predict(), strict=True):
                predicted[s] = prediction

    on_all_cores(fit, parts, threads)
    return Solution(accuracy, predicted)


def _goes_compiled(config: Classifier, device: str) -> bool:
    plain = device == "cpu" and config.solver == "senteval" and not config.nhid
    return plain and optimizer_settings(config.optim)[0] in COMPILED


class _LockstepFits:
    """Fits of equally many training rows in lockstep; S splits x R L2 values."""

    def __init__(
        self, x: Tensor, y: Tensor, splits: Sequence[Split], l2: Array, classes: int, config: Classifier
    ) -> None:
        import torch

        from harness.tasks.senteval.fits.torch_heads import fresh_head

        self.x, self.y, self.splits, self.config = x, y, list(splits), config
        self.train = torch.as_tensor(np.stack([split.train for split in splits]), device=x.device)  # (S, n)
        decay = torch.as_tensor(l2, dtype=torch.float32, device=x.device)
        self.head = fresh_head(x.shape[1], classes, decay, config)
        self.best = self.head.copy()
        self.best_correct = np.full(l2.shape, -1, dtype=np.int64)
        self.failures = np.zeros(l2.shape, dtype=np.int64)
        self.alive = np.arange(len(splits))  # the splits that `head` still holds
        self.running: NDArray[np.bool_] = np.ones(l2.shape, dtype=bool)

    def run(self) -> None:
        """Train until every fit has stopped."""
        from harness.tasks.senteval.fits.torch_heads import Optimizer

        c = self.config
        shuffle = shuffler(c.seed, self.splits[0].drawn)
        optimizer = Optimizer(self.head, c.optim)
        passes = 0
        while self.running.any() and passes <= c.max_epoch:
            for _ in range(c.epoch_size):
                self._epoch(shuffle.permutation(self.train.shape[1]), optimizer)
            passes += c.epoch_size
            self._check()
            keep = self.running[self.alive].any(axis=1)
            if not keep.all() and keep.any():
                self.alive = self.alive[keep]
                optimizer.keep(np.flatnonzero(keep))

    def _epoch(self, permutation: Array, optimizer: Any) -> None:
        import torch

        b, d = self.config.batch_size, self.x.shape[1]
        alive = len(self.alive)
        order = self.train[torch.as_tensor(self.alive, device=self.x.device)]
        order = order[:, torch.as_tensor(permutation, device=self.x.device)]
        whole = order.shape[1] // b
        # (steps, S * batch): the rows of one step lie together
        steps = order[:, : whole * b].reshape(alive, whole, b).transpose(0, 1).reshape(whole, alive * b)
        labels = self.y[steps]
        buffer = torch.empty(alive * b, d, device=self.x.device)
        for rows, target in zip(steps, labels, strict=True):
            torch.index_select(self.x, 0, rows, out=buffer)
            self.head.gradients(buffer.view(alive, b, d), target.view(alive, b))
            optimizer.step()
        rest = order[:, whole * b :]
        if rest.shape[1]:
            self.head.gradients(self.x[rest], self.y[rest])
            optimizer.step()

    def _check(self) -> None:
        """Held-out accuracy of the running fits: keep the better ones, count the others' failures."""
        correct = self._correct()
        was_running = self.running[self.alive]
        better = was_running & (correct > self.best_correct[self.alive])
        self.best.take(self.head, self.alive, better)
        self.best_correct[self.alive] = np.where(better, correct, self.best_correct[self.alive])
        failed = was_running & ~better
        self.running[self.alive] = was_running & ~(failed & (self.failures[self.alive] >= self.config.tenacity))
        self.failures[self.alive] += failed

    def _correct(self) -> NDArray[np.int64]:
        rows, inside = self._padded([self.splits[s].held_out for s in self.alive])
        right = (self.head.predict(self.x, rows) == self.y[rows][:, None]) & inside[:, None]
        counts: NDArray[np.int64] = right.sum(-1).cpu().numpy()
        return counts

    def _padded(self, rows: Sequence[Rows]) -> tuple[Tensor, Tensor]:
        """Ragged lists of rows as one (S, longest) matrix, and which of its entries are real."""
        import torch

        longest = max(map(len, rows))
        full = np.zeros((len(rows), longest), dtype=np.int64)
        inside = np.zeros(full.shape, dtype=bool)
        for i, some in enumerate(rows):
            full[i, : len(some)] = some
            inside[i, : len(some)] = True
        return torch.as_tensor(full, device=self.x.device), torch.as_tensor(inside, device=self.x.device)

    def accuracy(self) -> NDArray[np.float64]:
        """(S, R), of the weights that were kept."""
        held = np.array([[len(split.held_out)] for split in self.splits])
        result: NDArray[np.float64] = self.best_correct / np.maximum(held, 1)
        return result

    def predict(self) -> list[NDArray[np.int64]]:
        """For each split the (R, test rows) labels that the kept weights predict."""
        tests = [split.test for split in self.splits]
        if not max(map(len, tests)):
            return [np.zeros((self.running.shape[1], 0), dtype=np.int64)] * len(tests)
        rows, _ = self._padded(tests)
        labels = self.best.predict(self.x, rows).cpu().numpy()
        return [labels[s, :, : len(test)] for s, test in enumerate(tests)]
