"""Trials whose runs are made elsewhere: pruned from there, asked for once, proposed as in one process."""

from __future__ import annotations

import csv
from pathlib import Path

import optuna
import pytest

from harness.cli import main
from harness.comparison import carried
from harness.results.run_folder import RunFolder
from studies.run.storage import default_url, load, open_storage
from tests.support.thread_executor import Thread, install

pytestmark = pytest.mark.usefixtures("few_pairs", "no_report")

TRAINED = """
method = "simcse"
preset = "mini"
config = { batch_size = 8, eval_every = 2, train_length = 12 }
corpus = { uri = "embedded:sentences", limit = 80 }
dev = { task = "Embedded-STS-natural" }
steps = 10
precision = "fp32"
sampler = "grid"
pruner = "median"
[space]
temperature = [0.05, 0.5]
"""
CHEAP = """
method = "random"
precision = "fp32"
suites = ["Embedded-STS-natural"]
objectives = ["Embedded-STS-natural"]
sampler = "random"
trials = 5
[space]
dimension = { low = 2, high = 4 }
"""


@pytest.fixture(autouse=True)
def engines(monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch.setattr)
    monkeypatch.setattr(Thread, "asked", [])


def run(folder: Path, text: str, *more: str) -> int:
    (folder / "x.toml").write_text(text)
    command = ["study", "run", str(folder / "x.toml"), "--workdir", str(folder / "work"), "--no-tracking", "--quiet"]
    return main([*command, *more])


def trials(folder: Path) -> list[optuna.trial.FrozenTrial]:
    url = default_url(folder / "work")
    return load(open_storage(url), "x", url).get_trials(deepcopy=False)


@pytest.mark.parametrize("executor", ["thread", "posted"])
def test_a_run_elsewhere_is_given_up_by_its_dev_scores_with_a_record_of_what_was_done(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, executor: str
) -> None:
    monkeypatch.setattr(carried, "EVERY", 0.01)

    def cold(self: object, study: optuna.Study, trial: optuna.trial.FrozenTrial) -> bool:
        return bool(trial.params["temperature"] < 0.1)

    monkeypatch.setattr(optuna.pruners.MedianPruner, "prune", cold)
    assert run(tmp_path, TRAINED, "--executor", executor) == 0
    pruned, whole = trials(tmp_path)
    assert (pruned.state.name, whole.state.name) == ("PRUNED", "COMPLETE")
    record = RunFolder(tmp_path / "work", Thread.asked[0]).read()
    assert record is not None
    assert record.status == "pruned"
    assert 2 <= record.training["steps"] < 10
    assert "(median pruner)" in record.reason
    assert sorted(whole.intermediate_values) == [2, 4, 6, 8, 10]
    assert not list((tmp_path / "work" / "live" / "watched").iterdir())
    assert not list((tmp_path / "work" / "live" / "cells").iterdir())


def test_a_pruner_needs_workers_that_see_the_work_directory_or_a_post(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(tmp_path, TRAINED, "--executor", "blind") == 2
    (line,) = capsys.readouterr().err.strip().splitlines()
    assert "a worker that does not see the work directory cannot be told to give its run up" in line
    assert run(tmp_path, CHEAP, "--executor", "blind", "--name", "y") == 0  # without one it is sent back


def test_two_trials_that_ask_for_one_run_at_once_share_it_and_random_proposals_are_those_of_a_serial_study(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Thread, "at_a_time", 3)
    (tmp_path / "serial").mkdir()
    assert run(tmp_path, CHEAP, "--executor", "thread") == 0
    assert run(tmp_path / "serial", CHEAP) == 0
    here, there = trials(tmp_path / "serial"), trials(tmp_path)
    assert [(t.params, t.values) for t in here] == [(t.params, t.values) for t in there]
    assert len({t.params["dimension"] for t in there}) == len(Thread.asked) == len(set(Thread.asked)) < 5
    with (tmp_path / "work" / "studies" / "x" / "trials.csv").open(newline="") as file:
        answered = [row["answered from records"] for row in csv.DictReader(file)]
    assert answered.count("no") == len(Thread.asked)


def test_what_optuna_dashboard_shows_reads_well(tmp_path: Path) -> None:
    assert run(tmp_path, CHEAP, "--set", "trials=1") == 0
    url = default_url(tmp_path / "work")
    stored = load(open_storage(url), "x", url)
    assert stored.metric_names == ["Embedded-STS-natural"]
    (trial,) = stored.trials
    assert trial.user_attrs["configuration"] == f"dimension={trial.params['dimension']}"
    assert trial.user_attrs["ended"] == "finished"
    assert trial.user_attrs["seeds"] == "101"
    dashboard = pytest.importorskip("optuna_dashboard")
    note = dashboard.get_note(stored)
    assert "1 trials of method `random`" in note
    assert "harness study best x --held-out" in note
    dashboard.save_note(stored, "mine")
    assert run(tmp_path, CHEAP, "--set", "trials=2") == 0
    assert dashboard.get_note(stored) == "mine"
