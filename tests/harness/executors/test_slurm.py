"""SLURM by submitit: jobs are queued with what sbatch is asked for, and queued again when they are preempted."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
import torch

from harness.errors import InputError, RunError, StopAsked
from harness.executors.executor import THREADS, Answer, ExecutorSettings, Job
from harness.executors.leaving import stay
from harness.executors.slurm import Queued, Slurm
from tests.support import jobs
from tests.support import tables_of_executors as tables

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


@pytest.mark.campaign
@pytest.mark.timeout(600)
def test_the_table_is_that_of_one_process_though_a_job_is_preempted(
    tmp_path: Path, of_serial: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("harness.executors.slurm.Slurm.cluster", "local")
    work, log = tmp_path / "work", tmp_path / "updates"
    with tables.in_the_middle(work, log, lambda pid: os.kill(pid, signal.SIGUSR2)) as preempted:
        table = tables.table_of(work, {"name": "slurm", "cpus_per_cell": 1}, log, pause=0.3)
    assert preempted
    assert table == of_serial
    assert tables.updates(log) == tables.UPDATES  # the signal wrote the checkpoint: nobody else did
    assert tables.processes(log) == tables.SEEDS + 1
    assert not (work / "slurm").exists()  # all has gone well


@pytest.mark.usefixtures("own_threads")
def test_an_array_of_jobs_is_queued_and_answered(tmp_path: Path) -> None:
    """As sbatch would see it: submitit's own stand-in notes the script, and the jobs are run where its nodes would."""
    from submitit.core.submission import process_job
    from submitit.core.utils import JobPaths
    from submitit.slurm.test_slurm import mocked_slurm

    settings = {"gpus_per_cell": 1, "workers": 2, "slurm": {"partition": "gpu", "time": "1-0", "account": "me"}}
    executor = Slurm(ExecutorSettings.model_validate({"name": "slurm", "cpus_per_cell": 1, **settings}), tmp_path)
    asked = [Job("value", jobs.double, (21,)), Job("error", jobs.refuse, ("no",)), Job("other", jobs.double, (4,))]
    with mocked_slurm() as cluster:
        left = ["12_0", "12_1", "12_2"]

        def tick() -> None:
            if not left:
                return
            job = left.pop(0)
            with cluster.job_context(job), suppress(ValueError):
                process_job(JobPaths(tmp_path.resolve() / "slurm" / "%j", job).folder)

        answers = by_key(executor.run(asked, tick))
    assert {key: one.value for key, one in answers.items()} == {"value": 42, "error": None, "other": 8}
    assert str(answers["error"].error) == "ValueError: no"
    script = (tmp_path / "slurm" / "12" / "12_submission.sh").read_text().splitlines()
    lines = {line.removeprefix("#SBATCH --") for line in script if line.startswith("#SBATCH")}
    wanted = {"array=0-2%2", "partition=gpu", "time=1440", "account=me", "gpus-per-node=1", "cpus-per-task=1"}
    assert wanted <= lines
    assert any(line.startswith("signal=USR2@") for line in lines)
    assert (tmp_path / "slurm" / "12").exists()  # something to be looked at


@pytest.fixture
def own_threads(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """What a worker does to its threads ends with the test."""
    for name in THREADS:
        monkeypatch.setenv(name, "")
    before = torch.get_num_threads()
    yield
    torch.set_num_threads(before)


@pytest.mark.usefixtures("own_threads")
def test_a_job_that_is_preempted_is_queued_again_when_it_has_left() -> None:
    again: list[int] = []
    before = signal.signal(signal.SIGUSR2, lambda number, _: again.append(number))  # as submitit does
    try:
        assert Queued(1, jobs.double, (4,))() == 8
        queued = Queued(1, jobs.leave_at_signal, (signal.SIGUSR2,))
        with pytest.raises(StopAsked):  # where submitit ends the process
            queued()
    finally:
        signal.signal(signal.SIGUSR2, before)
        stay()
    assert again == [signal.SIGUSR2]
    assert signal.alarm(0) == 0
    assert queued.checkpoint().function is queued


@pytest.mark.usefixtures("own_threads")
def test_a_job_that_does_not_leave_in_time_is_queued_again_without(monkeypatch: pytest.MonkeyPatch) -> None:
    class Ended(BaseException):
        pass

    def queue_again(*_: object) -> None:
        raise Ended

    monkeypatch.setattr("harness.executors.slurm.GRACE", 1)
    before, alarm = signal.signal(signal.SIGUSR2, queue_again), signal.getsignal(signal.SIGALRM)
    try:
        with pytest.raises(Ended):
            Queued(1, jobs.stay_at_signal, (signal.SIGUSR2, 10.0))()
    finally:
        signal.signal(signal.SIGUSR2, before)
        signal.signal(signal.SIGALRM, alarm)
        stay()


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


def test_arrays_are_no_longer_than_slurm_takes_and_no_more_run_than_asked_for(tmp_path: Path) -> None:
    assert [local(tmp_path)._next(2500, waiting) for waiting in (0, 1000)] == [1000, 1000]
    assert [local(tmp_path, workers=8)._next(2500, waiting) for waiting in (0, 9, 8, 6)] == [1000, 0, 0, 2]
    assert local(tmp_path, workers=8)._next(3, 6) == 2


def test_without_slurm_it_is_said_in_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    executor = Slurm(ExecutorSettings(name="slurm"), tmp_path)
    with pytest.raises(InputError, match="executor slurm: ") as told:
        next(iter(executor.run([Job("value", jobs.double, (1,))], lambda: None)))
    assert "\n" not in str(told.value)
