"""The cost of inference: one for all encoders of an architecture, and never a reason to lose a run."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from harness import registry
from harness.comparison import inference_cost
from harness.evaluation.architecture import architecture
from harness.method import Method
from harness.results.inference import inference_file, read_inference
from harness.sources import load_corpus


def fitted(name: str = "pooling", **config: object) -> Method:
    kind = registry.load(registry.METHODS, name)
    method: Method = kind(kind.Config(**config), base_model="embedded:mini-bert")
    return method.fit(None)


def test_weights_and_cheap_poolings_do_not_change_an_architecture_but_work_does() -> None:
    mean = fitted(pooling="mean")
    other = fitted(pooling="cls")
    with torch.no_grad():
        next(other.encoder.parameters()).add_(1)
    assert architecture(mean) == architecture(other)
    assert architecture(mean) != architecture(fitted(pooling="first_last_avg"))
    assert architecture(mean) != architecture(fitted(pooling="mean", max_length=16))
    assert architecture(mean) != architecture(fitted("random"))


def test_encoders_of_one_architecture_share_passes_until_there_are_enough(tmp_path: Path) -> None:
    threads = torch.get_num_threads()
    names = [inference_cost.measure(fitted(pooling=pooling), tmp_path, "cpu") for pooling in 3 * ("mean", "cls")]
    assert len(set(names)) == 1
    (cost,) = read_inference(tmp_path).values()
    assert cost.architecture == names[0]
    assert len(cost.seconds) == inference_cost.ENOUGH
    assert (cost.clock, cost.threads) == ("processor", 1)
    assert max(cost.seconds) < 5 * min(cost.seconds)  # processor time, whatever else runs
    assert torch.get_num_threads() == threads


def test_an_encoder_without_a_transformer_is_measured_too(tmp_path: Path) -> None:
    kind = registry.load(registry.METHODS, "skip_thought")
    small = kind.configure({"hidden": 6, "embedding": 4, "batch_size": 4, "max_steps": 1})
    method = kind(small).fit(load_corpus("embedded:documents", limit=4, kind="documents"))
    name = inference_cost.measure(method, tmp_path, "cpu")
    assert [cost.architecture for cost in read_inference(tmp_path).values()] == [name]
    assert name != architecture(kind(small.model_copy(update={"hidden": 7})))


def test_what_cannot_be_measured_or_kept_costs_no_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    inference_file(tmp_path).write_text("{")
    assert inference_cost.measure(fitted(), tmp_path, "cpu")
    assert len(read_inference(tmp_path)) == 1
    broken = fitted()
    monkeypatch.setattr(type(broken), "encode", lambda *_, **__: 1 / 0)
    assert inference_cost.measure(broken, tmp_path, "cpu") == ""
