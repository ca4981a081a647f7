"""SentEval's classifier (Conneau and Kiela 2018): many fits at a time, and its three ways to choose
the L2 weight.

A task needs hundreds of fits (outer folds x inner folds x L2 values) of one small head on rows of
one matrix (tools/classifier.py). SentEval seeds every fit with the same number, so fits on equally
many rows begin with the same weights and draw the same shuffles. They take their steps together
here, as one batched matrix product, and each sees its own batches in the order in which SentEval
alone would show them.

Accuracies (tools/validation.py) are in percent, rounded to two decimals where SentEval rounds them:
L2 values are compared after rounding, ties go to the first (smallest), and a nested result is the
mean of rounded numbers.
"""

from __future__ import annotations

import itertools
import math
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional as F  # noqa: N812 - torch's own convention

from harness.errors import InputError
from harness.tasks.base import Array
from harness.tasks.senteval.classifier import Classifier, get_optimizer

# Logits (S, R, classes - 1, b), less those of class 0, of rows (S, b) -> derivatives of the mean
# loss by them.
Errors = Callable[[Tensor, Tensor], Tensor]
# numbers of a batch that are gathered at a time: 2 MB stay in a processor's cache
_GATHERED = 1 << 19
_NESTED_STATE = 1111  # fixed in SentEval for both levels, whatever the seed
_VALIDATION = 0.05
Rows = NDArray[np.int64]
_NONE: Rows = np.empty(0, dtype=np.int64)
# which take a step in one operation
_FUSED = (
    torch.optim.Adam,
    torch.optim.SGD,
    torch.optim.Adagrad,
)


@dataclass(frozen=True)
class Accuracies:
    """`dev` and `test` accuracy in percent; `predicted` labels of the test rows, (n,).

    `fold`: which of the outer folds tested each row of nested folds, (n,) from 0; None where there
    is one test set.
    """

    dev: float
    test: float
    predicted: NDArray[np.int64]
    fold: NDArray[np.int64] | None = None


@dataclass(frozen=True)
class Split:
    """One fit: rows to train on, rows that steer early stopping and rate the L2 value, rows to
    predict.

    `drawn`: how many rows the seeded generator has shuffled before it shuffles the training rows
    for the first time.
    """

    train: Rows
    held_out: Rows
    test: Rows
    drawn: int = 0


@dataclass(frozen=True)
class Solution:
    """`accuracy[s, r]`: of split s with L2 value r on its held-out rows, in [0, 1]; `predicted[s]`:
    (R, test rows).
    """

    accuracy: NDArray[np.float64]
    predicted: list[NDArray[np.int64]]


def classify(
    x: Mapping[str, Array],
    y: Mapping[str, Array],
    classes: int,
    config: Classifier,
) -> Accuracies:
    """Accuracies of vectors x (n, d) and labels y (n,) by part.

    The parts say how the L2 weight is chosen. "all": k outer folds are tested; in each, the weight
    is chosen by k inner folds of the rest, then the rest is fitted. "train" and "test": the weight
    is chosen by k folds of train. "train",
    "dev" and "test": it is chosen on dev, which steers early stopping too; SentEval fits the chosen
    one a second time, which under the same seed is the same fit, so it is not repeated.

    Raises:
        InputError: fewer than `kfold` examples.
    """
    parts = [part for part in ("all", "train", "dev", "test") if part in y]
    whole_x = np.concatenate([x[part] for part in parts])
    whole_y = np.concatenate([y[part] for part in parts])
    sizes = [len(y[part]) for part in parts]
    ends = np.cumsum(sizes)
    rows = np.split(np.arange(len(whole_y)), ends[:-1])
    grid = np.asarray(config.l2, dtype=np.float64)
    if len(rows) == 3:
        train, dev, test = rows
        split = Split(train, dev, test)
        solved = solve(whole_x, whole_y, [split], grid[None], classes, config)
        rounded = _percent(solved.accuracy)
        labels = solved.predicted[0][rounded.argmax()]
        on_test = _accuracy(labels, y["test"])
        return Accuracies(float(rounded.max()), on_test, labels)
    if len(rows) == 1:
        outer = outer_folds(whole_y, config.kfold)
        return _classify_by_folds(whole_x, whole_y, outer, _NESTED_STATE, classes, config)
    train, test = rows
    found = _classify_by_folds(whole_x, whole_y, [(train, test)], config.seed, classes, config)
    return replace(found, predicted=found.predicted[test], fold=None)


