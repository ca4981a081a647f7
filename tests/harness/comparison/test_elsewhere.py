"""Cells made by workers: the same results as here, to the last bit, whoever is killed and whatever they see."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from harness import api
from harness.api.on_experiments import executor_settings
from harness.comparison import jobs, placement
from harness.comparison.comparison_result import Comparison
from harness.comparison.inference_cost import FIRST
from harness.comparison.packed_run import unpack
from harness.errors import InputError
from harness.executors.executor import Answer, Executor, ExecutorSettings, Job
from harness.results.inference import read_inference
from harness.results.run_folder import RunFolder
from tests.support import short_runs, thread_executor

pytestmark = pytest.mark.timeout(240)

NATURAL = "Embedded-STS-natural"
EXPERIMENT = {
    "name": "small",
    "seeds": [1],
    "suites": [NATURAL],
    "max_steps": 3,
    "precision": "fp32",
    "corpus": {"uri": "embedded:sentences", "limit": 40},
    "dev": None,
    "methods": [
        {"method": "simcse", "preset": "mini", "config": {"batch_size": 8, "train_length": 12}},
        {"method": "pooling", "name": "mean"},
    ],
}


def compare(folder: Path, executor: object = None, **more: object) -> Comparison:
    with pytest.MonkeyPatch.context() as patch:
        short_runs.no_report(patch)
        return api.compare({**EXPERIMENT, **more}, workdir=folder, tracked=False, executor=executor)  # type: ignore[arg-type]


def made(result: Comparison) -> dict[str, Any]:
    """Of every run: its scores, and the hashes of its weights, pairs and curve."""
    assert [record.status for record in result.records] == ["finished"] * len(result.records)
    return {
        record.id: ([s.model_dump() for s in record.scores], record.files, record.seed, record.row)
        for record in result.records
    }


class Blind(Executor):
    """Workers in this process that see nothing of the coordinator's work directory."""

    name = "blind"

    def run(self, asked: Sequence[Job], tick: Callable[[], None]) -> Iterator[Answer]:
        for job in asked:
            yield Answer(job, _elsewhere(job))
            tick()


def _elsewhere(job: Job) -> Any:
    (told,) = job.arguments
    return job.call(jobs.replace(told, workdir="/nowhere/at/all"))


def test_a_worker_that_sees_no_work_directory_sends_its_run_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = made(compare(tmp_path / "here"))
    monkeypatch.setattr("harness.registry.load", _with_blind(monkeypatch))
    there = compare(tmp_path / "there", "blind")
    assert made(there) == here
    model = api.load_model(RunFolder(tmp_path / "there", there.records[0].id).model)
    assert model.encode(["A sentence."]).shape == (1, 256)
    said: list[str] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(placement, "record_of_answer", lambda *_: said.append("made again"))
        compare(tmp_path / "there", "blind")  # all is finished: nobody is asked
    assert not said


def test_what_is_measured_once_goes_to_such_a_worker_and_comes_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("harness.registry.load", _with_blind(monkeypatch))
    took = iter((0.5, 0.25, 0.125))  # the machine is never as fast as it was
    monkeypatch.setattr("harness.comparison.timed_updates.timed", lambda *_: next(took))
    result = compare(tmp_path, "blind", max_steps=None, budget={"kind": "seconds", "seconds": 1.0})
    assert len(made(result)) == 3
    assert result.records[0].training["steps"] == 2
    assert next(took) == 0.25  # nobody has asked since the first time
    assert len(json.loads((tmp_path / "budget.json").read_text())) == 1
    costs = read_inference(tmp_path).values()
    assert sorted(len(one.seconds) for one in costs) == [3 * FIRST]  # of each worker that knew of none


def test_scores_are_added_to_kept_weights_by_such_a_worker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("harness.registry.load", _with_blind(monkeypatch))
    rounds: list[int] = []
    run = Blind.run

    def noted(self: Blind, asked: Sequence[Job], tick: Callable[[], None]) -> Iterator[Answer]:
        rounds.append(len(asked))
        return run(self, asked, tick)

    monkeypatch.setattr(Blind, "run", noted)
    monkeypatch.setattr(Blind, "room", lambda *_: 1)
    before = compare(tmp_path).records
    trained = [RunFolder(tmp_path, record.id).fitted_file for record in before[:1]]
    stamps = [file.read_bytes() for file in trained]
    after = compare(tmp_path, "blind", suites=[NATURAL, "Embedded-STS-contrast"]).records  # the one task and others
    assert {NATURAL} < {score.task for score in after[0].scores}
    assert after[0].cost["train_seconds"] == before[0].cost["train_seconds"]
    assert [file.read_bytes() for file in trained] == stamps
    assert rounds == [3, 1, 1, 1]  # weights are sent as there is room for them


