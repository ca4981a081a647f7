"""Training in several processes: the update of one process, one writer, and an end for all when one fails."""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest
from safetensors.torch import load_file

from harness.errors import InputError
from harness.machine.distributed import ALONE, join
from harness.results.store import read_records
from tests.support import distributed_worker as worker

pytestmark = pytest.mark.timeout(400)

WORKER = Path(worker.__file__)


def launch(*words: str) -> subprocess.CompletedProcess[str]:
    env = {**os.environ, "CUDA_VISIBLE_DEVICES": "", "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-m", *words]
    return subprocess.run(command, env=env, capture_output=True, text=True, timeout=360, check=False)


@pytest.fixture(scope="module")
def worked(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, subprocess.CompletedProcess[str]]:
    folder = tmp_path_factory.mktemp("worker")
    done = launch("torch.distributed.run", "--standalone", "--nproc-per-node", "2", str(WORKER), str(folder))
    assert (folder / "facts-1.json").is_file(), done.stderr
    return folder, done


@pytest.mark.parametrize("case", list(worker.CASES))
def test_gradients_are_those_of_one_process(case: str, worked: tuple[Path, subprocess.CompletedProcess[str]]) -> None:
    expected = worker.gradients(case, ALONE)
    largest = max(float(gradient.abs().max()) for gradient in expected.values())
    for rank in range(2):
        shared = load_file(worked[0] / f"{case}-{rank}.safetensors")
        assert shared.keys() == expected.keys()
        for name, gradient in expected.items():
            assert float((shared[name] - gradient).abs().max()) <= 1e-5 * largest, name


def test_processes_agree_where_they_must_and_differ_where_they_must(
    worked: tuple[Path, subprocess.CompletedProcess[str]],
) -> None:
    for rank in range(2):
        facts = json.loads((worked[0] / f"facts-{rank}.json").read_text())
        assert [fact for fact, holds in facts.items() if not holds] == []


def test_train_writes_one_model_and_one_curve(worked: tuple[Path, subprocess.CompletedProcess[str]]) -> None:
    folder, done = worked
    assert done.stderr.count(f"saved to {folder / 'model'}") == 1
    assert (folder / "model" / "model.safetensors").is_file()
    lines = [json.loads(line) for line in (folder / "model.training" / "curves.jsonl").read_text().splitlines()]
    assert [(line["step"], line["kind"]) for line in lines] == [
        (0, "dev"), (1, "train"), (1, "early"), (2, "dev"), (3, "train"), (3, "dev"),
    ]  # fmt: skip
    heads = [line.split()[0] for line in done.stdout.splitlines() if line]
    assert heads.count("sts") == 1  # the list of suites, by the main process alone


def test_a_process_that_fails_alone_ends_all(worked: tuple[Path, subprocess.CompletedProcess[str]]) -> None:
    done = worked[1]
    assert done.returncode != 0
    assert "process 1 of 2 failed alone (ValueError: met by one)" in done.stderr


@pytest.mark.campaign  # test_executors.py trains one run in two processes, too
def test_compare_under_accelerate_launch_records_each_run_once(tmp_path: Path) -> None:
    experiment = tmp_path / "two.toml"
    experiment.write_text("""
name = "two"
seeds = [1]
suites = ["Embedded-STS-natural"]
max_steps = 3
precision = "fp32"
device = "cpu"
[corpus]
uri = "embedded:sentences"
limit = 60
[dev]
task = "Embedded-STS-natural"
[[methods]]
method = "whitening"
[[methods]]
name = "fails in every process"
method = "simcse"
preset = "mini"
config = { batch_size = 8, pooling = "layer:9:mean" }
[[methods]]
name = "SCD"
method = "scd"
preset = "mini"
config = { batch_size = 8, eval_every = 3 }
""")
    words = ["harness", "compare", str(experiment), "--workdir", str(tmp_path / "work"), "--format", "csv"]
    launcher = ["accelerate.commands.launch", "--multi_gpu", "--num_processes", "2", "--main_process_port", "0"]
    done = launch(*launcher, "-m", *words)
    records = {record.row: record for record in read_records(tmp_path / "work", "two")}
    assert {row: record.status for row, record in records.items()} == {
        "whitening": "finished", "fails in every process": "failed", "SCD": "finished",
        "untrained (first_last_avg, 64 tokens)": "finished", "untrained (cls)": "finished",
    }, done.stderr  # fmt: skip
    assert "processes" not in records["whitening"].training  # learnt by the main process alone
    assert records["SCD"].training["processes"] == 2
    assert done.returncode == 1  # as in one process: a run has failed
    for row in ("whitening", "SCD"):
        assert done.stderr.count(f"] {row} · embedded:mini-bert · seed 1: Embedded-STS-natural") == 1
    assert done.stdout.count("csv: ") == 1
    logged = sqlite3.connect(tmp_path / "work" / "mlflow.db").execute("select count(*) from runs").fetchone()[0]
    assert logged == 10  # a parent and a run of each row, and of each untrained start


def test_without_a_launcher_nothing_is_joined(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("LOCAL_RANK", "WORLD_SIZE"):
        monkeypatch.delenv(name, raising=False)
    assert join("cuda:7") is ALONE


def test_a_single_named_device_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOCAL_RANK", "0")
    monkeypatch.setenv("WORLD_SIZE", "2")
    with pytest.raises(InputError, match="several processes take a device each"):
        join("cuda:1")