def _classify_by_folds(
    x: Array,
    y: Array,
    outer: Sequence[tuple[Rows, Rows]],
    state: int,
    classes: int,
    config: Classifier,
) -> Accuracies:
    """Choose the L2 weight of each outer fold by k inner folds of its rest, and test it.

    Args:
        x, y: (n, d) and (n,) of all parts.
        outer: rows of the rest, and tested.
        state: which the inner folds are drawn by.
    """
    grid = np.asarray(config.l2, dtype=np.float64)
    inner = []
    for train, _ in outer:
        for a, b in _folds(y[train], config.kfold, state):
            split = Split(train[a], train[b], _NONE)
            inner.append(split)
    l2 = np.tile(grid, (len(inner), 1))
    searched = solve(x, y, inner, l2, classes, config)
    by_fold = searched.accuracy.reshape(len(outer), config.kfold, -1)
    rounded = _percent(by_fold.mean(axis=1))
    best = rounded.argmax(axis=1)
    chosen = grid[best][:, None]
    refits = [_with_validation(train, test, config) for train, test in outer]
    fitted = solve(x, y, refits, chosen, classes, config)
    predicted = np.zeros_like(y)
    fold = np.zeros_like(y)
    accuracies = []
    for number, (_, test) in enumerate(outer):
        (labels,) = fitted.predicted[number]
        predicted[test] = labels
        fold[test] = number
        accuracies.append(_accuracy(labels, y[test]))
    of_folds = rounded.max(axis=1)
    on_dev = round(float(np.mean(of_folds)), 2)
    on_test = round(float(np.mean(accuracies)), 2)
    return Accuracies(on_dev, on_test, predicted, fold)


def _percent(shares: Array) -> NDArray[np.float64]:
    """Shares in percent, each rounded as Python rounds a float."""
    percents = [round(100 * float(share), 2) for share in shares.ravel()]
    rounded = np.array(percents)
    return rounded.reshape(shares.shape)


def _accuracy(predicted: Array, gold: Array) -> float:
    share = float((predicted == gold).mean())
    return round(100 * share, 2)


def outer_folds(y: Array, k: int) -> list[tuple[Rows, Rows]]:
    """Return the rows of the k outer folds of a set without parts: of the rest, and tested.

    Raises:
        InputError: fewer than k examples.
    """
    return _folds(y, k, _NESTED_STATE)


def _folds(y: Array, k: int, state: int) -> list[tuple[Rows, Rows]]:
    from sklearn.model_selection import StratifiedKFold

    folds = StratifiedKFold(n_splits=k, shuffle=True, random_state=state)
    try:
        with warnings.catch_warnings():
            # rare classes (TREC's ABBR in a sample) may miss a fold
            warnings.simplefilter("ignore", UserWarning)
            rows = np.zeros(len(y))
            pairs: list[tuple[Any, Any]] = list(folds.split(rows, y))
    except ValueError as error:
        message = f"{len(y)} examples cannot be split into {k} folds: {error}"
        raise InputError(message) from None
    return pairs


def _with_validation(train: Rows, test: Rows, config: Classifier) -> Split:
    """A random twentieth of the training rows steers early stopping."""
    random = np.random.RandomState(config.seed)
    shuffled = train[random.permutation(len(train))]
    held = int(_VALIDATION * len(train))
    return Split(
        train=shuffled[held:],
        held_out=shuffled[:held],
        test=test,
        drawn=len(train),
    )


