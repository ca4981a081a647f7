"""Ray: a node that is lost, and GPUs that several runs share; the table is that of one process."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

import psutil
import pytest

from harness.executors.executor import ExecutorSettings, Job
from harness.executors.post import Post
from harness.executors.ray import Ray
from tests.support import jobs
from tests.support import tables_of_executors as tables

ray = pytest.importorskip("ray")
pytestmark = [pytest.mark.campaign, pytest.mark.timeout(900)]

ROOT = str(Path(__file__).parents[3])


@pytest.fixture(autouse=True)
def quiet(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(filter(None, [ROOT, os.environ.get("PYTHONPATH", "")])))
    monkeypatch.setenv("RAY_USAGE_STATS_ENABLED", "0")
    monkeypatch.setenv("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
    yield
    ray.shutdown()


def test_a_node_that_is_lost_costs_no_run(tmp_path: Path, of_serial: dict[str, str]) -> None:
    from ray.cluster_utils import Cluster

    work, log = tmp_path / "work", tmp_path / "updates"
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 0, "include_dashboard": False})
    nodes = [cluster.add_node(num_cpus=1) for _ in range(2)]
    try:
        ray.init(address=cluster.address, log_to_driver=False)

        def lose(pid: int) -> None:
            """The node that the run is on, and all of its processes at once."""
            above = {parent.pid for parent in psutil.Process(pid).parents()}
            node = next(n for n in nodes if n.all_processes["raylet"][0].process.pid in above)
            cluster.remove_node(node, allow_graceful=False)

        with tables.in_the_middle(work, log, lose) as lost:
            table = tables.table_of(work, {"name": "ray", "cpus_per_cell": 1}, log)
        assert lost
        assert table == of_serial
        assert 0 <= tables.updates(log) - tables.UPDATES <= 1
    finally:
        ray.shutdown()
        cluster.shutdown()


def test_four_runs_share_two_gpus(tmp_path: Path, of_serial: dict[str, str]) -> None:
    ray.init(num_cpus=4, num_gpus=2, include_dashboard=False, log_to_driver=False)  # GPUs by name: CPUs compute
    log = tmp_path / "updates"
    settings = {"name": "ray", "cpus_per_cell": 1, "gpus_per_cell": 0.5}
    assert tables.table_of(tmp_path / "work", settings, log) == of_serial
    assert tables.updates(log) == tables.UPDATES
    (tmp_path / "met").mkdir()
    asked = [Job(str(n), jobs.meet, (str(tmp_path / "met"), 4, 60.0)) for n in range(4)]
    with Ray(ExecutorSettings.model_validate(settings), tmp_path) as executor:
        answers = [answer.value for answer in executor.run(asked, lambda: None)]
    assert sorted(answers) == [("0", 4), ("0", 4), ("1", 4), ("1", 4)]


def test_the_post_of_a_cluster_reaches_jobs_and_is_there_again_when_its_process_was_lost(tmp_path: Path) -> None:
    ray.init(num_cpus=1, include_dashboard=False, log_to_driver=False)
    settings = ExecutorSettings(name="ray", address="auto", cpus_per_cell=1)
    with Ray(settings, tmp_path) as executor:
        assert executor.post is not None
        for _ in range(2):
            assert turn(executor.post, {"stop": "enough"}) == {}
            (answer,) = executor.run([Job("a job", jobs.tell, (executor.post, "a job"))], lambda: None)
            assert answer.value == {"stop": "enough"}
            assert turn(executor.post, {}) == {"a job": {"at": "update 3"}}
            ray.kill(executor.post._box, no_restart=False)  # type: ignore[attr-defined]
    assert executor.post is None
    with Ray(ExecutorSettings(name="ray"), tmp_path) as executor:
        assert executor.post is None  # of this machine alone: workers see the work directory


def turn(post: Post, left: dict[str, str]) -> Mapping[str, Mapping[str, str]]:
    """As soon as it works."""
    late = time.monotonic() + 60
    while True:
        try:
            return post.turn(left)
        except ConnectionError:
            assert time.monotonic() < late


def test_errors_and_deaths_are_told_apart(tmp_path: Path) -> None:
    asked = [
        Job("error", jobs.refuse, ("no",)),
        Job("dies-once", jobs.die, (str(tmp_path / "once"), 1)),
        Job("always-dies", jobs.die, (str(tmp_path / "always"), 99)),
    ]
    with Ray(ExecutorSettings(name="ray", cpus_per_cell=1, retries=1), tmp_path) as executor:
        answers = {answer.job.key: answer for answer in executor.run(asked, lambda: None)}
    assert isinstance(answers["error"].error, ValueError)
    assert answers["dies-once"].value == "lived after 1"
    assert answers["always-dies"].lost.startswith("its worker was lost (WorkerCrashedError")
    assert (tmp_path / "always").read_text() == "xx"
