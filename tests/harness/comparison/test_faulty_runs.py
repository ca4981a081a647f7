"""Methods that misbehave and disks that fill up in the middle of a comparison: told in a line, and nothing is lost."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from harness.comparison.cell import run_cell
from harness.comparison.experiment import read_experiment
from harness.comparison.plan import Plan, make_plan
from harness.errors import RunError
from harness.evaluation.scoring import each
from harness.results.missing import Missing
from harness.results.record import Record
from harness.results.run_folder import RunFolder
from harness.tasks.base import Task
from harness.tasks.catalogue import resolve_tasks
from methods.pooling import PoolingMethod

pytestmark = [pytest.mark.timeout(240), pytest.mark.usefixtures("few_pairs")]

EXPERIMENT = """
name = "small"
seeds = [1]
suites = ["Embedded-STS-natural", "Embedded-Retrieval-natural"]
precision = "fp32"
[dev]
task = "Embedded-STS-natural"
[[methods]]
name = "first"
method = "pooling"
config = { pooling = "cls", max_length = 4 }
[[methods]]
name = "second"
method = "pooling"
config = { pooling = "mean", max_length = 4 }
"""


@pytest.fixture
def plan(tmp_path: Path) -> Plan:
    file = tmp_path / "small.toml"
    file.write_text(EXPERIMENT)
    return make_plan(read_experiment(str(file), []), str(file))


def run_all(plan: Plan, work: Path) -> list[Record]:
    return [run_cell(cell, plan, work, command="") for cell in plan.cells]


def misbehaving(monkeypatch: pytest.MonkeyPatch, pooling: str, damage: Any) -> None:
    """Let the row with this pooling encode as `damage` changes its vectors."""
    encode = PoolingMethod.encode

    def damaged(self: PoolingMethod, texts: Any, **how: Any) -> Any:
        vectors = encode(self, texts, **how)
        return damage(vectors) if self.config.pooling == pooling else vectors

    monkeypatch.setattr(PoolingMethod, "encode", damaged)


def test_a_method_with_the_wrong_number_of_rows_fails_alone(
    plan: Plan, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        misbehaving(patch, "cls", lambda x: x[:-1])
        first, second = run_all(plan, tmp_path / "work")
    assert first.status == "failed"
    assert first.reason.startswith("RunError: encode returned shape (")
    assert first.scores == []
    assert "Traceback" in (RunFolder(tmp_path / "work", first.id).path / "error.txt").read_text()
    assert (second.status, second.missing) == ("finished", {})
    again = run_all(plan, tmp_path / "work")
    assert [record.status for record in again] == ["finished", "finished"]  # what failed is tried again
    assert again[1] == second


def test_a_method_with_nan_vectors_is_scored_and_says_so(
    plan: Plan, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def holes(x: Any) -> Any:
        return np.where(np.arange(len(x))[:, None] % 5 == 0, np.nan, x)

    misbehaving(monkeypatch, "cls", holes)
    first, second = run_all(plan, tmp_path / "work")
    assert (first.status, second.status) == ("finished", "finished")
    assert all(np.isfinite(score.value) for score in first.scores)
    told = [note.partition(":")[0] for note in first.training["notes"]]
    assert told == ["Embedded-STS-natural", "Embedded-Retrieval-natural"]
    assert all("vectors with NaN or infinity, replaced by 0" in note for note in first.training["notes"])
    assert "notes" not in second.training


def test_a_disk_that_fills_up_ends_the_comparison_and_loses_nothing(
    plan: Plan, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    work = tmp_path / "work"
    cells = plan.cells
    first = run_cell(cells[0], plan, work, command="")

    def full(handle: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        with pytest.raises(OSError, match="No space left on device"):
            run_cell(cells[1], plan, work, command="")
    assert RunFolder(work, cells[1].id).read() is None
    assert not [f for f in work.rglob("*") if f.is_file() and f.stat().st_size == 0 and not f.name.endswith(".lock")]
    assert RunFolder(work, cells[0].id).read() == first
    assert [record.status for record in run_all(plan, work)] == ["finished", "finished"]


def test_a_task_that_fails_leaves_the_others_their_scores_and_is_tried_again(
    plan: Plan, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*args: Any, **kwargs: Any) -> None:
        raise ValueError("a fault\nof the program")

    cell, work = plan.cells[0], tmp_path / "work"
    with monkeypatch.context() as patch:
        patch.setattr("harness.tasks.mteb.task.MTEBTask.evaluate", broken)
        record = run_cell(cell, plan, work, command="")
    assert record.status == "finished"
    assert {score.task for score in record.scores} == {"Embedded-STS-natural"}
    assert record.missing == {"Embedded-Retrieval-natural": Missing("failed", "failed: ValueError: a fault")}
    kept = RunFolder(work, cell.id).path / "errors" / "Embedded-Retrieval-natural.txt"
    assert "ValueError: a fault\nof the program" in kept.read_text()
    again = run_cell(cell, plan, work, command="")
    assert again.missing == {}
    assert {score.task for score in again.scores} == {"Embedded-STS-natural", "Embedded-Retrieval-natural"}
    assert not kept.exists()


def test_faults_of_the_encoder_and_of_the_disk_are_not_those_of_a_task() -> None:
    tasks = resolve_tasks(["Embedded-STS-natural", "Embedded-STS-contrast"])
    for error in (RunError("vectors"), OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))):

        def ask(task: Task, error: Exception = error) -> int:
            if task.name.endswith("contrast"):
                raise error
            return 1

        with pytest.raises(type(error)):
            each(tasks, ask)
    with pytest.raises(ZeroDivisionError):  # no task has an answer
        each(tasks, lambda task: 1 // 0)
