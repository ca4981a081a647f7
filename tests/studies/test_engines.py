"""A study by the engines for more than one machine: the trials and values of one process, each once."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

import optuna
import pytest

from harness.cli import main
from studies.run import conduct
from studies.run.storage import default_url, load, open_storage
from tests.support import tables_of_executors as tables

pytestmark = [pytest.mark.campaign, pytest.mark.timeout(900), pytest.mark.usefixtures("no_report")]

GRID = """
method = "simcse"
preset = "mini"
config = { batch_size = 8, eval_every = 3, train_length = 12 }
corpus = { uri = "embedded:sentences", limit = 80 }
dev = { task = "Embedded-STS-natural" }
steps = 6
precision = "fp32"
sampler = "grid"
[space]
temperature = [0.02, 0.05, 0.5]
"""


Trials = list[tuple[str, object, object, object]]


def trials_of(folder: Path, run: Callable[[list[str]], int], *options: str, text: str = GRID) -> Trials:
    """State, configuration, value and dev scores of each trial."""
    folder.mkdir()
    (folder / "grid.toml").write_text(text)
    work = folder / "work"
    command = ["study", "run", str(folder / "grid.toml"), "--workdir", str(work), "--no-tracking", "--quiet"]
    assert run([*command, "--cpus-per-cell", "1", *options]) == 0
    url = default_url(work)
    trials = load(open_storage(url), "grid", url).get_trials(deepcopy=False)
    assert len(list((work / "runs").glob("*/record.json"))) == len(trials)
    return sorted((t.state.name, t.params["temperature"], t.values, t.intermediate_values) for t in trials)


def started_anew(command: list[str]) -> int:
    """The command in a process that has imported nothing yet: what Ray reads then, it never reads again."""
    return subprocess.run([sys.executable, "-m", "harness", *command], check=False).returncode


@pytest.fixture(scope="module")
def of_serial(tmp_path_factory: pytest.TempPathFactory) -> Trials:
    with tables.one_thread():
        trials = trials_of(tmp_path_factory.mktemp("serial") / "study", main)
    assert [state for state, *_ in trials] == ["COMPLETE"] * 3
    return trials


@pytest.mark.skipif(find_spec("ray") is None, reason="needs Ray")
def test_ray(tmp_path: Path, of_serial: Trials) -> None:
    assert trials_of(tmp_path / "ray", started_anew, "--executor", "ray", "--workers", "2") == of_serial


PRUNED = GRID.replace("steps = 6", 'steps = 60\npruner = "median"').replace("[0.02, 0.05, 0.5]", "[0.05, 0.5]")


@pytest.mark.skipif(find_spec("ray") is None, reason="needs Ray")
def test_ray_workers_that_see_no_work_directory_are_told_to_give_their_runs_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import ray
    from ray.cluster_utils import Cluster

    def cold(self: object, study: optuna.Study, trial: optuna.trial.FrozenTrial) -> bool:
        return bool(trial.params["temperature"] < 0.1)

    @contextmanager
    def unseen(workdir: Path, name: str) -> Iterator[str]:
        yield "locks/on-another-disk"

    monkeypatch.setattr(optuna.pruners.MedianPruner, "prune", cold)
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[2]))
    with tables.one_thread():
        here = trials_of(tmp_path / "here", main, text=PRUNED)
    monkeypatch.setattr(conduct, "token", unseen)
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 0, "include_dashboard": False})
    try:
        for _ in range(2):
            cluster.add_node(num_cpus=1)
        there = trials_of(tmp_path / "there", main, "--executor", "ray", "--address", cluster.address, text=PRUNED)
    finally:
        ray.shutdown()
        cluster.shutdown()
    assert [state for state, *_ in there] == [state for state, *_ in here] == ["COMPLETE", "PRUNED"]
    assert there[0] == here[0]
    given_up_here, given_up_there = here[1][3], there[1][3]
    assert isinstance(given_up_here, dict)
    assert isinstance(given_up_there, dict)
    assert list(given_up_here) == [3]
    assert 3 <= max(given_up_there) < 60
    assert given_up_there[3] == given_up_here[3]
    live = tmp_path / "there" / "work" / "live"
    assert not [*(live / "watched").iterdir(), *(live / "cells").iterdir()]


@pytest.mark.skipif(find_spec("submitit") is None, reason="needs submitit")
def test_slurm(tmp_path: Path, of_serial: Trials, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("harness.executors.slurm.Slurm.cluster", "local")  # submitit's engine for one machine
    assert trials_of(tmp_path / "slurm", main, "--executor", "slurm", "--workers", "2") == of_serial
    assert not (tmp_path / "slurm" / "work" / "slurm").exists()
