"""The rehearsal of a file: every row and task of it, small; what cannot be had is told and ends nothing."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from harness import api
from harness.comparison.experiment import read_experiment
from harness.comparison.plan import make_plan
from harness.comparison.rehearsal import StandIns, rehearsed
from harness.evaluation.scoring import evaluate
from harness.tasks.base import TaskResult, Vectors

pytestmark = [pytest.mark.timeout(240), pytest.mark.usefixtures("few_pairs")]

FILE = """
title = "A paper"
base_models = ["nowhere/bert", "nowhere/roberta"]
seeds = [4, 5, 6]
max_steps = 1000
suites = ["Embedded-STS-contrast", "lbfgs:CR"]
precision = "fp32"
corpus = "nowhere.txt"
dev = { task = "STS12" }
[rehearsal]
max_steps = 2
limit = 40
[blocks.table-1]
seeds = [7]
[[methods]]
name = "SimCSE"
method = "simcse"
preset = "mini"
base_models = ["nowhere/large"]
max_steps = 500
config = { batch_size = 8, train_length = 12 }
[[methods]]
name = "theirs"
method = "pretrained"
config = { model = "nowhere/model" }
"""


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    (tmp_path / "senteval/downstream").mkdir(parents=True)
    monkeypatch.setenv("HARNESS_SENTEVAL", str(tmp_path / "senteval"))
    monkeypatch.setattr("harness.sources.remote.hub.hub_reachable", lambda: False)
    monkeypatch.setattr("methods.pretrained.hub_reachable", lambda: False)
    path = tmp_path / "paper.toml"
    path.write_text(FILE)
    return str(path)


def test_models_texts_seeds_and_updates_are_those_of_a_laptop(file: str) -> None:
    asked = read_experiment(file)
    data = StandIns(asked.rehearsal)
    plan = make_plan(rehearsed(asked, data), file, data=data)
    assert plan.experiment.name == "paper-rehearsal"
    assert [(c.row.label, c.row.base_model, c.seed, c.row.max_steps) for c in plan.cells] == [
        ("SimCSE", "embedded:mini-bert", 7, 2),
        ("theirs", "embedded:mini-bert", 7, 2),
    ]
    text = plan.corpus(plan.rows[0])
    assert text is not None
    assert (text.uri, len(text)) == ("embedded:sentences", 40)
    assert plan.dev is not None
    assert asked.base_models == ["nowhere/bert", "nowhere/roberta"]


def test_a_rehearsal_goes_through_and_says_what_it_lacks(file: str, tmp_path: Path) -> None:
    result = api.compare(file, workdir=tmp_path / "work", rehearse=True, tracked=False, formats=["md"])
    ours, theirs, start = result.records
    assert (start.row, start.rehearsal, start.status) == ("untrained (cls)", True, "finished")
    assert (ours.status, ours.rehearsal, ours.base_model) == ("finished", True, "embedded:mini-bert")
    assert {s.task for s in ours.scores} == {"Embedded-STS-contrast", "Embedded-STS-natural"}
    assert "lbfgs:CR" in ours.missing
    assert (theirs.status, theirs.rehearsal) == ("failed", True)
    assert "nowhere/model" in theirs.reason
    assert (result.left_out, result.status) == ([theirs], "finished")
    assert "--rehearse" in ours.command
    page = result.report["md"].read_text()
    assert "Rehearsal: A paper" in page
    assert "n/a" in page  # the column of the task that could not be read
    assert "not run: base model" in page  # once, and no row of failures
    assert "fail." not in page


class Lines:
    """A task of so many sentences."""

    suite, source, sha256 = "lines", "embedded", ""

    def __init__(self, count: int) -> None:
        self.name, self.count = f"{count} lines", count

    def texts(self) -> list[str]:
        return [f"line {i} of {self.count}" for i in range(self.count)]

    def evaluate(self, vectors: Vectors, *, pooling: str) -> TaskResult:
        assert len(vectors(self.texts())) == self.count
        return TaskResult()


def test_a_task_of_many_sentences_is_left_out_with_its_reason() -> None:
    def encode(texts: list[str]) -> np.ndarray:
        return np.ones((len(texts), 2), dtype=np.float32)

    result = evaluate(encode, [Lines(3), Lines(4), Lines(9)], pooling="mean", most=5)
    assert list(result.missing) == ["9 lines"]
    assert "asks for 9 sentences; a rehearsal encodes up to 5" in str(result.missing["9 lines"])
    assert result.cost["sentences"] == 7  # the bound is each task's own
