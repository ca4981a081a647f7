"""`harness fetch` fills the caches: what it read runs without a network afterwards."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from harness.cli import main
from tests.support.bases import narrow_bert

EXPERIMENT = """
name = "fetched"
suites = ["STS-B", "mteb:BIOSSES"]
source = "mteb"

[[methods]]
method = "pooling"
"""


@pytest.mark.timeout(900)
@pytest.mark.hub
def test_what_was_fetched_runs_without_a_network(tmp_path: Path) -> None:
    file = tmp_path / "fetched.toml"
    file.write_text(f"base_models = [{narrow_bert()!r}]\n{EXPERIMENT}")
    caches = {"HF_HOME": str(tmp_path / "hub"), "HARNESS_CACHE": str(tmp_path / "cache")}
    fetched = _run(["-c", TWICE, "fetch", str(file)], caches)
    assert fetched.returncode == 0, fetched.stderr
    first, again = fetched.stdout.split("AGAIN")
    listed = first.splitlines()
    assert any(line.startswith("task mteb:STS-B: 0.0") for line in listed), listed
    assert any("BIOSSES" in line and "downloaded" in line for line in listed), listed
    assert "all: nothing to download" in again

    alone = caches | {"HF_HUB_OFFLINE": "1", "HF_ENDPOINT": "http://127.0.0.1:9"}
    options = ["--workdir", str(tmp_path / "work"), "--tracking-uri=none", "--format", "csv"]
    done = _run(["-m", "harness", "compare", str(file), *options, "--quiet"], alone)
    assert done.returncode == 0, done.stderr
    for score in ("STS-B", "BIOSSES"):
        assert score in done.stdout
    assert "n/a" not in done.stdout


TWICE = """
import sys
from harness.cli import main

first = main(sys.argv[1:])
print("AGAIN", flush=True)
sys.exit(first or main(sys.argv[1:]))
"""


def _run(words: list[str], environment: dict[str, str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *words],
        env=os.environ | environment,
        capture_output=True,
        text=True,
        check=False,
    )


def test_data_that_cannot_be_had_is_one_line_and_exit_code_1(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setenv("HARNESS_CACHE", str(tmp_path / "cache"))
    file = tmp_path / "fetched.toml"
    missing = tmp_path / "nowhere"
    monkeypatch.setenv("HARNESS_SENTEVAL", str(missing))
    file.write_text('suites = ["CR"]\n[[methods]]\nmethod = "pooling"\n')
    assert main(["fetch", str(file)]) == 1
    said = capsys.readouterr()
    (line,) = [line for line in said.err.splitlines() if "CR" in line]
    assert str(missing) in line
    assert "now runs" not in said.out
