"""A plan that was written before the results, and what the report says of what was done."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import harness
from harness.cli import main
from harness.errors import InputError
from harness.runs.frozen_plan import plan_file
from reports.comparison.deviations import deviations

pytestmark = pytest.mark.usefixtures("few_pairs", "no_report")

TEXT = """
seeds = [1, 2]
suites = ["Embedded-STS-natural"]
corpus = { uri = "embedded:sentences", limit = 64 }
budget = { steps = 1 }
baseline = "SimCSE"
dev = { task = "Embedded-STS-natural", pairs = 20 }
methods = [
  { name = "SimCSE", method = "simcse", preset = "mini" },
  { name = "SCD", method = "scd", preset = "mini" },
]
"""


@pytest.fixture
def planned(tmp_path: Path) -> Path:
    """A work directory with the plan of the file `tmp_path/own.toml` in it."""
    (tmp_path / "own.toml").write_text(TEXT)
    assert (
        main(["plan", str(tmp_path / "own.toml"), "--freeze", "--workdir", str(tmp_path / "work")])
        == 0
    )
    return tmp_path / "work"


def found(work: Path, *overrides: str, text: str = TEXT) -> list[str]:
    """The deviations of the comparison that is run from this text."""
    (work.parent / "own.toml").write_text(text)
    compared = harness.compare(
        str(work.parent / "own.toml"), workdir=work, overrides=overrides, tracked=False
    )
    plan = deviations(work, "own", compared.records)
    assert plan is not None
    return plan[2]


def test_a_comparison_is_as_planned_and_every_change_is_listed(planned: Path) -> None:
    assert found(planned) == []
    other = (
        TEXT.replace('baseline = "SimCSE"', "")
        .replace('"SCD", method', '"new", method')
        .replace("[1, 2]", "[1]")
    )
    changes = found(planned, "methods.SimCSE.config.temperature=0.5", text=other)
    assert sorted(changes) == [
        "SCD · embedded:mini-bert: not run",
        "SimCSE · embedded:mini-bert: seeds 2 not run",
        "SimCSE · embedded:mini-bert: temperature 0.5 in place of 0.0012",
        "baseline: planned SimCSE, now none",
        "new · embedded:mini-bert: not planned",
    ]


def test_runs_before_the_plan_are_counted(tmp_path: Path) -> None:
    (tmp_path / "own.toml").write_text(TEXT)
    work = tmp_path / "work"
    harness.compare(str(tmp_path / "own.toml"), workdir=work, tracked=False)
    file = str(tmp_path / "own.toml")
    assert main(["plan", file, "--freeze", "--workdir", str(work)]) == 0
    later = json.loads(plan_file(work, "own").read_text())["date"].replace(
        "20", "30", 1
    )  # the clock has seconds only
    plan_file(work, "own").unlink()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("harness.machine.environment.now", lambda: later)
        assert main(["plan", file, "--freeze", "--workdir", str(work)]) == 0
    assert found(work) == ["5 of 5 runs had begun before the plan was written"]


def test_a_plan_is_neither_replaced_nor_changed(
    planned: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = plan_file(planned, "own")
    assert (
        main(["plan", str(planned.parent / "own.toml"), "--freeze", "--workdir", str(planned)]) == 2
    )
    assert "a plan is not replaced" in capsys.readouterr().err
    file.write_text(file.read_text().replace('"most_seeds": 2', '"most_seeds": 9'))
    with pytest.raises(InputError, match=r"own\.json: its content does not have its hash"):
        deviations(planned, "own", [])
