"""`harness compare --tune`: one budget for every row, seeds that are not reported, tuned rows beside their defaults."""

from __future__ import annotations

import shlex
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from harness.cli import main
from harness.comparison.experiment import read_experiment
from harness.comparison.plan import make_plan
from harness.comparison.tuning import Budget
from harness.comparison.two_updates import Measured
from harness.results.manifest import read_manifest, read_records
from harness.results.record import Record
from harness.results.run_folder import RunFolder
from studies.run.storage import default_url, load, open_storage
from studies.run.trial_result import result_of
from studies.tune import tune

pytestmark = pytest.mark.usefixtures("few_pairs", "no_report")

EXPERIMENT = """
name = "small"
seeds = [1]
suites = ["Embedded-STS-contrast"]
max_steps = 2
precision = "fp32"
shared = { batch_size = 8, eval_every = 2, train_length = 12 }
corpus = { uri = "embedded:sentences", limit = 40 }
dev = { task = "Embedded-STS-contrast" }
[[methods]]
method = "pooling"
[[methods]]
name = "SimCSE"
method = "simcse"
preset = "mini"
config = { dropout = 0.1 }
[[methods]]
name = "SCD"
method = "scd"
preset = "mini"
"""


def run(folder: Path, *more: str) -> int:
    file = folder / "small.toml"
    file.write_text(EXPERIMENT)
    options = ["--workdir", str(folder / "work"), "--no-tracking", "--quiet", "--format", "csv", "--tune", "2"]
    return main(["compare", str(file), *options, *more])


def tuned(folder: Path) -> dict[str, dict[str, Any]]:
    manifest = read_manifest(folder / "work", "small")
    assert manifest is not None
    return {row["row"]: row for row in manifest["tuned"]["rows"]}