def solve(
    x: Array,
    y: Array,
    splits: Sequence[Split],
    l2: Array,
    classes: int,
    config: Classifier,
) -> Solution:
    """Fit one head for each split s and L2 value l2[s, r].

    Args:
        x: (N, d) features. y: (N,) labels 0 .. classes - 1. l2: (len(splits), R).
    """
    features = with_ones(x)
    whole_y = np.asarray(y, dtype=np.int64)
    labels = torch.as_tensor(whole_y, device=features.device)
    accuracy = np.zeros(l2.shape)
    nothing = np.zeros((0, 0), dtype=np.int64)
    predicted = [nothing] * len(splits)
    gathered = features.shape[1] * config.batch_size  # numbers of a batch of one fit
    together = max(1, _GATHERED // gathered)
    shuffles = []  # what decides them
    for split in splits:
        shuffles.append((len(split.train), split.drawn))
    alike = np.array(shuffles)
    for one in np.unique(alike, axis=0):
        group = np.flatnonzero((alike == one).all(axis=1))
        parts = math.ceil(len(group) / together)
        for part in np.array_split(group, parts):
            best, accuracy[part] = _fit(
                features,
                labels,
                [splits[s] for s in part],
                l2[part],
                classes,
                config,
            )
            for i, s in enumerate(part.tolist()):
                own = [layer[i : i + 1] for layer in best]
                tested = features[splits[s].test]
                predicted[s] = predict(own, tested[None])[0]
    return Solution(accuracy, predicted)


def with_ones(x: Array) -> Tensor:
    """(N, d + 1) features in float32 on the device of the fits; the last column, all ones, is for
    the bias.
    """
    vectors = np.asarray(x, dtype=np.float32)
    ones = np.ones((len(x), 1), dtype=np.float32)
    rows = np.concatenate([vectors, ones], axis=1)
    device = "cpu"
    if torch.cuda.is_available():
        device = "cuda"
    return torch.as_tensor(rows, device=device)


class ClassifierStack:
    """ClassifierStack of S splits x R L2 values on d features: logistic regression, or one hidden layer with
    a sigmoid.

    `layers` are (S, R, outputs, inputs + 1) tensors, biases last. All fits have torch's default
    initialisation under the seed, as SentEval seeds each of them.
    """

    def __init__(
        self,
        x: Tensor,
        train: Tensor,
        decay: Tensor,
        classes: int,
        config: Classifier,
        drawn: int,
    ) -> None:
        """`x` (N, d + 1); `train` (S, n): the rows of each split; `decay` (S, R): the L2 weight of
        each fit, which is added to the gradient of all parameters, as the `weight_decay` of torch's
        optimisers does.
        """
        self.x = x
        self.train = train
        self.config = config
        self.shuffle = np.random.RandomState(config.seed)
        if drawn:
            self.shuffle.permutation(drawn)
        # The generator draws what the seeded global one would.
        generator = torch.Generator().manual_seed(config.seed)
        sizes = [x.shape[1] - 1, classes]
        if config.nhid:
            sizes.insert(1, config.nhid)
        self.layers = []
        for a, b in itertools.pairwise(sizes):
            # nn.Linear draws first its weight and then its bias from this range.
            bound = 1 / math.sqrt(a)
            weight = torch.empty(b, a).uniform_(-bound, bound, generator=generator)
            bias = torch.empty(b, 1).uniform_(-bound, bound, generator=generator)
            layer = torch.cat([weight, bias], dim=1).to(x.device)
            of_fits = layer.expand(*decay.shape, *layer.shape)
            copies = of_fits.clone().requires_grad_()
            self.layers.append(copies)
        kind, settings = get_optimizer(config.optim)
        if kind in _FUSED:
            self.optimizer = kind(self.layers, fused=True, **settings)
        else:
            self.optimizer = kind(self.layers, foreach=False, **settings)
        has_decay = kind is not torch.optim.Rprop  # torch's Rprop has no weight decay
        self.decay = decay[..., None, None] * has_decay
        self.dropout = torch.Generator(x.device).manual_seed(config.seed)
        rows = len(train) * config.batch_size
        self.buffer = torch.empty(rows, x.shape[1], device=x.device)

    def train_epoch(self, errors: Errors) -> None:
        """One pass over the training rows in batches, in the next shuffled order."""
        shuffled = self.shuffle.permutation(self.train.shape[1])
        places = torch.as_tensor(shuffled, device=self.x.device)
        order = self.train[:, places]
        for rows in torch.split(order, self.config.batch_size, dim=1):
            buffer = self.buffer[: rows.numel()]
            batch = torch.index_select(self.x, 0, rows.reshape(-1), out=buffer)
            batch = batch.view(*rows.shape, -1)
            self._set_gradients(batch, rows, errors)
            self.optimizer.step()

    @torch.no_grad()
    def _set_gradients(self, x: Tensor, rows: Tensor, errors: Errors) -> None:
        """Gradients of the loss on a batch x (S, b, d + 1), written out: autograd would take longer
        than the products.

        A softmax depends on the logits less that of class 0 only, and the errors of all classes add
        up to zero.
        """
        last, *first = reversed(self.layers)
        of_first_class = last[:, :, :1]
        w = last[:, :, 1:] - of_first_class
        to_classes = w[..., :-1]
        hidden = None
        mask = None
        if first:
            hidden = _products(first[0], x)
            # one mask for all fits of a step: each fit alone sees an ordinary dropout
            if self.config.dropout:
                drawn = torch.rand(hidden.shape[2:], generator=self.dropout, device=x.device)
                kept = drawn >= self.config.dropout
                mask = kept / (1 - self.config.dropout)
                hidden = hidden * mask
            hidden = hidden.sigmoid_()
        if hidden is None:
            z = _products(w, x)
        else:
            z = to_classes @ hidden + w[..., -1:]
        error = errors(z, rows)
        for layer in self.layers:
            layer.grad = torch.mul(layer, self.decay, out=layer.grad)
        if hidden is None:
            gradient = torch.bmm(error.flatten(1, 2), x).view(w.shape)
        else:
            of_bias = error.sum(-1, keepdim=True)
            gradient = torch.cat([error @ hidden.mT, of_bias], dim=-1)
            of_hidden = to_classes.mT @ error
            back = of_hidden * hidden * (1 - hidden)
            if mask is not None:
                back = back * mask
            of_first = torch.bmm(back.flatten(1, 2), x)
            assert first[0].grad is not None
            first[0].grad += of_first.view(first[0].shape)
        assert last.grad is not None
        last.grad[:, :, 1:] += gradient
        last.grad[:, :, 0] -= gradient.sum(2)

    def keep(self, splits: Tensor) -> None:
        """Drop all other splits."""
        self.train = self.train[splits]
        self.decay = self.decay[splits]
        for layer in self.layers:
            state = self.optimizer.state[layer]
            for key, value in state.items():
                if value.shape == layer.shape:
                    state[key] = value[splits]
            layer.data = layer.data[splits]
            layer.grad = None


def logits(layers: Sequence[Tensor], x: Tensor) -> Tensor:
    """(S, R, classes, b) for x (S, b, d + 1)."""
    first, *second = layers
    z = _products(first, x)
    if not second:
        return z
    (last,) = second
    of_hidden = last[..., :-1] @ z.sigmoid_()
    return of_hidden + last[..., -1:]


def _products(w: Tensor, x: Tensor) -> Tensor:
    """(S, R, outputs, b) for w (S, R, outputs, d + 1) and x (S, b, d + 1)."""
    products = torch.bmm(w.flatten(1, 2), x.mT)
    return products.view(*w.shape[:3], x.shape[1])


def predict(layers: Sequence[Tensor], x: Tensor) -> NDArray[np.int64]:
    """(S, R, b) labels of x (S, b, d + 1)."""
    with torch.no_grad():
        found = logits(layers, x).argmax(2)
        labels: NDArray[np.int64] = found.cpu().numpy()
        return labels


def _fit(
    x: Tensor,
    y: Tensor,
    splits: Sequence[Split],
    l2: Array,
    classes: int,
    config: Classifier,
) -> tuple[list[Tensor], NDArray[np.float64]]:
    """The layers of the best check of each fit and their accuracy (S, R) on the held-out rows."""

    def errors(z: Tensor, rows: Tensor) -> Tensor:
        """Of the mean cross-entropy."""
        p = F.pad(z, (0, 0, 1, 0)).softmax(2)
        labels = y[rows][:, None, None]
        labels = labels.expand(-1, z.shape[1], 1, -1)
        minus_one = torch.full((), -1.0, device=z.device)
        p.scatter_add_(2, labels, minus_one.expand(labels.shape))
        return p[:, :, 1:] / rows.shape[1]

    rows_of_splits = np.stack([split.train for split in splits])
    train = torch.as_tensor(rows_of_splits, device=x.device)
    decay = torch.as_tensor(l2, dtype=x.dtype, device=x.device)
    heads = ClassifierStack(x, train, decay, classes, config, splits[0].drawn)
    best = [layer.detach().clone() for layer in heads.layers]
    best_accuracy = np.full(l2.shape, -1.0)
    failures = np.zeros(l2.shape, dtype=np.int64)
    running = np.ones(l2.shape, dtype=bool)
    there = np.arange(len(splits))
    labels = y.cpu().numpy()
    passes = 0
    while passes <= config.max_epoch and len(there):
        for _ in range(config.epoch_size):
            heads.train_epoch(errors)
        passes += config.epoch_size
        for i, s in enumerate(there.tolist()):
            held = splits[s].held_out
            own = [layer[i : i + 1] for layer in heads.layers]
            held_predicted = predict(own, x[held][None])[0]
            right = held_predicted == labels[held]
            if len(held):
                accuracy = right.mean(axis=1)
            else:
                accuracy = np.zeros(len(right))
            better = running[s] & (accuracy > best_accuracy[s])
            best_accuracy[s, better] = accuracy[better]
            for layer, now in zip(best, heads.layers, strict=True):
                layer[s, better] = now.detach()[i, better]
            running[s] &= better | (failures[s] < config.tenacity)
            failures[s, ~better] += 1
        if not running[there].any(axis=1).all():
            left = np.flatnonzero(running[there].any(axis=1))
            heads.keep(torch.as_tensor(left, device=x.device))
            there = there[left]
    return best, best_accuracy
