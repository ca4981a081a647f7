"""The exact minimum of SentEval's logistic-regression objective for many fits at once: no seeds, no batches.

For each fit the mean cross-entropy of its training rows plus (l2 / 2) |theta|^2, bias included: the function that
`weight_decay` makes torch's optimisers descend. It is strictly convex, so its minimum is one and does not depend on how
it is reached. All fits share one pass over the rows of the task per iteration; masks say which rows are whose. The
method is L-BFGS (Nocedal and Wright 2006, algorithm 7.4) in float64, whose initial metric is the Hessian of the whole
task at its own minimum: folds differ little from the whole, so that is nearly Newton's step.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from harness.tasks.senteval.fits.problem import Array, Solution, Split

if TYPE_CHECKING:
    from torch import Tensor

_MEMORY = 10
_ITERATIONS, _ROUNDS = 15, 20  # steps between two measurements of the metric, and how often it is measured at most
_ROUGH = 1e-6  # for the whole task, which is only a start
_DECREMENT = 1e-9  # g' H^-1 g, about twice the distance of the objective to its minimum (in nats)
_BYTES = 1 << 25  # of the logits held at a time
_METRIC_ROWS = 1 << 14


def solve_convex(x: Tensor, y: Tensor, splits: Sequence[Split], l2: Array, classes: int) -> Solution:
    """As `harness.tasks.senteval.fits.solve.solve`, with device tensors x (N, d) float32 and y (N,)."""
    import torch

    with torch.no_grad():
        member = torch.zeros(len(splits), len(x), dtype=torch.bool, device=x.device)
        for s, split in enumerate(splits):
            member[s, torch.as_tensor(split.train, device=x.device)] = True
        values, which = np.unique(l2, return_inverse=True)
        problems = _Problems(x, y, classes, member.any(0)[None], np.zeros(len(values), dtype=np.int64), values)
        start = torch.zeros(len(values), problems.outputs, x.shape[1] + 1, dtype=torch.float64, device=x.device)
        order = which.reshape(-1)
        one, many = np.arange(len(values)), len(splits) > 1
        whole = start
        for _ in range(_ROUNDS):
            whole, done = problems.descend(whole, problems.metrics(whole, values), one, _ROUGH if many else _DECREMENT)
            if done:
                break
        theta = whole[order]
        if many:
            folds = np.repeat(np.arange(len(splits)), l2.shape[1])
            parts = _Problems(x, y, classes, member, folds, values[order])
            for _ in range(_ROUNDS):
                # The first fold of each value stands for all: where it is now, they are nearly.
                here = theta[[int(np.flatnonzero(order == v)[0]) for v in one]]
                theta, done = parts.descend(theta, problems.metrics(here, values), order, _DECREMENT)
                if done:
                    break
        theta = theta.reshape(*l2.shape, problems.outputs, -1)
        accuracy = np.zeros(l2.shape)
        predicted = []
        for s, split in enumerate(splits):
            if len(split.held_out):
                right = _labels(x, split.held_out, theta[s]) == y[torch.as_tensor(split.held_out, device=x.device)]
                accuracy[s] = right.double().mean(-1).cpu().numpy()
            predicted.append(_labels(x, split.test, theta[s]).cpu().numpy())
    return Solution(accuracy, predicted)


def _labels(x: Tensor, rows: Any, theta: Tensor) -> Tensor:
    """(R, rows) labels of `rows` for theta (R, K, d + 1)."""
    import torch

    chosen = x[torch.as_tensor(rows, device=x.device)].double()
    z = torch.einsum("nd,rkd->rnk", chosen, theta[:, :, :-1]) + theta[:, None, :, -1]
    return (z[:, :, 0] > 0).long() if z.shape[2] == 1 else z.argmax(-1)


class _Problems:
    """P fits on the rows of x; fit p trains on the rows `member[fold[p]]` with weight `l2[p]`.

    K outputs: one logit a class, or for two classes their difference alone. By symmetry the two weight vectors are
    opposite at the minimum, where (l2 / 2) (|w0|^2 + |w1|^2) = (l2 / 4) |w1 - w0|^2.
    """

    def __init__(self, x: Tensor, y: Tensor, classes: int, member: Tensor, fold: Array, l2: Array) -> None:
        import torch

        self.x, self.y, self.member = x, y, member
        self.outputs = 1 if classes == 2 else classes
        self.fold = torch.as_tensor(fold, device=x.device)
        self.l2 = torch.as_tensor(l2, dtype=torch.float64, device=x.device) * self._share
        self.rows = member.sum(1).double()

    @property
    def _share(self) -> float:
        return 0.5 if self.outputs == 1 else 1.0

    def value(self, theta: Tensor, active: Tensor) -> tuple[Tensor, Tensor]:
        """Objective (A,) and gradient (A, K, d + 1) of the fits `active` at theta (A, K, d + 1)."""
        import torch
        from torch.nn import functional as F  # noqa: N812 - torch's own convention

        a, k, d = theta.shape
        flat = theta.reshape(a * k, d)
        fold, l2 = self.fold[active], self.l2[active]
        loss, gradient = torch.zeros(a, dtype=torch.float64, device=flat.device), torch.zeros_like(flat)
        step = max(1, _BYTES // (8 * a * k))
        for begin in range(0, len(self.x), step):
            x = self.x[begin : begin + step].double()
            y = self.y[begin : begin + step]
            weight = (self.member[:, begin : begin + step].double() / self.rows[:, None])[fold].T  # (n, A)
            z = torch.addmm(flat[:, -1], x, flat[:, :-1].T).view(-1, a, k)
            if k == 1:
                z = z[:, :, 0]
                loss += ((F.softplus(z) - y[:, None] * z) * weight).sum(0)
                g = (z.sigmoid() - y[:, None]) * weight
            else:
                logs = z.log_softmax(-1)
                target = y[:, None, None].expand(-1, a, 1)
                loss -= (logs.gather(2, target)[:, :, 0] * weight).sum(0)
                g = logs.exp().scatter_add_(2, target, torch.full_like(z[:, :, :1], -1.0)) * weight[:, :, None]
                g = g.view(-1, a * k)
            gradient[:, :-1].addmm_(g.T, x)
            gradient[:, -1] += g.sum(0)
        gradient = gradient.view(a, k, d) + l2[:, None, None] * theta
        return loss + 0.5 * l2 * theta.square().sum((1, 2)), gradient

    def metrics(self, theta: Tensor, l2: Array) -> Tensor:
        """Inverse Hessians (P, d + 1, d + 1) at theta (P, K, d + 1), averaged over the outputs; from a sample of the
        rows of the whole task, as they only set the scale of the steps.
        """
        import torch

        inside = self.member.any(0).nonzero()[:, 0]
        rows = inside[:: -(-len(inside) // _METRIC_ROWS)]
        x = self.x[rows].double()
        x = torch.cat([x, torch.ones_like(x[:, :1])], dim=1)
        inverses = []
        for one, weight in zip(theta, l2, strict=True):
            z = x @ one.T
            p = z.sigmoid() if self.outputs == 1 else z.softmax(-1)
            h = (x * (p * (1 - p)).mean(-1, keepdim=True)).T @ x / len(rows)
            # A trace of ridge keeps the factor sound where features repeat each other and l2 is tiny.
            h.diagonal().add_(float(weight) * self._share + 1e-12 * float(h.diagonal().mean()) + 1e-300)
            inverses.append(torch.cholesky_inverse(torch.linalg.cholesky(h)))
        return torch.stack(inverses)

    def descend(self, theta: Tensor, metrics: Tensor, metric: Array, decrement: float) -> tuple[Tensor, bool]:
        """Some steps from theta (P, K, d + 1) towards the minima, and whether all have been reached.

        Fit p measures steps by `metrics[metric[p]]`; it is done when g' H^-1 g is at most `decrement`.
        """
        import torch

        theta = theta.clone()
        which = torch.as_tensor(metric, device=theta.device)
        active = torch.arange(len(theta), device=theta.device)
        loss, gradient = self.value(theta, active)
        history: list[tuple[Tensor, Tensor, Tensor]] = []
        for _ in range(_ITERATIONS):
            direction = _two_loops(gradient, history, metrics, which[active])
            slope = (gradient * direction).sum((1, 2))
            going = -slope > decrement
            if not going.all():
                active, loss, gradient, direction, slope = (
                    t[going] for t in (active, loss, gradient, direction, slope)
                )
                history = [(s[going], y[going], r[going]) for s, y, r in history]
            if not len(active):
                return theta, True
            now = theta[active]
            step = direction
            new_loss, new_gradient = self.value(now + step, active)
            for halving in range(1, 30):  # Armijo's rule; nearly always the whole step is taken
                size = 0.5**halving
                back = new_loss > loss + 1e-4 * 2 * size * slope + 1e-14
                if not back.any():
                    break
                step = torch.where(back[:, None, None], size * direction, step)
                new_loss[back], new_gradient[back] = self.value((now + step)[back], active[back])
            change = new_gradient - gradient
            curvature = (step * change).sum((1, 2))
            rho = torch.where(curvature > 0, 1 / curvature.clamp_min(1e-300), torch.zeros_like(curvature))
            history = [*history[-_MEMORY + 1 :], (step, change, rho)]
            theta[active] = now + step
            loss, gradient = new_loss, new_gradient
        return theta, False


def _two_loops(
    gradient: Tensor, history: list[tuple[Tensor, Tensor, Tensor]], metrics: Tensor, which: Tensor
) -> Tensor:
    """The L-BFGS direction -H g, (A, K, d + 1); pairs with rho = 0 take no part."""
    import torch

    q = gradient.clone()
    alphas = []
    for step, change, rho in reversed(history):
        alpha = rho * (step * q).sum((1, 2))
        q -= alpha[:, None, None] * change
        alphas.append(alpha)
    r = torch.empty_like(q)
    for m in range(len(metrics)):
        mine = which == m
        r[mine] = q[mine] @ metrics[m]
    for (step, change, rho), alpha in zip(history, reversed(alphas), strict=True):
        beta = rho * (change * r).sum((1, 2))
        r += (alpha - beta)[:, None, None] * step
    return -r
