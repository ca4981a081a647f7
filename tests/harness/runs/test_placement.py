"""Memory of runs: one that has too little fails with advice, and as many run at a time as fit."""

from __future__ import annotations

import sys
from multiprocessing import Pipe
from pathlib import Path
from typing import Any

import pytest
import torch

from harness.errors import RunError
from harness.executors.executor import ExecutorSettings
from harness.machine.environment import usable_cores
from harness.machine.memory import ADVICE, free_bytes, is_out_of_memory, runs_beside
from harness.results.measurements import read_measurements
from harness.runs import placement
from harness.runs.experiment import read_experiment
from harness.runs.placement import choose, place_runs, run_apart
from harness.runs.plan import Job, Plan, make_plan
from tests.support import small_runs
from tests.support.failing_models import end_at_once, execute_with_little_memory, send_text
from tests.support.forks import run_fork

GIB = 2**30


def plan_of(**more: Any) -> Plan:
    return make_plan(read_experiment({**small_runs.EXPERIMENT, **more}, []), "small")


def trained(**config: Any) -> Job:
    entry = {**small_runs.SIMCSE, "config": {**small_runs.SIMCSE["config"], **config}}  # type: ignore[dict-item]
    corpus = {"uri": "embedded:sentences", "limit": 3000}
    plan = plan_of(methods=[entry], corpus=corpus, dev=None, max_steps=2)
    return next(job for job in plan.jobs if job.steps)


@pytest.mark.skipif(sys.platform != "linux", reason="other systems do not limit the address space")
def test_a_run_that_gets_no_memory_fails_with_the_advice_that_helps(tmp_path: Path) -> None:
    job = trained(batch_size=3000, packed=False)
    connection, other_end = Pipe()
    assert run_fork(execute_with_little_memory, other_end, job, tmp_path) == 0
    status, reason = connection.recv()
    assert status == "failed"
    assert reason.endswith(ADVICE)


@pytest.mark.parametrize(
    "error",
    [
        MemoryError(),
        torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB."),
        RuntimeError(
            "[enforce fail at alloc_cpu.cpp:121] DefaultCPUAllocator: can't allocate memory"
        ),
    ],
)
def test_a_want_of_memory_is_known_by_its_class_or_words(error: Exception) -> None:
    assert is_out_of_memory(error)
    outer = ValueError("encoding failed")
    outer.__cause__ = error
    assert is_out_of_memory(outer)
    assert not is_out_of_memory(ValueError("the memory of a model"))


def test_an_error_behind_which_a_want_of_memory_was_dealt_with_is_none() -> None:
    error = ValueError("a bad value")
    error.__context__ = MemoryError()
    assert is_out_of_memory(error)
    error.__suppress_context__ = True  # as `raise ... from None` sets it
    assert not is_out_of_memory(error)


def test_runs_that_surely_fit_are_not_measured(tmp_path: Path) -> None:
    plan = plan_of(executor={"name": "processes"})
    assert place_runs(plan, tmp_path).executor == plan.experiment.executor
    assert not list(tmp_path.iterdir())


def test_the_script_of_a_row_is_not_run_to_measure_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(placement, "_LIBRARIES", 2**60)  # nothing fits easily
    ran = tmp_path / "ran"
    script = tmp_path / "script.py"
    script.write_text(f"open({str(ran)!r}, 'w').close()\n")
    command = {
        "method": "command",
        "config": {"run": "python script.py {out}", "folder": str(tmp_path)},
    }
    text = {"uri": "embedded:sentences", "limit": 100}
    plan = plan_of(methods=[command], corpus=text, executor={"name": "processes"})
    place_runs(plan, tmp_path / "work")
    assert not ran.exists()


def test_as_many_runs_at_a_time_as_the_memory_holds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(placement, "_LIBRARIES", 2**60)  # nothing fits easily
    plan = plan_of(executor={"name": "processes", "cpus_per_run": 1})
    placed = place_runs(plan, tmp_path)
    (known,) = read_measurements(tmp_path)["memory"].values()
    assert 0.1 * GIB < known["peak"] < 8 * GIB  # of a process with torch and a small model
    fits = runs_beside(known["peak"], free_bytes("cpu"))
    assert placed.executor.workers in (fits, min(fits, usable_cores()))
    assert place_runs(plan, tmp_path).line  # measured once


@pytest.mark.parametrize("share", [{"workers": 3}, {"gpus_per_run": 0.5}])
def test_what_the_file_says_is_not_measured(share: dict[str, Any], tmp_path: Path) -> None:
    plan = plan_of(executor={"name": "processes", **share})
    assert place_runs(plan, tmp_path).executor == plan.experiment.executor
    assert not list(tmp_path.iterdir())


def test_a_run_that_takes_half_of_the_memory_runs_alone() -> None:
    settings = ExecutorSettings(name="processes", cpus_per_run=1)
    assert choose(settings, "cpu", 0.5 * free_bytes("cpu")).executor.workers == 1
    assert choose(settings, "cpu", 1.0).executor.workers == usable_cores()
    assert runs_beside(24 * GIB, 80 * GIB) == 3


def test_a_measurement_that_ends_or_fails_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(MemoryError, match="memory"):
        run_apart(end_at_once)
    with pytest.raises(RunError, match="too large"):
        run_apart(send_text, "too large")
    assert run_apart(send_text, 3.5) == 3.5
