"""Jobs in processes: every one has its answer, what dies takes its own job along alone, none outlives the run."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from harness.errors import InputError
from harness.executors.executor import Answer, Executor, ExecutorSettings, Job
from harness.executors.processes import Processes
from harness.executors.serial import Serial
from harness.executors.slurm import _minutes
from tests.support import jobs
from tests.support import tables_of_executors as tables

pytest.importorskip("pebble")
from pebble.pool.base_pool import PoolStatus
from pebble.pool.process import PoolManager


def processes(folder: Path, **settings: object) -> Processes:
    return Processes(ExecutorSettings.model_validate({"name": "processes", **settings}), folder)


def by_key(answers: Iterator[Answer]) -> dict[str, Answer]:
    return {answer.job.key: answer for answer in answers}


def test_answers_errors_and_deaths_are_told_apart_and_retried(tmp_path: Path) -> None:
    asked = [
        Job("value", jobs.double, (21,)),
        Job("error", jobs.refuse, ("no",)),
        Job("dies-once", jobs.die, (str(tmp_path / "once"), 1)),
        Job("always-dies", jobs.die, (str(tmp_path / "always"), 99)),
        Job("threads", jobs.threads),
    ]
    ticks: list[float] = []
    executor = processes(tmp_path, workers=2, cpus_per_cell=1, retries=1)
    answers = by_key(executor.run(asked, lambda: ticks.append(time.time())))
    assert len(answers) == len(asked)
    assert answers["value"].value == 42
    assert isinstance(answers["error"].error, ValueError)
    assert answers["dies-once"].value == "lived after 1"
    assert answers["always-dies"].lost == "its worker ended 2 times within it (last by exit code 7)"
    assert (tmp_path / "always").read_text() == "xx"  # asked once more, and then given up
    assert answers["threads"].value == ("1", 1)


def test_the_coordinator_looks_about_once_a_second_also_while_answers_come_all_the_time(tmp_path: Path) -> None:
    asked = [Job(str(n), jobs.note, (str(tmp_path), str(n), 0.05)) for n in range(60)]
    looks: list[int] = []
    executor = processes(tmp_path, workers=1, cpus_per_cell=1)
    assert len(by_key(executor.run(asked, lambda: looks.append(len(list(tmp_path.glob("*-ended"))))))) == 60
    assert any(0 < ended < 60 for ended in looks)


@pytest.mark.parametrize("kind", [Serial, Processes])
def test_jobs_may_be_added_while_others_run(kind: type[Executor], tmp_path: Path) -> None:
    queue = deque([Job("1", jobs.double, (1,)), Job("2", jobs.double, (2,))])
    executor = kind(ExecutorSettings(name=kind.name, workers=2, cpus_per_cell=1), tmp_path)
    seen = []
    for answer in executor.run(queue, lambda: None):
        seen.append(answer.value)
        if answer.value < 16:
            queue.append(Job(str(answer.value), jobs.double, (answer.value,)))
    assert sorted(seen) == [2, 4, 4, 8, 8, 16, 16]


@pytest.mark.parametrize("taken_in", [True, False], ids=["jobs taken in", "no job taken in yet"])
def test_a_worker_that_dies_before_it_has_a_job_takes_none_along(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, taken_in: bool
) -> None:
    killed: list[int] = []

    def kill_one() -> None:
        while not killed:
            for child in psutil.Process().children():
                if "spawn_main" in " ".join(child.cmdline()):
                    child.kill()
                    killed.append(child.pid)
                    return

    schedule = PoolManager.schedule

    def late(manager: PoolManager, task: Any) -> None:
        while manager.context.status != PoolStatus.ERROR and not tried:
            time.sleep(0.01)
        tried.append(task)
        schedule(manager, task)

    tried: list[Any] = []
    if not taken_in:
        monkeypatch.setattr(PoolManager, "schedule", late)
    threading.Thread(target=kill_one, daemon=True).start()
    asked = [Job(str(n), jobs.double, (n,)) for n in range(3)]
    answers = by_key(processes(tmp_path, workers=1, cpus_per_cell=1).run(asked, lambda: None))
    assert killed
    assert taken_in or tried
    assert {key: answer.value for key, answer in answers.items()} == {"0": 0, "1": 2, "2": 4}


@pytest.mark.campaign
@pytest.mark.timeout(600)
def test_the_table_is_that_of_one_process_though_a_worker_is_killed(tmp_path: Path, of_serial: dict[str, str]) -> None:
    work, log = tmp_path / "work", tmp_path / "updates"
    with tables.in_the_middle(work, log, lambda pid: os.kill(pid, signal.SIGKILL)) as killed:
        table = tables.table_of(work, {"name": "processes", "workers": 2, "cpus_per_cell": 1}, log)
    assert killed
    assert table == of_serial
    assert 0 <= tables.updates(log) - tables.UPDATES <= 1  # the one whose checkpoint was not written yet
    assert not list((work / "live" / "cells").iterdir())
    assert not list((work / "locks").glob("shared-*"))


def test_no_job_runs_on_when_the_caller_goes(tmp_path: Path) -> None:
    asked = [Job(name, jobs.note, (str(tmp_path), name, 60.0 if name == "slow" else 0.0)) for name in ("slow", "quick")]
    answers = processes(tmp_path, workers=2).run(asked, lambda: None)
    assert next(answers).job.key == "quick"
    began = time.monotonic()
    answers.close()
    assert time.monotonic() - began < 20
    assert not (tmp_path / "slow-ended").exists()


COORDINATOR = """
import sys
from pathlib import Path
from typing import Any
from harness.executors.executor import ExecutorSettings, Job
from harness.executors.processes import Processes
from tests.support import jobs
if __name__ == "__main__":
    folder = sys.argv[1]
    executor = Processes(ExecutorSettings(name="processes", workers=1), Path(folder))
    list(executor.run([Job("slow", jobs.wait_with_pid, (folder, 60.0))], lambda: None))
