"""The table of what differs between the rows of a report, from records of today and of before; the budget's fact."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from harness.results.manifest import manifest_file
from harness.results.run_folder import RunFolder
from reports.comparison.budget_facts import budget_facts
from reports.comparison.terminal_summary import summary_table
from reports.document.blocks import Text
from reports.document.table import Table
from reports.read.comparison_runs import Comparison, read_comparison
from reports.tables.row_differences import difference_table
from tests.support.invented_runs import WIKI, recipe, run, sts

UNTRAINED: dict[str, Any] = {"supervision": "untrained", "config": {"pooling": "mean", "max_length": None}}


def trained(workdir: Path, row: str, steps: int, seed: int = 1, **values: Any) -> dict[str, Any]:
    """A run of SimCSE; its cell in the manifest."""
    record = run(
        workdir, "simcse", recipe("simcse", **values), seed, row=row, corpus=WIKI, scores=sts(70),
        dev={"task": "STS-B", "source": "senteval"}, cost={"corpus_sentences_seen": 64.0 * steps},
        training={"steps": steps, "planned_steps": steps, "precision": "fp32"},
        environment={"device": "cpu"},
    )  # fmt: skip
    return {"id": record.id, "row": row, "base_model": record.base_model, "seed": seed}


def written(workdir: Path, cells: list[dict[str, Any]], experiment: dict[str, Any]) -> Comparison:
    file = manifest_file(workdir, "invented")
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps({"name": "invented", "cells": cells, "experiment": experiment}))
    return read_comparison(workdir, "invented")


def table_of(comparison: Comparison) -> dict[str, list[str]]:
    table = difference_table(comparison)
    assert isinstance(table, Table)
    return {c.key: [row.cells[i].text for row in table.rows] for i, c in enumerate(table.columns)}


def test_rows_side_by_side_with_why_it_matters(tmp_path: Path) -> None:
    cells = [trained(tmp_path, "short", 100, seed) for seed in (1, 2)]
    cells += [trained(tmp_path, "long", 200, temperature=0.1)]
    cells[0]["rate_from"] = cells[1]["rate_from"] = "default of the method"
    cells[2]["rate_from"] = "searched: 8 trials on the dev set"
    mean = run(tmp_path, "pooling", row="mean", scores=sts(50), **UNTRAINED)
    comparison = written(tmp_path, [{"id": mean.id, "row": "mean"}, *cells], {})
    assert table_of(comparison) == {
        "row": ["mean", "short", "long"],
        "pooling": ["mean", "cls", "cls"],
        "updates": ["–", "100", "200"],
        "seen": ["–", "6,400", "12,800"],
        "rate_from": ["–", "default of the method", "searched: 8 trials on the dev set"],
    }
    table = difference_table(comparison)
    assert isinstance(table, Table)
    assert [column.key for column in table.columns if column.notes] == ["pooling", "updates", "seen", "rate_from"]
    assert "who trains longer" in next(iter(table.columns[2].notes))


def test_what_runs_of_before_lack_is_said(tmp_path: Path) -> None:
    cells = []
    for row, rate in (("a", 1e-5), ("b", 2e-5)):
        record = run(tmp_path, "simcse", recipe("simcse", learning_rate=rate), row=row, scores=sts(70))
        cells.append({"id": record.id, "row": row})
    table = difference_table(written(tmp_path, cells, {}))
    assert isinstance(table, Table)
    assert [column.key for column in table.columns] == ["row", "rate"]
    assert not any(column.notes or column.aside for column in table.columns)  # nothing matters: a phone shows all
    assert table.legend[-1] == "Not recorded when these runs were made: updates, items seen, rate's origin."


def test_rows_alike_are_told_in_a_sentence(tmp_path: Path) -> None:
    cells = [trained(tmp_path, "cold", 100), trained(tmp_path, "hot", 100, temperature=0.1)]
    said = difference_table(written(tmp_path, cells, {}))
    assert isinstance(said, Text)
    assert "the same for all rows" in said.items[0]
    assert said.items[0].endswith("Not recorded when these runs were made: rate's origin.")


def test_runs_of_before_have_their_rate_from_the_experiment_of_the_manifest(tmp_path: Path) -> None:
    cells = [
        trained(tmp_path, "paper", 100),
        trained(tmp_path, "mine", 100, learning_rate=7e-5),
        trained(tmp_path, "lost", 100),
    ]
    methods = [
        {"method": "simcse", "name": "paper", "preset": "code", "family": "bert-base"},
        {"method": "simcse", "name": "mine", "config": {"learning_rate": 7e-5}},
    ]
    rates = table_of(written(tmp_path, cells, {"methods": methods}))
    assert rates["rate_from"] == ["princeton-nlp/SimCSE: run_unsup_example.sh", "given in the file", "not recorded"]
    assert rates["rate"] == ["3e-5", "7e-5", "3e-5"]


@pytest.mark.parametrize(
    ("experiment", "other", "said"),
    [
        ({}, 100, ("100", "updates a row")),
        ({}, 200, ("each row's own", "number of updates")),
        ({"budget": {"kind": "own"}}, 200, ("each row's own", "number of updates")),
        ({"budget": {"kind": "updates", "updates": 100}}, 100, ("100", "updates a row")),
        ({"budget": {"kind": "sentences", "sentences": 6400}}, 200, ("6,400", "sentences seen a row")),
        ({"budget": {"kind": "seconds", "seconds": 90.0}}, 200, ("90 s", "of processor time a row")),
        ({"budget": {"kind": "later"}}, 100, ("100", "updates a row")),  # of a version to come
    ],
)
def test_the_subtitle_says_the_budget(
    tmp_path: Path, experiment: dict[str, Any], other: int, said: tuple[str, str]
) -> None:
    cells = [trained(tmp_path, "a", 100), trained(tmp_path, "b", other)]
    assert budget_facts(written(tmp_path, cells, experiment)) == [said]


def test_a_comparison_without_training_has_no_budget(tmp_path: Path) -> None:
    record = run(tmp_path, "pooling", row="mean", scores=sts(50), **UNTRAINED)
    assert budget_facts(written(tmp_path, [{"id": record.id, "row": "mean"}], {})) == []


def test_runs_on_unlike_devices_are_marked_and_told(tmp_path: Path) -> None:
    cells = [trained(tmp_path, row, 100, seed) for row in ("a", "b") for seed in (1, 2)]
    for number, cell in enumerate(cells):  # the same mixture in both rows
        folder = RunFolder(tmp_path, cell["id"])
        record = folder.read()
        assert record is not None
        device = ("H100", "A100")[number % 2]
        folder.write(record.model_copy(update={"row": cell["row"], "environment": {"device_name": device}}))
    comparison = written(tmp_path, cells, {})
    assert table_of(comparison)["device"] == ["H100 / A100"] * 2
    table = difference_table(comparison)
    assert isinstance(table, Table)
    assert [column.key for column in table.columns if column.notes] == ["device"]
    told = summary_table(tmp_path, "invented")[2]
    assert told[-1] == (
        "Runs differ in their device (H100: 2 runs, A100: 2 runs): the same run rounds otherwise there; see the report."
    )
