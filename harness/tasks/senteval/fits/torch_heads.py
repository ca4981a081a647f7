"""The heads of many fits in one set of tensors: logistic regression, or one hidden layer with a sigmoid."""

from __future__ import annotations

import itertools
import math
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from harness.tasks.senteval.fits.problem import Classifier, optimizer_settings

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_MOMENTS = {
    "adam": 2, "rmsprop": 1, "sgd": 0, "adagrad": 1,
    "adadelta": 2, "adamax": 2, "asgd": 0, "rprop": 2,
}  # fmt: skip
_GATHERED = 1 << 22  # numbers gathered at a time for predictions


def fresh_head(d: int, classes: int, decay: Tensor, config: Classifier) -> Head:
    """Heads for d features with torch's default initialisation under the seed, the same for every fit.

    `decay` (S, R) is the L2 weight of each fit: it is added to the gradient of all parameters, bias too, as the
    `weight_decay` of torch's optimisers does.
    """
    fresh = fresh_weights(d, classes, config)
    parameters = [p.to(decay.device).expand(*decay.shape, *p.shape).contiguous() for p in fresh]
    if config.nhid:
        return _Hidden(parameters, decay, config.dropout, config.seed)
    return _Binary(parameters, decay) if classes == 2 else _Linear(parameters, decay)


def fresh_weights(d: int, classes: int, config: Classifier) -> list[Tensor]:
    """Weight and bias of each layer, first to last."""
    generator = torch.Generator().manual_seed(config.seed)  # draws what the seeded global one would
    sizes = [d, config.nhid, classes] if config.nhid else [d, classes]
    fresh = []
    for a, b in itertools.pairwise(sizes):
        bound = 1 / math.sqrt(a)  # nn.Linear draws both its weight and its bias from this range
        fresh += [torch.empty(shape).uniform_(-bound, bound, generator=generator) for shape in ((b, a), (b,))]
    return fresh


