"""Runs that other code made: found where it is the same code, told about where it is not."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from harness.cli import main
from harness.comparison.experiment import read_experiment
from harness.comparison.plan import make_plan
from harness.identity.code import code_ids

FROZEN = Path(__file__).resolve().parents[2] / "frozen"
EXPERIMENT = """
schema = 1
name = "small"
seeds = [1]
suites = ["Embedded-STS-natural"]
base_models = ["model"]
max_steps = 2
precision = "fp32"
corpus = { uri = "embedded:sentences", limit = 40 }
[dev]
task = "Embedded-STS-natural"
[[methods]]
method = "simcse"
preset = "mini"
[[methods]]
method = "concat"
config = { parts = [{ method = "pooling" }, { method = "simcse", preset = "mini" }] }
"""


@pytest.fixture
def experiment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    shutil.copytree(FROZEN / "model", tmp_path / "model")
    monkeypatch.chdir(tmp_path)
    file = tmp_path / "small.toml"
    file.write_text(EXPERIMENT)
    return file


def test_runs_of_another_python_are_found_under_their_ids(experiment: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As before the ledgers, when a run made by Python 3.12 had the code id of Python 3.12, in its parts too."""
    parsed = read_experiment(str(experiment))
    ids = [cell.id for cell in make_plan(parsed, "").cells]
    with monkeypatch.context() as patch:
        # What such a version made: the second id of each code first, and no other.
        patch.setattr("harness.comparison.plan.code_ids", lambda kind: code_ids(kind)[1:2])
        patch.setattr("methods.concat.code_ids", lambda kind: code_ids(kind)[1:2])
        older = [cell.id for cell in make_plan(parsed, "").cells]
    assert not set(ids) & set(older)
    (experiment.parent / "work/runs" / older[1]).mkdir(parents=True)
    planned = [cell.id for cell in make_plan(parsed, "", experiment.parent / "work").cells]
    assert planned == [ids[0], older[1]]


def test_compare_says_what_a_change_of_code_costs(
    experiment: Path, versions: Callable[..., None], capsys: pytest.CaptureFixture[str]
) -> None:
    argv = ["compare", str(experiment), "--workdir", "work", "--no-tracking", "--quiet", "--format", "csv"]
    assert main(argv) == 0
    assert "other code" not in capsys.readouterr().out
    versions(nt_xent=2)
    assert main([*argv, "--dry-run"]) == 0
    told = capsys.readouterr().out
    assert "made by other code than today's: simcse, concat: 2 of 4 runs are made again" in told
    assert "nothing is deleted" in told
    assert main([*argv, "--dry-run", "--set", "max_steps=3"]) == 0  # another budget, not another code
    assert "other code" not in capsys.readouterr().out
    assert main(argv) == 0
    assert "made by other code" in capsys.readouterr().out
    assert len(list(Path("work/runs").glob("*/record.json"))) == 6  # two of them untrained starts
    assert main(argv) == 0
    assert "made by other code" not in capsys.readouterr().out


def test_the_cost_is_told_for_runs_of_the_first_schema_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, versions: Callable[..., None], capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copytree(FROZEN, tmp_path / "copy")
    monkeypatch.chdir(tmp_path / "copy")
    versions(scd_losses=2)
    argv = ["compare", "frozen.toml", "--workdir", "work", "--no-tracking", "--quiet", "--dry-run"]
    assert main(argv) == 0
    assert "made by other code than today's: SCD: 2 of 19 runs are made again" in capsys.readouterr().out
