"""The script of a SLURM array that a dry run prints, and its check by `sbatch --test-only`."""

from __future__ import annotations

import os
import subprocess
from collections import deque
from pathlib import Path
from typing import Any

import pytest

from harness.commands.compare import show_plan
from harness.executors import slurm
from harness.executors.executor import ExecutorSettings, open_executor
from harness.executors.slurm import Slurm
from tests.support import jobs
from tests.support.errors import raises_input_error
from tests.support.jobs import Call
from tests.support.small_runs import CLS, EXPERIMENT

pytest.importorskip("submitit")
SBATCH = """#!/bin/bash
echo "$@" >> {folder}/arguments
cp "${{@: -1}}" {folder}/script
echo "{said}" >&2
exit {code}
"""
OPTIONS = {"partition": "gpu", "time": "1-00:00:00", "account": "me", "requeue": "true"}


def engine(workdir: Path, **settings: Any) -> Slurm:
    given = {"name": "slurm", "gpus_per_run": 1, "cpus_per_run": 8, "workers": 5, **settings}
    found = open_executor(ExecutorSettings.model_validate(given), workdir)
    assert isinstance(found, Slurm)
    return found


@pytest.fixture
def sbatch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with an sbatch that stores its arguments and what it is given."""
    return install(tmp_path / "bin", monkeypatch, "sbatch: Job 7 to start at noon", 0)


def install(folder: Path, monkeypatch: pytest.MonkeyPatch, said: str, code: int) -> Path:
    folder.mkdir()
    command = folder / "sbatch"
    command.write_text(SBATCH.format(folder=folder, said=said, code=code))
    command.chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")
    return folder


def test_the_script_is_shell_and_has_the_options_of_the_file(tmp_path: Path) -> None:
    work = tmp_path / "work"
    script = engine(work, slurm=OPTIONS).make_script(40)
    subprocess.run(["bash", "-n"], input=script, text=True, check=True)
    options = {line.removeprefix("#SBATCH ") for line in script.splitlines() if "#SBATCH" in line}
    for expected in (
        "--partition=gpu",
        "--time=1440",
        "--account=me",
        "--gpus-per-node=1",
        "--cpus-per-task=8",
        "--array=0-39%5",
        "--requeue=true",
        "--signal=USR2@90",
    ):
        assert expected in options
    assert str(work / "slurm") in script
    assert not work.exists()


def test_sbatch_checks_the_script_and_starts_nothing(tmp_path: Path, sbatch: Path) -> None:
    one = engine(tmp_path / "work", slurm=OPTIONS)
    script = one.make_script(3)
    assert "to start at noon" in one.check_script(script)
    assert (sbatch / "script").read_text() == script
    (call,) = (sbatch / "arguments").read_text().splitlines()  # none but the check
    assert call.startswith("--test-only ")


def test_a_script_that_sbatch_refuses_is_wrong_input(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(tmp_path / "bin", monkeypatch, "sbatch: error: invalid partition specified: gpu", 1)
    one = engine(tmp_path / "work", slurm=OPTIONS)
    with raises_input_error(key="executor slurm"):
        one.check_script(one.make_script(2))


def test_an_sbatch_that_does_not_answer_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sbatch: Path
) -> None:
    monkeypatch.setattr(slurm, "_SECONDS", 0.2)
    (sbatch / "sbatch").write_text("#!/bin/sh\nexec sleep 30\n")
    one = engine(tmp_path / "work", slurm=OPTIONS)
    assert "did not answer" in one.check_script("#!/bin/sh\n")


@pytest.mark.usefixtures("sbatch")
def test_the_dry_run_prints_the_script(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    settings = {"name": "slurm", "slurm": OPTIONS}
    show_plan({**EXPERIMENT, "methods": [CLS], "executor": settings}, tmp_path, against=[])
    shown = capsys.readouterr().out
    assert "#SBATCH --partition=gpu" in shown
    assert "to start at noon" in shown
    assert "unknown" not in shown


@pytest.mark.campaign
def test_the_local_engine_runs_jobs_on_this_machine(tmp_path: Path) -> None:
    one = engine(tmp_path, slurm={"cluster": "local"}, gpus_per_run=0)
    calls = deque([Call("value", jobs.double, (21,))])
    assert [answer.value for answer in one.run(jobs.call, calls, lambda: None)] == [42]
