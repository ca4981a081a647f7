"""What differs between rows: the same of a plan and of the records that it became; what matters is
marked.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from harness.api.result import Comparison
from harness.results.comparison import TunedRow, Tuning
from harness.results.store import RunFolder, read_comparison_file
from harness.runs.differences import (
    Differences,
    Settings,
    find_differences,
    find_planned_differences,
    list_planned_settings,
    list_recorded_settings,
    rate_origin,
    summarise_differences,
)
from tests.support.small_runs import CLS, NATURAL, SIMCSE, plan_of

OWN_DEV = {"task": NATURAL, "every": "own"}
MEAN = {
    "name": "own",
    "method": "simcse",
    "config": {"pooling": "mean", "batch_size": 32, "learning_rate": 1e-4, "train_length": 12},
}


def test_a_plan_names_the_differences_of_its_rows_and_marks_those_that_matter() -> None:
    plan = plan_of(methods=[{"name": "mean", "method": "pooling"}, SIMCSE, MEAN], dev=OWN_DEV)
    found = find_planned_differences(plan)
    place = {label: number for number, (label, _) in enumerate(found.rows)}
    texts = {
        key: tuple(values[place[label]] for label in ("mean", "SimCSE", "own"))
        for key, values in found.texts.items()
    }
    assert {
        key: texts[key]
        for key in ("pooling", "steps", "seen", "batch_size", "learning_rate", "evaluations")
    } == {
        "pooling": ("mean", "cls", "mean"),
        "steps": ("", "4", "2"),  # 64 / 32: one epoch
        "seen": ("", "32", "64"),
        "batch_size": ("", "8", "32"),
        "learning_rate": ("", "0.0003", "0.0001"),
        "evaluations": ("", "3", "2"),
    }
    # 32 items more are one batch of 32
    assert marked(found) == ["pooling", "steps", "learning_rate", "evaluations"]
    assert "pooling" in summarise_differences(plan)
    same = plan_of(
        methods=[
            SIMCSE,
            {**SIMCSE, "name": "hot", "config": {**SIMCSE["config"], "temperature": 0.2}},
        ]
    )
    assert find_planned_differences(replace(same, rows=same.rows[:2])).columns == ()


def test_records_have_the_conditions_of_their_plan(small: Comparison) -> None:
    plan = plan_of()
    file = read_comparison_file(small.workdir, "small")
    assert file is not None
    rates = {run.id: run.rate_from or None for run in file.runs}
    for job in plan.jobs:
        folder = RunFolder(small.workdir, job.id)
        record = folder.read()
        assert record is not None
        run = list_recorded_settings(record, folder.curves(), rates[record.id])
        assert run.pop("device")  # no plan knows it
        assert run == list_planned_settings(plan, job), job.label


@pytest.mark.parametrize(
    ("entry", "shared", "origin"),
    [
        ({"config": {"learning_rate": 1.0}}, {"learning_rate": 2.0}, "given in the file"),
        ({}, {"learning_rate": 2.0}, "given for all rows"),
        ({}, {}, "default of the method"),
        ({"preset": "paper", "family": "bert-large"}, {}, "Gao et al. 2021"),
        ({"preset": "mini"}, {}, "searched"),
    ],
)
def test_a_learning_rate_has_an_origin(
    entry: dict[str, Any], shared: dict[str, Any], origin: str
) -> None:
    plan = plan_of(methods=[{"method": "simcse", **entry}], shared=shared)
    (row,) = (row for row in plan.rows if row.label == "simcse")
    assert str(rate_origin(plan, row)).startswith(origin)
    search = TunedRow(
        row="simcse",
        label="simcse",
        study="small--simcse",
        trials=8,
        runs=8,
        seconds=1.0,
        values={"learning_rate": 5e-5},
        reason="",
    )
    tuned = Tuning(trials=8, steps=10, seeds=(101,), rows=(search,))
    assert str(rate_origin(plan, row, tuned)).startswith("searched: 8 trials")
    assert rate_origin(plan_of(methods=[CLS]), plan_of(methods=[CLS]).rows[0]) is None


def settings(label: str, base: str = "bert", **given: Any) -> dict[tuple[str, str], list[Settings]]:
    return {(label, base): [{"base_model": base, **given}]}


def marked(found: Differences) -> list[str]:
    return [column.key for column in found.marked]


def test_whole_batches_and_rates_of_several_papers_do_not_matter() -> None:
    found = find_differences(
        settings("a", seen=1024, batch_size=64, rate_from="Gao et al. 2021")
        | settings("b", seen=1152, batch_size=192, rate_from="Klein and Nabi 2022")
    )
    assert ([c.key for c in found.columns], found.marked) == (
        ["seen", "batch_size", "rate_from"],
        (),
    )
    found = find_differences(
        settings("a", seen=1024, batch_size=64, rate_from="Gao et al. 2021")
        | settings("b", seen=1300, batch_size=192, rate_from="ours: as BERT")
    )
    assert marked(found) == ["seen", "rate_from"]
    assert [c.key for c in found.columns] == [
        "seen",
        "rate_from",
        "batch_size",
    ]  # what matters comes first


def test_what_differs_between_base_models_only_is_shown_and_not_marked() -> None:
    found = find_differences(settings("a", "bert", steps=10) | settings("a", "large", steps=20))
    assert ([c.key for c in found.columns], marked(found)) == (
        ["base_model", "steps"],
        ["base_model"],
    )


def test_seeds_of_a_row_that_differ_are_all_shown() -> None:
    early, whole = ({"base_model": "bert", "steps": steps} for steps in ("60 of 100", 100))
    found = find_differences({("a", "bert"): [early, whole], ("b", "bert"): [whole]})
    assert found.texts["steps"] == ("60 of 100 / 100", "100")


@pytest.mark.parametrize(("key", "values"), [("bucket", (32, 1)), ("learning_rate", (3e-5, 1e-5))])
def test_batches_of_like_length_and_learning_rates_are_marked(
    key: str, values: tuple[Any, Any]
) -> None:
    rows = {
        (label, "bert"): [{"base_model": "bert", key: value}]
        for label, value in zip(("own", "SCD"), values, strict=True)
    }
    (column,) = find_differences(rows).marked
    assert column.key == key
    assert column.why
