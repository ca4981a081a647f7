"""Public runs with many seeds: their statistics are those that the repository's own files give."""

from __future__ import annotations

from pathlib import Path

import pytest

from reports.papers import definition
from reports.papers.definition import Published
from reports.papers.public_runs import (
    locate_among_runs,
    read_public_runs,
    seed_table,
    values_of,
)
from reports.stats.estimate import mean_sd
from tests.support.errors import raises_input_error


@pytest.fixture(scope="module")
def runs() -> list[Published]:
    return read_public_runs(definition.load("simcse"))


# Mean and standard deviation of the column "avg" of results/*.csv of hppRC/simple-simcse, by its README.
@pytest.mark.parametrize(
    ("base", "mean", "sd"),
    [
        ("bert-base", 75.11, 0.84),
        ("bert-large-uncased", None, 1.74),
        ("roberta-base", None, 0.21),
        ("roberta-large", None, 0.50),
    ],
)
def test_fifty_runs_a_base_model(
    runs: list[Published], base: str, mean: float | None, sd: float
) -> None:
    rows = [row for row in runs if row["base_model"] == base]
    assert len(rows) == 8
    values = values_of(runs, next(row for row in rows if row["task"] == "Avg."))
    assert len(values) == 50
    found = mean_sd(values)
    assert found[1] == pytest.approx(sd, abs=0.006)
    if mean is not None:
        assert found[0] == pytest.approx(mean, abs=0.006)


def test_each_stands_under_a_published_number_of_unsupervised_simcse(runs: list[Published]) -> None:
    published = definition.load("simcse").published_rows()
    covered = [p for p in published if values_of(runs, p)]
    assert len(covered) == 3 * 8 + 1  # the repository prints an average alone of BERT-large
    table = seed_table(runs, published)
    assert table is not None
    row = next(r for r in table.rows if r.block == "bert-base" and r.cells[0].text == "Avg.")
    reaching = sum(value >= 76.25 for value in values_of(runs, covered[7]))
    assert covered[7]["value"] == "76.25"
    assert row.cells[-1].text == f"{reaching} of 50"


def test_an_illegible_published_number_has_no_place_among_the_runs(runs: list[Published]) -> None:
    published = [{**p, "value": ""} for p in definition.load("simcse").published_rows()]
    table = seed_table(runs, published)
    assert table is not None
    assert {row.cells[1].state for row in table.rows} == {"empty"}


def test_public_runs_are_numbers(tmp_path: Path) -> None:
    head = "paper,table,model,base_model,task,metric,value,source_mark,notes"
    (tmp_path / "runs.csv").write_text(f"{head}\nP,T,M,B,STS-B,spearman,12.3;;12.5,,\n")
    (tmp_path / "own.toml").write_text(
        'title = "T"\npublished = "runs.csv"\npublic_runs = "runs.csv"\n'
        '[[tables]]\nkey = "t"\ntitle = "T"\n'
    )
    own = definition.load(str(tmp_path / "own.toml"))
    with raises_input_error(file="runs.csv", key="value"):
        read_public_runs(own)


def test_papers_without_public_runs_have_neither_table_nor_remark() -> None:
    other = read_public_runs(definition.load("scd"))
    assert seed_table(other, []) is None
    assert locate_among_runs(other, definition.load("scd").published_rows()[0], 1.0) == ()
