"""A whole comparison on a small scale: records, what is kept and what is redone, and kill -9 at three points."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest

from harness.cli import main
from harness.results.manifest import read_manifest, read_records
from harness.results.record import Record
from harness.results.run_folder import RunFolder
from tests.support import short_runs

pytestmark = [pytest.mark.timeout(240), pytest.mark.usefixtures("few_pairs")]
REPOSITORY = Path(__file__).parents[3]

EXPERIMENT = """
name = "small"
seeds = [1, 2]
suites = ["Embedded-STS-natural"]
max_steps = 6
precision = "fp32"
[corpus]
uri = "embedded:sentences"
limit = 80
[dev]
task = "Embedded-STS-natural"
[[methods]]
method = "pooling"
config = { pooling = "cls" }
[[methods]]
name = "SimCSE"
method = "simcse"
preset = "mini"
config = { batch_size = 8, eval_every = 3, train_length = 12 }
"""


def run(folder: Path, work: str, *more: str, report: bool = False) -> int:
    file = folder / "small.toml"
    file.write_text(EXPERIMENT)
    with pytest.MonkeyPatch.context() as patch:
        if not report:
            short_runs.no_report(patch)
        return main(["compare", str(file), "--workdir", str(folder / work), "--no-tracking", "--quiet", *more])


def scores(folder: Path) -> dict[tuple[str, int], list[float]]:
    return {(r.row, r.seed): [s.value for s in r.scores] for r in read_records(folder, "small")}


@pytest.fixture(scope="module")
def done(few_pairs: None, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("compare")
    assert run(folder, "work", report=True) == 0
    return folder


def test_records_hold_what_a_reader_asks_for(done: Path) -> None:
    records = read_records(done / "work", "small")
    assert [(r.row, r.seed) for r in records] == [("pooling", 1), ("SimCSE", 1), ("SimCSE", 2)]  # cls is deterministic
    simcse = records[1]
    assert simcse.status == "finished"
    assert simcse.training["steps"] == 6
    assert simcse.architecture == records[0].architecture != ""  # one network, which is timed once
    assert {"train_cpu_seconds", "load_start", "load_end"} <= simcse.cost.keys()
    cost = simcse.cost
    assert 2 * 6 * 8 * 3 <= cost["train_tokens"] <= 2 * 6 * 8 * 12  # two views of 8 sentences, 6 times, of at most 12
    assert cost["train_tokens_per_second"] == pytest.approx(cost["train_tokens"] / cost["train_seconds"])
    assert cost["mfu"] == pytest.approx(cost["train_flops"] / cost["train_seconds"] / cost["peak_flops"])
    assert 0 < cost["mfu"] < 1
    assert simcse.training["best_step"] in (3, 6)
    assert simcse.corpus is not None
    assert (simcse.corpus["count"], len(simcse.corpus["sha256"])) == (80, 64)
    assert simcse.supervision == "unsupervised"
    assert {s.protocol for s in simcse.scores} <= set(simcse.protocols)
    assert simcse.cost["parameters"] > 7e6
    assert simcse.environment["versions"]["torch"]
    pairs = RunFolder(done / "work", simcse.id).pairs()
    assert isinstance(pairs, pd.DataFrame)
    score = simcse.score("Embedded-STS-natural")
    assert pairs["score"].corr(pairs["gold"], method="spearman") == pytest.approx(score, abs=1e-6)
    assert not RunFolder(done / "work", simcse.id).checkpoint.exists()
    assert (done / "work" / "reports" / "small" / "index.html").exists()


def test_the_same_command_again_recomputes_nothing(done: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def never(*args: object, **kwargs: object) -> Record:
        raise AssertionError("a finished cell was run again")

    monkeypatch.setattr("harness.comparison.placement.run_cell", never)
    assert run(done, "work") == 0


def test_another_suite_evaluates_again_without_training(done: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def never(*args: object, **kwargs: object) -> None:
        raise AssertionError("a trained model was trained again")

    monkeypatch.setattr("harness.training.TrainedMethod.fit", never)
    assert run(done, "work", "--set", 'suites=["Embedded-STS-natural", "Embedded-STS-contrast"]') == 0
    for record in read_records(done / "work", "small"):
        assert {s.task for s in record.scores} == {"Embedded-STS-natural", "Embedded-STS-contrast"}
    assert run(done, "work") == 0


def test_a_changed_setting_trains_again_and_keeps_the_old_run(done: Path) -> None:
    before = {r.id for r in read_records(done / "work")}
    assert run(done, "work", "--set", "methods.SimCSE.temperature=0.2", "--set", "name=other") == 0
    manifest = read_manifest(done / "work", "other")
    assert manifest is not None
    ids = [cell["id"] for cell in manifest["cells"]]
    assert ids[0] in before  # the pooling row is shared
    assert not set(ids[1:]) & before
    assert {r.id for r in read_records(done / "work")} == before | set(ids)


def test_a_row_that_collapses_and_one_that_fails_are_rows_and_not_the_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    collapsing = ["--set", "methods.SimCSE.min_rank=1000", "--set", "seeds=[1]"]
    assert run(tmp_path, "collapsed", *collapsing) == 0
    record = read_records(tmp_path / "collapsed", "small")[-1]
    assert record.status == "collapsed"
    assert "effective rank" in record.reason
    assert record.scores == []

    def broken(*args: object, **kwargs: object) -> None:
        raise ValueError("no luck")

    with monkeypatch.context() as patch:
        patch.setattr("methods.simcse.SimCSE.loss", broken)
        assert run(tmp_path, "failed", "--set", "seeds=[1]") == 1
    assert read_records(tmp_path / "failed", "small")[-1].reason == "ValueError: no luck"
    assert "all other runs are kept" in capsys.readouterr().out
    assert run(tmp_path, "failed", "--set", "seeds=[1]") == 0  # failed cells are tried again


KILLED = """
import json, os, signal, sys
from pathlib import Path
import pytest
import harness.comparison.cell, harness.evaluation.scoring, harness.method, harness.training, methods.simcse
from harness.cli import main
from tests.support import short_runs
short_runs.few_pairs(pytest.MonkeyPatch())
short_runs.no_report(pytest.MonkeyPatch())

