"""What a dry run says about time and disk: measured or recorded, and never a part as the whole."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from harness.api.result import Comparison
from harness.cli import main
from harness.commands.compare import show_plan
from harness.results.measurements import read_measurements
from harness.results.record import Record
from harness.results.store import RunFolder
from harness.runs.costs import REUSED, TO_SCORE, TO_TRAIN, CostEstimate
from harness.runs.experiment import read_experiment
from harness.runs.plan import Plan, make_plan
from harness.runs.typical_costs import overhead, read_shape
from harness.runs.typical_runs import count_texts
from tests.support import small_runs
from tests.support.small_runs import CLS, CONTRAST, EXPERIMENT, NATURAL, SIMCSE, STEPS

KEY = ("SimCSE", small_runs.BASE)


def plan_of(**more: Any) -> Plan:
    return make_plan(read_experiment({**EXPERIMENT, **more}, []), "small")


COMMAND = {
    "name": "theirs",
    "method": "command",
    "config": {"run": "true {out}", "files": ["pyproject.toml"]},
}


def test_without_runs_or_measurement_a_row_is_estimated_roughly(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    estimate = CostEstimate(plan_of(), tmp_path)
    assert estimate.rough() == ["cls", "SimCSE"]
    assert estimate.seconds()
    show_plan(EXPERIMENT, tmp_path, against=[])
    assert "roughly" in " ".join(capsys.readouterr().out.split())
    assert not list(tmp_path.iterdir())


def test_of_a_script_nothing_is_guessed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    methods = [CLS, SIMCSE, COMMAND]
    estimate = CostEstimate(plan_of(methods=methods), tmp_path)
    assert estimate.seconds() is None
    assert estimate.unknown() == ["theirs"]
    show_plan({**EXPERIMENT, "methods": methods}, tmp_path, against=[])
    assert "unknown for 1 of 3 rows" in " ".join(capsys.readouterr().out.split())


def test_every_text_of_every_task_and_prompt_is_counted(tmp_path: Path) -> None:
    templates = ["".join([name, ' "[X]" means [MASK].']) for name in "abcdefgh"]
    eight = {"name": "eight", "method": "metaeol", "config": {"templates": templates}}
    one = {"name": "one", "method": "metaeol", "config": {"templates": templates[:1]}}
    estimate = CostEstimate(plan_of(methods=[eight, one], suites=[NATURAL]), tmp_path)
    costs = {label: cost.scoring for (label, _), cost in estimate.rows.items()}
    _, other = overhead()
    assert costs["eight"] - other == pytest.approx(8 * (costs["one"] - other))  # type: ignore[operator]
    more = CostEstimate(plan_of(methods=[one], suites=["sts", "transfer"]), tmp_path)
    (cost,) = more.rows.values()
    # 7 STS sets with 26,372 pairs, and the 7 of the transfer suite, of Conneau and Kiela (2018).
    assert cost.vectors is not None
    assert 100_000 < cost.vectors / 4 / _width() < 180_000


def _width() -> int:
    shape = read_shape(small_runs.BASE)
    assert shape is not None
    return shape.width


@pytest.mark.parametrize("paper", ["simcse", "cropping"])
def test_a_paper_is_planned_without_its_base_models(
    paper: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")  # nothing listens
    monkeypatch.setenv("HF_HOME", str(tmp_path / "hub"))
    command = ["compare", paper, "--workdir", str(tmp_path / "work"), "--tracking-uri", "none"]
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
    assert again.disk() == measured.disk()
    assert not measured.rough()

    rates = [one for one in read_measurements(tmp_path)["rates"].values() if one["step"]]
    (trained,) = rates
    assert plan.dev is not None
    looks = STEPS // SIMCSE["config"]["eval_every"] + 1  # type: ignore[index]
    texts = count_texts([f"embedded:{NATURAL}"]) + looks * plan.dev.num_texts
    expected = STEPS * trained["step"] + texts * trained["sentence"]
    assert again.rows[KEY].seconds == pytest.approx(expected)
    assert again.rows[KEY].total == pytest.approx(3 * expected)
    assert again.disk()["weights"] == pytest.approx(3 * 4 * trained["parameters"])


def test_a_measurement_on_one_text_says_nothing_of_another(tmp_path: Path) -> None:
    """The steps of longer texts take longer."""
    methods = [small_runs.SIMCSE]
    CostEstimate(small_runs.plan_of(methods=methods), tmp_path, measure=True)
    same = CostEstimate(small_runs.plan_of(methods=methods), tmp_path)
    assert "SimCSE" not in same.rough()
    text = {"uri": "embedded:sentences", "limit": 65}
    other = CostEstimate(small_runs.plan_of(methods=methods, corpus=text), tmp_path)
    assert "SimCSE" in other.rough()


def time_of(record: Record, train: float, dev: float, score: float) -> Record:
    """Return a record as of a run of these seconds, all of them the processor's."""
    cost = {
        "train_seconds": train,
        "train_cpu_seconds": train,
        "dev_seconds": dev,
        "dev_cpu_seconds": dev,
        "encode_seconds": score - 1,
        "evaluate_seconds": 1.0,
        "score_cpu_seconds": score,
    }
    return record.model_copy(update={"cost": record.cost | cost})


