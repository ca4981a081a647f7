"""SentEval's three ways to choose the L2 weight and to report an accuracy (tools/validation.py).

Accuracies are in percent, rounded to two decimals where SentEval rounds them: L2 values are compared after rounding,
ties go to the first (smallest), and a nested result is the mean of rounded numbers.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from harness.errors import InputError
from harness.tasks.base import Array
from harness.tasks.senteval.classifier import Classifier, Rows, Split
from harness.tasks.senteval.fits import solve

_NESTED_STATE = 1111  # fixed in SentEval for both levels, whatever the seed
_VALIDATION = 0.05
_NONE: Rows = np.empty(0, dtype=np.int64)


@dataclass(frozen=True)
class Accuracies:
    """`dev` and `test` accuracy in percent; `predicted` labels of the test rows, (n,).

    `fold`: which of the outer folds tested each row of nested folds, (n,) from 0; None where there is one test set.
    """

    dev: float
    test: float
    predicted: NDArray[np.int64] | None = None
    fold: NDArray[np.int64] | None = None


def nested(x: Array, y: Array, classes: int, config: Classifier) -> Accuracies:
    """k outer folds; in each, the L2 value by k inner folds of the rest, then a fit on the rest.

    x (n, d), y (n,).

    Raises:
        InputError: fewer than `kfold` examples.
    """
    outer = _folds(y, config.kfold, _NESTED_STATE)
    inner = [
        Split(train[a], train[b], _NONE) for train, _ in outer for a, b in _folds(y[train], config.kfold, _NESTED_STATE)
    ]
    searched = solve(x, y, inner, _grid(config, len(inner)), classes, config)
    scores = searched.accuracy.reshape(len(outer), config.kfold, -1).mean(axis=1)
    rounded = _percent(scores)
    chosen = rounded.argmax(axis=1)
    l2 = np.asarray(config.l2)[chosen][:, None]
    refits = [_with_validation(train, test, config) for train, test in outer]
    tests = solve(x, y, refits, l2, classes, config).predicted
    predicted, fold = np.zeros(len(y), dtype=np.int64), np.zeros(len(y), dtype=np.int64)
    for number, ((_, test), labels) in enumerate(zip(outer, tests, strict=True)):
        predicted[test], fold[test] = labels[0], number
    accuracies = [_accuracy(predicted[test], y[test]) for _, test in outer]
    dev = round(float(rounded.max(axis=1).mean()), 2)
    return Accuracies(dev, round(float(np.mean(accuracies)), 2), predicted, fold)


def kfold_on_train(x: Mapping[str, Array], y: Mapping[str, Array], classes: int, config: Classifier) -> Accuracies:
    """The L2 value by k folds of the training set, a fit on all of it, the official test set; by "train" and "test".

    Raises:
        InputError: fewer than `kfold` training examples.
    """
    n = len(y["train"])
    whole_x, whole_y = (np.concatenate([of["train"], of["test"]]) for of in (x, y))
    folds = [Split(train, test, _NONE) for train, test in _folds(y["train"], config.kfold, config.seed)]
    scores = solve(whole_x, whole_y, folds, _grid(config, len(folds)), classes, config).accuracy.mean(axis=0)
    rounded = _percent(scores)
    best = int(rounded.argmax())
    refit = _with_validation(np.arange(n), np.arange(n, len(whole_y)), config)
    predicted = solve(whole_x, whole_y, [refit], np.array([[config.l2[best]]]), classes, config).predicted[0][0]
    return Accuracies(float(rounded[best]), _accuracy(predicted, y["test"]), predicted)


def train_dev_test(x: Mapping[str, Array], y: Mapping[str, Array], classes: int, config: Classifier) -> Accuracies:
    """The L2 value by the dev set, which steers early stopping too; x and y by "train", "dev" and "test".

    SentEval fits the chosen value a second time; under the same seed that is the same fit, so it is not repeated.
    """
    parts = ("train", "dev", "test")
    ends = np.cumsum([len(y[part]) for part in parts])
    train, dev, test = np.split(np.arange(ends[-1]), ends[:-1])
    whole_x, whole_y = (np.concatenate([of[part] for part in parts]) for of in (x, y))
    solved = solve(whole_x, whole_y, [Split(train, dev, test)], _grid(config, 1), classes, config)
    rounded = _percent(solved.accuracy[0])
    best = int(rounded.argmax())
    predicted = solved.predicted[0][best]
    return Accuracies(float(rounded[best]), _accuracy(predicted, y["test"]), predicted)


def _percent(shares: Array) -> NDArray[np.float64]:
    """Shares in percent, each rounded as Python rounds a float."""
    rounded = np.array([round(100 * float(share), 2) for share in shares.ravel()])
    return rounded.reshape(shares.shape)


def _accuracy(predicted: Array, gold: Array) -> float:
    return round(100 * float((predicted == gold).mean()), 2)


def _grid(config: Classifier, splits: int) -> NDArray[np.float64]:
    return np.tile(np.asarray(config.l2, dtype=np.float64), (splits, 1))


def _folds(y: Array, k: int, state: int) -> list[tuple[Rows, Rows]]:
    from sklearn.model_selection import StratifiedKFold

    folds = StratifiedKFold(n_splits=k, shuffle=True, random_state=state)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # rare classes (TREC's ABBR in a sample) may miss a fold
            pairs: list[tuple[Any, Any]] = list(folds.split(np.zeros(len(y)), y))
    except ValueError as error:
        raise InputError(f"{len(y)} examples cannot be split into {k} folds: {error}") from None
    return pairs


def _with_validation(train: Rows, test: Rows, config: Classifier) -> Split:
    """A random twentieth of the training rows steers early stopping."""
    shuffled = train[np.random.RandomState(config.seed).permutation(len(train))]
    held = int(_VALIDATION * len(train))
    return Split(shuffled[held:], shuffled[:held], test, drawn=len(train))
