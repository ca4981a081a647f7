"""Files of earlier and of later versions."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from harness.comparison.experiment import read_experiment
from harness.errors import InputError
from harness.results.migrations import RECORD, Schema
from harness.results.record import Record

FROZEN = Path(__file__).resolve().parents[2] / "frozen"


def test_a_newer_schema_is_one_clear_line(tmp_path: Path) -> None:
    experiment = tmp_path / "small.toml"
    experiment.write_text('schema = 1\n[[methods]]\nmethod = "pooling"\n')
    assert read_experiment(str(experiment)).name == "small"
    experiment.write_text('schema = 9\n[[methods]]\nmethod = "pooling"\n')
    with pytest.raises(InputError, match=r"small.toml: schema 9 is not known; this version of the harness reads up to"):
        read_experiment(str(experiment))


def test_migrations_go_step_by_step() -> None:
    schema = Schema("v", 3, {1: lambda t: {**t, "b": t["a"] + 1}, 2: lambda t: {"c": t["b"] * 10}})
    assert schema.migrated({"a": 1}, "f") == {"c": 20, "v": 3}
    assert schema.migrated({"v": 2, "b": 5}, "f") == {"c": 50, "v": 3}
    assert schema.migrated({"v": 3, "c": 7}, "f") == {"v": 3, "c": 7}
    for wrong in (4, "1"):
        with pytest.raises(InputError, match="f: v"):
            schema.migrated({"v": wrong}, "f")


def test_records_of_schema_1_are_read() -> None:
    text = next((FROZEN / "work/runs").glob("*/record.json")).read_text()
    old = json.loads(text)
    assert old["schema_version"] == 1
    record = Record.model_validate_json(text)
    assert record.schema_version == RECORD.version
    assert record.evaluation == old["evaluation"] != {}
    assert Record.model_validate(old | {"evaluation": "abc"}).evaluation == {}  # as the first records had it
    with pytest.raises(InputError, match="schema_version 99 is not known"):
        Record.model_validate(old | {"schema_version": 99})
