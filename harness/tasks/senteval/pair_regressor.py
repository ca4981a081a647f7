"""SentEval's supervised regressor for pair scores (tools/relatedness.py), after Tai et al. 2015.

The score is expected from a distribution over the grades 1 to 5 that a linear layer with softmax gives for the features
[|u - v|, u * v]. SentEval trains it by the squared error between the two distributions, although a comment there
speaks of the KL divergence.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from harness.tasks.base import Array
from harness.tasks.senteval.fits.problem import Classifier
from harness.tasks.sts import pearson

if TYPE_CHECKING:
    from torch import Tensor

    from harness.tasks.senteval.fits.torch_heads import Head

Weights = tuple[NDArray[np.float32], NDArray[np.float32]]  # (5, d) and (5,)
VERSION = "harness-senteval-relatedness-1"
GRADES = 5
_BATCH, _PASSES, _MAX_PASSES, _TENACITY = 64, 50, 1000, 3


@dataclass(frozen=True)
class Regression:
    """Pearson on dev at the check whose weights were kept, in [-1, 1]; predicted test scores (n,) in [1, 5]."""

    dev_pearson: float
    predicted: NDArray[np.float64]


def grade_targets(scores: Array) -> NDArray[np.float32]:
    """(n, 5): the mass of score y on grade floor(y) is floor(y) + 1 - y, on grade floor(y) + 1 it is y - floor(y).

    There is no grade 0, so a score below 1 leaves a total below 1: SentEval's own arithmetic, which STS-B's scale from
    0 meets.
    """
    y = np.asarray(scores, dtype=np.float64)[:, None]
    grade = np.arange(1, GRADES + 1)[None]
    low = np.floor(y)
    mass = np.where(grade == low + 1, y - low, 0.0) + np.where(grade == low, low - y + 1, 0.0)
    return mass.astype(np.float32)


def regress(
    x: dict[str, Array], scores: dict[str, Array], *, seed: int = 1111, device: str | None = None
) -> Regression:
    """Fit on "train", keep the weights of the best Pearson on "dev", predict "test"; x (n, d), scores (n,).

    Adam, batches of 64; a check every 50 passes; the end at the 4th check that did not improve (counted over the whole
    fit) or past 1000 passes.
    """
    import torch

    where = device or ("cuda" if torch.cuda.is_available() else "cpu")
    x = {part: np.ascontiguousarray(rows, dtype=np.float32) for part, rows in x.items()}
    fits = (_on_processor if where == "cpu" else _on_device)(x["train"], grade_targets(scores["train"]), seed, where)
    best, failures, passes = -1.0, 0, 0
    kept = weights = next(fits)
    while passes <= _MAX_PASSES:
        weights = next(fits)
        passes += _PASSES
        now = pearson(_expected(weights, x["dev"]), scores["dev"])
        if now > best:
            best, kept = now, weights
        else:
            failures += 1
            if failures > _TENACITY:
                break
    return Regression(best, _expected(kept, x["test"]))


def _on_processor(x: Array, target: Array, seed: int, _: str) -> Iterator[Weights]:
    """(5, d) and (5,) at the start, and then after every 50 passes."""
    from harness.tasks.senteval.fits.numba_regressor import trained
    from harness.tasks.senteval.fits.torch_heads import fresh_weights

    weight, bias = (tensor.numpy() for tensor in fresh_weights(x.shape[1], GRADES, Classifier(seed=seed)))
    yield weight, bias
    shuffle = np.random.RandomState(seed)
    yield from trained(x, target, weight, bias, shuffle=shuffle, batch=_BATCH, passes=_PASSES)


def _on_device(x: Array, target: Array, seed: int, device: str) -> Iterator[Weights]:
    """As `_on_processor`, by torch."""
    import torch

    from harness.tasks.senteval.fits.torch_heads import Optimizer, fresh_head

    rows, wanted = (torch.as_tensor(array, device=device) for array in (x, target))
    shuffle = np.random.RandomState(seed)
    with torch.no_grad():
        head = fresh_head(x.shape[1], GRADES, torch.zeros(1, 1, device=device), Classifier(seed=seed))
        optimizer = Optimizer(head, "adam")
    while True:
        weight, bias = (p[0, 0].cpu().numpy().copy() for p in head.parameters)
        yield weight, bias
        with torch.no_grad():
            for _ in range(_PASSES):
                order = torch.as_tensor(shuffle.permutation(len(rows)), device=device)
                for i in range(0, len(order), _BATCH):
                    some = order[i : i + _BATCH]
                    _gradient(head, rows[some], wanted[some])
                    optimizer.step()


def _gradient(head: Head, x: Tensor, target: Tensor) -> None:
    """Of mean (p - target)^2 over the batch and the grades, p the softmax."""
    p = head.logits(x[None])[0, 0].softmax(0).T  # (b, 5)
    by_p = (p - target) * (2 / p.numel())
    by_z = p * (by_p - (by_p * p).sum(1, keepdim=True))
    w, b = head.gradient
    w[0, 0] = by_z.T @ x
    b[0, 0] = by_z.sum(0)


def _expected(weights: Weights, x: Array) -> NDArray[np.float64]:
    """(n,) expected grades."""
    weight, bias = weights
    z = (x @ weight.T + bias).astype(np.float64)
    p = np.exp(z - z.max(axis=1, keepdims=True))
    expected: NDArray[np.float64] = p @ np.arange(1, GRADES + 1) / p.sum(axis=1)
    return expected