def test_jobs_of_this_process_read_data_that_has_changed_since(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    thread_executor.install(monkeypatch.setattr)
    scored = []
    for count in (20, 10):
        short_runs.few_pairs(monkeypatch, count)
        (record,) = compare(tmp_path / str(count), "thread", methods=[{"method": "random"}]).records
        scored.append([score.n for score in record.scores])
    assert scored[0] == [2 * n for n in scored[1]]


def test_what_an_executor_of_this_process_raises_is_raised(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Catching(Blind):
        elsewhere = False

        def run(self, asked: Sequence[Job], tick: Callable[[], None]) -> Iterator[Answer]:
            yield from (Answer(job, error=OSError("the disk is full")) for job in asked)

    known = _with_blind(monkeypatch)
    monkeypatch.setattr("harness.registry.load", lambda group, name: Catching if name == "own" else known(group, name))
    with pytest.raises(OSError, match="the disk is full"):
        compare(tmp_path, "own")


def _with_blind(patch: pytest.MonkeyPatch) -> Callable[..., Any]:
    from harness import registry

    known = registry.load
    return lambda group, name: Blind if name == "blind" else known(group, name)


def test_a_cell_that_ends_its_worker_each_time_has_failed_and_the_others_have_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Deadly(Blind):
        def run(self, asked: Sequence[Job], tick: Callable[[], None]) -> Iterator[Answer]:
            for job in asked:
                lost = job.key == trained
                yield Answer(job, lost="its worker ended 4 times within it") if lost else Answer(job, _elsewhere(job))

    trained = compare(tmp_path / "here").records[0].id
    known = _with_blind(monkeypatch)
    monkeypatch.setattr("harness.registry.load", lambda group, name: Deadly if name == "deadly" else known(group, name))
    result = compare(tmp_path / "there", "deadly")
    ends = {r.row: r.status for r in result.records}
    assert ends == {"simcse": "failed", "mean": "finished", "untrained (cls)": "finished"}
    assert result.records[0].reason == "its worker ended 4 times within it"
    again = compare(tmp_path / "there")  # another try is made
    assert {r.status for r in again.records} == {"finished"}


def test_what_comes_back_stays_in_the_folder_of_its_run(tmp_path: Path) -> None:
    import io
    import tarfile

    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as archive:
        member = tarfile.TarInfo("../outside")
        member.size = 1
        archive.addfile(member, io.BytesIO(b"x"))
    folder = RunFolder(tmp_path, "a" * 16)
    folder.path.parent.mkdir(parents=True)
    with pytest.raises(tarfile.OutsideDestinationError):
        unpack(buffer.getvalue(), folder)
    assert not list(tmp_path.rglob("outside"))


def test_the_longest_cells_come_first(tmp_path: Path) -> None:
    order: list[str] = []

    class Noting(Blind):
        def run(self, asked: Sequence[Job], tick: Callable[[], None]) -> Iterator[Answer]:
            order.extend(job.key for job in asked)
            yield from super().run(asked, tick)

    methods = [
        {"method": "pooling", "name": "mean"},
        {**EXPERIMENT["methods"][0], "name": "short", "max_steps": 1},  # type: ignore[index]
        {**EXPERIMENT["methods"][0], "name": "long", "max_steps": 3},  # type: ignore[index]
    ]
    with pytest.MonkeyPatch.context() as patch:
        known = _with_blind(patch)
        patch.setattr("harness.registry.load", lambda group, name: Noting if name == "noting" else known(group, name))
        records = compare(tmp_path, "noting", methods=methods, max_steps=None).records
    ids = {record.row: record.id for record in records}
    assert order[:2] == [ids["long"], ids["short"]]


@pytest.mark.parametrize(
    ("executor", "said"),
    [
        ("cloud", 'unknown executor "cloud"'),
        ({"name": "processes", "workers": 0}, "workers"),
        ({"name": "processes", "gpus_per_cell": 1.5}, "a part of a GPU, or a whole number"),
        ({"nmae": "ray"}, "nmae"),
    ],
)
def test_what_can_be_no_executor(tmp_path: Path, executor: object, said: str) -> None:
    with pytest.raises(InputError, match=said):
        compare(tmp_path, executor)
    assert not (tmp_path / "runs").exists()


def test_the_file_names_an_executor_and_the_caller_beats_it() -> None:
    of_file = ExecutorSettings(name="ray", workers=3)
    assert executor_settings(None, of_file) == of_file
    settled = executor_settings({"gpus_per_cell": 0.5}, of_file)
    assert (settled.name, settled.workers, settled.gpus_per_cell) == ("ray", 3, 0.5)
    assert executor_settings("serial", of_file).name == "serial"
