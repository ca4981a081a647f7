"""A run under a budget is made again from its report alone: by its number of updates, and nothing is measured."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from harness.comparison import timed_updates
from harness.comparison.experiment import read_experiment
from harness.comparison.plan import make_plan
from harness.results.manifest import manifest_file
from harness.results.record import Record
from reports.read.provenance import provenance_of
from reports.reproduce.rerun import experiment_of

pytestmark = pytest.mark.usefixtures("few_pairs")

FILE = """
name = "mine"
seeds = [1]
suites = ["Embedded-STS-natural"]
precision = "fp32"
corpus = { uri = "embedded:sentences", limit = 64 }
dev = { task = "Embedded-STS-natural" }
budget = { kind = "seconds", seconds = 10 }
[[methods]]
name = "large"
method = "simcse"
config = { batch_size = 32 }
"""


def test_its_id_is_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "mine.toml"
    file.write_text(FILE)
    monkeypatch.setattr(timed_updates, "timed", lambda *_: 2.0)
    plan = make_plan(read_experiment(str(file)), str(file), tmp_path)
    (cell,) = plan.cells
    assert (cell.row.max_steps, cell.row.config.epochs) == (5, 3)  # type: ignore[attr-defined]
    corpus, dev = plan.corpus(cell.row), plan.dev
    assert corpus is not None
    assert dev is not None
    record = Record(
        id=cell.id, comparison="mine", status="finished", row="large", method="simcse", base_model=cell.base_model,
        config=cell.row.config.model_dump(mode="json"), seed=1, supervision="unsupervised", identity=cell.identity,
        corpus=corpus.describe(), dev={"task": "Embedded-STS-natural", "source": "embedded", "sha256": dev.sha256},
    )  # fmt: skip
    manifest = manifest_file(tmp_path, "mine")
    manifest.parent.mkdir()
    about = {"name": "mine", "cells": [{"id": cell.id, "row": "large"}]}
    manifest.write_text(json.dumps({**about, "experiment": plan.experiment.model_dump(mode="json")}))
    data = provenance_of([record], tmp_path)

    def never(*_: object) -> float:
        raise AssertionError("measured again")

    monkeypatch.setattr(timed_updates, "timed", never)
    (again,) = make_plan(experiment_of(data, cell.id), "again").cells
    assert again.id == cell.id
