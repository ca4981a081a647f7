"""Runs that are killed or stopped: the same call continues them, to the same numbers, and repeats
nothing.
"""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any

import pytest

from harness import registry
from harness.api.result import Comparison
from harness.errors import RunError
from harness.executors.processes import Processes
from harness.results.record import Record
from harness.results.store import RunFolder
from harness.runs import execute as execution
from harness.runs.due import find_finished
from harness.runs.execute import execute
from harness.runs.plan import Job
from harness.runs.progress import read_progress
from methods.simcse import SimCSE
from tests.support import jobs, small_runs
from tests.support.forks import run_fork
from tests.support.small_runs import STEPS, job_of, numbers, weights

REPOSITORY = Path(__file__).parents[3]

pytestmark = pytest.mark.timeout(600)

MOMENTS = ("training", "saving", "scoring", "recorded")


def die(*_: Any, **__: Any) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def execute_and_die(moment: str, job: Job, work: Path, log: Path) -> None:
    """Execute a job in a process that is killed at a moment."""
    write = RunFolder.write

    def write_and_die(folder: RunFolder, record: Record) -> None:
        write(folder, record)
        if record.status == "finished":
            die()

    if moment == "saving":
        SimCSE.save = die  # type: ignore[method-assign]
    if moment == "scoring":
        execution.evaluate = die  # type: ignore[assignment]
    if moment == "recorded":
        RunFolder.write = write_and_die  # type: ignore[method-assign]
    at = 3 if moment == "training" else 0
    jobs.run_observed(str(log), at, signal.SIGKILL, True, lambda job: execute(job, work), job)


def test_a_run_that_is_killed_at_any_moment_comes_to_the_same_numbers(
    small: Comparison, tmp_path: Path
) -> None:
    work, log, job = tmp_path / "work", tmp_path / "steps", job_of()
    folder = RunFolder(work, job.id)
    moments = []
    for moment in MOMENTS:
        ended = run_fork(execute_and_die, moment, job, work, log)
        record = folder.read()
        has_state = (folder.checkpoint / "state.pt").exists()
        status = record.status if record else ""
        moments.append((moment, ended, has_state, status, len(jobs.steps(log))))
    assert moments == [
        ("training", -signal.SIGKILL, True, "", 3),
        ("saving", -signal.SIGKILL, True, "", STEPS + 1),  # the third step was in no checkpoint
        ("scoring", -signal.SIGKILL, True, "trained", STEPS + 1),
        ("recorded", -signal.SIGKILL, True, "finished", STEPS + 1),
    ]
    record = execute(job, work)
    (expected,) = (r for r in small.records if r.id == record.id)
    assert (record.scores, record.files) == (expected.scores, expected.files)
    assert find_finished(job, work) == record


@pytest.mark.campaign
def test_a_worker_that_is_killed_continues_its_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without a dev set: workers do not cut its pairs to a few.

    Shorter: test_answers_errors_and_deaths has another worker take the job of one that died, and
    test_a_run_that_is_killed_at_any_moment_comes_to_the_same_numbers continues runs.
    """
    monkeypatch.setenv("PYTHONPATH", str(REPOSITORY))
    registry_load, log = registry.load, tmp_path / "steps"
    kind = jobs.observing(Processes, log, at=3)
    monkeypatch.setattr(
        registry,
        "load",
        lambda group, name: kind if name == "processes" else registry_load(group, name),
    )
    settings = {"name": "processes", "workers": 1, "cpus_per_run": 1}
    done = small_runs.compare(
        tmp_path / "work", seeds=[1], dev=None, methods=[small_runs.SIMCSE], executor=settings
    )
    assert weights(done.records) == weights([execute(job_of(dev=None), tmp_path / "here")])
    assert len(jobs.steps(log)) == STEPS + 1
    assert len(set(jobs.steps(log))) == 2  # the killed worker, and the one that followed it


def test_a_stop_writes_a_checkpoint_from_which_the_same_call_continues(
    small: Comparison, tmp_path: Path
) -> None:
    log, work = tmp_path / "steps", tmp_path / "work"

    def compare(at: int) -> Comparison:
        return jobs.run_observed(
            str(log), at, signal.SIGTERM, False, lambda _: small_runs.compare(work, seeds=[1]), None
        )

    with pytest.raises(RunError):
        compare(3)
    (state,) = read_progress(work)
    assert (state["phase"], [run["state"] for run in state["runs"]]) == (
        "stopped",
        ["finished", "waiting"],
    )
    assert len(list((work / "runs").glob("*/checkpoint/state.pt"))) == 1
    expected = numbers(small.records)
    assert numbers(compare(0).records).items() <= expected.items()
    assert len(jobs.steps(log)) == STEPS  # no step was repeated
    assert read_progress(work)[0]["phase"] == "ended"


def test_a_finished_comparison_executes_nothing(
    small: Comparison, work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = {file: file.read_bytes() for file in work.glob("runs/*/record.json")}

    def never(*_: object, **__: object) -> None:
        raise AssertionError("a finished run was executed")

    monkeypatch.setattr("harness.runs.runner.execute", never)
    again = small_runs.compare(work)
    assert again.records == small.records
    assert {file: file.read_bytes() for file in work.glob("runs/*/record.json")} == before


@pytest.mark.parametrize("kind", ["bytes", "a folder"])
def test_a_damaged_checkpoint_costs_its_training_only(
    small: Comparison, tmp_path: Path, kind: str
) -> None:
    job = job_of()
    state = RunFolder(tmp_path, job.id).checkpoint / "state.pt"
    state.parent.mkdir(parents=True)
    if kind == "bytes":
        state.write_bytes(b"no checkpoint" * 100)
    else:
        (state / "more").mkdir(parents=True)
    record = execute(job, tmp_path)
    expected = next(r for r in small.records if r.id == record.id)
    assert record.files == expected.files
