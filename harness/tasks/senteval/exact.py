"""The exact minimum of SentEval's logistic-regression objective for many fits at once: no seeds, no batches.

For each fit the objective is the mean cross-entropy of its training rows plus (l2 / 2) |theta|^2, bias included: the
function that `weight_decay` makes torch's optimisers descend. It is strictly convex: its only minimum does not depend
on how it is reached. All fits descend together by torch's L-BFGS in float64, in coordinates in which the Hessian of the
whole task is the identity: folds differ little from the whole, so that each step is nearly Newton's.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F  # noqa: N812 - torch's own convention

from harness.tasks.base import Array
from harness.tasks.senteval.classifier import Solution, Split

_ITERATIONS, _ROUNDS = 15, 40  # steps between two measurements of the Hessian, and how often it is measured at most
_ROUGH = 1e-6  # for the whole task, which is only a start
_DECREMENT = 1e-9  # g' H^-1 g, about twice the distance of the objective to its minimum (in nats)
_BYTES = 1 << 27  # of the logits held at a time
_HESSIAN_ROWS = 1 << 14


def solve_exactly(x: Tensor, y: Tensor, splits: Sequence[Split], l2: Array, classes: int) -> Solution:
    """As `harness.tasks.senteval.fits.solve`, with device tensors x (N, d + 1), the last column ones, and y (N,)."""
    member = torch.zeros(len(splits), len(x), dtype=torch.bool, device=x.device)
    for s, split in enumerate(splits):
        member[s, torch.as_tensor(split.train, device=x.device)] = True
    values, which = np.unique(l2, return_inverse=True)
    start = torch.zeros(len(values), 1 if classes == 2 else classes, x.shape[1], dtype=torch.float64, device=x.device)
    every = np.arange(len(values))
    whole = _Problems(x, y, member.any(0)[None], 0 * every, values, every)
    theta = whole.minimise(start, _ROUGH if len(splits) > 1 else _DECREMENT)[which.reshape(-1)]
    if len(splits) > 1:
        folds = np.repeat(np.arange(len(splits)), l2.shape[1])
        theta = _Problems(x, y, member, folds, values, which.reshape(-1)).minimise(theta, _DECREMENT)
    theta = theta.view(*l2.shape, *theta.shape[1:])
    labels = y.cpu().numpy()
    accuracy, predicted = np.zeros(l2.shape), []
    for s, split in enumerate(splits):
        if len(split.held_out):
            right = _labels(x, split.held_out, theta[s]) == labels[split.held_out]
            accuracy[s] = right.mean(axis=-1)
        predicted.append(_labels(x, split.test, theta[s]))
    return Solution(accuracy, predicted)


def _labels(x: Tensor, rows: Array, theta: Tensor) -> Array:
    """(R, rows) labels of `rows` for theta (R, K, d + 1)."""
    z = x[torch.as_tensor(rows, device=x.device)].double() @ theta.mT
    return (z[:, :, 0] > 0 if z.shape[2] == 1 else z.argmax(2)).long().cpu().numpy()


class _Problems:
    """P fits on the rows of x; fit p trains on the rows `member[fold[p]]` with the L2 weight `values[which[p]]`.

    K outputs: one logit a class, or for two classes their difference alone. By symmetry the two weight vectors are
    opposite at the minimum, where (l2 / 2) (|w0|^2 + |w1|^2) = (l2 / 4) |w1 - w0|^2.
    """

    def __init__(self, x: Tensor, y: Tensor, member: Tensor, fold: Array, values: Array, which: Array) -> None:
        self.x, self.y, self.member, self.fold = x, y, member, torch.as_tensor(fold, device=x.device)
        self.values, self.which = values, torch.as_tensor(which, device=x.device)

    def minimise(self, theta: Tensor, decrement: float) -> Tensor:
        """(P, K, d + 1) minima, descended to from `theta`; done when g' H^-1 g of every fit is at most `decrement`."""
        share = 0.5 if theta.shape[1] == 1 else 1.0
        l2 = share * torch.as_tensor(self.values, device=theta.device)[self.which]
        for _ in range(_ROUNDS):
            roots = [self._root(theta[self.which == m][0], share * value) for m, value in enumerate(self.values)]

            def turned(points: Tensor, roots: list[Tensor] = roots) -> Tensor:
                result = torch.empty_like(points)
                for m, root in enumerate(roots):
                    result[self.which == m] = points[self.which == m] @ root
                return result

            steps = torch.zeros_like(theta, requires_grad=True)

            def closure(start: Tensor = theta, steps: Tensor = steps, roots: list[Tensor] = roots) -> float:
                here = (start + turned(steps.detach(), roots)).requires_grad_()
                loss = self._losses(here) + float((0.5 * l2 * here.detach().square().sum((1, 2))).sum())
                assert here.grad is not None
                gradient = here.grad + l2[:, None, None] * here.detach()
                steps.grad = turned(gradient, [root.T for root in roots])
                return loss

            optimizer = torch.optim.LBFGS(
                [steps], max_iter=_ITERATIONS, history_size=10, tolerance_grad=0, tolerance_change=0,
                line_search_fn="strong_wolfe",
            )  # fmt: skip
            optimizer.step(closure)  # type: ignore[no-untyped-call]
            closure()
            theta = theta + turned(steps.detach())
            assert steps.grad is not None
            if float(steps.grad.square().sum((1, 2)).max()) <= decrement:
                break
        return theta

    def _losses(self, theta: Tensor) -> float:
        """The sum of the mean cross-entropies at theta (P, K, d + 1), whose gradient goes into `theta.grad`."""
        p, k, _ = theta.shape
        rows, total = self.member.sum(1).double(), 0.0
        step = max(1, _BYTES // (8 * p * k))
        for begin in range(0, len(self.x), step):
            x, y = self.x[begin : begin + step].double(), self.y[begin : begin + step]
            weight = (self.member[:, begin : begin + step] / rows[:, None])[self.fold].T  # (n, P)
            z = (x @ theta.flatten(0, 1).T).view(-1, p, k)
            target = y[:, None].expand(-1, p)
            if k == 1:
                losses = F.binary_cross_entropy_with_logits(z[:, :, 0], target.double(), reduction="none")
            else:
                losses = F.cross_entropy(z.flatten(0, 1), target.flatten(), reduction="none").view(-1, p)
            loss = (losses * weight).sum()
            loss.backward()  # type: ignore[no-untyped-call]
            total += float(loss.detach())
        return total

    def _root(self, theta: Tensor, l2: float) -> Tensor:
        """R (d + 1, d + 1) with R' R the inverse Hessian at theta (K, d + 1), averaged over the outputs; from a sample
        of the rows of the whole task, as it only sets the scale of the steps.
        """
        inside = self.member.any(0).nonzero()[:, 0]
        x = self.x[inside[:: -(-len(inside) // _HESSIAN_ROWS)]].double()
        z = x @ theta.T
        q = z.sigmoid() if theta.shape[0] == 1 else z.softmax(-1)
        h = (x * (q * (1 - q)).mean(-1, keepdim=True)).T @ x / len(x)
        # A trace of ridge keeps the factor sound where features repeat each other and l2 is tiny.
        h.diagonal().add_(l2 + 1e-12 * float(h.diagonal().mean()) + 1e-300)
        one = torch.eye(len(h), dtype=h.dtype, device=h.device)
        root: Tensor = torch.linalg.solve_triangular(torch.linalg.cholesky(h), one, upper=False)
        return root
