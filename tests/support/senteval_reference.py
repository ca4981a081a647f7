"""SentEval's classifier and validation schemes once more, fit by fit in float64 numpy, from their
description alone.

Nothing of the harness is used, so that agreement says something. Only the folds (scikit-learn's, by
definition of the protocol), the generators and the first weights (torch's under the seed) are those
of the libraries SentEval names.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]
GRID = (1e-5, 1e-4, 1e-3, 1e-2)


def first_weights(d: int, classes: int, seed: int) -> Array:
    """Return (classes, d + 1): the initial weights of torch's linear layer, bias last."""
    import torch

    state = torch.get_rng_state()
    torch.manual_seed(seed)
    layer = torch.nn.Linear(d, classes)
    torch.set_rng_state(state)
    weight = layer.weight.detach().numpy()
    bias = layer.bias.detach().numpy()
    return np.concatenate([weight, bias[:, None]], axis=1).astype(float)


def classify(w: Array, x: Array) -> Array:
    return np.asarray((x @ w[:, :-1].T + w[:, -1]).argmax(axis=1))


def _with_ones(x: Array) -> Array:
    """Append a column of ones, for the bias, to x (n, d)."""
    return np.concatenate([x, np.ones((len(x), 1))], axis=1).astype(float)


def fit(
    train: tuple[Array, Array],
    dev: tuple[Array, Array],
    l2: float,
    w: Array,
    shuffle: np.random.RandomState,
    *,
    batch: int = 64,
    tenacity: int = 5,
    epoch_size: int = 4,
    max_epoch: int = 200,
) -> tuple[float, Array]:
    """Run Adam with weight decay on the mean cross-entropy, stopped by the dev accuracy; return that
    accuracy and the weights.
    """
    x = _with_ones(train[0])
    y = train[1]
    target = np.eye(len(w))[y]
    mean = np.zeros_like(w)
    square = np.zeros_like(w)
    t = 0
    best = -1.0
    kept = w
    misses = 0
    passes = 0
    while passes <= max_epoch:
        for _ in range(epoch_size):
            order = shuffle.permutation(len(y))
            for begin in range(0, len(y), batch):
                rows = order[begin : begin + batch]
                z = x[rows] @ w.T
                p = np.exp(z - z.max(axis=1, keepdims=True))
                p /= p.sum(axis=1, keepdims=True)
                g = (p - target[rows]).T @ x[rows] / len(rows) + l2 * w
                t += 1
                mean = 0.9 * mean + 0.1 * g
                square = 0.999 * square + 0.001 * g**2
                w = w - 1e-3 * (mean / (1 - 0.9**t)) / (np.sqrt(square / (1 - 0.999**t)) + 1e-8)
        passes += epoch_size
        accuracy = float((classify(w, dev[0]) == dev[1]).mean())
        if accuracy > best:
            best = accuracy
            kept = w
        else:
            misses += 1
            if misses > tenacity:
                break
    return best, kept


def fit_with_own_slice(
    x: Array, y: Array, l2: float, w: Array, seed: int, **settings: int
) -> Array:
    """Fit with a twentieth of the rows as dev set, drawn by the generator that goes on to shuffle the
    rest.
    """
    generator = np.random.RandomState(seed)
    order = generator.permutation(len(y))
    count = int(0.05 * len(y))
    dev = order[:count]
    rest = order[count:]
    _, weights = fit((x[rest], y[rest]), (x[dev], y[dev]), l2, w, generator, **settings)
    return weights


def folds(y: Array, k: int, state: int) -> Iterator[tuple[Array, Array]]:
    from sklearn.model_selection import StratifiedKFold

    yield from StratifiedKFold(k, shuffle=True, random_state=state).split(np.zeros(len(y)), y)


def search(
    x: Array, y: Array, w: Array, *, k: int, state: int, seed: int, **settings: int
) -> tuple[float, float]:
    """Return the L2 value with the best mean accuracy over k folds, in percent of two decimals, and
    that percentage.
    """
    scores = []
    for l2 in GRID:
        accuracies = []
        for a, b in folds(y, k, state):
            shuffle = np.random.RandomState(seed)
            accuracy, _ = fit((x[a], y[a]), (x[b], y[b]), l2, w, shuffle, **settings)
            accuracies.append(accuracy)
        scores.append(round(100 * float(np.mean(accuracies)), 2))
    return GRID[int(np.argmax(scores))], max(scores)


