"""Runs that several processes train together, started by an executor: as by hand, and an end for all of them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

import psutil
import pytest

from harness import registry
from harness.comparison import placement
from harness.comparison.launched import _reason
from harness.errors import StopAsked
from harness.executors.executor import Answer, Executor, Job
from harness.executors.leaving import leave, stay
from harness.results.run_folder import RunFolder
from tests.support import tables_of_executors as tables

pytestmark = pytest.mark.timeout(900)

ROOT = str(Path(__file__).parents[3])
TWO = {"name": "processes", "workers": 1, "gpus_per_cell": 2, "cpus_per_cell": 2}
FILE = """
name = "same"
seeds = [1]
suites = ["Embedded-STS-natural"]
max_steps = 8
precision = "fp32"
[corpus]
uri = "embedded:sentences"
limit = 64
[dev]
task = "Embedded-STS-natural"
[[methods]]
method = "simcse"
preset = "mini"
config = { batch_size = 8, train_length = 12, eval_every = 4 }
"""
EXPERIMENT = tomllib.loads(FILE)


@pytest.fixture
def two_gpus(monkeypatch: pytest.MonkeyPatch) -> None:
    """By name alone: what asks torch finds none, and computes on processors, by gloo."""
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0,1")
    monkeypatch.setenv("PYTHONPATH", ROOT)


@pytest.fixture(scope="module")
def by_hand(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The table of torch's launcher."""
    folder = tmp_path_factory.mktemp("hand")
    file = folder / "same.toml"
    file.write_text(FILE)
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", "-m", "harness"]
    words = ["compare", str(file), "--workdir", str(folder / "work"), "--no-tracking", "--format", "md", "--quiet"]
    env = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": ROOT}
    done = subprocess.run([*command, *words], env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return tables.hashes(folder / "work", "same")


@pytest.mark.campaign
@pytest.mark.usefixtures("two_gpus")
def test_an_executor_starts_what_the_launcher_starts_by_hand(tmp_path: Path, by_hand: dict[str, str]) -> None:
    assert tables.table_of(tmp_path / "work", TWO, tmp_path / "log", **EXPERIMENT) == by_hand


@pytest.mark.campaign
@pytest.mark.skipif(find_spec("ray") is None, reason="needs Ray")
@pytest.mark.usefixtures("two_gpus")
@pytest.mark.parametrize("seen", [True, False])
def test_so_does_ray(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, by_hand: dict[str, str], seen: bool) -> None:
    """Also on a machine that does not see the work directory: the run is sent back."""
    import ray

    @contextmanager
    def unseen(workdir: Path, name: str) -> Iterator[str]:
        yield "locks/on-another-disk"

    monkeypatch.setenv("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
    if not seen:
        monkeypatch.setattr(placement, "token", unseen)
    ray.init(num_cpus=2, num_gpus=2, include_dashboard=False, log_to_driver=False)
    try:
        table = tables.table_of(tmp_path / "work", {**TWO, "name": "ray"}, tmp_path / "log", **EXPERIMENT)
    finally:
        ray.shutdown()
    assert table == by_hand
    assert tables.updates(tmp_path / "log") == 0  # by the job's own process: those that it started made them


class Preempting(Executor):
    """One worker in this process, which has to leave in the middle of a job and gets it again."""

    name = "preempting"
    left = 0

    def run(self, asked: Sequence[Job], tick: Callable[[], None]) -> Iterator[Answer]:
        for job in asked:
            try:
                with tables.in_the_middle(self.workdir, None, lambda _: leave()):
                    yield Answer(job, job.call(*job.arguments))
            except StopAsked:
                stay()
                self.checkpoints(job)
                yield Answer(job, job.call(*job.arguments))

    def checkpoints(self, job: Job) -> None:
        """One was written."""
        assert RunFolder(self.workdir, job.key).checkpoint.is_dir()
        Preempting.left += 1


@pytest.mark.campaign
@pytest.mark.usefixtures("two_gpus")
def test_one_whose_worker_has_to_leave_writes_a_checkpoint_and_goes_on_from_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, by_hand: dict[str, str]
) -> None:
    known = registry.load
    monkeypatch.setattr(
        "harness.registry.load", lambda group, name: Preempting if name == "preempting" else known(group, name)
    )
    monkeypatch.setattr("harness.comparison.launched._LOOK", 0.02)
    monkeypatch.setenv("OMP_NUM_THREADS", "2")
    records = tables.records_of(tmp_path, {**TWO, "name": "preempting"}, **EXPERIMENT)
    assert {record.status for record in records} == {"finished"}
    assert tables.hashes(tmp_path, "same") == by_hand
    assert Preempting.left == 1


@pytest.mark.campaign
@pytest.mark.usefixtures("two_gpus")
def test_one_process_that_is_killed_fails_its_run_with_the_reason(tmp_path: Path) -> None:
    def kill_the_other(pid: int) -> None:
        other = next(p for p in psutil.Process(pid).parent().children() if p.pid != pid)
        other.send_signal(signal.SIGKILL)

    work = tmp_path / "work"
    with tables.in_the_middle(work, None, kill_the_other) as killed:
        records = tables.records_of(work, TWO, **EXPERIMENT)
    assert killed
    ends = {record.row: (record.status, record.reason) for record in records}
    assert ends["simcse"][0] == "failed"
    assert "one of its 2 processes ended: signal 9" in ends["simcse"][1]
    assert ends["untrained (cls)"] == ("finished", "")


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        (
            "Traceback:\n[rank1]: RuntimeError: CUDA error: out of memory\nharness: process 1 of 2 failed alone "
            "(RuntimeError: out of memory); all processes end, finished runs are kept\n====\n",
            "process 1 of 2 failed alone (RuntimeError: out of memory)",
        ),
        (
            "  File x\nValueError: no such thing\nTraceback\ntorch.distributed.elastic.multiprocessing.errors."
            "ChildFailedError: \n  exitcode  : 1 (pid: 7)\n====",
            "ValueError: no such thing",
        ),
        ("E1122 failed\n  exitcode  : -9 (pid: 2514)\n=====", "signal 9"),
        ("\n", "without a word"),
    ],
)
def test_the_reason_is_found_in_what_the_launcher_says(said: str, reason: str) -> None:
    assert _reason(said) == reason
