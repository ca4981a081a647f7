"""Whole studies on a small scale: nothing twice, exactly what was planned, tables and files, and clear refusals."""

from __future__ import annotations

import csv
import os
import tomllib
from pathlib import Path
from typing import Any

import pytest

from harness.cli import main
from harness.results.manifest import read_records
from tests.support.configurations import know_base_models

CHEAP = """
method = "random"
precision = "fp32"
suites = ["Embedded-STS-natural"]
objectives = ["Embedded-STS-natural"]
sampler = "{sampler}"
{more}
[space]
dimension = {dimension}
"""


def study(folder: Path, *more: str, sampler: str = "grid", dimension: str = "[2, 4, 8]", lines: str = "") -> int:
    file = folder / "cheap.toml"
    file.write_text(CHEAP.format(sampler=sampler, dimension=dimension, more=lines))
    return main(["study", "run", str(file), "--workdir", str(folder / "work"), "--quiet", "--no-tracking", *more])


def table(folder: Path, name: str = "trials") -> list[dict[str, str]]:
    with (folder / "work" / "studies" / "cheap" / f"{name}.csv").open(newline="") as stream:
        return list(csv.DictReader(stream))


def times(folder: Path) -> dict[str, int]:
    return {file.parent.name: file.stat().st_mtime_ns for file in (folder / "work" / "runs").glob("*/record.json")}