@pytest.fixture(scope="module")
def done(few_pairs: None, no_report: None, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Interrupted in the second row's search, then run to its end by the same command."""
    folder = tmp_path_factory.mktemp("tune")
    with pytest.MonkeyPatch.context() as patch:
        from harness.comparison.cell import run_cell

        calls = []

        def interrupted(*args: Any, **more: Any) -> Record:
            calls.append(args)
            if len(calls) == 4:
                raise KeyboardInterrupt
            return run_cell(*args, **more)

        patch.setattr("studies.run.conduct.run_cell", interrupted)
        assert run(folder) != 0
    first = {file: file.stat().st_mtime_ns for file in (folder / "work" / "runs").glob("*/record.json")}
    assert len(first) == 3
    assert run(folder) == 0
    assert {file: file.stat().st_mtime_ns for file in first} == first
    return folder


def test_tuned_rows_stand_beside_their_defaults_on_the_seeds_of_the_comparison(done: Path) -> None:
    records = read_records(done / "work", "small")
    assert [r.row for r in records] == ["pooling", "SimCSE", "SimCSE · tuned", "SCD", "SCD · tuned", "untrained (cls)"]
    assert {r.seed for r in records} == {1}
    assert all(r.score("Embedded-STS-contrast") is not None for r in records)


def test_every_row_got_the_same_number_of_trials_on_seeds_of_their_own(done: Path) -> None:
    url = default_url(done / "work")
    for row in ("SimCSE", "SCD"):
        stored = load(open_storage(url), f"small--{row}", url)
        trials = [t for t in stored.trials if t.state.name == "COMPLETE"]
        assert len(trials) == 2
        runs = [RunFolder(done / "work", run).read() for t in trials for run in result_of(t).runs]
        assert [(r.seed, r.training["steps"]) for r in runs if r] == [(101, 2)] * 2
        first = min(trials, key=lambda t: t.number)
        (own,) = (r.config for r in read_records(done / "work", "small") if r.row == row)
        assert first.params.items() <= own.items()  # the search begins with the row itself,
        assert "learning_rate" not in first.params  # whose rate is beyond the declared range
        begun = RunFolder(done / "work", result_of(first).runs[0]).read()
        assert begun is not None
        assert {**begun.config, "seed": None} == {**own, "seed": None}
        best = max(trials, key=lambda t: t.value or 0.0)
        assert tuned(done)[row]["values"] == best.params
        assert (tuned(done)[row]["trials"], tuned(done)[row]["runs"]) == (2, 2)
        seconds = sum(r.cost["train_seconds"] + r.cost["dev_seconds"] for r in runs if r)
        assert tuned(done)[row]["seconds"] == pytest.approx(seconds)
        mine = next(r for r in read_records(done / "work", "small") if r.row == f"{row} · tuned")
        assert best.params.items() <= mine.config.items()
        assert mine.config["batch_size"] == 8  # what the comparison fixes is not searched
    assert "dropout" not in tuned(done)["SimCSE"]["values"]  # nor what the row fixes


def test_rows_without_a_search_say_why(done: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert "no dev score" in tuned(done)["pooling"]["reason"]
    assert run(done) == 0  # and the same command once more
    out = capsys.readouterr().out
    assert "Tuning: 2 trials of 2 updates a row, seeds 101" in out
    assert "not searched" in out
    assert main(["study", "list", "--workdir", str(done / "work")]) == 0
    assert "small--SCD: 2 finished trials" in capsys.readouterr().out


def test_the_same_command_again_trains_nothing(done: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def never(*args: object, **more: object) -> None:
        raise AssertionError("something was trained again")

    monkeypatch.setattr("harness.training.TrainedMethod.fit", never)
    assert run(done) == 0


def test_a_tuned_run_can_be_made_again_alone(done: Path) -> None:
    record = next(r for r in read_records(done / "work", "small") if r.row == "SCD · tuned")
    words = shlex.split(record.command)
    settings = [value for option, value in pairwise(words) if option == "--set"]
    plan = make_plan(read_experiment(words[2], settings), "small")
    assert record.id in {cell.id for cell in plan.cells}


def test_a_study_of_that_name_with_another_definition_is_refused_before_anything_runs(
    done: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(done, "--set", "shared.batch_size=16") == 2
    said = capsys.readouterr().err.strip().splitlines()
    assert len(said) == 1
    assert "config.batch_size: 8 there, 16 here" in said[0]
    assert "--set name=" in said[0]


def test_a_budget_of_equal_trials_is_the_same_search(
    done: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def never(*args: object, **more: object) -> None:
        raise AssertionError("something was trained again")

    monkeypatch.setattr("harness.training.TrainedMethod.fit", never)
    before = tuned(done)
    options = ["--workdir", str(done / "work"), "--no-tracking", "--quiet", "--format", "csv"]
    budget = 'budget={kind="trials", trials=2, updates=2}'
    assert main(["compare", str(done / "small.toml"), *options, "--set", budget]) == 0
    assert "Tuning: 2 trials of 2 updates a row, seeds 101" in capsys.readouterr().out
    assert tuned(done) == before
    assert read_manifest(done / "work", "small")["experiment"]["budget"]["trials"] == 2  # type: ignore[index]


def test_a_dry_run_counts_the_trials_that_are_left_and_the_rows_that_they_will_find(
    done: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("harness.comparison.estimate.estimate_seconds", lambda *_, **__: 60.0)
    words = ["compare", str(done / "small.toml"), "--workdir", str(done / "work"), "--dry-run"]
    budget = 'budget={{kind="trials", trials={0}, updates=2}}'
    assert main([*words, "--set", budget.format(2)]) == 0
    assert "tuning: every search has ended (4 trials)" in (ended := capsys.readouterr().out)
    assert "about 0.0 minutes in all" in ended  # the tuned rows are finished too
    assert main([*words, "--set", budget.format(5)]) == 0
    left = capsys.readouterr().out
    assert "pooling: not searched: no dev score of its training" in left
    assert (
        "tuning comes first: SimCSE, SCD: 5 trials each (4 trials done), 6 runs of up to 2 updates, seeds 101" in left
    )
    assert "about 8.0 minutes in all" in left  # six trials, and a run of each of the two rows that they find
    assert left.count("to be found") == 2


def test_at_full_size_the_same_is_counted_in_measured_seconds(
    done: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("harness.comparison.full_size.measured_or_extrapolated", lambda _: Measured(update=60.0))
    monkeypatch.setattr("harness.comparison.scoring_time.ScoringTimes.measure", lambda _: [])
    words = ["compare", str(done / "small.toml"), "--workdir", str(done / "work"), "--rehearse=full-size"]
    assert main([*words, "--set", 'budget={kind="trials", trials=5, updates=2}']) == 0
    told = capsys.readouterr().out
    assert "6 runs of up to 2 updates, seeds 101, about 12 min" in told
    assert "about 16 min on cpu" in told  # and two updates of each of the two rows that they find


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (["--tune", "0"], "--tune 0: expected 1 or more"),
        (["--tune-steps", "0"], "--tune-steps 0"),
        (["--tune-seeds", "5,1"], "seed 1 would search and be reported"),
        (["--set", "seeds=[100, 101]"], "seed 101 would search and be reported"),
        (["--tune-seeds", "many"], "--tune-seeds many: expected numbers"),
        (["--set", 'base_models=["embedded:mini-bert", "x"]'], "one base model at a time"),
    ],
)
def test_wrong_input_is_one_line(
    tmp_path: Path, more: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(tmp_path, *more) == 2
    errors = capsys.readouterr().err.strip().splitlines()
    assert len(errors) == 1
    assert said in errors[0]
    assert not (tmp_path / "work" / "runs").exists()


def test_a_budget_is_needed_and_goes_with_tune_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "small.toml"
    file.write_text(EXPERIMENT.replace("max_steps = 2\n", ""))
    assert main(["compare", str(file), "--workdir", str(tmp_path / "work"), "--tune", "2"]) == 2
    assert "give max_steps or --tune-steps" in capsys.readouterr().err
    assert main(["compare", str(file), "--workdir", str(tmp_path / "work"), "--tune-steps", "2"]) == 2
    assert "goes with --tune" in capsys.readouterr().err


def test_a_row_whose_parts_alone_are_trained_is_not_searched(tmp_path: Path) -> None:
    experiment = read_experiment(
        {
            "name": "parts", "seeds": [1], "suites": ["Embedded-STS-natural"], "corpus": "embedded:sentences",
            "dev": {"task": "Embedded-STS-natural"},
            "methods": [{"name": "distilled", "method": "model2vec", "preset": "mini"}],
        }
    )  # fmt: skip
    (row,) = tune(experiment, Budget(2, 2), tmp_path, tracked=False, tracking_uri=None, quiet=True, dry=True)
    assert row.reason == "not searched: no dev score of its training"
