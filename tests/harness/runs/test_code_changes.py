"""Tests what happens when the code of a plugin changes between runs or while workers start, and when
it changes code that other rows use.
"""

from __future__ import annotations

import importlib
import sys
from collections import deque
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
import torch

from harness import registry
from harness.executors.executor import ExecutorSettings
from harness.executors.processes import Processes
from harness.machine import shared_code
from harness.results.record import Record
from harness.results.store import RunFolder
from harness.runs.code_changes import describe_code_changes
from harness.runs.execute import execute
from harness.runs.inputs import forget_loaded
from harness.runs.plan import Job, Plan
from harness.runs.runner import run_job
from harness.tasks import catalogue
from tests.support import own_files
from tests.support.small_runs import CLS, NATURAL, plan_of

METHOD = """\
from methods.pooling import PoolingMethod

class Cut(PoolingMethod):
    name = "cut"
    data_files = "table.txt"

    def encode(self, sentences, **more):
        from cut_aid import DIMS

        vectors = super().encode(sentences, **more).copy()
        vectors[:, DIMS:] = 0
        return vectors
"""
TASK = """\
import numpy as np
from cut_task_aid import SCALE
from harness.tasks.base import TaskResult
from harness.tasks.protocol import add_number

class First:
    name = "first"
    suite = "own"
    source = "own"
    sha256 = "0" * 64

    def texts(self):
        return ["A dog runs.", "It rains."]

    def evaluate(self, vectors, *, pooling):
        result = TaskResult()
        add_number(result, self, "sum", SCALE, 2, pooling)
        return result
"""
CHANGING = """\
import torch
from methods.pooling import PoolingMethod

class Changing(PoolingMethod):
    name = "changing"

    def fit(self, corpus=None, context=None):
        torch.nn.LayerNorm.forward = lambda self, x: x * 0.5
        return super().fit(corpus, context)
"""
FILES = {
    "changing.py": CHANGING,
    "cut.py": METHOD,
    "cut_aid.py": "DIMS = 4\n",
    "table.txt": "1\n",
    "cut_task.py": TASK,
    "cut_task_aid.py": "SCALE = 0.25\n",
}
POINTS = "[harness.methods]\ncut = cut:Cut\nchanging = changing:Changing\n[harness.tasks]\nfirst = cut_task:First\n"
MODULES = ("changing", "cut", "cut_aid", "cut_task", "cut_task_aid")


def start_anew() -> None:
    """Forget the plugin, as a new process would not know it."""
    for name in MODULES:
        sys.modules.pop(name, None)
    registry._read_entry_points.cache_clear()
    catalogue.offers.cache_clear()
    importlib.invalidate_caches()
    forget_loaded()


@pytest.fixture
def plugin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    folder = tmp_path / "plugin"
    about = folder / "cut-1.0.dist-info"
    about.mkdir(parents=True)
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: cut\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text(POINTS)
    for name, text in FILES.items():
        (folder / name).write_text(text)
    monkeypatch.syspath_prepend(folder)
    monkeypatch.setenv("PYTHONPATH", f"{folder}:{Path(registry.__file__).parents[1]}")
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    # Other tests put functions of their own in the place of the harness's.
    monkeypatch.setattr(shared_code, "_PROCESS", shared_code._Process())
    start_anew()
    yield folder
    monkeypatch.undo()
    start_anew()


def plan_and_job(suite: str = "first") -> tuple[Plan, Job]:
    start_anew()
    plan = plan_of(methods=[{"method": "cut"}], seeds=[1], suites=[suite])
    return plan, next(job for job in plan.jobs if job.row == "cut")


EDITS = {
    "cut.py": METHOD + "\n# another line\n",
    "cut_aid.py": "DIMS = 2\n",
    "table.txt": "2\n",
    "cut_task_aid.py": "SCALE = 0.5\n",
}


