"""What a comparison would take: known runs tell it, and what has to be measured is measured once."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from harness.comparison import estimate
from harness.comparison.estimate import estimate_seconds, estimates
from harness.comparison.experiment import read_experiment
from harness.comparison.plan import Plan, PlannedCell, make_plan
from harness.results.record import Record
from harness.results.run_folder import RunFolder
from harness.training import TrainedMethod

pytestmark = [pytest.mark.timeout(240), pytest.mark.usefixtures("few_pairs")]

EXPERIMENT = """
name = "small"
seeds = [1, 2]
suites = ["Embedded-STS-natural"]
max_steps = 20
precision = "fp32"
[corpus]
uri = "embedded:sentences"
limit = 64
[dev]
task = "Embedded-STS-natural"
[[methods]]
name = "SimCSE"
method = "simcse"
preset = "mini"
config = { batch_size = 4, train_length = 8 }
[[methods]]
name = "hotter"
method = "simcse"
preset = "mini"
config = { batch_size = 4, train_length = 8, temperature = 0.1 }
"""


@pytest.fixture
def plan(tmp_path: Path) -> Plan:
    file = tmp_path / "small.toml"
    file.write_text(EXPERIMENT)
    return make_plan(read_experiment(str(file), []), str(file))


def made(cell: PlannedCell, plan: Plan, work: Path, device: str) -> None:
    """An invented run of a cell, which is finished."""
    cost = {"train_seconds": 40.0, "dev_seconds": 2.0, "encode_seconds": 0.5, "evaluate_seconds": 0.25}
    record = Record(
        id=cell.id, comparison="small", status="finished", row=cell.row.label, method=cell.row.method.name,
        config={}, base_model=cell.base_model, seed=int(cell.seed), supervision="unsupervised", cost=cost,
        environment={"device_name": device}, evaluation=dict(plan.evaluation),
    )  # fmt: skip
    RunFolder(work, cell.id).write(record)


@pytest.fixture
def measured(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Rows that were tried out."""
    asked: list[str] = []

    def tried(cell: PlannedCell, *_: Any) -> float:
        asked.append(cell.row.label)
        return 1.0

    monkeypatch.setattr(estimate, "estimate_seconds", tried)
    monkeypatch.setattr(estimate, "finished", lambda cell, plan, work: RunFolder(work, cell.id).read_if_sound())
    return asked


def test_another_seed_of_the_row_tells_what_one_takes(tmp_path: Path, plan: Plan, measured: list[str]) -> None:
    made(plan.cells[1], plan, tmp_path, plan.device_name)
    told = [(one.cell.row.label, one.state, one.seconds) for one in estimates(plan, tmp_path)]
    assert told == [
        ("SimCSE", "to do", 42.75), ("SimCSE", "finished", 0.0), ("hotter", "to do", 1.0), ("hotter", "to do", 1.0),
    ]  # fmt: skip
    assert measured == ["hotter"]


def test_a_run_of_another_device_tells_nothing(tmp_path: Path, plan: Plan, measured: list[str]) -> None:
    made(plan.cells[0], plan, tmp_path, "another device")
    assert [one.seconds for one in estimates(plan, tmp_path)] == [0.0, 1.0, 1.0, 1.0]


def test_three_updates_and_the_encoding_of_an_architecture_are_measured(
    plan: Plan, monkeypatch: pytest.MonkeyPatch
) -> None:
    fits: list[int] = []
    fit: Callable[..., Any] = TrainedMethod.fit

    def counted(method: TrainedMethod, corpus: Any, context: Any) -> Any:
        fitted = fit(method, corpus, context)
        fits.append(fitted.fit_report.training["steps"])
        return fitted

    monkeypatch.setattr(TrainedMethod, "fit", counted)
    encoding: dict[str, float] = {}
    row = plan.cells[0], plan, True, list(plan.cells[0].tasks)
    assert estimate_seconds(*row, encoding) > 0
    assert (fits, len(encoding)) == ([3], 1)
    encoding.update(dict.fromkeys(encoding, 1000.0))
    assert estimate_seconds(*row, encoding) > 1000 * len(plan.tasks[0].texts())  # of one architecture
    assert len(encoding) == 1
