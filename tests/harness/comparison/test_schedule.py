"""When the rows of a comparison meet the dev set: after the same numbers of updates, unless the file says otherwise."""

from __future__ import annotations

from typing import Any

import pytest

from harness.comparison.experiment import read_experiment
from harness.comparison.part import asked_of
from harness.comparison.plan import Plan, make_plan
from harness.errors import InputError

ROWS = [
    {"name": "own loss", "method": "simcse"},  # every 125, the default of `TrainingConfig`
    {"name": "mini", "method": "simcse", "preset": "mini"},  # every 10
]


def file(*rows: dict[str, Any], every: Any = None, **more: Any) -> dict[str, Any]:
    dev = {"task": "Embedded-STS-natural", **({"every": every} if every is not None else {})}
    return {"name": "small", "suites": ["Embedded-STS-natural"], "dev": dev, "methods": list(rows or ROWS), **more}


def plan_of(tree: dict[str, Any], *only: str) -> Plan:
    return make_plan(asked_of(tree, [], only, "test"), "test")


def looks(plan: Plan) -> dict[str, int]:
    return {row.label: row.config.eval_every for row in plan.rows}  # type: ignore[attr-defined]


def test_all_rows_have_the_densest_schedule_and_what_changed_is_told() -> None:
    plan = plan_of(file())
    assert looks(plan) == {"own loss": 10, "mini": 10}
    assert plan.schedule.instead_of == {"own loss": 125}
    assert "every 10 updates" in plan.schedule.note
    assert "own loss alone: every 125" in plan.schedule.note


def test_the_file_says_how_often_or_that_each_row_keeps_its_own() -> None:
    assert looks(plan_of(file(every=50))) == {"own loss": 50, "mini": 50}
    own = plan_of(file(every="own"))
    assert (looks(own), own.schedule.note) == ({"own loss": 125, "mini": 10}, "")
    for wrong in (0, "often"):
        with pytest.raises(InputError, match=r"dev\.every"):
            read_experiment(file(every=wrong))


def test_ids_stay_where_all_rows_had_the_same_schedule() -> None:
    same = [{**ROWS[0], "config": {"eval_every": 10}}, ROWS[1]]
    before = [cell.id for cell in plan_of(file(*same, every="own")).cells]
    plan = plan_of(file(*same))
    assert [cell.id for cell in plan.cells] == before
    assert plan.schedule.note == ""


def test_a_part_has_the_schedule_of_the_whole() -> None:
    """Its runs are those of the whole file, which finds them finished."""
    whole = {cell.id for cell in plan_of(file()).cells if cell.row.label == "own loss"}
    assert {cell.id for cell in plan_of(file(), "own loss").cells} == whole
    alone = make_plan(read_experiment(file(ROWS[0]), plan_of(file()).schedule.overrides), "test")
    assert {cell.id for cell in alone.cells} == whole  # as the command of a record says it


def test_rows_that_keep_their_last_weights_have_no_part_in_it() -> None:
    last = {"name": "last", "method": "simcse", "config": {"select": "last", "eval_every": 3}}
    assert looks(plan_of(file(*ROWS, last))) == {"own loss": 10, "mini": 10, "last": 3}
    patient = {**last, "config": {**last["config"], "patience": 2}}  # type: ignore[dict-item]
    assert looks(plan_of(file(*ROWS, patient)))["mini"] == 3
