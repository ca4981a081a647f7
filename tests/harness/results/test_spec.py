"""The id of a run: what decides its numbers changes it, and nothing else does."""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from harness import registry
from harness.results.spec import RunSpec, method_version
from harness.runs.experiment import read_experiment
from harness.runs.inputs import forget_loaded
from harness.runs.plan import make_plan
from harness.seeds import STREAMS, seed_text
from tests.support.errors import raises_input_error
from tests.support.small_runs import BASE, CLS, EXPERIMENT, SIMCSE

SPEC = RunSpec(
    method="simcse",
    version=1,
    config={"temperature": 0.05},
    base_model="embedded:mini-bert",
    model="abc",
    seed=1,
    corpus={"uri": "a.txt", "kind": "sentences", "sha256": "11"},
    dev={"task": "STS-B", "source": "mteb", "sha256": "22"},
    max_steps=10,
    precision="fp32",
    inputs={"vectors": "33"},
)


@pytest.mark.parametrize(
    "change",
    [
        {"method": "scd"},
        {"version": 2},
        {"numerics": 99},
        {"config": {"temperature": 0.1}},
        {"model": "abd"},
        {"seed": 2},
        {"vary": ("init",), "held": 1},
        {"corpus": {"uri": "a.txt", "kind": "sentences", "sha256": "12"}},
        {"corpus": None},
        {"dev": {"task": "STS-B", "source": "mteb", "sha256": "23"}},
        {"max_steps": 11},
        {"precision": "bf16"},
        {"inputs": {"vectors": "34"}},
        {"most_sentences": 100},
        {"encoded_sentences": 100},
        {"missing": "no such base model"},
    ],
)
def test_what_decides_numbers_changes_the_id(change: dict[str, Any]) -> None:
    assert RunSpec(**{**SPEC.model_dump(), **change}).id != SPEC.id


@pytest.mark.parametrize(
    "change",
    [
        {"base_model": "a copy of it"},
        {"corpus": {"uri": "moved.txt", "kind": "sentences", "sha256": "11", "count": 7}},
        {"dev": {"task": "a copy", "source": "senteval", "sha256": "22"}},
    ],
)
def test_names_of_equal_content_do_not(change: dict[str, Any]) -> None:
    assert RunSpec(**{**SPEC.model_dump(), **change}).id == SPEC.id


def test_seeds_do_not_enter_a_deterministic_method() -> None:
    known = {**SPEC.model_dump(), "deterministic": True}
    assert RunSpec(**known).id == RunSpec(**{**known, "seed": 2}).id


def test_a_spec_that_was_stored_has_its_id() -> None:
    assert RunSpec.model_validate_json(SPEC.model_dump_json()).id == SPEC.id


def ids(**more: Any) -> dict[tuple[str, str], str]:
    jobs = make_plan(read_experiment({**EXPERIMENT, **more}), "test").jobs
    return {(job.row, seed_text(job.spec.random_seed)): job.id for job in jobs}


def test_labels_tasks_executors_and_what_stays_on_disk_are_no_part_of_it() -> None:
    plain = ids()
    renamed = ids(methods=[CLS, {**SIMCSE, "name": "another label"}])
    assert set(renamed.values()) == set(plain.values())
    assert ids(suites=["Embedded-STS-contrast"], keep=[], executor={"name": "processes"}) == plain
    assert ids(name="other", title="Another", budget={}) == plain


def test_precision_is_float32_or_the_one_that_is_named() -> None:
    plain = {key: value for key, value in EXPERIMENT.items() if key != "precision"}
    unnamed = make_plan(read_experiment(plain), "test").jobs
    assert {job.spec.precision for job in unnamed if job.steps} == {"fp32"}
    assert ids(precision="fp32")["SimCSE", "1"] in {job.id for job in unnamed}
    assert ids(precision="bf16")["SimCSE", "1"] not in {job.id for job in unnamed}


def test_copies_of_a_base_model_and_of_a_text_share_their_runs(tmp_path: Path) -> None:
    text = tmp_path / "a.txt"
    text.write_text("".join(f"This is sentence number {n}.\n" for n in range(40)))
    copy = tmp_path / "b.txt"
    copy.write_bytes(text.read_bytes())
    model = tmp_path / "model"
    model.symlink_to(BASE)
    here = ids(corpus=str(text))
    assert ids(corpus=str(copy), base_models=[str(model)]) == here
    copy.write_text(text.read_text() + "One more.\n")
    forget_loaded()  # as each comparison does
    assert ids(corpus=str(copy))["SimCSE", "1"] != here["SimCSE", "1"]


def test_a_method_states_its_version_or_is_identified_by_its_source(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Mine(registry.load(registry.METHODS, "pooling")):  # type: ignore[misc]
        version = 7

    class Derived(Mine):
        pass

    assert method_version(Mine) == 7
    assert method_version(Derived) not in (
        7,
        method_version(type(SPEC)),
    )  # it may compute something else than its parent
    monkeypatch.syspath_prepend(tmp_path)
    versions = set()
    for name in ("theirs_a", "theirs_b"):
        (tmp_path / f"{name}.py").write_text(f"class Theirs:\n    name = '{name}'\n")
        versions.add(method_version(import_module(name).Theirs))
    assert len(versions) == 2
    unreadable = type("Unreadable", (), {"__module__": "no_such_module"})
    with raises_input_error(key="Unreadable"):
        method_version(unreadable)


def test_streams_of_one_seed_are_that_seed() -> None:
    plain = ids()
    assert ids(vary=list(STREAMS)) == plain
    init = ids(vary=["init"])
    assert init["SimCSE", "1"] == plain["SimCSE", "1"]
    assert init["SimCSE", "2 (init)"] not in plain.values()
    assert (
        ids(vary=["init"], seeds=[2], held_seed=1)["SimCSE", "2 (init)"]
        == init["SimCSE", "2 (init)"]
    )


def test_blocks_vary_streams_of_their_own_and_share_the_first_run() -> None:
    blocks = {"all": {}, "init": {"vary": ["init"]}, "order": {"vary": ["data_order"]}}
    jobs = make_plan(
        read_experiment({**EXPERIMENT, "methods": [SIMCSE], "blocks": blocks, "seeds": [1, 2, 3]}),
        "test",
    ).jobs
    seeds = [seed_text(job.spec.random_seed) for job in jobs if job.row == "SimCSE"]
    assert sorted(seeds) == [
        "1",
        "2",
        "2 (data_order)",
        "2 (init)",
        "3",
        "3 (data_order)",
        "3 (init)",
    ]
    assert jobs[0].blocks == ("all", "init", "order")


def test_a_class_of_a_notebook_is_identified_by_its_cell(monkeypatch: pytest.MonkeyPatch) -> None:
    from IPython.core.interactiveshell import InteractiveShell

    monkeypatch.setitem(
        sys.modules, "__main__", sys.modules["__main__"]
    )  # the shell takes its place
    shell = InteractiveShell()
    versions = []
    for value in (1, 2, 1):
        shell.run_cell(
            f"class Typed:\n    def loss(self):\n        return {value}\n", store_history=True
        )
        versions.append(method_version(shell.user_ns["Typed"]))
    assert versions[0] != versions[1]
    assert versions[2] == versions[0], "the same cell again is the same method"