def test_a_dry_run_names_the_file_that_changed(plugin: Path, tmp_path: Path) -> None:
    plan, job = plan_and_job()
    first = execute(job, tmp_path)
    assert first.status == "finished", first.reason
    assert describe_code_changes(plan, tmp_path) == []
    for name, text in EDITS.items():
        (plugin / name).write_text(text)
        plan, job = plan_and_job()
        (line,) = describe_code_changes(plan, tmp_path)
        assert name in line
        assert "1 run is due" in line
        assert not any(other in line for other in EDITS if other != name)
        again = execute(job, tmp_path)
        assert again.status == "finished"
        assert again.id != first.id
    for name in EDITS:
        (plugin / name).write_text(FILES[name])
    plan, job = plan_and_job()
    record = execute(job, tmp_path)
    assert (record.id, record.scores[0].value) == (first.id, 0.25)


def test_a_dry_run_names_the_file_of_pairs_that_changed(tmp_path: Path) -> None:
    file = own_files.pairs_file(tmp_path / "pairs.csv", 60)
    keys = {"methods": [CLS], "seeds": [1], "suites": [str(file)]}
    assert execute(plan_of(**keys).jobs[0], tmp_path).status == "finished"
    own_files.pairs_file(file, 50)
    forget_loaded()
    (line,) = describe_code_changes(plan_of(**keys), tmp_path)
    assert line.startswith('task "file:pairs.csv": pairs.csv has changed since')


def test_another_code_of_a_task_has_another_protocol(plugin: Path, tmp_path: Path) -> None:
    before = execute(plan_and_job()[1], tmp_path)
    (plugin / "cut_task_aid.py").write_text(EDITS["cut_task_aid.py"])
    after = execute(plan_and_job()[1], tmp_path)
    assert [before.scores[0].value, after.scores[0].value] == [0.25, 0.5]
    assert before.scores[0].comparable != after.scores[0].comparable
    assert after.protocols[after.scores[0].comparable]["task"] == "first"


@pytest.mark.parametrize("name", EDITS)
def test_a_process_that_imports_other_code_fails_its_run(
    name: str, plugin: Path, tmp_path: Path
) -> None:
    _, job = plan_and_job()
    (plugin / name).write_text(EDITS[name])
    start_anew()
    record = execute(job, tmp_path)
    assert record.status == "failed"
    assert name in record.reason
    assert not record.scores


def test_a_worker_that_imports_other_code_fails_its_run(plugin: Path, tmp_path: Path) -> None:
    name = "cut_aid.py"
    _, job = plan_and_job()
    (plugin / name).write_text(EDITS[name])
    engine = Processes(ExecutorSettings(workers=1), tmp_path)
    (answer,) = engine.run(partial(run_job, workdir=tmp_path), deque([job]), lambda: None)
    record: Record = answer.value
    assert record.status == "failed"
    assert name in record.reason
    assert not record.scores
    assert RunFolder(tmp_path, job.id).read_if_sound() == record


def test_a_helper_that_is_imported_too_late_fails_the_run_and_leaves_no_vectors(
    plugin: Path, tmp_path: Path
) -> None:
    _, job = plan_and_job(NATURAL)
    (plugin / "cut_aid.py").write_text(EDITS["cut_aid.py"])  # imported by `encode` alone
    record = execute(job, tmp_path)
    assert record.status == "failed"
    assert "cut_aid.py" in record.reason
    (plugin / "cut_aid.py").write_text(FILES["cut_aid.py"])
    start_anew()
    truth = execute(plan_and_job(NATURAL)[1], tmp_path / "truth")
    record = execute(plan_and_job(NATURAL)[1], tmp_path)
    assert record.scores == truth.scores


def test_a_module_that_is_edited_during_a_run_of_this_process_changes_nothing(
    plugin: Path, tmp_path: Path
) -> None:
    _, job = plan_and_job()
    (plugin / "cut.py").write_text(METHOD.replace("DIMS:", "1:"))
    assert execute(job, tmp_path).status == "finished"