def nested_cross_validation(
    x: Array, y: Array, *, k: int = 10, seed: int = 1111, **settings: int
) -> tuple[float, float]:
    """Dev and test accuracy in percent; both levels of folds have the state 1111 whatever the seed."""
    w = first_weights(x.shape[1], int(y.max()) + 1, seed)
    dev = []
    test = []
    for a, b in folds(y, k, 1111):
        l2, score = search(x[a], y[a], w, k=k, state=1111, seed=seed, **settings)
        weights = fit_with_own_slice(x[a], y[a], l2, w, seed, **settings)
        dev.append(score)
        test.append(round(100 * float((classify(weights, x[b]) == y[b]).mean()), 2))
    return round(float(np.mean(dev)), 2), round(float(np.mean(test)), 2)


def kfold_on_train(
    x: Array,
    y: Array,
    test_x: Array,
    test_y: Array,
    *,
    k: int = 10,
    seed: int = 1111,
    **settings: int,
) -> tuple[float, float]:
    """Dev and test accuracy in percent; here the folds' state is the seed."""
    w = first_weights(x.shape[1], int(y.max()) + 1, seed)
    l2, score = search(x, y, w, k=k, state=seed, seed=seed, **settings)
    weights = fit_with_own_slice(x, y, l2, w, seed, **settings)
    return score, round(100 * float((classify(weights, test_x) == test_y).mean()), 2)


def train_dev_test(
    x: dict[str, Array], y: dict[str, Array], *, seed: int = 1111, **settings: int
) -> tuple[float, float]:
    """Dev and test accuracy in percent; x and y by "train", "dev" and "test"."""
    w = first_weights(x["train"].shape[1], int(y["train"].max()) + 1, seed)
    scores = []
    weights = []
    for l2 in GRID:
        generator = np.random.RandomState(seed)
        score, fitted = fit(
            (x["train"], y["train"]), (x["dev"], y["dev"]), l2, w, generator, **settings
        )
        scores.append(round(100 * score, 2))
        weights.append(fitted)
    best = int(np.argmax(scores))
    right = classify(weights[best], x["test"]) == y["test"]
    return scores[best], round(100 * float(right.mean()), 2)


def grade_distribution(scores: Array) -> Array:
    """Return (n, 5): the mass of the two whole grades around each score; grade 0 does not exist, so its mass
    is lost.
    """
    target = np.zeros((len(scores), 5))
    for i, score in enumerate(scores):
        low = int(np.floor(score))
        for grade, mass in ((low, low + 1 - score), (low + 1, score - low)):
            if 1 <= grade <= 5:
                target[i, grade - 1] = mass
    return target


def regress(
    x: dict[str, Array], scores: dict[str, Array], *, seed: int = 1111, max_passes: int = 1000
) -> tuple[float, Array]:
    """Fit SentEval's regressor of pair scores; return Pearson on dev at the weights that were kept, and
    the scores of test.
    """
    x = {part: _with_ones(vectors) for part, vectors in x.items()}
    w = first_weights(x["train"].shape[1] - 1, 5, seed)
    target = grade_distribution(scores["train"])
    shuffle = np.random.RandomState(seed)
    mean = np.zeros_like(w)
    square = np.zeros_like(w)
    t = 0

    def softmax(part: Array) -> Array:
        p = np.exp(part @ w.T)
        return np.asarray(p / p.sum(axis=1, keepdims=True))

    best = -1.0
    kept: np.ndarray[Any, Any] = np.empty(0)
    misses = 0
    for passes in itertools.count(50, 50):
        for _ in range(50):
            order = shuffle.permutation(len(target))
            for begin in range(0, len(order), 64):
                rows = order[begin : begin + 64]
                p = softmax(x["train"][rows])
                loss = 2 * (p - target[rows]) / p.size  # of the mean square over rows and grades
                g = (p * (loss - (loss * p).sum(axis=1, keepdims=True))).T @ x["train"][rows]
                t += 1
                mean = 0.9 * mean + 0.1 * g
                square = 0.999 * square + 0.001 * g**2
                w = w - 1e-3 * (mean / (1 - 0.9**t)) / (np.sqrt(square / (1 - 0.999**t)) + 1e-8)
        expected = {part: softmax(x[part]) @ np.arange(1, 6) for part in ("dev", "test")}
        now = float(np.corrcoef(expected["dev"], scores["dev"])[0, 1])
        if now > best:
            best = now
            kept = expected["test"]
        else:
            misses += 1
        if misses > 3 or passes > max_passes:
            return best, kept
    raise AssertionError
