"""Studies that train: pruned runs keep their curves, killed ones go on, the best one enters a comparison for free."""

from __future__ import annotations

import csv
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from harness.cli import main
from harness.results.run_folder import RunFolder
from studies.run.storage import default_url

pytestmark = pytest.mark.usefixtures("few_pairs", "no_report")
REPOSITORY = Path(__file__).parents[2]

STUDY = """
method = "simcse"
preset = "mini"
config = { batch_size = 8, eval_every = 3, train_length = 12 }
corpus = { uri = "embedded:sentences", limit = 80 }
dev = { task = "Embedded-STS-natural" }
steps = 9
precision = "fp32"
sampler = "grid"
[space]
temperature = [0.05, 0.5]
"""


def run(folder: Path, *more: str) -> int:
    file = folder / "small.toml"
    file.write_text(STUDY)
    return main(["study", "run", str(file), "--workdir", str(folder / "work"), "--no-tracking", "--quiet", *more])


def rows(folder: Path, name: str = "small") -> list[dict[str, str]]:
    with (folder / "work" / "studies" / name / "trials.csv").open(newline="") as stream:
        return list(csv.DictReader(stream))


def scores(folder: Path) -> dict[str, str]:
    return {row["temperature"]: row["Embedded-STS-natural dev"] for row in rows(folder)}


@pytest.fixture(scope="module")
def done(few_pairs: None, no_report: None, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("study")
    assert run(folder) == 0
    return folder


def test_the_value_is_the_best_dev_score_of_the_run(done: Path) -> None:
    for row in rows(done):
        curve = RunFolder(done / "work", row["runs"]).curves()
        dev = [line["spearman"] for line in curve if line["kind"] == "dev" and line["step"] > 0]
        assert len(dev) == 3
        assert float(row["Embedded-STS-natural dev"]) == max(dev)


def test_weights_of_the_best_trial_alone_are_kept(done: Path) -> None:
    best = max(rows(done), key=lambda row: float(row["Embedded-STS-natural dev"]))["runs"]
    assert [file.parent.name for file in (done / "work" / "runs").glob("*/model")] == [best]


def test_the_best_run_enters_a_comparison_without_training(done: Path, capsys: pytest.CaptureFixture[str]) -> None:
    best = max(rows(done), key=lambda row: float(row["Embedded-STS-natural dev"]))["runs"]
    fitted = done / "work" / "runs" / best / "fitted.json"
    before = fitted.stat().st_mtime_ns
    experiment = done / "work" / "studies" / "small" / "best.toml"
    extra = ["--set", 'suites=["Embedded-STS-natural"]', "--no-tracking", "--format", "csv"]
    assert main(["compare", str(experiment), "--workdir", str(done / "work"), *extra]) == 0
    record = RunFolder(done / "work", best).read()
    assert record is not None
    assert record.score("Embedded-STS-natural") is not None
    assert fitted.stat().st_mtime_ns == before
    # The study takes the record as it is now; evaluating it on nothing would throw the scores away.
    assert run(done, "--name", "again") == 0
    assert RunFolder(done / "work", best).read() == record


def test_a_pruned_trial_keeps_its_curve_and_a_comparison_trains_it_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import optuna

    def cold(self: object, study: optuna.Study, trial: optuna.trial.FrozenTrial) -> bool:
        return bool(trial.params["temperature"] < 0.1)

    monkeypatch.setattr(optuna.pruners.MedianPruner, "prune", cold)
    assert run(tmp_path, "--set", "pruner=median") == 0
    pruned, whole = rows(tmp_path)
    assert (pruned["state"], whole["state"]) == ("pruned", "complete")
    record = RunFolder(tmp_path / "work", pruned["runs"]).read()
    assert record is not None
    assert record.status == "pruned"
    assert record.training["steps"] == 3
    curve = RunFolder(tmp_path / "work", record.id).curves()
    assert [line["step"] for line in curve if line["kind"] == "dev"] == [0, 3]
    # Without a pruner the same cell is trained to its end.
    assert run(tmp_path, "--name", "whole") == 0
    record = RunFolder(tmp_path / "work", pruned["runs"]).read()
    assert record is not None
    assert record.status == "finished"


KILLED = """
import os, signal, sys
import pytest
import harness.training
from harness.cli import main
from tests.support import short_runs
short_runs.few_pairs(pytest.MonkeyPatch())
update = harness.training.Trainer._update
def deadly(self):
    update(self)
    if self.step == 5:  # in the first trial: its first weights have been kept
        os.kill(os.getpid(), signal.SIGKILL)
harness.training.Trainer._update = deadly
sys.exit(main(sys.argv[1:]))
"""


def test_killed_workers_leave_the_planned_trials_and_the_same_scores(done: Path, tmp_path: Path) -> None:
    (tmp_path / "small.toml").write_text(STUDY)
    arguments = ["study", "run", str(tmp_path / "small.toml"), "--workdir", str(tmp_path / "work"), "--no-tracking"]
    killed = subprocess.run([sys.executable, "-c", KILLED, *arguments], cwd=REPOSITORY, capture_output=True, text=True)
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    assert list((tmp_path / "work" / "runs").glob("*/checkpoint"))
    assert run(tmp_path) == 0
    assert scores(tmp_path) == scores(done)
    from studies.run.storage import load, open_storage

    url = default_url(tmp_path / "work")
    states = [t.state.name for t in load(open_storage(url), "small", url).trials]
    assert states == ["COMPLETE", "COMPLETE"]  # the killed one was taken up
