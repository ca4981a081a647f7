"""Runs that several processes train together, started by an executor: as by hand, and an end for all of them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tomllib
from pathlib import Path

import psutil
import pytest

from harness.comparison.launched import _reason
from tests.support import tables_of_executors as tables

pytestmark = pytest.mark.timeout(900)

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
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[3]))


@pytest.mark.campaign
@pytest.mark.usefixtures("two_gpus")
def test_an_executor_starts_what_the_launcher_starts_by_hand(tmp_path: Path) -> None:
    table = tables.table_of(tmp_path / "work", TWO, tmp_path / "log", **EXPERIMENT)
    file = tmp_path / "same.toml"
    file.write_text(FILE)
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", "-m", "harness"]
    words = ["compare", str(file), "--workdir", str(tmp_path / "hand"), "--no-tracking", "--format", "md", "--quiet"]
    env = {**os.environ, "OMP_NUM_THREADS": "1"}
    done = subprocess.run([*command, *words], env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert tables.hashes(tmp_path / "hand", "same") == table


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
