"""`harness new`: what it writes is installed, listed, checked and compared as it is; nothing is overwritten."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from harness.cli import main
from harness.commands.extend import write
from harness.errors import InputError
from harness.results.store import read_records
from harness.runs.experiment import read_experiment

REPOSITORY = Path(__file__).parents[3]
# One process for all: importing torch takes longer than the rest.
COMMANDS = """
import sys
from harness.cli import main
from tests.support import short_runs
import pytest
short_runs.few_pairs(pytest.MonkeyPatch(), 20)
short_runs.no_report(pytest.MonkeyPatch())
changes = ["seeds=[1]", "max_steps=1", "suites=['nearest-positive']", "corpus={uri='embedded:sentences', limit=64}"]
shrunk = [word for change in changes for word in ("--set", change)]
codes = [main(["list", "methods"]), main(["list", "tasks"]),
         pytest.main(["-q", "-p", "no:cacheprovider", "margin_pull", "nearest-positive"]),
         main(["compare", "margin_pull/comparison.toml", "--tracking-uri=none", "--quiet", *shrunk])]
sys.exit(str(codes) if any(codes) else 0)
"""


@pytest.mark.campaign  # test_contributing.py installs and runs a package, too
def test_what_it_writes_works_as_it_is(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for kind, name in (("method", "margin_pull"), ("task", "nearest-positive")):
        assert main(["new", kind, name, "--out", str(tmp_path / name)]) == 0
        command = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-index",
                   "--no-deps", "--no-build-isolation", "--target", str(tmp_path / "site"),
                   str(tmp_path / name)]  # fmt: skip
        subprocess.run(command, check=True, capture_output=True)
    assert "next: pip install -e" in capsys.readouterr().out
    path = os.pathsep.join([str(tmp_path / "site"), str(REPOSITORY)])
    environment = {**os.environ, "PYTHONPATH": path, "OMP_NUM_THREADS": "1", "COLUMNS": "200"}
    done = subprocess.run(
        [sys.executable, "-c", COMMANDS], cwd=tmp_path, env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "margin_pull " in done.stdout
    assert "nearest-positive " in done.stdout
    runs = {run.row: run for run in read_records(tmp_path / "work", "comparison")}
    assert {"untrained", "MarginPull", "SimCSE"} <= set(runs)
    assert [score.task for score in runs["MarginPull"].scores] == ["nearest-positive"]


def test_an_experiment_is_one_that_can_be_run(tmp_path: Path) -> None:
    (file,) = write("experiment", "first-try", tmp_path)
    assert file == tmp_path / "first-try.toml"
    assert [entry.method for entry in read_experiment(file).methods] == ["pooling", "simcse"]


@pytest.mark.parametrize(
    ("kind", "name", "said"),
    [
        ("method", "Mine", "expected small letters"),
        ("method", "my-method", "expected small letters"),
        ("method", "class", "expected small letters"),
        ("task", "../up", "expected small letters"),
        ("method", "simcse", "is installed"),
        ("task", "sts", "is installed"),
        ("method", "torch", "is installed"),
    ],
)
def test_a_name_that_cannot_be_one_is_refused(tmp_path: Path, kind: str, name: str, said: str) -> None:
    with pytest.raises(InputError, match=said):
        write(kind, name, tmp_path / "new")
    assert not (tmp_path / "new").exists()


def test_nothing_is_overwritten(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text("precious")
    with pytest.raises(InputError, match=r"mine\.py: "):
        write("method", "mine", tmp_path)
    assert [file.name for file in tmp_path.iterdir()] == ["mine.py"]
