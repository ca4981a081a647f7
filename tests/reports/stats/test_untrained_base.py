"""What a trained row is held against: its own start, and where that was not stored, nothing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from harness import api
from harness.results.manifest import added_runs, write_manifest
from harness.results.run_folder import RunFolder
from reports.comparison.headline import headline
from reports.comparison.terminal_summary import summary_table
from reports.read.comparison_runs import read_comparison
from reports.read.run_library import read_library
from reports.stats.significance import Significance, untrained_base
from reports.tables.against_base import against_base
from reports.tables.score_cells import ADDED
from reports.tables.sts_scores import score_tables
from tests.support import short_runs, synthetic

TASKS = ("STS12", "STS-B")
NATURAL = "Embedded-STS-natural"


@pytest.fixture
def made(tmp_path):
    return synthetic.Invented(tmp_path, scale=0.1)


def add(made, label, pooling, *, noise=1.0, seeds=(1, 2), **rest):
    more = {"pooling": pooling, "tasks": TASKS, "geometry": False, "curves": False, **rest}
    return [made.add(label, seed, noise=noise, **more) for seed in seeds]


def untrained(made, label, pooling, **rest):
    return add(made, label, pooling, seeds=(0,), supervision="untrained", noise=4.0, **rest)


def base_of(made, label):
    comparison = read_comparison(made.workdir, "invented")
    row = next(row for row in comparison.rows if row.label == label)
    base, reason = untrained_base(row, comparison.rows)
    return (base.label if base is not None else None), reason


def test_no_other_untrained_row_takes_the_place_of_one_that_was_not_stored(made):
    untrained(made, "mean", "mean")
    untrained(made, "cls", "max")  # called so, but not pooled so
    add(made, "SimCSE", "cls")
    add(made, "SCD", "mean")
    assert base_of(made, "SCD") == ("mean", "")
    assert base_of(made, "SimCSE") == (None, "no untrained run with cls pooling was stored")
    assert base_of(made, "mean") == (None, "")
    comparison = read_comparison(made.workdir, "invented")
    significance = Significance(comparison)
    assert "without a stored one: SimCSE" in headline(comparison, significance)
    table = against_base(comparison, significance)
    assert table is not None
    line = next(row for row in table.rows if row.cells[0].text == "SimCSE")
    assert line.cells[1].notes == ("no untrained run with cls pooling was stored",)
    assert all(cell.value is None for cell in line.cells[3:])


def test_text_length_and_first_layer_belong_to_the_start(made):
    untrained(made, "mean", "mean")
    untrained(made, "first-last", "first_last_avg", config={"first_layer": 0})
    add(made, "SimCSE", "mean", config={"max_length": 64})
    add(made, "SCD", "first_last_avg", config={"first_layer": 1})
    assert base_of(made, "SimCSE") == (None, "no untrained run with mean pooling and 64 word pieces was stored")
    assert base_of(made, "SCD")[0] is None
    untrained(made, "cut", "mean", config={"max_length": 64})
    assert base_of(made, "SimCSE") == ("cut", "")


def test_vectors_that_are_not_pooled_are_no_start_of_others_that_are_not(made):
    untrained(made, "random", "none")
    add(made, "Skip-Thought", "none")
    assert base_of(made, "Skip-Thought") == (None, "it does not start from an encoder whose vectors are pooled")


def manifest(made, cells):
    write_manifest(made.workdir, {"name": "invented", "cells": cells})


def test_an_added_start_is_named_by_the_manifest_marked_and_in_no_library(made):
    (start,) = untrained(made, "untrained start of both", "none")
    runs = add(made, "both", "none")
    cells: list[dict[str, Any]] = [{"id": r.id, "row": r.row, "untrained": start.id} for r in runs]
    manifest(made, [*cells, {"id": start.id, "row": start.row, "counterpart": True}])
    assert base_of(made, "both") == ("untrained start of both", "")
    table = score_tables(read_comparison(made.workdir, "invented"), None)[0]
    assert [ADDED in row.cells[0].notes for row in table.rows] == [True, False]
    assert added_runs(made.workdir) == {start.id}
    assert [row.label for row in read_library(made.workdir).rows] == ["both"]  # of a paper's rows


def test_a_row_that_never_beat_its_start_is_named(made):
    untrained(made, "mean", "mean")
    good, bad = add(made, "SimCSE", "mean"), add(made, "SCD", "mean", noise=3.0)
    for record in bad:
        training = {**record.training, "best_dev": 0.5, "initial_dev": 0.52}
        RunFolder(made.workdir, record.id).write(record.model_copy(update={"training": training}))
    comparison = read_comparison(made.workdir, "invented")
    said = headline(comparison, Significance(comparison))
    assert said.endswith("training never beat the start on the dev set: SCD.")
    columns, rows, _ = summary_table(made.workdir, "invented")
    status = {row[0]: row[columns.index("Status")] for row in rows}
    assert status == {"mean": "finished", "SimCSE": "finished", "SCD": "training never beat the start"}
    assert good[0].training["best_dev"] > good[0].training["initial_dev"]


def test_each_row_of_a_new_user_s_file_has_its_own_start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A mean row, a loss with the defaults (mean pooling, dev every 125 updates) and two methods that pool CLS and look
    every 10."""
    short_runs.few_pairs(monkeypatch)
    short_runs.no_report(monkeypatch)
    small = {"batch_size": 8, "train_length": 12}
    narrow = {**small, "projector": [64, 64]}
    rows = [
        {"name": "mean", "method": "pooling"},
        {"name": "own loss", "method": "simcse", "config": {**small, "pooling": "mean"}},
        {"name": "SimCSE", "method": "simcse", "preset": "mini", "config": small},
        {"name": "Barlow Twins", "method": "barlow_twins", "preset": "mini", "config": narrow},
    ]
    text, dev = {"uri": "embedded:sentences", "limit": 96}, {"task": NATURAL}
    experiment = {"name": "new", "seeds": [1], "suites": [NATURAL], "max_steps": 2, "corpus": text, "dev": dev}
    result = api.compare({**experiment, "precision": "fp32", "methods": rows}, workdir=tmp_path, tracked=False)
    assert {r.row: r.config["eval_every"] for r in result.records if "eval_every" in r.config} == {
        "own loss": 10,
        "SimCSE": 10,
        "Barlow Twins": 10,
    }
    comparison = read_comparison(tmp_path, "new")
    by_label = {row.label: row for row in comparison.rows}
    assert [row.label for row in comparison.rows if row.added] == ["untrained (cls)"]
    bases = {label: base for label, row in by_label.items() if (base := untrained_base(row, comparison.rows)[0])}
    assert {label: base.label for label, base in bases.items()} == {
        "own loss": "mean",
        "SimCSE": "untrained (cls)",
        "Barlow Twins": "untrained (cls)",
    }
    assert comparison.schedule == {"every": 10, "instead_of": {"own loss": 125}}
    columns, lines, _ = summary_table(tmp_path, "new")
    for line in lines:
        gain = line[columns.index("Gain by training")]
        ours = by_label[line[0]].records[0].score(NATURAL)
        base = bases.get(line[0])
        theirs = base.records[0].score(NATURAL) if base is not None else None
        assert ours is not None
        assert gain == ("" if theirs is None else f"{100 * (ours - theirs):+.2f}".replace("-", "−"))