@pytest.fixture
def timed(small: Comparison, tmp_path: Path) -> tuple[Path, list[Record]]:
    """A copy of the work directory whose runs took known times, and its two runs of SimCSE: of 15
    and 27 seconds.
    """
    work = shutil.copytree(small.workdir, tmp_path / "work")
    trained = [record for record in small.records if record.row == "SimCSE"]
    others = [record for record in small.records if record.row != "SimCSE"]
    first, second = trained
    mine = [time_of(first, 10, 2, 3), time_of(second, 18, 4, 5)]
    for record in [*mine, *(time_of(one, 0, 0, 3) for one in others)]:
        RunFolder(work, record.id).write(record)
    return work, mine


def test_runs_of_the_row_are_the_best_estimate(timed: tuple[Path, list[Record]]) -> None:
    work, _ = timed
    estimate = CostEstimate(plan_of(seeds=[1, 2, 3, 4]), work)
    cost = estimate.rows[KEY]
    assert (cost.states[REUSED], cost.states[TO_TRAIN]) == (2, 2)
    assert (cost.training, cost.scoring) == (14 + 3, 4)  # the medians of two
    assert estimate.seconds() == 2 * 21
    everything_there = CostEstimate(plan_of(), work)
    assert everything_there.seconds() == 0


def test_runs_of_a_busy_day_do_not_count_after_newer_ones(
    timed: tuple[Path, list[Record]],
) -> None:
    work, (old, new) = timed
    slow = time_of(old, 5000, 2, 3).model_copy(update={"finished": "2025-01-01T00:00:00+00:00"})
    RunFolder(work, old.id).write(slow)
    estimate = CostEstimate(plan_of(seeds=[1, 2, 3, 4]), work)
    assert estimate.seconds() == 2 * new.seconds == 2 * 27
    other = {**SIMCSE, "name": "other", "config": {**SIMCSE["config"], "temperature": 0.2}}  # type: ignore[dict-item]
    cost = CostEstimate(plan_of(methods=[SIMCSE, other]), work).rows["other", small_runs.BASE]
    assert cost.total is not None
    assert cost.total < 1000


def starve(record: Record, part: str) -> Record:
    """Return a record as of a run beside other work: 5,000 more seconds of the clock."""
    cost = record.cost | {part: record.cost[part] + 5000}
    return record.model_copy(update={"cost": cost})


@pytest.mark.parametrize("part", ["train_seconds", "dev_seconds", "evaluate_seconds"])
def test_a_run_beside_other_work_does_not_make_the_next_ones_long(
    part: str, timed: tuple[Path, list[Record]]
) -> None:
    work, (first, second) = timed
    RunFolder(work, first.id).write(starve(first, part))
    RunFolder(work, second.id).write(second.model_copy(update={"status": "failed"}))
    plan = plan_of(seeds=[1, 2, 3, 4], methods=[SIMCSE, CLS])
    cost = CostEstimate(plan, work).rows[KEY]
    assert (cost.training, cost.scoring) == (10 + 2, 3)


def test_a_machine_that_is_always_shared_makes_the_next_runs_as_long(
    timed: tuple[Path, list[Record]], small: Comparison
) -> None:
    """Each part of each run took twice as long as the processor worked for it."""
    work, mine = timed
    names = ("train_seconds", "dev_seconds", "encode_seconds", "evaluate_seconds")
    others = [time_of(one, 0, 0, 3) for one in small.records if one.row != "SimCSE"]
    for record in [*mine, *others]:
        twice = {name: 2 * record.cost[name] for name in names}
        slow = record.model_copy(update={"cost": record.cost | twice})
        RunFolder(work, record.id).write(slow)
    assert CostEstimate(plan_of(seeds=[1, 2, 3, 4]), work).seconds() == 2 * 2 * 21


def test_plans_of_one_row_in_other_seeds_have_one_estimate(
    timed: tuple[Path, list[Record]],
) -> None:
    work, _ = timed
    for seed in (11, 12, 13):
        estimate = CostEstimate(plan_of(seeds=[seed], methods=[SIMCSE]), work)
        assert not estimate.rough()
        assert estimate.seconds() == 21


def test_a_row_that_is_unknown_leaves_no_total(small: Comparison) -> None:
    estimate = CostEstimate(plan_of(methods=[CLS, SIMCSE, COMMAND]), small.workdir)
    assert estimate.unknown() == ["theirs"]
    assert estimate.seconds() is None


def test_runs_of_other_rows_correct_what_is_expected_of_a_row(small: Comparison) -> None:
    other = {**SIMCSE, "name": "other", "config": {**SIMCSE["config"], "temperature": 0.2}}  # type: ignore[dict-item]
    plan = plan_of(methods=[SIMCSE, other])
    estimate = CostEstimate(plan, small.workdir)
    known = estimate.rows[KEY]
    assert known.training is not None
    assert known.scoring is not None
    cost = estimate.rows["other", small_runs.BASE]
    assert cost.rough
    assert cost.training is not None
    assert cost.scoring is not None
    found = cost.training + cost.scoring
    assert found == pytest.approx(known.training + known.scoring, rel=0.5)


def test_scoring_on_a_further_task_is_not_training(small: Comparison, tmp_path: Path) -> None:
    work = shutil.copytree(small.workdir, tmp_path / "work")
    plan = plan_of(suites=[NATURAL, CONTRAST])
    estimate = CostEstimate(plan, work)
    assert estimate.rows[KEY].states == {TO_SCORE: 2}
    assert estimate.rows[KEY].rough
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