"""


def test_workers_end_with_a_coordinator_that_is_killed(tmp_path: Path) -> None:
    (tmp_path / "coordinator.py").write_text(COORDINATOR)
    command = [sys.executable, str(tmp_path / "coordinator.py"), str(tmp_path)]
    coordinator = subprocess.Popen(command, env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[3])})
    pid = tmp_path / "pid"
    late = time.monotonic() + 60
    while not (pid.exists() and pid.read_text()) and time.monotonic() < late:
        time.sleep(0.05)
    worker = psutil.Process(int(pid.read_text()))
    coordinator.kill()
    coordinator.wait()
    assert psutil.wait_procs([worker], timeout=10)[1] == []


def test_the_serial_executor_asks_here_one_after_the_other(tmp_path: Path) -> None:
    answers = Serial(ExecutorSettings(), tmp_path).run(
        [Job(str(n), jobs.double, (n,)) for n in (3, 1, 2)], lambda: None
    )
    assert [(a.job.key, a.value) for a in answers] == [("3", 6), ("1", 2), ("2", 4)]


def test_threads_and_workers_share_the_cores(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("harness.executors.executor.cores", lambda: 16)
    assert (processes(tmp_path).workers(5), processes(tmp_path).threads(5)) == (5, 3)
    assert (processes(tmp_path, workers=4).workers(99), processes(tmp_path, workers=4).threads(99)) == (4, 4)
    assert processes(tmp_path, cpus_per_cell=8).workers(99) == 2


def test_gpus_are_dealt_to_workers_by_their_share(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0,3,5,7")
    assert processes(tmp_path, gpus_per_cell=0.5).room(99) == 8
    assert processes(tmp_path, gpus_per_cell=1).room(3) == 3
    both = processes(tmp_path, gpus_per_cell=2)
    assert (both._devices(), both.room(99)) == (["0,3", "5,7"], 2)
    with pytest.raises(InputError, match=r"gpus_per_cell = 8, and this machine has 4"):
        processes(tmp_path, gpus_per_cell=8).room(1)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    with pytest.raises(InputError, match="no GPU"):
        processes(tmp_path, gpus_per_cell=1).room(1)


@pytest.mark.parametrize(
    ("text", "minutes"),
    [("", 0), ("90", 90), ("4:00:00", 240), ("0:00:30", 1), ("30:00", 30), ("2-0", 2880), ("1-02:30", 1590)],
)
def test_times_as_sbatch_spells_them(text: str, minutes: int) -> None:
    assert _minutes(text) == minutes


@pytest.mark.parametrize("text", ["soon", "1:2:3:4", "-5", "0"])
def test_a_time_that_is_none(text: str) -> None:
    with pytest.raises(InputError, match="expected M, M:S"):
        _minutes(text)
