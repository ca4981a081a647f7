"""What a dry run says about time and disk: measured or recorded, and never a part as the whole."""

from __future__ import annotations

import shutil
from pathlib import Path
from statistics import fmean
from typing import Any

import pytest

from harness.api.result import Comparison
from harness.cli import main
from harness.commands.compare import show_plan
from harness.results.measurements import read_measurements
from harness.runs.costs import REUSED, TO_SCORE, TO_TRAIN, CostEstimate, count_texts
from harness.runs.experiment import read_experiment
from harness.runs.plan import Plan, make_plan
from tests.support import small_runs
from tests.support.small_runs import CLS, CONTRAST, EXPERIMENT, NATURAL, SIMCSE, STEPS

KEY = ("SimCSE", small_runs.BASE)


def plan_of(**more: Any) -> Plan:
    return make_plan(read_experiment({**EXPERIMENT, **more}, []), "small")


def test_without_runs_or_measurement_nothing_is_guessed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    estimate = CostEstimate(plan_of(), tmp_path)
    assert estimate.seconds() is None
    assert estimate.unknown() == ["cls", "SimCSE"]
    assert estimate.weights() is None
    show_plan(EXPERIMENT, tmp_path, against=[])
    assert "unknown for 2 of 2 rows" in " ".join(capsys.readouterr().out.split())
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("paper", ["simcse", "cropping"])
def test_a_paper_is_planned_without_its_base_models(
    paper: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")  # nothing listens
    monkeypatch.setenv("HF_HOME", str(tmp_path / "hub"))
    command = ["compare", paper, "--workdir", str(tmp_path / "work")]
    base_model = {"simcse": "google-bert/bert-base-uncased", "cropping": "microsoft/mpnet-base"}
    assert main([*command, "--dry-run"]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert f'"{base_model[paper]}"' in shown
    assert "nothing can be run here" in shown
    assert main(command) == 2


def test_the_dry_run_does_not_name_itself(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    mean = {"name": "mean", "method": "pooling", "config": {"pooling": "mean"}}
    show_plan({**EXPERIMENT, "methods": [mean, SIMCSE]}, tmp_path, against=[])
    shown = capsys.readouterr().out
    assert "Pooling" in shown  # the settings in which rows differ
    assert "details:" not in shown


def test_a_measurement_is_remembered_and_adds_up(tmp_path: Path) -> None:
    plan = plan_of(seeds=[1, 2, 3])
    measured = CostEstimate(plan, tmp_path, measure=True)
    again = CostEstimate(plan, tmp_path)
    assert again.seconds() == measured.seconds()
    assert again.weights() == measured.weights()

    rates = [one for one in read_measurements(tmp_path)["rates"].values() if one["step"]]
    (trained,) = rates
    assert plan.dev is not None
    looks = STEPS // SIMCSE["config"]["eval_every"] + 1  # type: ignore[index]
    texts = count_texts([f"embedded:{NATURAL}"]) + looks * plan.dev.num_texts
    expected = STEPS * trained["step"] + texts * trained["sentence"]
    assert again.rows[KEY].seconds == pytest.approx(expected)
    assert again.rows[KEY].total == pytest.approx(3 * expected)
    assert again.weights() == pytest.approx(3 * 4 * trained["parameters"])


def test_runs_of_the_row_are_the_best_estimate(small: Comparison, tmp_path: Path) -> None:
    seconds = [record.seconds for record in small.records if record.row == "SimCSE"]
    estimate = CostEstimate(plan_of(seeds=[1, 2, 3, 4]), small.workdir)
    cost = estimate.rows[KEY]
    assert (cost.states[REUSED], cost.states[TO_TRAIN]) == (2, 2)
    assert estimate.seconds() == pytest.approx(2 * fmean(seconds))
    everything_there = CostEstimate(plan_of(), small.workdir)
    assert everything_there.seconds() == 0


def test_a_row_that_is_unknown_leaves_no_total(small: Comparison, tmp_path: Path) -> None:
    other = {**SIMCSE, "name": "other", "config": {**SIMCSE["config"], "temperature": 0.2}}  # type: ignore[dict-item]
    estimate = CostEstimate(plan_of(methods=[CLS, SIMCSE, other]), small.workdir)
    assert estimate.unknown() == ["other"]
    assert estimate.seconds() is None


def test_scoring_on_a_further_task_is_not_training(small: Comparison, tmp_path: Path) -> None:
    work = shutil.copytree(small.workdir, tmp_path / "work")
    plan = plan_of(suites=[NATURAL, CONTRAST])
    estimate = CostEstimate(plan, work)
    assert estimate.rows[KEY].states == {TO_SCORE: 2}
    assert estimate.seconds() is None
    measured = CostEstimate(plan, work, measure=True)
    (rates,) = [one for one in read_measurements(work)["rates"].values() if one["step"]]
    texts = count_texts([f"embedded:{NATURAL}", f"embedded:{CONTRAST}"])
    assert measured.rows[KEY].total == pytest.approx(2 * texts * rates["sentence"])


@pytest.mark.parametrize(
    ("executor", "at_a_time"),
    [
        ({"name": "serial"}, 1),
        ({"name": "processes", "workers": 4}, 1),  # they share the cores
        ({"name": "processes", "gpus_per_run": 1}, 1),  # there is none
    ],
)
def test_workers_on_one_processor_do_not_divide_the_time(
    tmp_path: Path, executor: dict[str, Any], at_a_time: int
) -> None:
    assert CostEstimate(plan_of(executor=executor), tmp_path).at_a_time() == at_a_time
