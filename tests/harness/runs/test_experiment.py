"""Experiment files and plans: values and their precedence, blocks, grids, parts, starts and the dev
schedule.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from harness.method import Method
from harness.runs.conditions import DevSettings
from harness.runs.experiment import presets, read_experiment
from harness.runs.inputs import load_text
from harness.runs.plan import Plan, make_plan
from harness.runs.rows import Row, apply_schedule, resolve_rows
from harness.runs.selection import select, select_part
from harness.runs.sizes import resolve_sizes
from methods.simcse import SimCSE
from tests.support.configurations import know_base_models
from tests.support.errors import raises_input_error
from tests.support.small_runs import CONTRAST, NATURAL

GOOD = """
corpus = "embedded:sentences"
seeds = [1, 2]
[dev]
task = "Embedded-STS-natural"
[shared]
learning_rate = 2e-5
[[methods]]
method = "simcse"
[[methods]]
name = "hot"
method = "simcse"
config = { temperature = 0.5, learning_rate = 7e-5 }
[[methods]]
method = "pooling"
"""
BASE = "embedded:mini-bert"
BLOCKS = """
title = "A paper"
base_models = ["embedded:mini-bert", "other"]
seeds = [1, 2]
max_steps = 2
suites = ["Embedded-STS-natural"]
corpus = { uri = "embedded:sentences", limit = 64 }
dev = { task = "Embedded-STS-natural" }
[blocks.table-1]
title = "Table 1"
[blocks.ablation]
base_models = ["embedded:mini-bert"]
seeds = [1, 3]
suites = ["Embedded-STS-contrast"]
[[methods]]
name = "SimCSE"
method = "simcse"
[[methods]]
name = "SimCSE at {temperature}"
method = "simcse"
grid = { temperature = [0.05, 0.1], pooling = ["cls", "mean"] }
blocks = ["ablation"]
[[methods]]
name = "CLS"
method = "pooling"
base_models = ["embedded:mini-bert"]
"""
HERE = 'base_models=["embedded:mini-bert"]'


@pytest.fixture
def write(tmp_path: Path) -> Any:
    def written(text: str, name: str = "mine") -> str:
        path = tmp_path / f"{name}.toml"
        path.write_text(text)
        return str(path)

    return written


def configs(file: str, *overrides: str) -> dict[str, Any]:
    return {row.label: row.config for row in resolve_rows(read_experiment(file, overrides), file)}


def test_defaults_and_the_name_of_the_file_are_filled_in(write: Any) -> None:
    experiment = read_experiment(write(GOOD))
    assert (experiment.name, experiment.corpus.uri) == ("mine", "embedded:sentences")
    assert experiment.dev is not None
    assert experiment.dev.where == "embedded"


def test_an_empty_text_empties_an_option(write: Any) -> None:
    text = """
