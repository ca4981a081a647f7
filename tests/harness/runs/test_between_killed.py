"""`harness why` that is killed, and the same command after it."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

import harness

SUBJECTS = ("A dog runs", "A man plays the guitar", "Two children eat", "The train waits")
PLACES = ("on the beach", "in the old town", "near the station")
ROWS: list[dict[str, Any]] = [
    {"method": "simcse", "name": "A", "config": {"temperature": 0.2}},
    {"method": "simcse", "name": "B", "config": {"learning_rate": 1e-3}},
]
DEADLINE = 240  # seconds; it takes about twenty


def finished(work: Path) -> set[Path]:
    return set(work.glob("runs/*/record.json"))


@pytest.fixture
def work(tmp_path: Path) -> Path:
    pairs = tmp_path / "pairs.csv"
    sentences = [f"{subject} {place}." for subject in SUBJECTS for place in PLACES]
    lines = [
        f"{one},{sentences[5 * place % len(sentences)]},{place % 6}"
        for place, one in enumerate(sentences)
    ]
    pairs.write_text("\n".join(["sentence1,sentence2,score", *lines]) + "\n")
    experiment = {
        "name": "small",
        "seeds": [1, 2, 3],
        "suites": [str(pairs)],
        "corpus": {"uri": "embedded:sentences", "limit": 32},
        "budget": {"steps": 2},
        "dev": None,
        "shared": {"batch_size": 4},
        "methods": ROWS,
    }
    harness.compare(experiment, workdir=tmp_path / "work", tracked=False, formats=[])
    return tmp_path / "work"


def test_the_same_command_after_a_kill_gives_the_same_answer(work: Path) -> None:
    whole = work.parent / "whole"
    shutil.copytree(work, whole)
    expected = harness.why(whole, "A", "B", runs=6, tracked=False)

    words = ["why", "A", "B", "--runs", "6", "--workdir", str(work), "--tracking-uri", "none"]
    command = [sys.executable, "-m", "harness", *words, "--json", "--quiet"]
    before = finished(work)
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as running:
        end = time.monotonic() + DEADLINE
        while not finished(work) - before and running.poll() is None:
            assert time.monotonic() < end
            time.sleep(0.01)
        running.kill()
        _, log = running.communicate()
    assert running.returncode == -signal.SIGKILL, log
    kept = finished(work) - before
    assert 0 < len(kept) < 6
    began = {path: json.loads(path.read_text())["started"] for path in kept}

    resumed = subprocess.run(command, capture_output=True, check=True, timeout=DEADLINE)
    assert json.loads(resumed.stdout) == json.loads(json.dumps(expected.data))
    assert len(finished(work) - before) == 6
    for path, time_of_start in began.items():  # none was trained again
        assert json.loads(path.read_text())["started"] == time_of_start
