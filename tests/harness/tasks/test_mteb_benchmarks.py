"""Benchmarks of mteb by name: their tasks, with the splits and subsets that mteb gives them."""

from __future__ import annotations

import mteb
import pytest

from harness.errors import InputError
from harness.tasks.catalogue import resolve_tasks, suite
from harness.tasks.mteb.adapter import open_task


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


@pytest.mark.parametrize("name", ["ViDoRe(v1)", "MTEB(eng, v9)"])
def test_images_and_unknown_names_are_one_line(name: str) -> None:
    with pytest.raises(InputError) as caught:
        resolve_tasks([f"mteb-benchmark:{name}"])
    assert caught.value.key == "suites"
    assert name in str(caught.value)
    assert "\n" not in str(caught.value)
