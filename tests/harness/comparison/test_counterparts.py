"""Which untrained starts a comparison evaluates beside its rows: every trained row has its own, and shares it."""

from __future__ import annotations

from typing import Any

import pytest

from harness.comparison.experiment import read_experiment
from harness.comparison.plan import Plan, make_plan
from harness.method import Method

FILE: dict[str, Any] = {
    "name": "small",
    "seeds": [1, 2],
    "suites": ["Embedded-STS-natural"],
    "max_steps": 2,
    "corpus": {"uri": "embedded:sentences", "limit": 64},
    "dev": {"task": "Embedded-STS-natural"},
}
MEAN = {"name": "mean", "method": "pooling"}


def planned(*rows: dict[str, Any], **more: Any) -> Plan:
    return make_plan(read_experiment({**FILE, **more, "methods": list(rows)}), "test", counterparts=True)


def added(plan: Plan) -> list[str]:
    return [cell.row.label for cell in plan.cells if cell.row.counterpart]


def starts(plan: Plan) -> dict[str, str]:
    """Row -> the row that it starts from."""
    labels = {cell.id: cell.row.label for cell in plan.cells}
    return {labels[run]: labels[start] for run, start in plan.starts.items()}


def test_rows_with_an_equal_start_share_it_and_the_file_s_own_is_taken() -> None:
    plan = planned(
        MEAN,
        {"name": "mean, trained", "method": "simcse", "config": {"pooling": "mean"}},
        {"name": "cls, trained", "method": "simcse"},
        {"name": "Barlow", "method": "barlow_twins", "preset": "mini"},
    )
    assert added(plan) == ["untrained (cls)"]  # once, whatever the rows and seeds
    assert starts(plan) == {
        "mean, trained": "mean",
        "cls, trained": "untrained (cls)",
        "Barlow": "untrained (cls)",
    }


def test_another_length_or_first_layer_is_another_start() -> None:
    layers = {"pooling": "first_last_avg", "max_length": None}
    plan = planned(
        {"name": "cut", "method": "whitening", "config": {**layers, "max_length": 64}},
        {"name": "whole", "method": "whitening", "config": layers},
        {"name": "blocks", "method": "whitening", "config": {**layers, "first_layer": 0}},
    )
    assert starts(plan) == {
        "cut": "untrained (first_last_avg, 64 word pieces)",
        "whole": "untrained (first_last_avg)",
        "blocks": "untrained (first_last_avg, from the embedding block)",
    }


def test_what_learns_nothing_or_starts_from_no_encoder_has_no_start() -> None:
    documents = {"uri": "embedded:documents", "kind": "documents"}
    plan = planned(
        MEAN,
        {"method": "random"},
        {"method": "wk_pooling", "preset": "paper"},
        {"method": "pretrained", "preset": "mini"},
        {"method": "skip_thought", "preset": "paper", "corpus": documents},
    )
    assert added(plan) == []
    assert plan.starts == {}


def test_a_concatenation_starts_from_its_untrained_parts() -> None:
    plan = planned({"name": "both", "method": "concat", "preset": "mini"})
    (start,) = (cell for cell in plan.cells if cell.row.counterpart)
    assert start.row.label == "untrained start of both"
    parts: Any = start.row.config.model_dump()["parts"]
    assert [part["method"] for part in parts] == ["pooling", "pooling"]
    assert [part["config"].get("pooling", "mean") for part in parts] == ["mean", "cls"]


def test_a_row_of_the_file_keeps_its_label_and_an_added_one_gives_way() -> None:
    plan = planned({"name": "untrained (cls)", "method": "random"}, {"name": "A", "method": "simcse"})
    assert added(plan) == ["untrained start of A"]


def test_the_start_stands_in_every_block_of_its_rows() -> None:
    blocks = {"one": {}, "two": {"suites": ["Embedded-STS-contrast"]}}
    cls = {"name": "[CLS]", "method": "pooling", "config": {"pooling": "cls"}, "blocks": ["one"]}
    plan = planned(cls, {"name": "A", "method": "simcse", "blocks": ["two"]}, blocks=blocks)
    assert added(plan) == []
    held = next(cell for cell in plan.cells if cell.row.label == "[CLS]")
    assert held.blocks == ("one", "two")
    assert [task.name for task in held.tasks] == ["Embedded-STS-natural", "Embedded-STS-contrast"]
    plan = planned({"name": "A", "method": "simcse", "blocks": ["two"]}, {**MEAN, "blocks": ["one"]}, blocks=blocks)
    assert [cell.blocks for cell in plan.cells if cell.row.counterpart] == [("two",)]


def test_ids_of_the_file_s_rows_are_what_they_are_without_starts() -> None:
    rows = [MEAN, {"name": "A", "method": "simcse"}]
    alone = make_plan(read_experiment({**FILE, "methods": rows}), "test")
    assert [cell.id for cell in planned(*rows).cells if not cell.row.counterpart] == [cell.id for cell in alone.cells]


def test_a_start_that_cannot_be_had_does_not_refuse_the_file() -> None:
    plan = planned(MEAN, {"name": "A", "method": "simcse", "config": {"pooling": "layer:9:mean"}})
    assert (added(plan), plan.starts) == ([], {})  # the row fails by itself, and the others run


def test_without_the_method_that_pools_nothing_is_added(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Method, "untrained", classmethod(lambda cls, config: ("not_installed", {})))
    assert added(planned({"name": "A", "method": "simcse"})) == []
