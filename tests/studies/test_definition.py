"""Study files and stored studies: a study has the conditions of a comparison, under the keys that
its users know.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from harness.runs.conditions import Conditions
from harness.runs.experiment import read_experiment
from harness.runs.plan import make_plan
from studies.definition.study import Study, read_study
from studies.proposer import plan_trial
from tests.support.errors import raises_input_error

FILE = """
title = "Rates"
method = "simcse"
preset = "mini"
config = { batch_size = 8 }
corpus = "embedded:sentences"
corpora.pairs = { uri = "embedded:pairs", kind = "pairs" }
dev = { task = "Embedded-STS-natural" }
steps = 4
seeds = [101, 102]
sampler = "grid"
space = { learning_rate = [1e-5, 3e-5] }
"""


@pytest.fixture
def file(tmp_path: Path) -> str:
    path = tmp_path / "rates.toml"
    path.write_text(FILE)
    return str(path)


def test_a_stored_study_is_the_study_of_its_file(file: str) -> None:
    study = read_study(file)
    assert Study.parse(json.loads(study.model_dump_json()), "stored") == study


@pytest.mark.parametrize(
    ("override", "key"),
    [
        ("steps=0", "steps"),
        ('dev.sauce="x"', "dev.sauce"),
        ('precision="fp8"', "precision"),
        ("max_steps=3", "max_steps"),
    ],
)
def test_an_error_names_the_key_of_the_study_file(file: str, override: str, key: str) -> None:
    with raises_input_error(file=file, key=key):
        read_study(file, [override])


def test_a_file_that_extends_a_preset_says_only_what_differs(tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    file.write_text(
        'extends = "scd-fine"\nbase_model = "FacebookAI/roberta-base"\nspace = { dropout_a = [0.1] }\n'
    )
    mine, whole = read_study(str(file)), read_study("scd-fine")
    assert mine.name == "mine"
    assert (mine.base_model, mine.space) == ("FacebookAI/roberta-base", {"dropout_a": [0.1]})
    assert {**mine.model_dump(), "name": 0, "base_model": 0, "space": 0} == {
        **whole.model_dump(),
        "name": 0,
        "base_model": 0,
        "space": 0,
    }
    assert read_study(str(file), quick=True).base_model == "embedded:mini-bert"
    for given in ('"scd-fin"', "[1]"):
        file.write_text(f"extends = {given}\n")
        with raises_input_error(file=file, key="extends"):
            read_study(str(file))


def test_a_trial_is_a_comparison_under_the_study_s_conditions(file: str, tmp_path: Path) -> None:
    study = read_study(file)
    experiment = study.experiment({"learning_rate": 1e-5}, "a row")
    assert experiment.conditions() == study.conditions()
    assert set(Conditions.model_fields) < set(Study.model_fields)
    keys = f"""
seeds = [101, 102]
corpus = "embedded:sentences"
dev = {{ task = "Embedded-STS-natural" }}
max_steps = 4
[[methods]]
method = "simcse"
preset = "mini"
config = {json.dumps({"batch_size": 8, "learning_rate": 1e-5}).replace(":", " =")}
"""
    by_hand = tmp_path / "by-hand.toml"
    by_hand.write_text(keys)
    same = make_plan(read_experiment(str(by_hand)), "by hand", starts=False)
    planned = plan_trial(study, {"learning_rate": 1e-5})
    assert [job.id for job in planned.jobs] == [job.id for job in same.jobs]


def test_a_study_that_selects_on_a_test_part_warns() -> None:
    from harness.api.studies import warn_of_test_parts

    keys: dict[str, Any] = {
        "name": "s",
        "method": "whitening",
        "suites": ["STS-B"],
        "sampler": "random",
        "trials": 2,
    }
    assert warn_of_test_parts(Study(**keys)) == ""
    assert "test scores (STS-B)" in warn_of_test_parts(Study(**keys, objective="STS-B"))
