"""Studies that train nothing: exactly the planned trials, nothing twice, files and refusals."""

from __future__ import annotations

import csv
import json
import tomllib
from pathlib import Path
from typing import Any

import optuna
import pytest

from harness import api
from harness.cli import main
from harness.results.comparison import ComparisonFile
from harness.results.store import read_records, write_comparison_file
from studies.definition.space import make_space, plan_trials
from studies.definition.study import presets, read_study
from studies.samplers import check
from studies.storage import create_or_resume, lock_study, open_storage
from tests.support import own_files, short_runs
from tests.support.configurations import know_base_models
from tests.support.errors import raises_input_error
from tests.support.small_studies import CHEAP, NATURAL, TRAINED, outcomes, record_times, search


@pytest.fixture(autouse=True)
def no_figures(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """They take most of the time of such small studies; one test draws them."""
    if "draws" not in request.node.name:
        short_runs.no_report(monkeypatch)


def test_a_grid_runs_every_cell_and_the_same_call_runs_none_again(tmp_path: Path) -> None:
    found = search(tmp_path)
    first = record_times(tmp_path)
    assert found.trials()["dimension"].tolist() == [2, 4, 8]
    assert {r.comparison for r in read_records(tmp_path)} == {"cheap"}
    again = search(tmp_path)
    assert (record_times(tmp_path), outcomes(again)) == (first, outcomes(found))
    assert (
        found.best["dimension"] == max(outcomes(found), key=lambda trial: trial[3])[2]["dimension"]
    )
    assert len(found.scores()["run"].unique()) == len(found.costs()) == 3


def test_a_study_draws_figures_and_writes_its_report(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = search(tmp_path)
    figures = {file.name for file in (found.files / "figures").iterdir()}
    assert {
        f"{key}.{kind}" for key in ("history", "binned-dimension") for kind in ("svg", "png")
    } <= figures
    assert {file.name for file in (found.files / "experiments").iterdir()} == {
        "best.toml",
        "held-out.toml",
    }
    values = found.trials().set_index("dimension")[NATURAL]
    with (found.files / "tables" / "summary.csv").open(newline="") as file:
        summary = list(csv.DictReader(file))[-1]
    for name, share in (("Max", 1), ("q75", 0.75), ("q50", 0.5)):
        assert float(summary[name]) == pytest.approx(100 * values.quantile(share))
    where = ["--workdir", str(tmp_path)]
    assert main(["study", "show", "cheap", *where]) == 0
    assert "Best trials" in capsys.readouterr().out


def test_a_configuration_proposed_twice_is_run_once(tmp_path: Path) -> None:
    found = search(tmp_path, sampler="random", trials=6, space={"dimension": [2, 4]})
    first = record_times(tmp_path)
    assert (len(outcomes(found)), len(first)) == (6, 2)
    assert found.trials()["reused"].tolist().count("no") == 2
    search(tmp_path, name="another", space={"dimension": [4, 2]})
    assert record_times(tmp_path) == first


def test_trials_that_share_a_run_train_it_once_also_with_workers_at_a_time(tmp_path: Path) -> None:
    keys: dict[str, Any] = {
        "sampler": "random",
        "trials": 5,
        "space": {"dimension": {"low": 2, "high": 3}},
    }
    serial = search(tmp_path / "serial", **keys)
    both = search(tmp_path / "workers", arguments={"executor": {"workers": 2}}, **keys)
    assert outcomes(both) == outcomes(serial)  # random proposals do not depend on the workers
    assert (
        len(record_times(tmp_path / "workers")) == both.trials()["reused"].tolist().count("no") == 2
    )


def test_each_value_of_by_gets_the_same_number_of_trials(tmp_path: Path) -> None:
    found = search(tmp_path, sampler="tpe", trials=3, by="dimension", space={"dimension": [2, 4]})
    assert sorted(found.trials()["dimension"]) == [2] * 3 + [4] * 3
    assert found.table("summary")["Category"].tolist() == ["dimension = 2", "dimension = 4", "all"]


def test_every_trial_has_all_seeds_and_held_out_seeds_confirm(tmp_path: Path) -> None:
    found = search(tmp_path, seeds=[101, 102], space={"dimension": [2, 4]})
    assert found.trials()["seeds"].tolist() == ["101 102"] * 2
    whole = found.trials().set_index("dimension")[NATURAL]
    experiment = found.experiment(held_out=True, default=True)
    assert experiment["seeds"] == [1, 2, 3]
    assert [row["config"].get("dimension") for row in experiment["methods"]] == [
        whole.idxmax(),
        None,
    ]
    assert tomllib.loads((found.files / "experiments" / "best.toml").read_text())["seeds"] == [
        101,
        102,
    ]


def test_a_study_that_another_process_runs_is_refused(tmp_path: Path) -> None:
    with lock_study(tmp_path, "cheap"):
        with raises_input_error():
            search(tmp_path)
        search(tmp_path, name="other", space={"dimension": [2]})
    search(tmp_path, space={"dimension": [2]})


def test_a_failed_trial_is_reported_and_the_same_call_tries_it_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from methods.random_vectors import RandomVectors

    fit = RandomVectors.fit

    def broken(self: RandomVectors, *args: Any, **more: Any) -> RandomVectors:
        if self.config.dimension == 4:
            raise RuntimeError("out of memory")
        return fit(self, *args, **more)

    with monkeypatch.context() as patch:
        patch.setattr(RandomVectors, "fit", broken)
        failed = search(tmp_path)
    assert failed.trials()["state"].tolist() == ["complete", "fail", "complete"]
    assert "out of memory" in failed.failed[1]
    first = record_times(tmp_path)
    mended = search(tmp_path)
    assert mended.trials()["state"].tolist() == ["complete"] * 3
    assert mended.trials()["dimension"].tolist() == [2, 4, 8]
    assert sum(record_times(tmp_path)[run] != when for run, when in first.items()) == 1


def test_another_space_under_the_same_name_is_refused(tmp_path: Path) -> None:
    search(tmp_path, space={"dimension": [2]})
    with raises_input_error(file='study "cheap"'):
        search(tmp_path)


def test_a_study_does_not_go_on_with_other_data_than_its_trials_had(tmp_path: Path) -> None:
    file = own_files.pairs_file(tmp_path / "pairs.csv", 20)
    keys: dict[str, Any] = {"suites": [str(file)], "objective": "pairs.csv"}
    keys |= {"sampler": "random", "space": {"dimension": [2, 4]}}
    work = tmp_path / "work"
    first = outcomes(search(work, trials=1, **keys))
    text = file.read_text()
    own_files.pairs_file(file, 21)
    with raises_input_error(file='study "cheap"') as error:
        search(work, trials=2, **keys)
    assert "pairs.csv changed" in str(error.value)
    file.write_text(text)
    assert outcomes(search(work, trials=2, **keys))[:1] == first


def test_a_study_without_a_scored_trial_begins_with_what_the_files_hold_now(tmp_path: Path) -> None:
    def check(version: int, *, scored: bool) -> None:
        stored = create_or_resume(storage, study, {"the code of random": version}, "study.toml")
        if scored:
            stored.add_trial(optuna.trial.create_trial(value=0.5))

    study = read_study(CHEAP)
    storage = open_storage(tmp_path)
    check(1, scored=False)
    check(2, scored=True)
    check(2, scored=False)
    with raises_input_error(file="study.toml"):
        check(3, scored=False)


def test_a_study_with_the_name_of_a_paper_has_its_own_report(tmp_path: Path) -> None:
    found = search(tmp_path, name="simcse", space={"dimension": [2, 4]})
    assert found.table("trials")["Parameters: dimension"].tolist() == ["2", "4"]
    rebuilt = api.report("simcse", tmp_path, formats=["md"])
    for file in (rebuilt["md"], found.files / "report.md"):
        assert "Search space" in file.read_text()


def test_a_study_does_not_take_the_name_of_a_comparison(tmp_path: Path) -> None:
    write_comparison_file(tmp_path, ComparisonFile(name="cheap", runs=()))
    with raises_input_error(key="name"):
        search(tmp_path)


@pytest.mark.parametrize(
    ("keys", "arguments", "key"),
    [
        ({}, {"executor": {"workers": 0}}, "workers"),
        ({}, {"quick": True}, "--quick"),
        ({"objective": "STS12"}, {}, "objective"),
        ({"objective": "dev"}, {}, "objective"),
        ({"sampler": "tpe", "trials": 0}, {}, "trials"),
        ({"method": "randm"}, {}, "randm"),
    ],
)
def test_wrong_input_names_the_key(
    keys: dict[str, Any], arguments: dict[str, Any], key: str, tmp_path: Path
) -> None:
    with raises_input_error(key=key):
        search(tmp_path, arguments=arguments, **keys)
    assert not list(tmp_path.glob("runs/*"))


def test_unknown_names_end_in_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["study", "run", "scd-corse", "--workdir", str(tmp_path)]) == 2
    assert '"scd-coarse"' in capsys.readouterr().err
    assert main(["study", "show", "nothing", "--workdir", str(tmp_path)]) == 2
    assert len(capsys.readouterr().err.strip().splitlines()) == 1


def test_every_preset_and_its_quick_size_can_be_planned(monkeypatch: pytest.MonkeyPatch) -> None:
    know_base_models(monkeypatch)
    counted = {}
    for name in presets():
        for quick in (False, True):
            study = read_study(name, quick=quick)
            space = make_space(study, name)
            check(study, space, name)
            counted[study.name] = len(plan_trials(study, space))
    # The sources' own numbers: 21 runs a value for Barlow Twins, 50 for VICReg; 4 x 3 for SimCSE.
    assert counted["barlow-twins-dropout"] == 3 * 21
    assert counted["barlow-twins-shuffle"] == 5 * 21
    assert counted["barlow-twins-eda"] == 2 * 21
    assert counted["vicreg-dropout"] == 3 * 50
    assert counted["vicreg-eda"] == 50
    assert counted["simcse-batch-lr"] == 12
    assert counted["sg-temperature-lambda"] == 6
    assert all(count <= 30 for name, count in counted.items() if name.endswith("-quick"))


def test_a_tracked_study_is_an_experiment_of_trials_above_their_seeds(tmp_path: Path) -> None:
    from mlflow.tracking import MlflowClient

    from harness.tracking import default_uri

    for _ in range(2):  # the second call finds everything sent
        search(
            tmp_path,
            seeds=[101, 102],
            space={"dimension": [2, 4]},
            arguments={"tracking_uri": None},
        )
    client = MlflowClient(tracking_uri=default_uri(tmp_path))
    experiment = client.get_experiment_by_name("cheap")
    assert experiment is not None
    runs = client.search_runs([experiment.experiment_id])
    above = {run.info.run_id: run.data.tags.get("mlflow.parentRunId") for run in runs}
    trials = [run for run, parent in above.items() if parent is None]
    assert sorted(parent for parent in above.values() if parent) == sorted(trials * 2)
    assert len(runs) == 2 + 4


@pytest.mark.parametrize("sampler", ["random", "qmc", "tpe", "gp", "nsgaii"])
def test_every_sampler_has_exactly_the_planned_trials(sampler: str, tmp_path: Path) -> None:
    keys: dict[str, Any] = {
        **CHEAP,
        "sampler": sampler,
        "trials": 5,
        "space": {"dimension": {"low": 2, "high": 9}},
    }
    found = search(tmp_path, keys)
    first = outcomes(found)
    assert [(number, state) for number, state, *_ in first] == [(k, "COMPLETE") for k in range(5)]
    more = search(tmp_path, {**keys, "trials": 6})
    assert outcomes(more)[:5] == first
    assert len(outcomes(more)) == 6
    assert more.stored.trials[5].state == optuna.trial.TrialState.COMPLETE


@pytest.mark.parametrize("objective", ["triplets.jsonl", "triplets.jsonl:accuracy"])
def test_a_file_is_an_objective_by_its_main_score(tmp_path: Path, objective: str) -> None:
    pairs = own_files.embedded_pairs()[:60]
    names = ("anchor", "positive", "negative")
    lines = [
        json.dumps(dict(zip(names, (a, b, pairs[i - 1][1]), strict=True)))
        for i, (a, b, _) in enumerate(pairs)
    ]
    file = tmp_path / "triplets.jsonl"
    file.write_text("\n".join(lines), encoding="utf-8")
    keys = {**CHEAP, "suites": [str(file)], "objective": objective, "space": {"dimension": [2]}}
    found = search(tmp_path / "work", keys)
    (record,) = read_records(tmp_path / "work")
    assert found.stored.best_value == record.score("triplets.jsonl", "accuracy", "")


def test_one_file_selects_and_judges_trials_by_different_pairs(tmp_path: Path) -> None:
    file = own_files.pairs_file(tmp_path / "pairs.csv", 80)
    dev = {"task": str(file), "share": 0.5}
    keys = {**TRAINED, "dev": dev, "suites": [str(file)], "space": {"temperature": [0.05, 0.5]}}
    found = search(tmp_path / "work", keys)
    records = read_records(tmp_path / "work")
    assert [record.dev["task"] for record in records if record.dev] == ["pairs.csv"] * 2
    (tested,) = {score.n for record in records for score in record.scores}
    assert 0 < tested < 80
    assert found.stored.best_value == max(record.training["best_dev"] for record in records)
