"""The table of the settings in which rows differ, and the budget that all rows share."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from harness.results.record import Record
from harness.results.store import RunFolder
from reports.comparison.comparison_document import budget_facts, list_facts
from reports.document.blocks import FactList, Text
from reports.document.table import Table
from reports.load import RecordedResults, read_comparison
from reports.tables.row_differences import difference_table
from reports.tables.run_details import how_it_was_run
from tests.support.invented_runs import WIKI, recipe, run, sts
from tests.support.synthetic import write_comparison

UNTRAINED: dict[str, Any] = {
    "supervision": "untrained",
    "config": {"pooling": "mean", "max_length": None},
}


def trained(workdir: Path, row: str, steps: int, seed: int = 1, **values: Any) -> Record:
    """A run of SimCSE."""
    return run(
        workdir,
        "simcse",
        recipe("simcse", **values),
        seed,
        row=row,
        corpus=WIKI,
        scores=sts(70),
        dev={"task": "STS-B", "source": "senteval", "sha256": "cd" * 32},
        cost={"corpus_sentences_seen": 64.0 * steps},
        training={"steps": steps, "planned_steps": steps, "precision": "fp32"},
        environment={"device": "cpu"},
    )


def written(
    workdir: Path,
    records: list[Record],
    experiment: dict[str, Any] | None = None,
    **runs: dict[str, Any],
) -> RecordedResults:
    write_comparison(workdir, records, runs, experiment=experiment or {})
    return read_comparison(workdir, "invented")


def table_of(comparison: RecordedResults) -> Table:
    table = difference_table(comparison)
    assert isinstance(table, Table)
    return table


def texts(table: Table) -> dict[str, list[str]]:
    return {c.key: [row.cells[i].text for row in table.rows] for i, c in enumerate(table.columns)}


def test_reports_say_that_a_language_model_wrote_a_text(tmp_path: Path) -> None:
    pairs = {
        "uri": "syncse-scratch",
        "kind": "pairs",
        "count": 9,
        "sha256": "ef" * 32,
        "written_by": "a language model",
    }
    synthetic = run(
        tmp_path,
        "simcse",
        recipe("simcse"),
        row="new",
        corpus=pairs,
        scores=sts(70),
        training={"steps": 1, "planned_steps": 1},
    )
    comparison = written(tmp_path, [trained(tmp_path, "old", 1), synthetic])
    named = texts(table_of(comparison))["text"][1]
    assert named == "syncse-scratch: 9 pairs, written by a language model"
    cards = {
        block.title: dict(block.items)
        for block in how_it_was_run(comparison)
        if isinstance(block, FactList)
    }
    assert "written_by a language model" in next(
        card["corpus"] for title, card in cards.items() if "new" in title
    )


def test_columns_in_which_rows_differ_and_why_they_matter(tmp_path: Path) -> None:
    records = [run(tmp_path, "pooling", row="mean", scores=sts(50), **UNTRAINED)]
    records += [trained(tmp_path, "short", 100, seed) for seed in (1, 2)]
    records += [trained(tmp_path, "long", 200, temperature=0.1)]
    origins = {"short": {"rate_from": "default of the method"}, "long": {"rate_from": "searched"}}
    table = table_of(written(tmp_path, records, **origins))
    assert texts(table) == {
        "row": ["mean", "short", "long"],
        "pooling": ["mean", "cls", "cls"],
        "steps": ["–", "100", "200"],
        "seen": ["–", "6,400", "12,800"],
        "rate_from": ["–", "default of the method", "searched"],
    }
    assert [column.key for column in table.columns if column.notes] == [
        "pooling",
        "steps",
        "seen",
        "rate_from",
    ]


def test_a_block_knows_where_the_learning_rates_of_its_rows_come_from(tmp_path: Path) -> None:
    records = [trained(tmp_path, row, 100) for row in ("given", "searched")]
    origins = {row: {"rate_from": row, "blocks": ["one"]} for row in ("given", "searched")}
    tasks = sorted({score.task_key for record in records for score in record.scores})
    block = {"name": "one", "title": "One", "description": "", "tasks": tasks}
    write_comparison(tmp_path, records, origins, blocks=[block])
    (part,) = read_comparison(tmp_path, "invented").parts
    assert texts(table_of(part)) == {
        "row": ["given", "searched"],
        "rate_from": ["given", "searched"],
    }


def test_rows_alike_are_said_in_a_sentence(tmp_path: Path) -> None:
    records = [trained(tmp_path, "cold", 100), trained(tmp_path, "hot", 100, temperature=0.1)]
    assert isinstance(difference_table(written(tmp_path, records)), Text)


@pytest.mark.parametrize(
    ("budget", "other", "amount"),
    [
        ({}, 100, "100"),
        ({}, 200, "each row's own"),
        ({"steps": 100}, 100, "100"),
        ({"sentences": 6400}, 200, "6,400"),
        ({"kind": "later"}, 100, "100"),  # of a version to come
    ],
)
def test_the_subtitle_says_the_budget(
    tmp_path: Path, budget: dict[str, Any], other: int, amount: str
) -> None:
    records = [trained(tmp_path, "a", 100), trained(tmp_path, "b", other)]
    ((said, _),) = budget_facts(written(tmp_path, records, {"budget": budget}))
    assert said == amount


def test_finished_models_are_no_base_models(tmp_path: Path) -> None:
    files = ("a.parquet", "http://localhost:1/v1#b")
    records = [
        run(tmp_path, "pretrained", {"model": name}, row=name, base=name, scores=sts(60))
        for name in files
    ]
    records.append(run(tmp_path, "pooling", row="mean", scores=sts(50), **UNTRAINED))
    comparison = written(tmp_path, records)
    facts = {name: count for count, name in list_facts(comparison)}
    assert (facts["base model"], facts["finished models"]) == ("1", "2")
    table = table_of(comparison)
    columns = {column.key: column.title for column in table.columns}
    assert "base_model" not in columns
    assert texts(table)["finished_model"] == ["–", *files]


def test_a_comparison_without_training_has_no_budget(tmp_path: Path) -> None:
    record = run(tmp_path, "pooling", row="mean", scores=sts(50), **UNTRAINED)
    assert budget_facts(written(tmp_path, [record])) == []


def test_runs_on_unlike_devices_are_marked(tmp_path: Path) -> None:
    records = [trained(tmp_path, row, 100, seed) for row in ("a", "b") for seed in (1, 2)]
    for number, record in enumerate(records):  # the same mixture in both rows
        device = {"device_name": ("H100", "A100")[number % 2]}
        RunFolder(tmp_path, record.id).write(record.model_copy(update={"environment": device}))
    table = table_of(written(tmp_path, records))
    assert texts(table)["device"] == ["H100 / A100"] * 2
    assert [column.key for column in table.columns if column.notes] == ["device"]
