"""Cost in tables and figures: inference by architecture, the steadiest clock."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.results.measurements import InferenceCost, measure_once
from harness.results.record import Record
from harness.results.store import RunFolder
from reports.figures.cost_tradeoff import tradeoff
from reports.load import RecordedResults, read_comparison
from reports.records.measured_cost import speeds, training_clock
from reports.stats.significance import Significance
from reports.tables.cost import cost_table
from tests.support import synthetic

HERE = {"device": "cpu", "device_name": "a processor", "cores": 2}


@pytest.fixture
def made(tmp_path: Path) -> synthetic.Invented:
    made = synthetic.Invented(tmp_path, scale=0.05)
    for row, wall in (("SimCSE", 105.0), ("SCD", 715.0)):
        again(made, made.add(row, tasks=("STS-B",), geometry=False), architecture="one", wall=wall)
    passes = InferenceCost(
        architecture="one",
        device="a processor",
        threads=1,
        precision="fp32",
        clock="processor",
        sentences=64,
        seconds=[0.16, 0.2, 0.16, 0.128, 0.16],
    )
    measure_once(tmp_path, "inference", passes.key, passes.model_dump)
    return made


def again(
    made: synthetic.Invented, record: Record, *, architecture: str, wall: float, **more: float
) -> None:
    cost = {"train_seconds": 10.0, "train_cpu_seconds": 9.0, "sentences_per_second": wall} | more
    update = {"architecture": architecture, "cost": cost, "environment": HERE}
    RunFolder(made.workdir, record.id).write(record.model_copy(update=update))


def column(comparison: RecordedResults, key: str) -> list[str]:
    table = cost_table(comparison)
    place = [c.key for c in table.columns].index(key)
    return [f"{line.cells[place].text} {line.cells[place].spread}".strip() for line in table.rows]


def test_encoders_of_one_architecture_have_one_speed(made: synthetic.Invented) -> None:
    comparison = read_comparison(made.workdir, "invented")
    assert {s.median for s in speeds(comparison).values()} == {400.0}  # 64 sentences in 0.16 s
    assert column(comparison, "inference") == ["400 [400, 400]"] * 2
    figure = tradeoff(comparison, Significance(comparison).first)
    assert figure is not None
    assert "(9, " in figure.alt  # processor seconds of training


def test_energy_has_a_column_where_some_machine_counted_it(made: synthetic.Invented) -> None:
    assert "train_joules" not in [
        c.key for c in cost_table(read_comparison(made.workdir, "invented")).columns
    ]
    record = made.add("SimCSE", tasks=("STS-B",), geometry=False)
    again(
        made,
        record,
        architecture="one",
        wall=105.0,
        train_cpu_joules=1250.0,
        train_gpu_joules=3000.0,
    )
    assert column(read_comparison(made.workdir, "invented"), "train_joules") == ["–", "4.25"]


def test_times_have_their_median_and_range_and_reach_below_nothing(
    made: synthetic.Invented,
) -> None:
    for seed, seconds in ((2, 11.0), (3, 78.0)):
        record = made.add("SimCSE", seed, tasks=("STS-B",), geometry=False)
        again(made, record, architecture="one", wall=100.0, train_seconds=seconds)
    assert column(read_comparison(made.workdir, "invented"), "train_seconds") == [
        "10.0",
        "11.0 [10.0, 78.0]",
    ]


def test_a_run_without_measured_inference_has_no_speed(made: synthetic.Invented) -> None:
    old = made.add("Old", tasks=("STS-B",), geometry=False)
    RunFolder(made.workdir, old.id).write(
        old.model_copy(update={"cost": {"train_seconds": 30.0, "sentences_per_second": 250.0}})
    )
    comparison = read_comparison(made.workdir, "invented")
    assert sorted(column(comparison, "inference")) == ["400 [400, 400]", "400 [400, 400]", "–"]
    assert training_clock(comparison.rows) == "train_seconds"  # the only one that all rows have


def test_tokens_have_a_column_where_a_run_has_them(made: synthetic.Invented) -> None:
    record = made.add("Counted", tasks=("STS-B",), geometry=False)
    counted = {"train_tokens_per_second": 4321.0}
    again(made, record, architecture="one", wall=90.0, **counted)
    comparison = read_comparison(made.workdir, "invented")
    assert sorted(column(comparison, "train_tokens_per_second")) == ["4,321", "–", "–"]
