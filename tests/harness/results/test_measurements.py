"""What is measured on a machine: once, stored, shared by processes, and never a reason to lose a
run.
"""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from harness import registry
from harness.evaluation.any_model import architecture
from harness.evaluation.inference_cost import measure_inference
from harness.method import Method
from harness.results.measurements import (
    measure_once,
    measurements_file,
    read_inference,
    read_measurements,
)

COST = {"train_flops": 4e9, "train_seconds": 2.0}


def fitted(name: str = "pooling", **config: object) -> Method:
    kind = registry.load(registry.METHODS, name)
    method: Method = kind(kind.Config(**config), base_model="embedded:mini-bert")
    return method.fit(None)


def test_a_measurement_is_made_once_and_a_damaged_file_is_replaced(tmp_path: Path) -> None:
    asked: list[int] = []

    def ask() -> dict[str, int]:
        asked.append(len(asked))
        return {"value": len(asked)}

    for _ in range(2):
        assert measure_once(tmp_path, "table", "key", ask) == {"value": 1}
    assert measure_once(tmp_path, "table", "other", ask) == {"value": 2}
    assert read_measurements(tmp_path) == {"table": {"key": {"value": 1}, "other": {"value": 2}}}
    left = tmp_path / ".measurements.json.17.00ff00ff"
    for damage in ("{", "[]", '{"table": 3}'):
        left.write_text("{")
        measurements_file(tmp_path).write_text(damage)
        assert read_measurements(tmp_path) == {}
        measure_once(tmp_path, "table", "key", ask)
        assert not left.exists()  # of a process that was killed
    assert len(asked) == 5


def test_a_measurement_of_another_process_holds(tmp_path: Path) -> None:
    def meanwhile() -> dict[str, float]:
        raise AssertionError("measured again")

    measure_once(tmp_path, "table", "cpu", lambda: {"seconds": 2.0})
    assert measure_once(tmp_path, "table", "cpu", meanwhile) == {"seconds": 2.0}


def test_weights_and_cheap_poolings_do_not_change_an_architecture_but_work_does() -> None:
    mean, other = fitted(pooling="mean"), fitted(pooling="cls")
    with torch.no_grad():
        next(other.encoder.parameters()).add_(1)
    assert architecture(mean) == architecture(other)
    for another in (
        fitted(pooling="first_last_avg"),
        fitted(pooling="mean", max_length=16),
        fitted("random"),
    ):
        assert architecture(mean) != architecture(another)


def test_encoders_of_one_architecture_are_measured_once(tmp_path: Path) -> None:
    threads = torch.get_num_threads()
    names, costs = set(), []
    for pooling in ("mean", "cls"):
        names.add(measure_inference(fitted(pooling=pooling), tmp_path, "cpu"))
        costs += read_inference(tmp_path).values()
    cost, again = costs
    assert cost == again
    assert len(cost.seconds) > 1
    assert names == {cost.architecture}
    assert (cost.clock, cost.threads) == ("processor", 1)
    assert torch.get_num_threads() == threads


def test_inference_that_cannot_be_measured_costs_no_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = fitted()
    monkeypatch.setattr(type(broken), "encode", lambda *_, **__: 1 / 0)
    assert measure_inference(broken, tmp_path, "cpu") == ""