def die(*args, **kwargs):
    os.kill(os.getpid(), signal.SIGKILL)

def trap(point):
    if point == "training":
        init = harness.method.FitContext.__init__
        init.__defaults__ = tuple(0.0 if default == 30.0 else default for default in init.__defaults__)
        update = harness.training.Trainer._update
        def deadly(self):
            update(self)
            if self.step == 5:
                die()
        harness.training.Trainer._update = deadly
    elif point == "between":
        harness.comparison.cell._evaluate = die
    else:
        harness.evaluation.scoring.evaluate = die

runs, *argv = sys.argv[1:]
for point in ("training", "between", "evaluation"):  # a process each, forked before any of them does anything
    child = os.fork()
    if child == 0:
        trap(point)
        os._exit(main(argv))
    signal_of = os.WTERMSIG(os.waitpid(child, 0)[1])
    left = {
        run.name: [name for name in ("checkpoint/state.pt", "fitted.json", "record.json") if (run / name).exists()]
        for run in Path(runs).iterdir()
    }
    print(json.dumps([point, signal_of, left]))
    sys.stdout.flush()
"""


def test_kill_9_and_the_same_command_again_give_the_uninterrupted_result(done: Path, tmp_path: Path) -> None:
    """Killed in the middle of its training, when that has just ended, and while it is scored: then run to its end."""
    file = tmp_path / "small.toml"
    file.write_text(EXPERIMENT.replace('[[methods]]\nmethod = "pooling"\nconfig = { pooling = "cls" }\n', ""))
    argv = ["compare", str(file), "--workdir", str(tmp_path / "work"), "--no-tracking", "--quiet"]
    command = [sys.executable, "-c", KILLED, str(tmp_path / "work" / "runs"), *argv]
    killed = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True)
    lines = [json.loads(line) for line in killed.stdout.splitlines() if line.startswith("[")]
    assert len(lines) == 3, killed.stderr
    (run_id,) = lines[0][2]
    assert lines == [
        ["training", signal.SIGKILL, {run_id: ["checkpoint/state.pt"]}],
        ["between", signal.SIGKILL, {run_id: ["checkpoint/state.pt", "fitted.json"]}],
        ["evaluation", signal.SIGKILL, {run_id: ["checkpoint/state.pt", "fitted.json"]}],
    ], killed.stderr
    with pytest.MonkeyPatch.context() as patch:
        short_runs.no_report(patch)
        assert main(argv) == 0
    whole, mine = scores(done / "work"), scores(tmp_path / "work")
    assert mine[("SimCSE", 1)] == whole[("SimCSE", 1)]
    assert mine[("SimCSE", 2)] == whole[("SimCSE", 2)]
    curves = [[json.dumps(line) for line in RunFolder(f / "work", run_id).curves()] for f in (done, tmp_path)]
    assert curves[0] == curves[1]


def test_a_record_keeps_scores_that_are_not_finite(done: Path) -> None:
    record = read_records(done / "work", "small")[0]
    odd = record.model_copy(update={"scores": [record.scores[0].model_copy(update={"value": float("nan")})]})
    back = Record.model_validate_json(odd.model_dump_json())
    assert back.scores[0].value != back.scores[0].value