seeds = 1
[[methods]]
method = "self_guided"
config = { patience = "", max_steps = 3 }
"""
    row = configs(write(text), "methods.1.config.max_steps=")["self_guided"]
    assert (row.patience, row.max_steps) == (None, None)
    with raises_input_error(key="learning_rate"):
        configs(write(text), "methods.1.config.learning_rate=")


def test_a_row_overrides_shared_values_and_the_command_line_overrides_both(write: Any) -> None:
    rows = configs(write(GOOD), "methods.hot.temperature=0.9", "methods.3.name=plain")
    assert (rows["simcse"].learning_rate, rows["hot"].learning_rate, rows["hot"].temperature) == (
        2e-5,
        7e-5,
        0.9,
    )
    assert not hasattr(rows["plain"], "learning_rate")
    assert read_experiment(write(GOOD), ["seeds=[7]", "title=A b"]).seeds == [7]


@pytest.mark.parametrize(
    ("old", "new", "overrides", "named"),
    [
        ('"simcse"', '"simsce"', (), '"simsce" (did you mean "simcse"'),
        ("corpus", "seedz = [1]\ncorpus", (), '"seedz" (did you mean "seeds"'),
        ("temperature", "temperatur", (), '"temperatur" (did you mean "temperature"'),
        ("0.5", "-1", (), 'key "temperature"'),
        ('name = "hot"', "", (), '"simcse"'),
        (GOOD, "a = = b", (), "mine.toml"),
        ("[1, 2]", "[1, 1]", (), 'key "seeds"'),
        (
            "learning_rate = 2e-5",
            "lerning_rate = 2e-5",
            (),
            '"lerning_rate" (did you mean "learning_rate"',
        ),
        ('name = "hot"', 'name = "hot"\npreset = "huge"', (), '"huge"'),
        ("", "", ("methods.cold.temperature=1",), '"cold"'),
        ("", "", ("seeds",), "KEY=VALUE"),
        ("", "", ("seeds.first=1",), "seeds"),
        ("", "", ("schema=7",), 'key "schema"'),
        ("", "", ("name=../up",), 'key "name"'),
        ("", "", ("budget=steps",), 'key "budget"'),
        ("", "", ("budget={steps=2, sentences=3}",), 'key "budget"'),
        ("", "", ("budget={updates=2}",), 'key "budget.updates"'),
        ("", "", ("budget={steps=0}",), 'key "budget.steps"'),
        ("", "", ("vary=['initialisation']",), "vary"),
        ("", "", ("dev.every=0",), "dev.every"),
        ("", "", ("executor.workers=0",), "executor.workers"),
        ("", "", ("max_steps=true",), 'key "max_steps"'),
        ("", "", ("seeds=[true, 2]",), 'key "seeds"'),
        ("", "", ("dev.every=true",), "dev.every"),
        ("0.5", "true", (), 'key "temperature"'),
        ("temperature", '"tempera[ture"', (), '"tempera[ture"'),
        ("", "", ("contrasts=[{row='hot', against='hot'}]",), '"hot"'),
        ("", "", ("corpora.sentences='mine.txt'",), "corpora.sentences"),
        ("", "", ("corpora.pairs={uri='mine.csv', kind='documents'}",), "corpora"),
        ("", "", ("methods.hot.grid.temperature=[0.1, 0.2]",), 'key "temperature"'),
        ('name = "hot"', 'name = " simcse"', (), '"simcse"'),
        ('name = "hot"', 'name = " "', (), "name"),
    ],
)
def test_what_is_wrong_is_one_line_with_file_and_key(
    write: Any, old: str, new: str, overrides: tuple[str, ...], named: str
) -> None:
    file = write(GOOD.replace(old, new, 1) if old else GOOD)
    with raises_input_error() as error:
        resolve_rows(read_experiment(file, overrides), file)
    said = str(error.value)
    assert named in said
    assert "mine.toml" in said or "--set" in said


@pytest.mark.parametrize(
    ("one", "other"),
    [("a b", "a  b"), ("a", "a\t"), ("a b", "a\nb"), ("caf\u00e9", "cafe\u0301")],
)
def test_names_that_look_the_same_are_equal(one: str, other: str) -> None:
    rows = [{"name": name, "method": "pooling"} for name in (one, other)]
    with raises_input_error(file="here", key="name"):
        resolve_rows(read_experiment({"name": "x", "methods": rows}), "here")


def test_a_row_of_a_grid_has_its_value_in_full() -> None:
    values = [0.1234567, 0.1234568, 1e-5]
    row = {"name": "t", "method": "simcse", "grid": {"temperature": values}}
    rows = read_experiment({"name": "x", "methods": [row]}).methods
    assert [float(row.label.rpartition(" ")[2]) for row in rows] == values


def test_an_unknown_file_names_the_nearest_preset() -> None:
    with raises_input_error(file="demoo"):
        read_experiment("demoo")


@pytest.mark.parametrize("name", sorted(presets()))
def test_every_shipped_experiment_is_valid(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    know_base_models(monkeypatch)
    experiment = resolve_sizes(read_experiment(name), load_text)
    assert resolve_rows(experiment, name)
    assert experiment.title


def test_a_row_has_the_seeds_of_its_blocks_and_their_base_models_unless_it_has_its_own(
    write: Any,
) -> None:
    file = write(BLOCKS)
    rows = {
        (row.label, row.base_model): row
        for row in resolve_rows(read_experiment(file), file, tolerant=True)
    }
    both, one = ("table-1", "ablation"), ("table-1",)
    assert rows["SimCSE", BASE].seeds == {1: both, 2: one, 3: ("ablation",)}
    assert rows["SimCSE", "other"].seeds == {1: one, 2: one}
    assert rows["CLS", BASE].seeds == rows["SimCSE", BASE].seeds
    assert rows["SimCSE", "other"].max_steps == 2
    assert ("CLS", "other") not in rows
    grid = [row for row in rows.values() if row.label.startswith("SimCSE at")]
    assert [(row.label, row.config.temperature, row.config.pooling) for row in grid] == [  # type: ignore[attr-defined]
        ("SimCSE at 0.05 · pooling cls", 0.05, "cls"),
        ("SimCSE at 0.05 · pooling mean", 0.05, "mean"),
        ("SimCSE at 0.1 · pooling cls", 0.1, "cls"),
        ("SimCSE at 0.1 · pooling mean", 0.1, "mean"),
    ]
    typed = resolve_rows(read_experiment(file, ["seeds=[9]", HERE]), file)
    assert {(row.base_model, *row.seeds) for row in typed} == {(BASE, 9)}


def test_a_run_in_two_blocks_is_one_job_with_the_tasks_of_both(write: Any) -> None:
    file = write(BLOCKS)
    jobs = {
        (job.row, job.spec.seed): job
        for job in make_plan(read_experiment(file, [HERE]), file, starts=False).jobs
    }
    keys = {1: (NATURAL, CONTRAST), 2: (NATURAL,), 3: (CONTRAST,)}
    for seed, tasks in keys.items():
        assert jobs["SimCSE", seed].tasks == tuple(f"embedded:{task}" for task in tasks)
    assert [place for place in jobs if place[0] == "CLS"] == [("CLS", 1)]  # deterministic


def test_a_row_that_is_not_available_keeps_its_reason(write: Any) -> None:
    override = f'blocks.table-1.base_models=["{BASE}", "no/folder/here"]'
    file = write(
        BLOCKS.replace('"other"', f'"{BASE}"').replace(f'["{BASE}", "{BASE}"]', f'["{BASE}"]')
    )
    plan = make_plan(read_experiment(file, [override]), file)
    missing = {(job.row, job.spec.base_model): job.spec.missing for job in plan.jobs}
    assert "no/folder/here" in missing["SimCSE", "no/folder/here"]
    assert missing["SimCSE", BASE] == ""


@pytest.mark.parametrize(
    ("only", "blocks", "rows"),
    [
        (("table-1",), ["table-1"], ["SimCSE", "CLS"]),
        (("table*",), ["table-1"], ["SimCSE", "CLS"]),
        (
            ("SimCSE at 0.1*",),
            ["ablation"],
            ["SimCSE at 0.1 · pooling cls", "SimCSE at 0.1 · pooling mean"],
        ),
        (("ablation", "CLS"), ["ablation"], ["CLS"]),
    ],
)
def test_only_selects_blocks_rows_and_rows_of_blocks(
    write: Any, only: tuple[str, ...], blocks: list[str], rows: list[str]
) -> None:
    experiment = read_experiment(write(BLOCKS))
    part = select_part(experiment, only)
    assert (list(part.blocks), [entry.name for entry in part.methods]) == (blocks, rows)
    assert part.name.startswith("mine--")
    assert select_part(experiment, ()) == experiment


@pytest.mark.parametrize(
    ("old", "new", "only", "key"),
    [
        ("", "", ("tabel-1",), "--only"),
        ("", "", ("table-1", "SimCSE at 0.05 · p*cls"), "--only"),
        ('blocks = ["ablation"]', 'blocks = ["ablations"]', (), None),
        ("temperature = [0.05, 0.1]", "temperature = 0.05", (), "grid.temperature"),
    ],
)
def test_what_is_wrong_with_parts_is_named(
    write: Any, old: str, new: str, only: tuple[str, ...], key: str | None
) -> None:
    file = write(BLOCKS.replace(old, new))
    with raises_input_error(key=key):
        resolve_rows(select_part(read_experiment(file), only), file)


def test_rows_without_blocks_are_in_all_of_them(write: Any) -> None:
    file = write(BLOCKS.replace("[blocks.ablation]", "[blocks.empty]\n[blocks.ablation]"))
    assert resolve_rows(read_experiment(file), file)


FILE: dict[str, Any] = {
    "name": "small",
    "seeds": [1, 2],
    "suites": [NATURAL],
    "max_steps": 2,
    "corpus": {"uri": "embedded:sentences", "limit": 64},
    "dev": {"task": NATURAL},
}
MEAN = {"name": "mean", "method": "pooling"}


def planned(*rows: dict[str, Any], **more: Any) -> Plan:
    return make_plan(read_experiment({**FILE, **more, "methods": list(rows)}), "test")


def added(plan: Plan) -> list[str]:
    return [job.row for job in plan.jobs if plan.row_of(job).added]


def starts(plan: Plan) -> dict[str, str]:
    """Row -> the row that it starts from."""
    labels = {job.id: job.row for job in plan.jobs}
    return {labels[run]: labels[start] for run, start in plan.starts.items()}


def test_rows_with_equal_starts_share_one_and_that_of_the_file_is_used() -> None:
    plan = planned(
        MEAN,
        {"name": "mean, trained", "method": "simcse", "config": {"pooling": "mean"}},
        {"name": "cls, trained", "method": "simcse"},
        {"name": "Barlow", "method": "barlow_twins", "preset": "mini"},
    )
    assert added(plan) == ["untrained (cls)"]
    assert starts(plan) == {
        "mean, trained": "mean",
        "cls, trained": "untrained (cls)",
        "Barlow": "mean",
    }


def test_another_length_or_first_layer_is_another_start() -> None:
    layers = {"pooling": "first_last_avg", "max_length": None}
    plan = planned(
        {"name": "cut", "method": "whitening", "config": {**layers, "max_length": 64}},
        {"name": "whole", "method": "whitening", "config": layers},
        {"name": "blocks", "method": "whitening", "config": {**layers, "first_layer": 0}},
    )
    assert len(set(starts(plan).values())) == 3


def test_what_learns_nothing_has_no_start() -> None:
    plan = planned(MEAN, {"method": "random"}, {"method": "wk_pooling", "preset": "paper"})
    assert (added(plan), plan.starts) == ([], {})


def test_an_added_start_takes_no_label_of_the_file_and_is_in_the_blocks_of_its_rows() -> None:
    assert added(
        planned({"name": "untrained (cls)", "method": "random"}, {"name": "A", "method": "simcse"})
    ) == ["untrained start of A"]
    blocks: dict[str, Any] = {"one": {}, "two": {"suites": [CONTRAST]}}
    cls = {"name": "[CLS]", "method": "pooling", "config": {"pooling": "cls"}, "blocks": ["one"]}
    plan = planned(cls, {"name": "A", "method": "simcse", "blocks": ["two"]}, blocks=blocks)
    (job,) = (job for job in plan.jobs if job.row == "[CLS]")
    assert job.blocks == ("one", "two")


def test_starts_that_are_not_available_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    plan = planned(MEAN, {"name": "A", "method": "simcse", "config": {"pooling": "layer:9:mean"}})
    assert (added(plan), plan.starts) == ([], {})
    monkeypatch.setattr(Method, "untrained_start", property(lambda self: ("not_installed", {})))
    assert added(planned({"name": "A", "method": "simcse"})) == []


ROWS = [
    {"name": "own loss", "method": "simcse"},  # every 125, the default
    {"name": "mini", "method": "simcse", "preset": "mini"},  # every 25
]


def scheduled(*rows: dict[str, Any], every: Any = None, only: tuple[str, ...] = ()) -> Plan:
    dev = {"task": NATURAL, **({"every": every} if every is not None else {})}
    tree = {"name": "small", "suites": [NATURAL], "dev": dev, "methods": list(rows or ROWS)}
    return make_plan(select(read_experiment(tree), only, "test"), "test", starts=False)


def intervals(plan: Plan) -> dict[str, int]:
    return {row.label: row.config.eval_every for row in plan.rows}  # type: ignore[attr-defined]


def test_all_rows_have_one_dev_interval_unless_the_file_says_otherwise() -> None:
    plan = scheduled()
    assert intervals(plan) == {"own loss": 25, "mini": 25}
    assert plan.schedule.instead_of == {"own loss": 125}
    assert "own loss" in plan.schedule.describe(26)
    assert plan.schedule.describe(25) == ""  # all rows are scored at the end, as they would be
    assert intervals(scheduled(every=50)) == {"own loss": 50, "mini": 50}
    own = scheduled(every="own")
    assert (intervals(own), own.schedule.describe(1000)) == ({"own loss": 125, "mini": 25}, "")
    last = {"name": "last", "method": "simcse", "config": {"select": "last", "eval_every": 3}}
    assert intervals(scheduled(*ROWS, last)) == {
        "own loss": 25,
        "mini": 25,
        "last": 3,
    }  # its weights are not selected


@pytest.mark.parametrize("reverse", [False, True])
def test_the_shortest_interval_is_that_of_any_base_model(reverse: bool) -> None:
    """A recipe may have another interval for each family of base models."""
    rows = []
    for base, every in (("bert", 125), ("roberta", 50)):
        config = SimCSE.Config(eval_every=every)
        rows.append(Row("SimCSE", SimCSE, base, config, None, {1: ()}))
    rows = rows[::-1] if reverse else rows
    changed, schedule = apply_schedule(rows, DevSettings(task=NATURAL))
    assert [row.config.eval_every for row in changed] == [50, 50]  # type: ignore[attr-defined]
    assert (schedule.every, schedule.instead_of) == (50, {"SimCSE": 125})


def test_a_part_has_the_schedule_of_the_whole() -> None:
    whole = {job.id for job in scheduled().jobs if job.row == "own loss"}
    assert {job.id for job in scheduled(only=("own loss",)).jobs} == whole
    tree = {"name": "small", "suites": [NATURAL], "dev": {"task": NATURAL}, "methods": ROWS[:1]}
    alone = make_plan(read_experiment(tree, scheduled().schedule.overrides), "test", starts=False)
    assert {job.id for job in alone.jobs} == whole  # as the command of a record has it


def test_a_part_of_the_dev_pairs_is_another_set() -> None:
    some, other, whole = (
        planned({"method": "simcse"}, dev={"task": NATURAL, **pairs})
        for pairs in ({"pairs": 12}, {"pairs": 12}, {})
    )
    assert some.dev is not None
    assert other.dev is not None
    assert whole.dev is not None
    assert some.dev.sha256 == other.dev.sha256 != whole.dev.sha256
    assert some.jobs[0].spec.dev == {**some.jobs[0].spec.dev, "pairs": 12}  # type: ignore[dict-item]
    with raises_input_error():
        planned({"method": "simcse"}, dev={"task": NATURAL, "pairs": 1_000_000})


def test_a_task_that_is_no_set_of_scored_pairs_selects_nothing() -> None:
    """It is installed, so it is not called unknown."""
    with raises_input_error(key="[dev] task") as caught:
        planned({"method": "simcse"}, dev={"task": "MR"})
    assert "pairs.csv" in str(caught.value.remedy)
    assert "unknown" not in caught.value.message
