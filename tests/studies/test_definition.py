"""Study files and stored studies: a study has the conditions of a comparison, under the keys that its users know."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from harness.comparison.experiment import Conditions, read_experiment
from harness.comparison.plan import make_plan
from harness.errors import InputError
from studies.definition.study import Study, read_study
from studies.run.desk import Desk

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
# What version 0.1.0 stored of this study.
STORED = """
{"name":"rates","title":"Rates","description":"","method":"simcse","preset":"mini","config":{"batch_size":8},
"base_model":"embedded:mini-bert","corpus":{"uri":"embedded:sentences","kind":"sentences","limit":null,"columns":null},
"corpora":{"pairs":{"uri":"embedded:pairs","kind":"pairs","limit":null,"columns":null}},
"dev":{"task":"Embedded-STS-natural","source":null},"suites":[],"source":"senteval","steps":4,"device":"auto",
"precision":"auto","objectives":["dev"],"directions":[],"seeds":[101,102],"held_out_seeds":[1,2,3],"sampler":"grid",
"sampler_seed":0,"defaults_first":false,"pruner":"none","trials":null,"by":null,"keep_models":"best",
"space":{"learning_rate":[0.00001,0.00003]}}
"""


@pytest.fixture
def file(tmp_path: Path) -> str:
    path = tmp_path / "rates.toml"
    path.write_text(FILE)
    return str(path)


def test_a_stored_study_is_the_study_of_its_file(file: str) -> None:
    stored = Study.parse(json.loads(STORED), "stored")
    assert stored == read_study(file)
    later = {"family", "where", "executor"}
    assert set(stored.model_dump()) == set(json.loads(STORED)) | later


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("steps=0", 'key "steps": expected 1 or more, not 0'),
        ('dev.sauce="x"', 'unknown key "dev.sauce"'),
        ('precision="fp8"', "key \"precision\": expected 'auto', 'fp32', 'bf16' or 'fp16', not 'fp8'"),
        ("max_steps=3", 'unknown key "max_steps" .*base_model, by, config'),
    ],
)
def test_an_error_names_the_key_of_the_study_file(file: str, override: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        read_study(file, [override])


def test_a_file_that_extends_a_preset_says_only_what_differs(tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    file.write_text('extends = "scd-fine"\nbase_model = "FacebookAI/roberta-base"\nspace = { dropout_a = [0.1] }\n')
    mine, whole = read_study(str(file)), read_study("scd-fine")
    assert mine.name == "mine"
    assert (mine.base_model, mine.space) == ("FacebookAI/roberta-base", {"dropout_a": [0.1]})
    assert {**mine.model_dump(), "name": 0, "base_model": 0, "space": 0} == {
        **whole.model_dump(), "name": 0, "base_model": 0, "space": 0
    }  # fmt: skip
    assert read_study(str(file), quick=True).base_model == "embedded:mini-bert"
    for given, shown in (('"scd-fin"', "'scd-fin'"), ("[1]", r"\[1\]")):
        file.write_text(f"extends = {given}\n")
        with pytest.raises(InputError, match=rf'key "extends": expected one of the presets .*scd-fine.*, not {shown}'):
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
    same = make_plan(read_experiment(str(by_hand)), "by hand")
    planned = Desk(study, tmp_path).plan({"learning_rate": 1e-5})
    assert [cell.id for cell in planned.cells] == [cell.id for cell in same.cells]


def test_the_data_of_a_study_is_read_once(file: str, tmp_path: Path) -> None:
    desk = Desk(read_study(file), tmp_path)
    first, second = desk.plan({"learning_rate": 1e-5}), desk.plan({"learning_rate": 3e-5})
    assert first.cells[0].id != second.cells[0].id
    assert first.dev is second.dev
    assert [id(c) for c in first.corpora.values()] == [id(c) for c in second.corpora.values()]
