"""What records say about their surroundings."""

from __future__ import annotations

import json
import os
import platform
import shutil
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest

import harness
from harness.machine import environment


def test_describe_holds_what_a_reader_of_a_record_needs_and_is_json() -> None:
    described = environment.describe("cpu", "bf16")
    assert json.loads(json.dumps(described)) == described
    assert described["python"] == platform.python_version()
    assert described["device"] == "cpu"
    assert described["precision"] == "bf16"
    assert described["versions"]["torch"] == version("torch")
    assert 1 <= described["cores"] <= (os.cpu_count() or 1)
    assert described["threads"] >= 1


def test_peak_memory_is_that_of_one_run() -> None:
    """200 MB held once are seen while they count, and no longer after a reset (in a process of its
    own).
    """
    code = """
from harness.machine.environment import peak_memory_bytes, reset_peak_memory
before = peak_memory_bytes()
held = bytearray(200_000_000)
with_it = peak_memory_bytes()
del held
reset_peak_memory()
print(before, with_it, peak_memory_bytes())
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    before, with_it, after = map(int, done.stdout.split())
    assert 195e6 < with_it - before < 220e6
    if sys.platform == "linux":
        assert after < with_it - 150e6


def test_telemetry_is_off_unless_the_user_decided_otherwise(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("DO_NOT_TRACK", "0")
    monkeypatch.delenv("MLFLOW_DISABLE_TELEMETRY", raising=False)
    environment.disable_telemetry()
    assert os.environ["MLFLOW_DISABLE_TELEMETRY"] == "1"
    assert os.environ["DO_NOT_TRACK"] == "0"


@pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")
def test_the_commit_is_that_of_the_code_and_not_of_a_repository_around_it(tmp_path: Path) -> None:
    package = tmp_path / "site-packages" / "harness"
    package.mkdir(parents=True)
    (package / "machine").mkdir()
    for name in ("__init__.py", "errors.py", "machine/__init__.py", "machine/environment.py"):
        shutil.copy(Path(harness.__file__).parent / name, package / name)

    def git(*arguments: str) -> str:
        identity = [
            "-c",
            "user.name=t",
            "-c",
            "user.email=t@example.org",
            "-c",
            "commit.gpgsign=false",
        ]
        done = subprocess.run(
            ["git", *identity, *arguments], cwd=tmp_path, capture_output=True, text=True, check=True
        )
        return done.stdout.strip()

    def state() -> object:
        code = "import json; from harness.machine.environment import git_state; print(json.dumps(git_state()))"
        search = {**os.environ, "PYTHONPATH": str(package.parent), "PYTHONDONTWRITEBYTECODE": "1"}
        done = subprocess.run(
            [sys.executable, "-c", code],
            cwd="/",
            env=search,
            capture_output=True,
            text=True,
            check=True,
        )
        return json.loads(done.stdout)

    git("init", "-q")
    git("commit", "-q", "--allow-empty", "-m", "somebody's repository")
    assert state() is None
    git("add", "-f", "site-packages")
    git("commit", "-q", "-m", "the code itself")
    assert state() == {"commit": git("rev-parse", "HEAD"), "modified": False}
    with (package / "machine" / "environment.py").open("a") as file:
        file.write("\n")
    assert state() == {"commit": git("rev-parse", "HEAD"), "modified": True}
