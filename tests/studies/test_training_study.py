"""Studies that train: pruned runs have a curve, killed studies have the same trials, the best run
needs no training.
"""

from __future__ import annotations

import math
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import optuna
import pytest
import torch

from harness import api
from harness.results.record import Record
from harness.results.store import RunFolder
from harness.runs import runner
from studies.definition.space import make_space
from studies.definition.study import read_study
from studies.proposer import OpenTrial, objective_value
from studies.trials import TrialResult, result_of
from tests.support import invented_runs
from tests.support.forks import run_fork
from tests.support.small_studies import NATURAL, TRAINED, dev_steps, outcomes, record_times, search

pytestmark = pytest.mark.usefixtures("no_report")
WORKERS = {"name": "processes", "workers": 2}


@pytest.fixture(scope="module", autouse=True)
def one_thread() -> Iterator[None]:
    """As in each of two workers: a run's numbers depend on the number of threads."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="module")
def done(no_report: None, tmp_path_factory: pytest.TempPathFactory) -> Any:
    return search(tmp_path_factory.mktemp("study"), {**TRAINED, "keep": ["weights"]})


def record_of(workdir: Path, run: str) -> Record:
    record = RunFolder(workdir, run).read()
    assert record is not None
    return record


def best_run(found: Any) -> str:
    frame = found.trials()
    return str(frame.loc[frame[f"{NATURAL} dev"].idxmax(), "runs"])


def test_the_value_of_a_trial_is_the_best_dev_score_of_its_run(done: Any) -> None:
    for run, value in done.trials()[["runs", f"{NATURAL} dev"]].to_numpy():
        scores = [
            line["spearman"]
            for line in RunFolder(done.workdir, run).curves()
            if line["kind"] == "dev"
        ]
        assert len(scores) == 4
        assert value == max(scores[1:])  # the first is that of the untrained model


def test_a_trial_that_diverged_is_worse_than_every_model(tmp_path: Path) -> None:
    config = {key: value for key, value in TRAINED["config"].items() if key != "learning_rate"}
    keys = {**TRAINED, "config": config, "space": {"learning_rate": [3e-4, 1e30]}}
    found = search(tmp_path, keys)
    frame = found.trials().set_index("learning_rate")
    assert frame["status"].tolist() == ["finished", "diverged"]
    assert frame.loc[1e30, f"{NATURAL} dev"] == 0.0


def test_a_collapsed_trial_has_the_score_at_which_it_was_stopped(tmp_path: Path) -> None:
    study = read_study({**TRAINED, "objective": "dev"})
    ended = {"status": "collapsed", "training": {"initial_dev": 0.6, "final": {"spearman": 0.03}}}
    record = invented_runs.run(tmp_path, "simcse", **ended)  # type: ignore[arg-type]
    assert objective_value(record, study, tmp_path) == 0.03
    undefined = record.model_copy(update={"training": {"final": {"spearman": math.nan}}})
    assert objective_value(undefined, study, tmp_path) == 0.0
    diverged = record.model_copy(update={"status": "diverged"})
    assert objective_value(diverged, study, tmp_path) == 0.0


def test_a_trial_says_that_one_of_its_seeds_collapsed(tmp_path: Path) -> None:
    study = read_study({**TRAINED, "seeds": [101, 102]})
    space = make_space(study, "study")
    stored = optuna.create_study(direction="maximize")
    config = space.points()[0]
    trial = OpenTrial(stored.ask(), stored, study, config, tmp_path)
    fallen = {"final": {"spearman": 0.02}}
    first = invented_runs.run(tmp_path, "simcse", seed=101, status="collapsed", training=fallen)
    second = invented_runs.run(tmp_path, "simcse", seed=102, training={"best_dev": 0.5})
    for record in (first, second):
        trial.add(record, executed=True)
    (ended,) = stored.trials
    assert ended.value == pytest.approx(0.26)
    assert (result_of(ended).status, result_of(ended).reason) == ("collapsed", "invented")


def test_the_best_run_enters_a_comparison_without_training(done: Any) -> None:
    best = best_run(done)
    model = RunFolder(done.workdir, best).model
    weights = {file: file.stat().st_mtime_ns for file in model.rglob("*.safetensors")}
    found = api.compare(
        {**done.experiment(), "suites": [NATURAL]},
        workdir=done.workdir,
        tracking_uri="none",
        formats=[],
    )
    assert best in {record.id for record in found.records}
    assert record_of(done.workdir, best).score(NATURAL) is not None
    assert {file: file.stat().st_mtime_ns for file in weights} == weights
    before = record_times(done.workdir)
    assert [t[3] for t in outcomes(search(done.workdir, TRAINED, name="again"))] == [
        t[3] for t in outcomes(done)
    ]
    assert record_times(done.workdir) == before


# A worker is stopped through a file: test_a_request_to_prune_is_whole_when_it_appears is shorter.
@pytest.mark.parametrize("executor", ["serial", pytest.param(WORKERS, marks=pytest.mark.campaign)])
def test_a_pruned_run_has_a_curve_and_a_study_without_a_pruner_trains_it_to_its_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, executor: Any
) -> None:
    monkeypatch.setattr(optuna.pruners.MedianPruner, "prune", lambda *_: True)
    steps = (
        9 if executor == "serial" else 20_000
    )  # workers are stopped through a file, a second or two later
    config = {**TRAINED["config"], "epochs": 10_000}
    keys = {
        **TRAINED,
        "config": config,
        "steps": steps,
        "pruner": "median",
        "space": {"temperature": [0.05]},
    }
    found = search(tmp_path, keys, arguments={"executor": executor})
    ((_, state, _, _, scores),) = outcomes(found)
    (run,) = record_times(tmp_path)
    record = record_of(tmp_path, run)
    assert (state, record.status) == ("PRUNED", "pruned")
    assert 3 <= record.training["steps"] < steps
    assert set(dev_steps(tmp_path, run)) - {0} == set(scores)
    if executor == "serial":
        assert record.training["steps"] == 3
        search(tmp_path, keys, name="whole", pruner="none")
        assert record_of(tmp_path, run).status == "finished"


def die(*_: Any, **__: Any) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def study_and_die(where: str, workdir: Path, executor: Any) -> None:
    """Run the study in a process that is killed in a training step, or before a result is written."""
    execute = runner.execute

    def execute_and_die(job: Any, workdir: Path, *, progress: Any, **more: Any) -> Record:
        def deadly(step: int, steps: int, text: str) -> None:
            progress(step, steps, text)
            if step == 5:
                die()

        return execute(job, workdir, progress=deadly, **more)

    if where == "training":
        runner.execute = execute_and_die
    else:
        TrialResult.write = die  # type: ignore[method-assign]
    api.study(TRAINED, workdir, tracking_uri="none", executor=executor)


@pytest.mark.parametrize(
    ("where", "executor"),
    [
        pytest.param("training", "serial", marks=pytest.mark.campaign),  # as in test_resume.py
        ("result", "serial"),
        pytest.param("result", WORKERS, marks=pytest.mark.campaign),
    ],
)
def test_a_study_that_was_killed_has_the_same_trials_and_values(
    done: Any, tmp_path: Path, where: str, executor: Any
) -> None:
    work = tmp_path / "work"
    assert run_fork(study_and_die, where, work, executor) == -signal.SIGKILL
    first = {
        run: when
        for run, when in record_times(work).items()
        if record_of(work, run).status == "finished"
    }
    assert len(first) < 3
    resumed = search(work, TRAINED, arguments={"executor": executor})
    assert outcomes(resumed) == outcomes(done)
    after = record_times(work)
    assert len(after) == 3
    assert {
        run: after[run] for run in first
    } == first  # what was finished before the kill is reused


@pytest.mark.campaign
@pytest.mark.parametrize("executor", ["ray", "slurm"])
def test_executors_of_clusters_have_the_trials_of_one_process(
    done: Any, tmp_path: Path, executor: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip({"ray": "ray", "slurm": "submitit"}[executor])
    monkeypatch.setattr(
        "harness.executors.slurm.Slurm.cluster", "local"
    )  # submitit's engine for one machine
    settings = {"name": executor, "workers": 2, "cpus_per_run": 1}
    assert outcomes(search(tmp_path, TRAINED, arguments={"executor": settings})) == outcomes(done)