def jobs_beside_a_changing_row(suite: str = NATURAL) -> list[Job]:
    start_anew()
    rows = [{"method": "changing"}, CLS]
    jobs = plan_of(methods=rows, seeds=[1], suites=[suite]).jobs
    return [job for job in jobs if job.row in ("changing", "cls")]


def test_rows_after_one_that_changes_torch_fail_until_another_process_has_them(
    plugin: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (truth,) = [execute(job, tmp_path / "truth") for job in plan_of(methods=[CLS], seeds=[1]).jobs]
    monkeypatch.setattr(shared_code, "_PROCESS", shared_code._Process())
    changing, other = jobs_beside_a_changing_row()
    with monkeypatch.context() as patch:
        patch.setattr(torch.nn.LayerNorm, "forward", torch.nn.LayerNorm.forward)  # put back after
        assert execute(changing, tmp_path).status == "finished"
        failed = execute(other, tmp_path)
        assert (failed.status, failed.scores) == ("failed", [])
        assert changing.label in failed.reason
        assert "LayerNorm.forward" in failed.reason
    monkeypatch.setattr(shared_code, "_PROCESS", shared_code._Process())
    assert execute(other, tmp_path).scores == truth.scores


@pytest.mark.campaign
def test_a_row_after_one_that_changes_torch_has_its_scores_in_a_new_worker(
    plugin: Path, tmp_path: Path
) -> None:
    """Shorter: test_a_worker_ends_with_a_job_that_changed_what_later_jobs_use."""
    suite = str(own_files.pairs_file(tmp_path / "pairs.csv", 30))
    plan = plan_of(methods=[CLS], seeds=[1], suites=[suite])
    (truth,) = [execute(job, tmp_path / "truth") for job in plan.jobs]
    changing, other = jobs_beside_a_changing_row(suite)
    engine = Processes(ExecutorSettings(workers=1, cpus_per_run=1), tmp_path)
    run = partial(run_job, workdir=tmp_path / "both")
    both = [answer.value for answer in engine.run(run, deque([changing, other]), lambda: None)]
    assert [record.status for record in both] == ["finished", "finished"]
    assert both[1].scores == truth.scores


def test_rows_beside_a_module_that_changes_torch_when_it_is_imported_fail(
    plugin: Path, tmp_path: Path
) -> None:
    forward = torch.nn.LayerNorm.forward
    text = CHANGING.replace("        torch.nn.LayerNorm.forward = ", "        _ = ")
    (plugin / "changing.py").write_text(
        text + "\ntorch.nn.LayerNorm.forward = lambda self, x: x * 0.5\n"
    )
    try:
        changing, other = jobs_beside_a_changing_row()
        assert torch.nn.LayerNorm.forward is not forward
        failed = execute(other, tmp_path)
        assert (failed.status, failed.scores) == ("failed", [])
        assert "LayerNorm.forward" in failed.reason
        assert execute(changing, tmp_path).status == "finished"
    finally:
        torch.nn.LayerNorm.forward = forward


def test_a_row_that_ships_is_checked_once_after_a_plugin(
    plugin: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (plugin / "changing.py").write_text(CHANGING.replace("torch.nn.LayerNorm.forward =", "_ ="))
    changing, other = jobs_beside_a_changing_row()
    checks: list[int] = []
    compute = shared_code.compute_reference
    monkeypatch.setattr(shared_code, "compute_reference", lambda: checks.append(1) or compute())
    assert execute(changing, tmp_path).status == "finished"
    assert len(checks) == 3  # first, what was imported, and after the row
    assert execute(other, tmp_path).status == "finished"
    assert len(checks) == 4


def test_rows_after_one_that_changes_nothing_are_recorded(plugin: Path, tmp_path: Path) -> None:
    (plugin / "changing.py").write_text(CHANGING.replace("torch.nn.LayerNorm.forward =", "_ ="))
    records = [execute(job, tmp_path) for job in jobs_beside_a_changing_row()]
    assert [record.status for record in records] == ["finished", "finished"]
    assert records[1].scores
