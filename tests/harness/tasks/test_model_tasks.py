"""Tasks that need the model itself: layers from one forward pass, efficiency; and what happens
without a model.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from harness.encoder import Encoder
from harness.evaluation.scoring import evaluate
from harness.sources import PairSet, Subset
from harness.sources.embedded import embedded_rows
from harness.tasks.base import Task
from harness.tasks.efficiency import EfficiencyTask
from harness.tasks.layers import LayersTask, layer_vectors
from harness.tasks.sts import STSTask
from tests.support.errors import raises_input_error

Array = np.ndarray[Any, Any]
ROWS = [row for row in embedded_rows("sts", ("d",)) if row["split"] == "dev"][:24]
SUBSET = Subset(
    "test",
    [r["sentence1"] for r in ROWS],
    [r["sentence2"] for r in ROWS],
    np.array([r["score"] for r in ROWS]),
)
PAIRS = PairSet("Pairs", "embedded", "test", (SUBSET,), "data", "raw text")


@pytest.fixture(scope="module")
def encoder() -> Encoder:
    return Encoder.from_pretrained("embedded:mini-bert")


def refuse(texts: list[str]) -> Array:
    raise AssertionError("nothing is to be encoded for these tasks")


def test_one_pass_gives_what_each_layer_pooling_gives_alone(encoder: Encoder) -> None:
    texts = [
        "A short one.",
        "One that is rather longer than the other, so that it is padded differently.",
        "",
    ]
    vectors = layer_vectors(encoder, texts)
    depth = encoder.transformer.config.num_hidden_layers
    assert vectors.shape == (3, depth + 1, 3, encoder.dimension)
    for layer in (0, 1, depth):
        for place, mode in enumerate(("cls", "mean", "max")):
            alone = Encoder.from_pretrained(
                "embedded:mini-bert", pooling=f"layer:{layer}:{mode}"
            ).encode(texts)
            np.testing.assert_allclose(vectors[:, layer, place], alone, atol=1e-5)


def test_scores_are_those_of_encoders_with_that_pooling(encoder: Encoder) -> None:
    result = evaluate(refuse, [LayersTask.of(PAIRS)], pooling="mean", model=encoder)
    depth = encoder.transformer.config.num_hidden_layers
    scores = {s.task: s for s in result.scores}
    assert len(scores) == (depth + 1) * 3 == len({s.comparable for s in result.scores})
    for rule in ("layer:1:cls", "layer:2:max", f"layer:{depth}:mean"):
        alone = Encoder.from_pretrained("embedded:mini-bert", pooling=rule)
        (expected, _) = evaluate(alone.encode, [STSTask.of(PAIRS)], pooling=rule).scores
        assert scores[f"Pairs@{rule}"].value == pytest.approx(expected.value, abs=0.005)
    drawn = result.figures["layers:Pairs"]["spearman_by_layer"]
    assert drawn["mean"][depth] == scores[f"Pairs@layer:{depth}:mean"].value


def test_a_method_is_looked_into_and_others_are_refused(encoder: Encoder) -> None:
    from methods.pooling import PoolingMethod

    method = PoolingMethod(base_model="embedded:mini-bert").fit()
    task = LayersTask.of(PAIRS)
    assert task.evaluate_model(method, device="cpu", pooling="mean").scores
    for model in (None, object(), PoolingMethod()):  # the last is not fitted
        with raises_input_error(key="layers:Pairs"):
            task.evaluate_model(model, device="cpu", pooling="mean")


def test_efficiency_says_under_which_conditions() -> None:
    calls: list[int] = []

    class Model:
        def encode(self, texts: list[str], *, batch_size: int, device: str) -> Array:
            calls.append(len(texts))
            return np.ones((len(texts), 2), dtype=np.float32)

    task = EfficiencyTask("Embedded-STS-natural", "embedded")
    result = task.evaluate_model(Model(), device="cpu", pooling="mean")
    n = len(task.texts())
    assert calls[1:] == [n, n, n]  # timed three times
    assert 0 < calls[0] <= n  # the warm-up, which is not timed
    scores = {s.metric: s for s in result.scores}
    assert set(scores) == {"encode_seconds", "sentences_per_second"}
    assert scores["encode_seconds"].n == n
    product = scores["encode_seconds"].value * scores["sentences_per_second"].value
    assert product == pytest.approx(n)
    told = result.protocols[scores["encode_seconds"].comparable]
    assert told["phase"] == "encoding"
    assert {
        "device",
        "threads",
        "precision",
        "batch_size",
        "warm_up",
        "repeats",
        "distinct",
    } <= set(told)


def test_training_is_a_phase_of_its_own() -> None:
    from harness.method import FitReport

    class Trained:
        config = SimpleNamespace(batch_size=64)
        fit_report = FitReport(
            training={"precision": "bf16", "steps": 7},
            cost={"train_seconds": 12.5, "corpus_sentences_seen": 448.0},
        )

        def encode(self, texts: list[str], *, batch_size: int, device: str) -> Array:
            return np.ones((len(texts), 2), dtype=np.float32)

    task = EfficiencyTask("Embedded-STS-natural", "embedded", split="dev")
    result = task.evaluate_model(Trained(), device="cpu", pooling="mean")
    (score,) = [s for s in result.scores if s.metric == "train_seconds"]
    assert (score.value, score.n) == (12.5, 448)
    told = result.protocols[score.comparable]
    assert (told["phase"], told["precision"], told["steps"], told["batch_size"]) == (
        "training",
        "bf16",
        7,
        64,
    )


def test_without_a_model_the_other_tasks_go_on(encoder: Encoder) -> None:
    tasks: list[Task] = [
        LayersTask.of(PAIRS),
        EfficiencyTask("Embedded-STS-natural", "embedded"),
        STSTask.of(PAIRS),
    ]
    result = evaluate(encoder.encode, tasks, pooling="mean")
    assert {s.task for s in result.scores} == {"Pairs"}
    assert set(result.missing) == {"layers:Pairs", "efficiency:Embedded-STS-natural"}
    assert result.cost["sentences"] == len(set(SUBSET.sentences1 + SUBSET.sentences2))
