"""The measurement of a GPU, here on a processor: its checks hold, and it ends in time."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tools.gpu_check import SHARES, Sizes, check_exactness, collect, make_model

ROOT = Path(__file__).parents[1]


def written(out: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in out.with_suffix(".jsonl").read_text().splitlines()]


def test_resumed_weights_and_packed_gradients_are_exact(tmp_path: Path) -> None:
    sizes = Sizes("cpu")
    lines = list(check_exactness("cpu", sizes, make_model(tmp_path / "model", sizes)))
    assert len(lines) == 4
    assert [line["what"] for line in lines if not line.get("holds")] == []


def test_a_section_is_ended_when_its_time_is_over(tmp_path: Path) -> None:
    started = time.monotonic()
    collect("train", "cpu", str(tmp_path / "model"), 0.2, tmp_path / "out")
    assert time.monotonic() - started < 60
    assert [line["value"] for line in written(tmp_path / "out")] == ["ended"]


def test_it_needs_none_of_the_libraries_that_a_lent_machine_lacks() -> None:
    absent = ("mlflow", "mteb", "optuna", "datasets")
    ask = f"import sys; sys.modules |= dict.fromkeys({absent}); import tools.gpu_check, tests.gpu.test_on_a_gpu"
    done = subprocess.run(
        [sys.executable, "-c", ask], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.campaign
def test_all_sections_are_there_within_the_given_minutes(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "tools.gpu_check", "--device", "cpu", "--minutes", "2"]
    started = time.monotonic()
    subprocess.run([*command, "--out", str(tmp_path / "out")], cwd=ROOT, check=True)
    assert time.monotonic() - started < 125
    assert {line["section"] for line in written(tmp_path / "out")} == set(SHARES)
    assert "| device |" in (tmp_path / "out.md").read_text()
