"""The rehearsal of a file: every row and task of it, small; what is not available is named and
stops nothing.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from harness import api
from harness.evaluation.scoring import evaluate
from harness.method import DEFAULT_BASE_MODEL as BASE
from harness.runs.experiment import read_experiment
from harness.runs.plan import Plan, make_plan
from harness.runs.selection import rehearse
from harness.tasks.base import TaskResult, Vectors
from harness.tasks.catalogue import resolve_tasks
from harness.tasks.vectors import encode_few
from tests.support import own_files
from tests.support.small_runs import CONTRAST, NATURAL

FILE = """
title = "A paper"
base_models = ["nowhere/bert", "nowhere/roberta"]
seeds = [4, 5, 6]
max_steps = 1000
suites = ["Embedded-STS-contrast", "CR"]
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


def plan_rehearsal(file: str) -> Plan:
    read = read_experiment(file)
    return make_plan(rehearse(read), file, rehearsal=read.rehearsal, starts=False)


def test_models_text_seeds_and_steps_are_those_of_a_laptop(file: str) -> None:
    plan = plan_rehearsal(file)
    assert plan.experiment.name == "paper-rehearsal"
    assert [(row.label, row.base_model, *row.seeds, row.max_steps) for row in plan.rows] == [
        ("SimCSE", BASE, 7, 2),
        ("theirs", BASE, 7, 2),
    ]
    text = plan.corpus(plan.rows[0])
    assert text is not None
    assert (text.uri, len(text)) == ("embedded:sentences", 40)
    assert plan.dev is not None
    assert len(plan.dev) == 21  # all that the embedded set has


def test_a_rehearsal_runs_every_row_and_names_what_is_missing(file: str, tmp_path: Path) -> None:
    done = api.compare(
        file, workdir=tmp_path / "work", rehearse=True, tracking_uri="none", formats=[]
    )
    ours, theirs, start = done.records
    assert (start.rehearsal, start.status) == (True, "finished")
    assert (ours.status, ours.rehearsal, ours.base_model) == ("finished", True, BASE)
    assert {s.task for s in ours.scores} == {CONTRAST, NATURAL}
    assert "CR" in ours.missing
    assert (theirs.status, theirs.rehearsal, theirs.unavailable) == ("failed", True, True)
    assert "nowhere/model" in theirs.reason
    assert (done.left_out, done.status) == ([theirs], "finished")
    assert "--rehearse" in ours.command
    assert (ours.cost["sentences"], start.cost["sentences"]) == (40, 40)


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


def test_the_text_of_a_row_is_replaced_by_text_of_the_kind_it_learns_from(file: str) -> None:
    pairs = """
[[methods]]
name = "pairs"
method = "barlow_twins"
preset = "paper-pairs"
corpus = "nowhere-pairs.csv"
"""
    Path(file).write_text(FILE + pairs)
    plan = plan_rehearsal(file)
    (row,) = (row for row in plan.rows if row.label == "pairs")
    assert row.corpus is not None
    assert (row.corpus.uri, row.corpus.kind) == ("embedded:pairs", "pairs")


def test_a_file_that_selects_and_is_scored_gives_as_many_pairs_as_its_dev_part_has(
    tmp_path: Path,
) -> None:
    """The limit is above the size of the part and below that of the file."""
    pairs = own_files.pairs_file(tmp_path / "pairs.csv", 120)
    keys = {"name": "own", "seeds": 1, "suites": [str(pairs)], "dev": str(pairs)}
    keys |= {"methods": [{"method": "simcse"}], "rehearsal": {"limit": 100}}
    experiment = read_experiment(keys)
    whole = make_plan(experiment, "own")
    small = make_plan(rehearse(experiment), "own", rehearsal=experiment.rehearsal)
    assert whole.dev is not None
    assert small.dev is not None
    assert small.dev.sha256 == whole.dev.sha256
    scored = {task.name: len(task.texts()) for task in small.tasks}
    assert scored["pairs.csv"] == 2 * (120 - len(small.dev))


def test_a_task_of_many_sentences_is_left_out() -> None:
    done = evaluate(
        lambda texts: np.ones((len(texts), 2), np.float32),
        [Lines(3), Lines(4), Lines(9)],
        pooling="mean",
        most=5,
    )
    assert list(done.missing) == ["9 lines"]
    assert done.cost["sentences"] == 7


def test_few_sentences_are_encoded_and_every_task_is_scored_in_full() -> None:
    encoded: list[str] = []

    def encode(texts: list[str]) -> np.ndarray:
        encoded.extend(texts)
        return np.array([[len(encoded), 1.0] for _ in texts], np.float32)

    cache: dict[str, np.ndarray] = {}
    done = evaluate(encode, [Lines(30), Lines(70)], pooling="mean", cache=cache, few=8)
    assert (len(encoded), len(set(encoded)), done.cost["sentences"]) == (8, 8, 8)
    assert (done.missing, cache) == ({}, {})


def test_the_sentences_that_are_encoded_have_their_own_vectors() -> None:
    texts = [f"line {i}" for i in range(50)]
    table = encode_few(lambda some: np.array([[float(t[5:])] for t in some]), texts, 10)
    own = table(texts)[:, 0]
    assert sum(own == np.arange(50)) >= 10
    assert len(set(own)) == 10


def test_a_map_is_fitted_to_enough_sentences_of_each_task(tmp_path: Path) -> None:
    """Whitening takes more sentences than dimensions, 16 here."""
    row = {"name": "whitening", "method": "whitening", "preset": "target", "config": {"k": 16}}
    tree = {
        "name": "target",
        "suites": [NATURAL],
        "rehearsal": {"limit": 8},
        "methods": [row],
        "base_models": [BASE],
        "seeds": [1],
    }
    done = api.compare(tree, workdir=tmp_path, rehearse=True, tracking_uri="none", formats=[])
    assert not [record.reason for record in done.records if record.status != "finished"]
    (record,) = (one for one in done.records if one.method == "whitening")
    assert record.cost["sentences"] == 8


def test_classifiers_of_a_rehearsal_are_fitted_once_and_score_all_examples() -> None:
    (task,) = resolve_tasks(["Embedded-Questions"])

    def encode(texts: list[str]) -> np.ndarray:
        return np.random.default_rng(len(texts)).normal(size=(len(texts), 4)).astype(np.float32)

    small = evaluate(encode, [task], pooling="mean", few=8)
    whole = evaluate(encode, [task], pooling="mean")
    for done, folds in ((small, 2), (whole, 10)):
        (score, *_) = done.scores
        how = done.protocols[score.protocol]
        assert f"'kfold': {folds}" in str(how) or f"kfold={folds}" in str(how), how
    assert [s.n for s in small.scores] == [s.n for s in whole.scores]
