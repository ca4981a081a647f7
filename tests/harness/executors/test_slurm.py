"""SLURM by submitit: jobs are queued with what sbatch is asked for, and queued again when they are preempted."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from harness.errors import InputError, RunError
from harness.executors.executor import THREADS, Answer, ExecutorSettings, Job
from harness.executors.slurm import Queued, Slurm
from tests.support import jobs

pytest.importorskip("submitit")


class Local(Slurm):
    """submitit's engine for a machine without SLURM: a process a job."""

    cluster = "local"


def local(folder: Path, **settings: object) -> Local:
    return Local(ExecutorSettings.model_validate({"name": "slurm", "cpus_per_cell": 1, **settings}), folder)


def by_key(answers: Iterator[Answer]) -> dict[str, Answer]:
    return {answer.job.key: answer for answer in answers}


@pytest.mark.campaign
def test_answers_errors_and_deaths(tmp_path: Path) -> None:
    asked = [
        Job("value", jobs.double, (21,)),
        Job("error", jobs.refuse, ("no",)),
        Job("dies-once", jobs.die, (str(tmp_path / "once"), 1)),
    ]
    answers = by_key(local(tmp_path, retries=1).run(asked, lambda: None))
    assert answers["value"].value == 42
    assert isinstance(answers["error"].error, RunError)  # a failed record, and not the end of the comparison
    assert str(answers["error"].error) == "ValueError: no"
    assert answers["dies-once"].value == "lived after 1"


@pytest.fixture
def own_threads(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """What a worker does to its threads ends with the test."""
    for name in THREADS:
        monkeypatch.setenv(name, "")
    before = torch.get_num_threads()
    yield
    torch.set_num_threads(before)


@pytest.mark.usefixtures("own_threads")
def test_a_job_that_is_preempted_is_queued_again() -> None:
    queued = Queued(1, jobs.double, (4,))
    again = queued.checkpoint()
    assert again.function is queued
    assert queued() == 8


def test_what_sbatch_is_asked_for(tmp_path: Path) -> None:
    slurm = {"partition": "gpu", "time": "4:00:00", "account": "me", "requeue": "true"}
    asked = local(tmp_path, gpus_per_cell=2, memory_per_cell=24, workers=8, slurm=slurm)._parameters(6)
    assert asked == {
        "name": "harness",
        "timeout_min": 240,
        "cpus_per_task": 6,
        "tasks_per_node": 1,
        "gpus_per_node": 2,
        "mem_gb": 24,
        "slurm_array_parallelism": 8,
        "slurm_partition": "gpu",
        "slurm_additional_parameters": {"account": "me", "requeue": "true"},
    }
    with pytest.raises(InputError, match="whole GPUs"):
        local(tmp_path, gpus_per_cell=0.5)._parameters(1)


def test_without_slurm_it_is_said_in_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    executor = Slurm(ExecutorSettings(name="slurm"), tmp_path)
    with pytest.raises(InputError, match="executor slurm: ") as told:
        next(iter(executor.run([Job("value", jobs.double, (1,))], lambda: None)))
    assert "\n" not in str(told.value)
