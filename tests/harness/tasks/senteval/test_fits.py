"""The batched classifier gives what fits one by one give: same starts, same shuffles, same
stopping, same L2 values.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest
import torch

from harness.senteval.utils import get_optimizer
from harness.tasks.senteval import fits
from harness.tasks.senteval.classifier import FULL, PROTOTYPING, Classifier
from harness.tasks.senteval.fits import Split, classify, solve
from tests.support import senteval_reference as reference
from tests.support.errors import raises_input_error

Array = np.ndarray[Any, Any]


def blobs(n: int, d: int, classes: int, seed: int = 0, spread: float = 2.0) -> tuple[Array, Array]:
    rng = np.random.default_rng(seed)
    y = rng.integers(0, classes, n)
    centres = np.random.default_rng(99).standard_normal((classes, d))
    return (centres[y] + spread * rng.standard_normal((n, d))).astype(np.float32), y


def one_by_one(
    x: Array, y: Array, split: Split, l2: float, classes: int, c: Classifier
) -> tuple[float, Array]:
    """SentEval's classifier as its description reads: one fit with torch's own layers and
    optimisers and autograd.
    """
    shuffle = np.random.RandomState(c.seed)
    torch.manual_seed(c.seed)
    if c.nhid:
        layers = (
            torch.nn.Linear(x.shape[1], c.nhid),
            torch.nn.Sigmoid(),
            torch.nn.Linear(c.nhid, classes),
        )
        model: torch.nn.Module = torch.nn.Sequential(*layers)
    else:
        model = torch.nn.Linear(x.shape[1], classes)
    kind, _, setting = c.optim.partition(",lr=")
    rate = {"lr": float(setting)} if setting else {}
    optimizer = get_optimizer(kind)[0](model.parameters(), **rate)
    optimizer.param_groups[0]["weight_decay"] = (
        l2  # where it has one: torch's Rprop does not read it
    )
    tx, ty = torch.as_tensor(x), torch.as_tensor(y)
    train = torch.as_tensor(split.train)
    best, kept, failures, passes = -1, {}, 0, 0
    while passes <= c.max_epoch:
        for _ in range(c.epoch_size):
            order = torch.as_tensor(shuffle.permutation(len(train)))
            for i in range(0, len(train), c.batch_size):
                rows = train[order[i : i + c.batch_size]]
                loss = torch.nn.functional.cross_entropy(model(tx[rows]), ty[rows])
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
        passes += c.epoch_size
        correct = int((model(tx[split.held_out]).argmax(1) == ty[split.held_out]).sum())
        if correct > best:
            best, kept = correct, {k: v.clone() for k, v in model.state_dict().items()}
        elif failures >= c.tenacity:
            break
        else:
            failures += 1
    model.load_state_dict(kept)
    return best / len(split.held_out), model(tx[split.test]).argmax(1).numpy()


@pytest.mark.parametrize(
    ("config", "classes"),
    [
        (FULL, 2),
        (FULL, 4),
        (PROTOTYPING, 2),
        (PROTOTYPING, 3),
        (dataclasses.replace(PROTOTYPING, nhid=7), 2),
        (Classifier(nhid=5, tenacity=1), 3),
        (Classifier(optim="sgd,lr=0.5", max_epoch=8), 2),
        (Classifier(optim="adagrad", max_epoch=3, epoch_size=1, seed=5), 3),
        (Classifier(optim="adadelta", max_epoch=12), 3),
        (Classifier(optim="adamax", tenacity=1), 2),
        (Classifier(optim="asgd,lr=0.3", max_epoch=8), 3),
        (Classifier(optim="rprop", max_epoch=5, epoch_size=1, batch_size=16, tenacity=1), 2),
    ],
)
def test_side_by_side_equals_one_by_one(config: Classifier, classes: int) -> None:
    x, y = blobs(150, 21, classes, spread=4.0)
    rng = np.random.default_rng(1)
    splits = []
    for size in (70, 70, 83):  # two sizes: the fits of equal size share their steps
        order = rng.permutation(150)
        splits.append(Split(order[:size], order[size:120], order[120:]))
    l2 = np.array([[1e-5, 1e-2], [1e-3, 1e-1], [1e-4, 0.0]])
    solved = solve(x, y, splits, l2, classes, config)
    for s, split in enumerate(splits):
        for r in range(2):
            accuracy, predicted = one_by_one(x, y, split, l2[s, r], classes, config)
            # Sums in another order move a weight by 1e-7 or so, hence at most one example near the
            # border.
            assert abs(solved.accuracy[s, r] - accuracy) <= 1 / len(split.held_out) + 1e-9
            assert (solved.predicted[s][r] != predicted).sum() <= 1


def test_a_seed_decides_and_nothing_else() -> None:
    x, y = blobs(200, 5, 3, spread=3.0)
    split = [Split(np.arange(100), np.arange(100, 150), np.arange(150, 200))]
    l2 = np.array([[1e-4]])
    before = torch.get_rng_state()
    first = solve(x, y, split, l2, 3, FULL)
    np.random.seed(3)
    again = solve(x, y, split, l2, 3, FULL)
    assert torch.equal(torch.get_rng_state(), before)
    np.testing.assert_array_equal(first.predicted[0], again.predicted[0])


def test_dropout_trains_a_head_that_still_separates() -> None:
    x, y = blobs(400, 8, 2, spread=0.5)
    config = dataclasses.replace(PROTOTYPING, nhid=50, dropout=0.2)
    split = [Split(np.arange(200), np.arange(200, 300), np.arange(300, 400))]
    solved = solve(x, y, split, np.array([[1e-5]]), 2, config)
    assert (solved.predicted[0][0] == y[300:]).mean() > 0.95


@pytest.mark.parametrize(("classes", "seed"), [(2, 1111), (3, 5)])
def test_every_scheme_equals_a_float64_transcription(classes: int, seed: int) -> None:
    """With the full rules (Adam, four L2 values, 5 % slices); SST5 and SICK-E are three-part sets
    of some classes.
    """
    x, y = blobs(240, 9, classes, spread=3.0)
    config = dataclasses.replace(FULL, kfold=3, batch_size=32, max_epoch=60, seed=seed)
    settings = {"seed": seed, "batch": 32, "max_epoch": 60}
    one = 100 / len(y)  # what a single example near a border may change

    accuracies = classify({"all": x}, {"all": y}, classes, config)
    assert (accuracies.dev, accuracies.test) == pytest.approx(
        reference.nested_cross_validation(x, y, k=3, **settings), abs=one
    )

    train, test = slice(0, 160), slice(160, 240)
    parts = {"train": train, "test": test}
    accuracies = classify(
        {part: x[rows] for part, rows in parts.items()},
        {part: y[rows] for part, rows in parts.items()},
        classes,
        config,
    )
    expected = reference.kfold_on_train(x[train], y[train], x[test], y[test], k=3, **settings)
    assert (accuracies.dev, accuracies.test) == pytest.approx(expected, abs=100 / 80)

    cuts = {"train": slice(0, 120), "dev": slice(120, 180), "test": slice(180, 240)}
    xs, ys = {p: x[c] for p, c in cuts.items()}, {p: y[c] for p, c in cuts.items()}
    accuracies = classify(xs, ys, classes, config)
    assert (accuracies.dev, accuracies.test) == pytest.approx(
        reference.train_dev_test(xs, ys, **settings), abs=100 / 60
    )


def test_own_slice_and_shuffles_come_from_one_generator() -> None:
    """SentEval seeds once a fit: the shuffles go on where the choice of the 5 % slice has left the
    generator.
    """
    x, y = blobs(400, 10, 2, spread=6.0)
    config = dataclasses.replace(FULL, max_epoch=0, epoch_size=1)
    split = fits._with_validation(np.arange(300), np.arange(300, 400), config)
    w = reference.first_weights(10, 2, 1111)
    expected = reference.fit_with_own_slice(
        x[:300], y[:300], 1e-4, w, 1111, max_epoch=0, epoch_size=1
    )
    solved = solve(x, y, [split], np.array([[1e-4]]), 2, config)
    again = solve(x, y, [dataclasses.replace(split, drawn=0)], np.array([[1e-4]]), 2, config)
    labels = reference.classify(expected, x[300:])
    assert (solved.predicted[0][0] != labels).sum() <= 1
    assert (
        again.predicted[0][0] != labels
    ).sum() > 1  # other shuffles show in the labels after a single pass


def test_ties_between_l2_values_go_to_the_smallest() -> None:
    x, y = blobs(60, 3, 2, spread=0.01)
    parts = {"train": slice(0, 40), "dev": slice(40, 50), "test": slice(50, 60)}
    xs, ys = {k: x[v] for k, v in parts.items()}, {k: y[v] for k, v in parts.items()}
    accuracies = classify(xs, ys, 2, dataclasses.replace(FULL, optim="sgd,lr=10"))
    assert (accuracies.dev, accuracies.test) == (100.0, 100.0)


def test_too_few_examples_for_the_folds_is_one_clear_line() -> None:
    x, y = blobs(6, 3, 2)
    with raises_input_error():
        classify({"all": x}, {"all": y}, 2, FULL)


@pytest.mark.parametrize(
    ("settings", "key"),
    [
        ({"optim": "adan"}, "optim"),
        ({"optim": "sgd,lr"}, "optim"),
        ({"optim": "sgd,momentum=0.9"}, "optim"),
        ({"batch_size": 0}, "classifier: batch_size"),
        ({"kfold": 1}, "classifier: kfold"),
        ({"dropout": 1.0}, "dropout"),
    ],
)
def test_settings_out_of_range_are_refused(settings: dict[str, Any], key: str) -> None:
    with raises_input_error(key=key):
        Classifier(**settings)


def test_configurations_are_those_of_the_papers() -> None:
    names = ("kfold", "optim", "batch_size", "tenacity", "epoch_size", "nhid")
    assert [getattr(FULL, n) for n in names] == [10, "adam", 64, 5, 4, 0]
    assert [getattr(PROTOTYPING, n) for n in names] == [5, "rmsprop", 128, 3, 2, 0]
    assert FULL.l2 == (1e-5, 1e-4, 1e-3, 1e-2)
    assert (FULL.max_epoch, FULL.seed) == (200, 1111)


def test_the_seed_enters_the_protocol() -> None:
    assert FULL.describe() != dataclasses.replace(FULL, seed=7).describe()


def test_features_far_out_stay_finite() -> None:
    """Features of size 1e4 drive sigmoid and softmax to their ends; separable labels are still
    learnt.
    """
    rng = np.random.default_rng(0)
    for classes in (2, 4):
        y = np.arange(120) % classes
        x = 1e4 * (np.eye(classes)[y] + 0.01 * rng.standard_normal((120, classes)))
        split = Split(np.arange(60), np.arange(60, 90), np.arange(90, 120))
        solved = solve(x, y, [split], np.array([[1e-5]]), classes, PROTOTYPING)
        np.testing.assert_array_equal(solved.predicted[0][0], y[90:])
