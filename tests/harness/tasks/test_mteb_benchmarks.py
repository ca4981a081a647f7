"""Benchmarks of mteb by name: their tasks, with the splits and subsets that mteb gives them."""

from __future__ import annotations

import json

import mteb
import pytest

from harness.cli import main
from harness.tasks.catalogue import resolve_tasks, suite
from harness.tasks.mteb.adapter import open_task
from harness.tasks.mteb.benchmark_suites import benchmarks_of
from tests.support.errors import raises_input_error


@pytest.mark.parametrize("name", ["MTEB(eng, v2)", "MTEB(kor, v1)", "Encodechka"])
def test_a_suite_takes_what_the_benchmark_takes(name: str) -> None:
    theirs = mteb.get_benchmark(name).tasks
    tasks = resolve_tasks([f"mteb-benchmark:{name}"])
    assert len(tasks) == len(theirs)
    for ours, wanted in zip(tasks, theirs, strict=True):
        opened = open_task(ours.task_name, ours.subset)
        assert opened.metadata.name == wanted.metadata.name
        assert sorted(opened.hf_subsets) == sorted(wanted.hf_subsets)
        assert sorted(opened.eval_splits) == sorted(wanted.eval_splits)
    assert suite(f"mteb-benchmark:{name}").averages[-1].of([]).of == len(theirs)


def test_the_file_of_a_comparison_has_the_tasks_of_a_benchmark_by_type() -> None:
    name = "mteb-benchmark:MTEB(kor, v1)"
    (found,) = benchmarks_of(["sts", name, name]).items()
    theirs: dict[str, list[str]] = {}
    for task in mteb.get_benchmark("MTEB(kor, v1)").tasks:
        theirs.setdefault(task.metadata.type, []).append(task.metadata.name)
    assert found[0] == name
    ours = {kind: [task.partition("/")[0] for task in tasks] for kind, tasks in found[1].items()}
    assert ours == theirs
    assert benchmarks_of(["sts", "embedded"]) == {}


def test_every_benchmark_is_listed_as_it_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["list", "benchmarks", "--json"]) == 0
    listed = json.loads(capsys.readouterr().out)
    theirs = {one.name: one.tasks for one in mteb.get_benchmarks()}
    assert list(listed) == [f"mteb-benchmark:{name}" for name in theirs]
    beyond = {name for name, about in listed.items() if "no suite here" in about["about"]}
    for name, tasks in theirs.items():
        text_only = all(task.metadata.modalities == ["text"] for task in tasks)
        assert (f"mteb-benchmark:{name}" in beyond) != text_only
    assert main(["list", "suites"]) == 0
    assert "mteb-benchmark:NAME" in capsys.readouterr().out


@pytest.mark.parametrize("name", ["ViDoRe(v1)", "MTEB(eng, v9)"])
def test_images_and_unknown_names_are_one_line(name: str) -> None:
    with raises_input_error(key="suites"):
        resolve_tasks([f"mteb-benchmark:{name}"])
