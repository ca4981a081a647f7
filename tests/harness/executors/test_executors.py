"""Executors: every job has its answer, a worker that dies costs only its job, and runs are those of
one process.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from threading import Thread

import psutil
import pytest

from harness import registry
from harness.errors import RunError, StopRequested
from harness.executors.executor import (
    LEAVE,
    THREADS,
    Executor,
    ExecutorSettings,
    JobResult,
    Serial,
    check_known,
)
from harness.executors.processes import Processes
from harness.executors.ray import Ray
from harness.executors.slurm import Queued, Slurm
from harness.runs.execute import execute
from tests.support import jobs, small_runs
from tests.support.errors import raises_input_error
from tests.support.jobs import Call
from tests.support.small_runs import STEPS, job_of, weights

pytestmark = pytest.mark.timeout(600)
ROOT = str(Path(__file__).parents[3])


class Local(Slurm):
    """The engine of submitit for a machine without SLURM: a process for each job."""

    cluster = "local"


def executor(kind: type[Executor], folder: Path, **settings: object) -> Executor:
    return kind(
        ExecutorSettings.model_validate({"name": kind.name, "cpus_per_run": 1, **settings}), folder
    )


def answers(engine: Executor, calls: Sequence[Call]) -> dict[str, JobResult]:
    return {answer.job.id: answer for answer in engine.run(jobs.call, deque(calls), lambda: None)}


@pytest.fixture(autouse=True)
def own_threads(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """What a worker changes in this process ends with the test; workers import what this process
    does.
    """
    for name in THREADS:
        monkeypatch.setenv(name, "1")
    monkeypatch.setenv("PYTHONPATH", ROOT)
    yield
    LEAVE.clear()


KINDS = [
    Processes,
    pytest.param(Local, marks=pytest.mark.campaign),
    pytest.param(Ray, marks=pytest.mark.campaign),
]


@pytest.mark.parametrize("kind", KINDS)
def test_answers_errors_and_deaths(kind: type[Executor], tmp_path: Path) -> None:
    if kind is not Processes:
        pytest.importorskip({"slurm": "submitit", "ray": "ray"}[kind.name])
    calls = [
        Call("value", jobs.double, (21,)),
        Call("error", jobs.refuse, ("no",)),
        *([Call("interrupt", jobs.interrupt)] if kind is Processes else []),
        Call("dies once", jobs.die, (str(tmp_path / "once"), 1)),
        Call("always dies", jobs.die, (str(tmp_path / "always"), 99)),
        Call("threads", jobs.threads),
    ]
    threads = 2 if kind is Processes else 1  # one is what the environment says
    engine = executor(kind, tmp_path, workers=2, retries=1, cpus_per_run=threads)
    found = answers(engine, calls)
    assert len(found) == len(calls)
    assert found["value"].value == 42
    assert "no" in str(found["error"].error)
    assert kind is not Processes or isinstance(found["interrupt"].error, RunError)
    assert found["dies once"].value == "lived after 1"
    assert found["always dies"].lost
    assert (tmp_path / "always").read_text() == "xx"  # one retry
    assert found["threads"].value == (str(threads), threads)


def test_a_ray_worker_ends_with_a_job_of_a_plugin(tmp_path: Path) -> None:
    pytest.importorskip("ray")
    plugins = {"first": False, "second": True, "third": False}
    calls = [Call(name, os.getpid, (), runs_plugin) for name, runs_plugin in plugins.items()]
    found = answers(executor(Ray, tmp_path, workers=1), calls)
    assert found["third"].value not in (found["first"].value, found["second"].value)


def test_a_worker_ends_with_a_job_that_changed_what_later_jobs_use(tmp_path: Path) -> None:
    calls = [Call("first", jobs.change_process), Call("second", os.getpid)]
    calls += [Call("third", os.getpid)]
    found = answers(executor(Processes, tmp_path, workers=1), calls)
    assert found["first"].value != found["second"].value
    assert found["second"].value == found["third"].value


def test_a_worker_that_ended_is_noticed_though_its_child_lives_on(tmp_path: Path) -> None:
    file = tmp_path / "child"
    calls = [
        Call("unpicklable", jobs.make_function),
        Call("lost", jobs.die_beside_child, (str(file),)),
        Call("next", jobs.double, (2,)),
    ]
    found = answers(executor(Processes, tmp_path, workers=1, retries=0), calls)
    child = psutil.Process(int(file.read_text()))
    child.kill()
    assert found["lost"].lost
    assert found["next"].value == 4
    assert isinstance(found["unpicklable"].error, RuntimeError)


@pytest.mark.parametrize("kind", [Serial, Processes])
def test_jobs_can_be_added_while_others_run(kind: type[Executor], tmp_path: Path) -> None:
    queue = deque([Call("1", jobs.double, (1,)), Call("2", jobs.double, (2,))])
    seen = []
    for answer in executor(kind, tmp_path, workers=1).run(jobs.call, queue, lambda: None):
        seen.append(answer.value)
        if answer.value < 16:
            queue.append(Call(str(answer.value), jobs.double, (answer.value,)))
    assert sorted(seen) == [2, 4, 4, 8, 8, 16, 16]


def engine_of(kind: type[Executor], monkeypatch: pytest.MonkeyPatch) -> None:
    """Have executors of this kind's name be of this kind."""
    load = registry.load
    monkeypatch.setattr(
        registry, "load", lambda group, name: kind if name == kind.name else load(group, name)
    )


