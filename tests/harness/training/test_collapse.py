"""The collapse guard: when it looks, what ends a run, and what it says of the loss and the
geometry.
"""

from __future__ import annotations

import math
from pathlib import Path

import pytest
import torch

from harness.errors import TrainingStopped
from harness.method import FitContext
from harness.sources import load_corpus, load_sts
from harness.tasks.sts import DevSet
from harness.training import TrainingConfig
from harness.training.collapse import (
    Limits,
    describe_loss_terms,
    early_looks,
    has_collapsed_twice,
    note_constant_loss,
)
from methods.simcse import SimCSE
from tests.support.bases import narrow_bert

pytestmark = pytest.mark.usefixtures("few_pairs")
CONFIG = TrainingConfig()
LIMITS = Limits(CONFIG.batch_size, CONFIG.min_std, CONFIG.min_rank)


def look(step: int, std: float) -> dict[str, float]:
    return {"step": step, "std": std, "effective_rank": 50.0}


def test_early_looks_double_until_the_first_regular_one() -> None:
    assert early_looks(125) == [1, 2, 4, 8, 16, 32, 64]
    assert [early_looks(every) for every in (1, 2, 3, 4, 5)] == [[], [1], [1, 2], [1, 2], [1, 2, 4]]


def test_an_early_look_ends_what_the_one_before_saw_too() -> None:
    assert has_collapsed_twice([look(0, 0.5), look(1, 0.001), look(2, 0.001)], LIMITS)
    assert not has_collapsed_twice([look(0, 0.5), look(1, 0.001)], LIMITS)  # seen once
    assert not has_collapsed_twice(
        [look(0, 0.5), look(1, 0.001), look(2, 0.3)], LIMITS
    )  # and got over
    assert not has_collapsed_twice(
        [look(0, 0.001), look(1, 0.001), look(2, 0.001)], LIMITS
    )  # began so


def test_the_term_that_vanished_stands_first() -> None:
    lines = [
        {
            "step": 1,
            "kind": "train",
            "loss": 5.0,
            "spread": 2.0,
            "pull": 1.0,
            "hold": 3.0,
            "lr": 0.1,
            "grad_norm": 1.0,
        },
        {
            "step": 5,
            "kind": "train",
            "loss": 3.5,
            "spread": 0.5,
            "pull": 0.001,
            "hold": 3.001,
            "lr": 0.1,
        },
    ]
    said = describe_loss_terms(lines, 8)
    assert said.startswith(
        "of the loss, pull (1 to 0.001) vanished; hold (3.001) did not move; spread went from 2 to"
    )
    alone = [{"step": step, "kind": "train", "loss": math.log(64)} for step in (1, 5)]
    assert (
        describe_loss_terms(alone, 64)
        == "loss (4.159 = log 64, that of equal vectors) did not move"
    )


def test_a_loss_that_stays_the_same_is_noted() -> None:
    lines = [{"step": step, "loss": 3.0 if step < 4 else 2.0} for step in range(1, 11)]
    assert "from 2 after training step 4" in note_constant_loss(lines)
    assert note_constant_loss(lines[:8]) == ""
    assert note_constant_loss([]) == ""


@pytest.fixture(scope="module")
def dev(few_pairs: None) -> DevSet:
    return DevSet(load_sts("Embedded-STS-natural", source="embedded", split="dev"))


def trained(dev: DevSet, folder: Path | None = None, steps: int = 6, **config: object) -> SimCSE:
    values = {"batch_size": 8, "train_length": 12, "eval_every": 5, **config}
    corpus = load_corpus("embedded:sentences", kind="sentences", limit=64)
    method = SimCSE(SimCSE.configure(values), base_model=narrow_bert())
    method.fit(
        corpus, FitContext(seed=3, dev=dev, folder=folder, max_steps=steps, precision="fp32")
    )
    return method


def test_early_looks_change_neither_weights_nor_choice(
    dev: DevSet, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from harness.training.descent import Curves

    looking = trained(dev, tmp_path)
    curve = Curves(tmp_path)
    curve.truncate(99)
    assert [line["step"] for line in curve.lines if line["kind"] == "early"] == [1, 2, 4]
    assert [line["step"] for line in curve.lines if line["kind"] == "dev"] == [0, 5, 6]
    assert "mean_cosine" in curve.lines[0]
    monkeypatch.setattr("harness.training.loop.early_looks", lambda every: [])
    blind = trained(dev)
    assert looking.fit_report.training == blind.fit_report.training
    for name, weights in blind.encoder.state_dict().items():
        assert torch.equal(weights, looking.encoder.state_dict()[name]), name


def test_a_collapse_is_seen_early_and_explained(dev: DevSet) -> None:
    with pytest.raises(TrainingStopped) as stop:
        trained(dev, steps=64, learning_rate=0.1, eval_every=64)
    assert stop.value.status == "collapsed"
    reason = stop.value.reason
    assert "at step 64 of 64" not in reason
    for said in (
        "it began by training step",
        "spread",
        "effective rank",
        "mean cosine",
        "two dropped views",
        "loss",
    ):
        assert said in reason, reason
    assert reason.endswith(SimCSE.card.when_it_collapses)
    assert "\n" not in reason


def test_options_that_a_card_names_exist() -> None:
    from harness import registry
    from harness.training import TrainedMethod

    for name in registry.names(registry.METHODS):
        method = registry.load(registry.METHODS, name)
        if issubclass(method, TrainedMethod) and method.__module__.startswith("methods."):
            helps = method.card.when_it_collapses
            assert helps, name
            words = {word.strip(",.:;()") for word in helps.split()}
            named = {word for word in words if "_" in word}
            assert named <= set(method.Config.model_fields), (name, named)