class Head:
    """Weights of S x R fits, each tensor (S, R, ...), all of them views into one flat vector; gradients likewise."""

    def __init__(self, parameters: list[Tensor], decay: Tensor) -> None:
        self.hold(parameters, decay)

    def hold(self, parameters: list[Tensor], decay: Tensor) -> None:
        """Take these weights (copied) instead of the present ones."""
        self.decay = decay
        self.flat = torch.cat([p.flatten() for p in parameters])
        self.flat_gradient = torch.zeros_like(self.flat)
        shapes = [p.shape for p in parameters]
        self.parameters = unflatten(self.flat, shapes)
        self.gradient = unflatten(self.flat_gradient, shapes)
        self.flat_decay = torch.cat([decay.repeat_interleave(math.prod(s[2:])) for s in shapes])

    def copy(self) -> Head:
        """An independent copy for keeping weights and predicting."""
        other = type(self).__new__(type(self))
        other.__dict__.update(self.__dict__)
        other.hold(self.parameters, self.decay)
        return other

    def take(self, other: Head, splits: NDArray[np.int64], which: NDArray[np.bool_]) -> None:
        """Copy the fits `which` (len(splits), R) of `other`, whose split i is the split `splits[i]` here."""
        i, r = which.nonzero()
        here, there = ((torch.as_tensor(s, device=self.flat.device), torch.as_tensor(r)) for s in (splits[i], i))
        for mine, theirs in zip(self.parameters, other.parameters, strict=True):
            mine[here] = theirs[there]

    def gradients(self, x: Tensor, y: Tensor) -> None:
        """Set `gradient` to that of the mean cross-entropy plus the L2 term; x (S, b, d), y (S, b)."""
        torch.mul(self.flat, self.flat_decay, out=self.flat_gradient)
        self.add_gradients(x, y)

    def add_gradients(self, x: Tensor, y: Tensor) -> None:
        """Add the gradient of the mean cross-entropy to `gradient`."""
        raise NotImplementedError

    def logits(self, x: Tensor) -> Tensor:
        """(S, R, classes, b) for x (S, b, d)."""
        raise NotImplementedError

    def predict(self, x: Tensor, rows: Tensor) -> Tensor:
        """(S, R, k) labels for the rows (S, k) of x (N, d)."""
        step = max(1, _GATHERED // (len(rows) * x.shape[1]))
        parts = [rows[:, i : i + step] for i in range(0, max(1, rows.shape[1]), step)]
        return torch.cat([self.logits(x[part]).argmax(2) for part in parts], dim=-1)


def unflatten(flat: Tensor, shapes: list[torch.Size]) -> list[Tensor]:
    """Views into a vector, one after the other."""
    ends = list(itertools.accumulate((s.numel() for s in shapes), initial=0))
    return [flat[a:b].view(shape) for (a, b), shape in zip(itertools.pairwise(ends), shapes, strict=True)]


class Optimizer:
    """Torch's optimisers with their default settings, written out: all fits take their step in a few vector operations.

    (torch.optim itself costs seconds to import and more than the arithmetic at each of some ten thousand steps.)
    """

    def __init__(self, head: Head, settings: str) -> None:
        self.kind, self.lr = optimizer_settings(settings)
        self.head = head
        self.state = [torch.zeros_like(head.flat) for _ in range(_MOMENTS[self.kind])]
        self.room = torch.empty_like(head.flat)
        self.steps = 0
        if self.kind == "rprop":
            self.state[1].fill_(self.lr)  # the first length of every weight's step
            head.flat_decay.zero_()  # torch's has no weight decay, and SentEval's setting of one is not read

    def step(self) -> None:
        self.steps += 1
        getattr(self, f"_{self.kind}")(self.head.flat, self.head.flat_gradient)

    def keep(self, splits: NDArray[np.int64]) -> None:
        """Drop all other splits from the head and from this optimiser's state."""
        chosen = torch.as_tensor(splits, device=self.head.flat.device)
        shapes = [p.shape for p in self.head.parameters]
        self.state = [torch.cat([v[chosen].flatten() for v in unflatten(s, shapes)]) for s in self.state]
        self.head.hold([p[chosen] for p in self.head.parameters], self.head.decay[chosen])
        if self.kind == "rprop":
            self.head.flat_decay.zero_()
        self.room = torch.empty_like(self.head.flat)

    def _adam(self, p: Tensor, g: Tensor, beta1: float = 0.9, beta2: float = 0.999, eps: float = 1e-8) -> None:
        m, v = self.state
        m.lerp_(g, 1 - beta1)
        v.mul_(beta2).addcmul_(g, g, value=1 - beta2)
        torch.sqrt(v, out=self.room)
        # eps is scaled instead of the root: lr m / c1 / (sqrt(v / c2) + eps) in one division
        root = math.sqrt(1 - beta2**self.steps)
        p.addcdiv_(m, self.room.add_(eps * root), value=-self.lr * root / (1 - beta1**self.steps))

    def _rmsprop(self, p: Tensor, g: Tensor, alpha: float = 0.99, eps: float = 1e-8) -> None:
        (v,) = self.state
        v.mul_(alpha).addcmul_(g, g, value=1 - alpha)
        torch.sqrt(v, out=self.room)
        p.addcdiv_(g, self.room.add_(eps), value=-self.lr)

    def _adagrad(self, p: Tensor, g: Tensor, eps: float = 1e-10) -> None:
        (v,) = self.state
        v.addcmul_(g, g)
        torch.sqrt(v, out=self.room)
        p.addcdiv_(g, self.room.add_(eps), value=-self.lr)

    def _adadelta(self, p: Tensor, g: Tensor, rho: float = 0.9, eps: float = 1e-6) -> None:
        square, moved = self.state
        square.mul_(rho).addcmul_(g, g, value=1 - rho)
        change = (moved + eps).sqrt_().div_((square + eps).sqrt_()).mul_(g)
        moved.mul_(rho).addcmul_(change, change, value=1 - rho)
        p.add_(change, alpha=-self.lr)

    def _adamax(self, p: Tensor, g: Tensor, beta1: float = 0.9, beta2: float = 0.999, eps: float = 1e-8) -> None:
        m, largest = self.state
        m.lerp_(g, 1 - beta1)
        torch.maximum(largest.mul_(beta2), g.abs().add_(eps), out=largest)
        p.addcdiv_(m, largest, value=-self.lr / (1 - beta1**self.steps))

    def _asgd(self, p: Tensor, g: Tensor, lambd: float = 1e-4, alpha: float = 0.75) -> None:
        # Its average of the weights is kept apart by torch, and SentEval's classifier never asks for it.
        rate = self.lr / (1 + lambd * self.lr * (self.steps - 1)) ** alpha
        p.mul_(1 - lambd * rate).add_(g, alpha=-rate)

    def _rprop(self, p: Tensor, g: Tensor, shrink: float = 0.5, grow: float = 1.2) -> None:
        before, length = self.state
        same = (before * g).sign_()
        length.mul_(torch.where(same > 0, grow, torch.where(same < 0, shrink, 1.0))).clamp_(1e-6, 50)
        g = torch.where(same < 0, 0.0, g)
        p.addcmul_(g.sign(), length, value=-1)
        before.copy_(g)

    def _sgd(self, p: Tensor, g: Tensor) -> None:
        p.add_(g, alpha=-self.lr)


def _error(z: Tensor, y: Tensor) -> Tensor:
    """Gradient of the mean cross-entropy by the logits z (S, R, c, b) for labels y (S, b)."""
    g = torch.softmax(z, dim=2)
    index = y[:, None, None].expand(-1, z.shape[1], 1, -1)
    g.scatter_add_(2, index, torch.full((), -1.0, device=z.device).expand(index.shape))
    return g.div_(y.shape[1])


class _Linear(Head):
    """Multinomial logistic regression: W (S, R, c, d), b (S, R, c)."""

    def logits(self, x: Tensor) -> Tensor:
        w, b = self.parameters
        s, r, c, d = w.shape
        return torch.baddbmm(b.view(s, r * c, 1), w.view(s, r * c, d), x.transpose(1, 2)).view(s, r, c, -1)

    def add_gradients(self, x: Tensor, y: Tensor) -> None:
        w, b = self.gradient
        s, r, c, d = w.shape
        g = _error(self.logits(x), y)
        w.view(s, r * c, d).baddbmm_(g.view(s, r * c, -1), x)
        b += g.sum(-1)


class _Binary(_Linear):
    """Two classes: the logits enter by their difference alone, which halves the work of a step."""

    def add_gradients(self, x: Tensor, y: Tensor) -> None:
        w, b = self.parameters
        z = torch.baddbmm((b[:, :, 1] - b[:, :, 0])[..., None], w[:, :, 1] - w[:, :, 0], x.transpose(1, 2))
        g = z.sigmoid_().sub_(y[:, None])  # (S, R, b)
        share = 1 / y.shape[1]
        for gradient, by in zip(self.gradient, (torch.bmm(g, x), g.sum(-1)), strict=True):
            gradient[:, :, 1].add_(by, alpha=share)
            gradient[:, :, 0].sub_(by, alpha=share)


class _Hidden(Head):
    """Linear - Dropout - Sigmoid - Linear: W1 (S, R, h, d), b1 (S, R, h), W2 (S, R, c, h), b2 (S, R, c)."""

    def __init__(self, parameters: list[Tensor], decay: Tensor, dropout: float, seed: int) -> None:
        super().__init__(parameters, decay)
        self.dropout = dropout
        self.generator = torch.Generator(decay.device).manual_seed(seed)

    def _hidden(self, x: Tensor) -> Tensor:
        w, b = self.parameters[:2]
        s, r, h, d = w.shape
        return torch.baddbmm(b.view(s, r * h, 1), w.view(s, r * h, d), x.transpose(1, 2)).view(s, r, h, -1)

    def logits(self, x: Tensor) -> Tensor:
        w, b = self.parameters[2:]
        return w @ torch.sigmoid(self._hidden(x)) + b[..., None]

    def add_gradients(self, x: Tensor, y: Tensor) -> None:
        w2, b2 = self.parameters[2:]
        z = self._hidden(x)
        s, r, h, n = z.shape
        mask = None
        if self.dropout:  # one mask for all fits of a step: each fit alone sees an ordinary dropout
            kept = torch.rand(h, n, generator=self.generator, device=x.device) >= self.dropout
            mask = kept / (1 - self.dropout)
            z = z * mask
        a = torch.sigmoid(z)
        g = _error(w2 @ a + b2[..., None], y)  # (S, R, c, n)
        back = (w2.transpose(2, 3) @ g) * a * (1 - a)
        if mask is not None:
            back = back * mask
        w1, b1, w2, b2 = self.gradient
        w2 += g @ a.transpose(2, 3)
        b2 += g.sum(-1)
        w1.view(s, r * h, -1).baddbmm_(back.view(s, r * h, n), x)
        b1 += back.sum(-1)