@pytest.mark.campaign
def test_slurm_gives_the_records_of_one_process_though_a_job_is_preempted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without a dev set, whose pairs workers do not cut. The signal writes the only checkpoint,
    which is continued.

    Shorter: test_sbatch_gets_the_options_of_the_file has the answers of jobs,
    test_a_preempted_job_is_queued_again_once_it_has_left the second start, and
    test_a_stop_writes_a_checkpoint_from_which_the_same_call_continues the checkpoint.
    """
    pytest.importorskip("submitit")
    log, work = tmp_path / "steps", tmp_path / "work"
    engine_of(
        jobs.observing(Local, log, at=3, number=signal.SIGUSR2, checkpoints=False), monkeypatch
    )
    settings = {"name": "slurm", "cpus_per_run": 1}
    done = small_runs.compare(
        work, seeds=[1], dev=None, methods=[small_runs.SIMCSE], executor=settings
    )
    assert weights(done.records) == weights([execute(job_of(dev=None), tmp_path / "here")])
    assert (len(jobs.steps(log)), len(set(jobs.steps(log)))) == (STEPS, 2)


@pytest.mark.campaign
def test_ray_gives_the_records_of_one_process(tmp_path: Path) -> None:
    pytest.importorskip("ray")
    settings = {"name": "ray", "cpus_per_run": 1}
    done = small_runs.compare(
        tmp_path / "work", seeds=[1], dev=None, methods=[small_runs.SIMCSE], executor=settings
    )
    assert weights(done.records) == weights([execute(job_of(dev=None), tmp_path / "here")])


@pytest.mark.campaign
def test_a_ray_node_that_is_lost_costs_only_the_steps_since_the_last_checkpoint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ray = pytest.importorskip("ray")
    from ray.cluster_utils import Cluster

    log = tmp_path / "steps"
    engine_of(jobs.observing(Ray, log), monkeypatch)
    cluster = Cluster(
        initialize_head=True, head_node_args={"num_cpus": 0, "include_dashboard": False}
    )
    for _ in range(2):
        cluster.add_node(num_cpus=1)
    lost: list[str] = []

    def lose_node() -> None:
        while len(jobs.steps(log)) < 3:
            time.sleep(0.02)
        lost.append(jobs.steps(log)[-1])
        worker = psutil.Process(int(lost[0]))
        raylet = worker.parent()  # of the node
        assert raylet is not None
        for process in (raylet, worker):
            process.kill()

    ray.init(address=cluster.address, log_to_driver=False)
    try:
        Thread(target=lose_node, daemon=True).start()
        settings = {"name": "ray", "cpus_per_run": 1}
        done = small_runs.compare(
            tmp_path / "work", seeds=[1], dev=None, methods=[small_runs.SIMCSE], executor=settings
        )
    finally:
        ray.shutdown()
        cluster.shutdown()
    assert weights(done.records) == weights([execute(job_of(dev=None), tmp_path / "here")])
    taken = jobs.steps(log)
    assert len(set(taken)) == 2  # the node that was lost, and the other one
    assert STEPS <= len(taken) <= STEPS + 1


def test_workers_end_with_a_coordinator_that_is_killed(tmp_path: Path) -> None:
    (tmp_path / "coordinator.py").write_text(
        "import sys\nfrom collections import deque\nfrom pathlib import Path\n"
        "from harness.executors.executor import ExecutorSettings\nfrom harness.executors.processes import Processes\n"
        "from tests.support import jobs\n"
        "if __name__ == '__main__':\n"
        "    engine = Processes(ExecutorSettings(name='processes', workers=1, cpus_per_run=1), Path(sys.argv[1]))\n"
        "    queue = deque([jobs.Call('slow', jobs.wait_with_pid, (sys.argv[1],))])\n"
        "    list(engine.run(jobs.call, queue, lambda: print('tick', flush=True)))\n"
    )
    command = [sys.executable, str(tmp_path / "coordinator.py"), str(tmp_path)]
    pid = tmp_path / "pid"
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as coordinator:
        assert coordinator.stdout is not None
        for _ in coordinator.stdout:  # about once a second
            if pid.exists() and pid.read_text():
                break
        worker = psutil.Process(int(pid.read_text()))
        coordinator.kill()
    assert psutil.wait_procs([worker], timeout=50)[1] == []  # the job takes a minute


@pytest.mark.parametrize(
    "option",
    [
        {"comment": "x\ntouch made\n#"},
        {"comment": "x\rtouch made"},
        {"comment": "x\u2028y"},
        {"comment\ntouch made\n#": "x"},
        {"partition": "a\nb"},
        {"comment": "x\n"},
    ],
)
def test_an_option_of_sbatch_is_one_line(tmp_path: Path, option: dict[str, str]) -> None:
    pytest.importorskip("submitit")
    from submitit.slurm.test_slurm import mocked_slurm

    engine = executor(Slurm, tmp_path, slurm=option)
    with mocked_slurm(), raises_input_error() as caught:
        list(engine.run(jobs.call, deque([Call("value", jobs.double, (21,))]), lambda: None))
    assert caught.value.key is not None
    assert "executor.slurm" in caught.value.key


def test_a_script_without_a_main_guard_runs_once(tmp_path: Path) -> None:
    """A spawned process otherwise imports the script that started it, and so runs it again. Workers
    leave no lock of a progress bar behind, which Python would warn of.
    """
    script = tmp_path / "mine.py"
    script.write_text(
        "from collections import deque\nfrom pathlib import Path\n"
        "from harness.executors.executor import ExecutorSettings\nfrom harness.executors.processes import Processes\n"
        "from tests.support.jobs import show_bar\n"
        "engine = Processes(ExecutorSettings(name='processes', workers=1), Path())\n"
        "print([answer.value for answer in engine.run(show_bar, deque([4]), lambda: None)], __file__)\n"
    )
    done = subprocess.run(
        [sys.executable, script], capture_output=True, text=True, cwd=tmp_path, check=True
    )
    assert (done.stdout, done.stderr) == (f"[4] {script}\n", "")


def test_methods_that_other_processes_do_not_know_are_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(registry._added, registry.METHODS.entry_points, {"mine": object})
    check_known(ExecutorSettings(), ["mine"])
    check_known(ExecutorSettings(name="processes"), ["simcse"])
    with raises_input_error(key="executor"):
        check_known(ExecutorSettings(name="processes"), ["simcse", "mine"])


def test_workers_fit_the_cores(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("harness.executors.executor.usable_cores", lambda: 16)
    for settings, workers in (({}, 16), ({"workers": 4}, 4), ({"cpus_per_run": 8}, 2)):
        assert executor(Processes, tmp_path, **{"cpus_per_run": None, **settings}).room() == workers


def test_gpus_are_shared_among_workers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0,3,5,7")
    for share, jobs_at_a_time in ((0.5, 8), (1, 4)):
        assert executor(Processes, tmp_path, gpus_per_run=share).room() == jobs_at_a_time
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    with raises_input_error(key="gpus_per_run"):
        executor(Processes, tmp_path, gpus_per_run=1).room()


def test_sbatch_gets_the_options_of_the_file(tmp_path: Path) -> None:
    """As sbatch sees it: submitit's own stand-in stores the script, and the jobs run where its
    nodes would.
    """
    pytest.importorskip("submitit")
    from submitit.core.submission import process_job
    from submitit.core.utils import JobPaths
    from submitit.slurm.test_slurm import mocked_slurm

    options = {
        "gpus_per_run": 1,
        "workers": 2,
        "slurm": {"partition": "gpu", "time": "1-00:00:00", "account": "me"},
    }
    engine = executor(Slurm, tmp_path, **options)
    calls = [
        Call("value", jobs.double, (21,)),
        Call("error", jobs.refuse, ("no",)),
        Call("other", jobs.double, (4,)),
    ]
    with mocked_slurm() as cluster:
        left = ["12_0", "12_1", "12_2"]

        def tick() -> None:
            if left:
                job = left.pop(0)
                with cluster.job_context(job), suppress(ValueError):
                    process_job(JobPaths(tmp_path.resolve() / "slurm" / "%j", job).folder)

        found = {answer.job.id: answer for answer in engine.run(jobs.call, deque(calls), tick)}
    assert {key: one.value for key, one in found.items()} == {
        "value": 42,
        "error": None,
        "other": 8,
    }
    assert "no" in str(found["error"].error)
    script = (tmp_path / "slurm" / "12" / "12_submission.sh").read_text().splitlines()
    lines = {line.removeprefix("#SBATCH --") for line in script if line.startswith("#SBATCH")}
    wanted = {
        "array=0-2%2",
        "partition=gpu",
        "time=1440",
        "account=me",
        "gpus-per-node=1",
        "cpus-per-task=1",
    }
    assert wanted <= lines
    assert any(line.startswith("signal=USR2@") for line in lines)


def test_a_preempted_job_is_queued_again_once_it_has_left() -> None:
    again: list[int] = []
    before = signal.signal(
        signal.SIGUSR2, lambda number, _: again.append(number)
    )  # as submitit does
    try:
        assert Queued(1, jobs.double, 4)() == 8
        queued = Queued(1, jobs.leave_at_signal, signal.SIGUSR2)
        with pytest.raises(StopRequested):  # where submitit ends the process
            queued()
    finally:
        signal.signal(signal.SIGUSR2, before)
    assert again == [signal.SIGUSR2]
    assert queued.checkpoint().function is queued


@pytest.mark.parametrize(
    ("options", "key"),
    [
        ({"slurm": {"time": "soon"}}, "time"),
        ({"slurm": {"time": "1:2:3:4"}}, "time"),
        ({"slurm": {"time": "0:00:00"}}, "time"),
        ({"gpus_per_run": 0.5}, "gpus_per_run"),
        ({}, "executor slurm"),  # no sbatch here
    ],
)
def test_what_slurm_cannot_use_is_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: dict[str, object], key: str
) -> None:
    pytest.importorskip("submitit")
    monkeypatch.setenv("PATH", str(tmp_path))
    with raises_input_error(key=key):
        answers(
            executor(Slurm if not options else Local, tmp_path, **options),
            [Call("value", jobs.double, (1,))],
        )


def test_an_engine_that_is_not_installed_is_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with raises_input_error(key="executor"):
        answers(executor(Ray, tmp_path), [Call("value", jobs.double, (1,))])