@pytest.fixture(autouse=True)
def no_figures(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """They take most of the time of such small studies; one test draws them."""
    if "draw" not in request.node.name:
        monkeypatch.setattr("studies.show.study_figures.all_figures", lambda *_: [])


def test_export_draws_figures_and_writes_their_numbers(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert study(tmp_path) == 0
    capsys.readouterr()
    out = tmp_path / "out"
    assert main(["study", "export", "cheap", "--workdir", str(tmp_path / "work"), "--out", str(out)]) == 0
    there = {file.name for file in out.iterdir()}
    assert {f"{key}.{kind}" for key in ("history", "slices", "binned-dimension") for kind in ("svg", "png")} <= there
    assert {"trials.csv", "summary.csv", "binned-dimension.csv", "expected.csv", "best.toml"} <= there
    assert main(["study", "show", "cheap", "--workdir", str(tmp_path / "work")]) == 0
    assert "Best trials" in capsys.readouterr().out
    assert main(["study", "list", "--workdir", str(tmp_path / "work")]) == 0
    assert "cheap: 3 finished trials" in capsys.readouterr().out


def test_a_grid_runs_every_cell_and_the_same_command_runs_none_again(tmp_path: Path) -> None:
    assert study(tmp_path) == 0
    assert [row["dimension"] for row in table(tmp_path)] == ["2", "4", "8"]
    first = times(tmp_path)
    assert len(first) == 3
    assert study(tmp_path) == 0
    assert times(tmp_path) == first
    values = sorted(100 * float(row["Embedded-STS-natural"]) for row in table(tmp_path))
    summary = table(tmp_path, "summary")[-1]
    assert float(summary["max"]) == pytest.approx(values[2])
    assert float(summary["q75"]) == pytest.approx((values[1] + values[2]) / 2)
    assert float(summary["q50"]) == pytest.approx(values[1])


def test_a_configuration_proposed_twice_is_answered_from_the_records(tmp_path: Path) -> None:
    assert study(tmp_path, sampler="random", dimension="[2, 4]", lines="trials = 6") == 0
    rows = table(tmp_path)
    assert len(rows) == 6
    assert len(times(tmp_path)) == 2
    assert [row["answered from records"] for row in rows].count("no") == 2
    # Another study of the same configurations trains nothing either.
    first = times(tmp_path)
    assert study(tmp_path, "--name", "cheap2", dimension="[4, 2]") == 0
    assert times(tmp_path) == first


def test_each_value_of_by_gets_the_same_number_of_trials(tmp_path: Path) -> None:
    lines = 'trials = 3\nby = "dimension"'
    assert study(tmp_path, sampler="tpe", dimension="[2, 4]", lines=lines) == 0
    assert sorted(row["dimension"] for row in table(tmp_path)) == ["2"] * 3 + ["4"] * 3
    assert [row["category"] for row in table(tmp_path, "summary")] == ["dimension = 2", "dimension = 4", "all"]


def test_several_seeds_are_raced_and_held_out_seeds_confirm(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines = "seeds = [101, 102]"
    assert study(tmp_path, dimension="[2, 3, 4, 5, 6, 7, 8, 9]", lines=lines) == 0
    seeds = [row["seeds"] for row in table(tmp_path)]
    assert seeds[:4] == ["101 102"] * 4  # the first ones have nothing to be compared with
    assert set(seeds) <= {"101", "101 102"}
    best = [row for row in table(tmp_path) if row["seeds"] == "101 102"]
    values = {row["dimension"]: float(row["Embedded-STS-natural"]) for row in best}
    capsys.readouterr()
    assert main(["study", "best", "cheap", "--workdir", str(tmp_path / "work"), "--held-out"]) == 0
    experiment = tomllib.loads(capsys.readouterr().out)
    assert experiment["seeds"] == [1, 2, 3]
    assert experiment["methods"][0]["config"]["dimension"] == int(max(values, key=lambda d: values[d]))


def test_two_workers_share_a_study(tmp_path: Path) -> None:
    assert study(tmp_path, "--workers", "2", dimension="[2, 3, 4, 5, 6]") == 0
    rows = table(tmp_path)
    assert [row["dimension"] for row in rows] == ["2", "3", "4", "5", "6"]
    assert len(times(tmp_path)) == 5


@pytest.mark.parametrize("kept_in", ["", "sqlite"])
def test_of_two_coordinators_of_a_study_the_second_says_so(
    kept_in: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from studies.run.one_coordinator import one_coordinator
    from studies.run.storage import default_url, open_storage

    url = f"sqlite:///{tmp_path / 'trials.db'}" if kept_in else default_url(tmp_path / "work")
    more = ["--storage", url] if kept_in else []
    # A storage elsewhere has one coordinator a study, whatever their work directories.
    with one_coordinator(open_storage(url), url, "cheap", tmp_path / "another" if kept_in else tmp_path / "work"):
        assert study(tmp_path, *more) == 2
        assert study(tmp_path, *more, "--name", "other", dimension="[2]") == 0
    said = capsys.readouterr().err.strip().splitlines()
    assert len(said) == 1
    assert f'study "cheap" in {"storage" if kept_in else "work directory"}' in said[0]
    assert f"is in use by process {os.getpid()}" in said[0]


def test_a_study_that_is_paused_goes_on_with_its_trials(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from harness.comparison.cell import run_cell
    from harness.live.requests import PAUSE, ask
    from harness.live.state import key_of, states

    made: list[str] = []

    def once(*args: Any, **more: Any) -> Any:
        made.append(args[0].id)
        if len(made) == 2:
            ask(tmp_path / "work", key_of("study", "cheap"), PAUSE)
        return run_cell(*args, **more)

    monkeypatch.setattr("studies.run.conduct.run_cell", once)
    monkeypatch.setattr("harness.live.requests.LOOK", 0.0)
    assert study(tmp_path) == 1
    assert 'study "cheap" paused' in capsys.readouterr().err
    (told,) = states(tmp_path / "work")
    assert (told.kind, told.phase, told.ended, len(told.cells)) == ("study", "paused", 1, 3)
    assert study(tmp_path) == 0
    assert (len(made), len(set(made))) == (4, 3)  # the one that was paused was begun twice
    assert [row["trial"] for row in table(tmp_path)] == ["0", "1", "2"]


def test_a_failing_configuration_is_told_and_tried_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from methods.random_vectors import RandomVectors

    fit = RandomVectors.fit

    def broken(self: RandomVectors, *args: Any, **more: Any) -> RandomVectors:
        if self.config.dimension == 4:
            raise RuntimeError("out of memory")
        return fit(self, *args, **more)

    monkeypatch.setattr(RandomVectors, "fit", broken)
    assert study(tmp_path) == 1
    assert "RuntimeError: out of memory" in capsys.readouterr().out
    assert [row["state"] for row in table(tmp_path)] == ["complete", "fail", "complete"]
    monkeypatch.setattr(RandomVectors, "fit", fit)
    assert study(tmp_path) == 0
    assert [row["state"] for row in table(tmp_path)] == ["complete"] * 3


def test_another_space_under_the_same_name_is_refused_and_can_be_forced(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert study(tmp_path, dimension="[2]") == 0
    capsys.readouterr()
    assert study(tmp_path, dimension="[2, 4]") == 2
    said = capsys.readouterr().err
    assert "space.dimension: [2] there, [2, 4] here" in said
    assert "--force-new" in said
    assert study(tmp_path, "--force-new", dimension="[2, 4]") == 0
    assert len(table(tmp_path)) == 2


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--storage", "sqlite:////no/such/folder/x.db"], "cannot be reached"),
        (["--storage", "postgresql://me:secret@127.0.0.1:1/none"], "postgresql://***@127.0.0.1:1/none"),
        (["--storage", "sqlite://"], "keeps nothing; name a file"),
        (["--storage", "/dev/null/trials.journal"], "cannot be used"),
        (["--storage", "nonsense://host/x"], "cannot be reached"),
        (["--workers", "0"], "workers"),
        (["--set", 'objectives=["STS12"]'], "there are: Embedded-STS-natural"),
        (["--quick"], "no table [quick]"),
        (["--set", "trials=0", "--set", "sampler=tpe"], '"trials"'),
        (["--set", "method=randm"], 'did you mean "random"?'),
        (["--set", 'objectives=["dev"]'], "is not scored on a dev set"),
    ],
)
def test_wrong_input_is_one_line(
    arguments: list[str], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert study(tmp_path, *arguments) == 2
    errors = capsys.readouterr().err.strip().splitlines()
    assert len(errors) == 1
    assert said in errors[0]
    assert "secret" not in errors[0]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["run", "scd-corse"], 'did you mean "scd-coarse"?'),
        (["show", "nothing", "--workdir", "nowhere"], "no such file"),
    ],
)
def test_unknown_names_are_told(arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["study", *arguments]) == 2
    assert said in capsys.readouterr().err


def test_every_preset_and_its_quick_size_can_be_planned(monkeypatch: pytest.MonkeyPatch) -> None:
    know_base_models(monkeypatch)
    from studies.definition.planned import planned_trials
    from studies.definition.space import make_space
    from studies.definition.study import presets, read_study
    from studies.samplers import check

    counted = {}
    for name in presets():
        for quick in (False, True):
            made = read_study(name, quick=quick)
            space = make_space(made, name)
            check(made, space, name)
            counted[made.name] = len(planned_trials(made, space))
    # The sources' own numbers: 21 runs a value for Barlow Twins, 50 for VICReg; 4 x 3 for SimCSE.
    assert counted["barlow-twins-dropout"] == 3 * 21
    assert counted["barlow-twins-shuffle"] == 5 * 21
    assert counted["barlow-twins-eda"] == 2 * 21
    assert counted["vicreg-dropout"] == 3 * 50
    assert counted["vicreg-eda"] == 50
    assert counted["simcse-batch-lr"] == 12
    assert counted["sg-temperature-lambda"] == 6
    assert all(count <= 30 for name, count in counted.items() if name.endswith("-quick"))


def test_records_name_the_study(tmp_path: Path) -> None:
    assert study(tmp_path) == 0
    assert {r.comparison for r in read_records(tmp_path / "work")} == {"cheap"}


def test_a_database_by_url(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'trials.db'}"
    assert study(tmp_path, "--storage", url) == 0
    assert [row["dimension"] for row in table(tmp_path)] == ["2", "4", "8"]
    assert main(["study", "show", "cheap", "--storage", url, "--workdir", str(tmp_path / "work")]) == 0
    assert len(times(tmp_path)) == 3


def test_a_study_in_a_database_has_its_page_too(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    url, work = f"sqlite:///{tmp_path / 'trials.db'}", tmp_path / "work"
    assert study(tmp_path, "--storage", url) == 0
    for _ in range(2):  # a newer copy replaces the older one
        assert main(["report", "build", "cheap", "--from", str(work), "--format", "md"]) == 0
        assert "The best of 3 trials" in (work / "reports" / "cheap" / "report.md").read_text()
        assert main(["study", "export", "cheap", "--storage", url, "--workdir", str(work)]) == 0
    assert study(tmp_path) == 2
    assert 'study "cheap" is a copy here; give the --storage where it is kept' in capsys.readouterr().err


def test_tracked_studies_stand_above_their_trials_and_these_above_their_seeds(tmp_path: Path) -> None:
    from mlflow.tracking import MlflowClient

    from harness.tracking.tracker import default_uri

    file = tmp_path / "cheap.toml"
    file.write_text(CHEAP.format(sampler="grid", dimension="[2, 4]", more="seeds = [101, 102]"))
    for _ in range(2):  # the second call finds everything sent
        assert main(["study", "run", str(file), "--workdir", str(tmp_path / "work"), "--quiet"]) == 0
    client = MlflowClient(tracking_uri=default_uri(tmp_path / "work"))
    experiment = client.get_experiment_by_name("cheap")
    assert experiment is not None
    runs = client.search_runs([experiment.experiment_id])
    above = {run.info.run_id: run.data.tags.get("mlflow.parentRunId") for run in runs}
    roots = [run for run, parent in above.items() if parent is None]
    assert len(roots) == 1
    trials = [run for run, parent in above.items() if parent == roots[0]]
    assert len(trials) == 2
    assert sorted(parent for parent in above.values() if parent in trials) == sorted(trials * 2)
    assert len(runs) == 1 + 2 + 4
