"""Records in MLflow, read back through MLflow's own client from a real sqlite store."""

from __future__ import annotations

import json
import logging
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from mlflow import MlflowClient
from mlflow.entities import Run

from harness.errors import RunError
from harness.mlflow_tracker import Mlflow
from harness.results.comparison import ComparisonFile, ListedRun
from harness.results.record import Record, Score
from harness.results.spec import RunSpec
from harness.results.store import RunFolder, write_comparison_file
from harness.tracking import Tracker, default_uri, sync
from tests.support.errors import raises_input_error
from tests.support.forks import run_fork, start_fork

TRAIN_LINES = 1001


def make_record(
    workdir: Path,
    seed: int = 0,
    config: dict[str, Any] | None = None,
    *,
    steps: int | None = None,
    **changes: Any,
) -> Record:
    """A run as `harness compare` writes it."""

    def score(aggregation: str, value: float) -> Score:
        return Score(
            task="STS12",
            suite="sts",
            source="senteval",
            split="test",
            metric="spearman",
            aggregation=aggregation,
            value=value,
            n=3108,
            protocol="p1",
            comparable="c1",
        )

    spec = RunSpec(
        method="simcse",
        config=config or {"temperature": 0.05, "optimizer": {"lr": 3e-5}, "seed": seed},
        seed=seed,
        base_model="embedded:mini-bert",
        corpus={"uri": "embedded:sentences", "sha256": "ab"},
        dev={"task": "STS-B", "source": "senteval", "sha256": "cd"},
        max_steps=steps,
    )
    values: dict[str, Any] = {
        "id": spec.id,
        "spec": spec,
        "comparison": "demo",
        "status": "finished",
        "row": "SimCSE",
        "supervision": "unsupervised",
        "protocols": {"c1": {"data": "0f"}},
        "scores": [score("mean", 0.25), score("all", 0.5 + seed / 10)],
        "cost": {"train_seconds": 3.5},
        "training": {"best_step": 400, "best_dev": 0.6},
        "command": "harness compare demo",
        "started": "2026-11-21T10:00:00+00:00",
        "finished": "2026-11-21T10:01:00+00:00",
    }
    folder = RunFolder(workdir, spec.id)
    folder.path.mkdir(parents=True, exist_ok=True)
    lines = [
        {"step": step, "kind": "train", "loss": 1 / (step + 1), "lr": 1e-5}
        for step in range(TRAIN_LINES)
    ]
    lines += [
        {"step": 400, "kind": "dev", "spearman": 0.6},
        {"step": 10, "kind": "early", "spearman": 0.5},
    ]
    folder.curves_file.write_text("".join(json.dumps(line) + "\n" for line in lines))
    record = Record(**(values | {"files": folder.result_hashes()} | changes))
    folder.write(record)
    return record


class Store:
    """What the store of a work directory shows, by experiment."""

    def __init__(self, workdir: Path) -> None:
        self.workdir, self.client = workdir, MlflowClient(tracking_uri=default_uri(workdir))

    def runs(self, experiment: str) -> list[Run]:
        known = self.client.get_experiment_by_name(experiment)
        return list(self.client.search_runs([known.experiment_id])) if known else []

    def seeds(self, experiment: str = "demo") -> dict[int, Run]:
        runs = [run for run in self.runs(experiment) if "harness.id" in run.data.tags]
        return {int(run.data.params["seed"]): run for run in runs}

    def rows(self, experiment: str = "demo") -> dict[str, Run]:
        return {
            run.data.params["row"]: run
            for run in self.runs(experiment)
            if "harness.parent" in run.data.tags
        }


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Store:
    """A comparison of two seeds, tracked while it ran. Creating a store is slow: once for all tests
    here.
    """
    workdir = tmp_path_factory.mktemp("work")
    tracker = Tracker(workdir, "demo")
    for seed in (0, 1):
        tracker.log(make_record(workdir, seed))
    tracker.close()
    return Store(workdir)


@pytest.fixture
def closed_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


@pytest.fixture
def silent_port() -> Iterator[int]:
    """Of a server that accepts connections and never answers."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield int(listener.getsockname()[1])


def test_a_seed_is_a_run_with_parameters_scores_curves_and_artifacts(store: Store) -> None:
    run = store.seeds()[1]
    assert (run.info.run_name, run.info.status) == ("SimCSE seed 1", "FINISHED")
    assert run.info.end_time - run.info.start_time == 60_000
    wanted = {
        "row": "SimCSE",
        "method": "simcse",
        "base_model": "embedded:mini-bert",
        "seed": "1",
        "config.temperature": "0.05",
        "config.optimizer.lr": "3e-05",
        "corpus.sha256": "ab",
    }
    assert wanted.items() <= run.data.params.items()
    numbers = {"sts/STS12": 0.6, "sts more/STS12.spearman.mean": 0.25, "usage/train_seconds": 3.5}
    assert numbers.items() <= run.data.metrics.items()
    assert run.data.tags["harness.status"] == "finished"
    assert run.data.tags["harness.folder"] == str(
        RunFolder(store.workdir, run.data.tags["harness.id"]).path.resolve()
    )
    loss = store.client.get_metric_history(run.info.run_id, "train/loss")
    assert all(point.value == 1 / (point.step + 1) for point in loss)
    assert len(loss) == len({point.step for point in loss}) <= 100
    assert run.data.metrics["train/loss"] == 1 / TRAIN_LINES  # the last line is among them
    (dev,) = store.client.get_metric_history(run.info.run_id, "train dev/spearman")
    assert (dev.step, dev.value) == (400, 0.6)
    assert {file.path for file in store.client.list_artifacts(run.info.run_id)} == {
        "record.json",
        "curves.jsonl",
    }
    text = Path(store.client.download_artifacts(run.info.run_id, "record.json")).read_text()
    assert Record.model_validate_json(text).seed == 1
    assert run.info.artifact_uri.startswith((store.workdir / "mlartifacts").resolve().as_uri())


def test_a_row_is_a_run_above_its_seeds_with_their_means(store: Store) -> None:
    (row,) = store.rows().values()
    assert (row.info.run_name, row.info.status) == ("SimCSE (mini-bert)", "FINISHED")
    assert {run.data.tags["mlflow.parentRunId"] for run in store.seeds().values()} == {
        row.info.run_id
    }
    assert "seed" not in row.data.params
    assert row.data.params["config.temperature"] == "0.05"
    means = {
        "sts/STS12": 0.55,
        "sts sd/STS12": 0.1 / 2**0.5,
        "usage/train_seconds": 3.5,
        "seeds": 2,
    }
    assert {name: row.data.metrics[name] for name in means} == pytest.approx(means)
    assert not [
        name
        for name in row.data.metrics
        if name.startswith(("train/", "train ", "usage sd", "training sd"))
    ]


def test_the_means_of_a_row_have_the_seeds_of_earlier_calls(store: Store, tmp_path: Path) -> None:
    for seed in (0, 1):
        tracker = Tracker(store.workdir, "grown")
        tracker.log(make_record(tmp_path, seed, comparison="grown"))
        tracker.close()
    (row,) = store.rows("grown").values()
    assert row.data.metrics["seeds"] == 2
    assert row.data.metrics["sts/STS12"] == pytest.approx(0.55)
    assert not [name for name in row.data.metrics if name.startswith(("train/", "train "))]


def test_runs_of_other_lengths_are_no_seeds_of_a_row(store: Store, tmp_path: Path) -> None:
    tracker = Tracker(store.workdir, "lengths")
    for seed, steps in ((0, 10), (1, 10), (0, 20)):
        tracker.log(make_record(tmp_path, seed, steps=steps, comparison="lengths"))
    tracker.close()
    rows = [run for run in store.runs("lengths") if "harness.parent" in run.data.tags]
    seeds = {run.data.params["max_steps"]: run.data.metrics["seeds"] for run in rows}
    assert seeds == {"10": 2, "20": 1}


def test_a_row_whose_seeds_have_all_become_others_is_removed(store: Store, tmp_path: Path) -> None:
    for model in ("a", "b"):
        record = make_record(tmp_path, 0, comparison="moved")
        spec = record.spec.model_copy(update={"base_model": model})
        tracker = Tracker(store.workdir, "moved")
        tracker.log(record.model_copy(update={"spec": spec}))
        tracker.close()
    (row,) = [run for run in store.runs("moved") if "harness.parent" in run.data.tags]
    assert row.data.params["base_model"] == "b"


def test_sync_sends_only_what_is_missing_and_replaces_what_changed(store: Store) -> None:
    assert sync(store.workdir) == 0
    before, (row,) = store.seeds(), store.rows().values()
    make_record(store.workdir, 0, reason="again", scores=[])
    make_record(store.workdir, 2, row="other", status="failed", reason="out of memory", scores=[])
    assert sync(store.workdir) == 2
    after = store.seeds()
    assert after.keys() == {0, 1, 2}
    assert len(store.runs("demo")) == 5
    assert after[0].info.run_id != before[0].info.run_id
    assert "sts/STS12" not in after[0].data.metrics
    assert after[1].info.run_id == before[1].info.run_id
    assert after[2].info.status == store.rows()["other"].info.status == "FAILED"
    assert "out of memory" in after[2].data.tags["mlflow.note.content"]
    assert store.rows()["SimCSE"].info.run_id == row.info.run_id
    assert store.rows()["SimCSE"].data.metrics["sts/STS12"] == pytest.approx(
        0.6
    )  # of the one seed that has it
    assert sync(store.workdir) == 0


def test_what_an_interrupted_process_left_is_sent_again_and_not_doubled(
    store: Store, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    tracker = Tracker(store.workdir, "cut")
    with monkeypatch.context() as patch:
        patch.setattr(Mlflow, "end_rows", lambda _: (_ for _ in ()).throw(OSError("unplugged")))
        tracker.log(make_record(store.workdir, 3, comparison="cut"))
        tracker.close()
    cut = Tracker(store.workdir, "cut")
    with monkeypatch.context() as patch:
        patch.setattr(
            MlflowClient, "log_batch", lambda *_: (_ for _ in ()).throw(OSError("unplugged"))
        )
        cut.log(
            make_record(store.workdir, 4, comparison="cut", status="collapsed", reason="rank 1")
        )
        cut.log(make_record(store.workdir, 5, comparison="cut"))
        cut.close()
    assert caplog.text.count("unplugged") == 2  # one warning of each tracker
    assert {run.info.status for run in store.runs("cut") if "harness.parent" in run.data.tags} == {
        "RUNNING"
    }
    assert sync(store.workdir) == 2
    runs = store.seeds("cut")
    assert {name: run.data.tags["harness.status"] for name, run in runs.items()} == {
        3: "finished",
        4: "collapsed",
        5: "finished",
    }
    assert len(store.runs("cut")) == 4
    assert {run.info.status for run in store.runs("cut")} == {"FINISHED"}
    (row,) = store.rows("cut").values()
    assert row.data.metrics["seeds"] == 2
    assert row.data.metrics["sts/STS12"] == pytest.approx((0.8 + 1.0) / 2)


def test_two_senders_at_once_send_each_row_and_seed_once(tmp_path: Path) -> None:
    for seed in (0, 1):
        for row in ("a", "b"):
            make_record(tmp_path, seed, {"temperature": 1, "row": row}, row=row)
    both = [start_fork(sync, tmp_path) for _ in range(2)]
    for one in both:
        one.join()
    assert [one.exitcode for one in both] == [0, 0]
    runs = Store(tmp_path).runs("demo")
    assert sorted(run.data.tags.get("harness.row", "row") for run in runs) == [
        "a",
        "a",
        "b",
        "b",
        "row",
        "row",
    ]


def test_a_sender_looks_for_runs_of_others_only_after_others_have_written(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    def search(*_: object, **__: object) -> None:
        raise AssertionError("a search")

    records = [make_record(store.workdir, 30 + n, comparison="shared") for n in range(4)]
    sender = Mlflow(store.workdir, "shared", default_uri(store.workdir))
    with monkeypatch.context() as patch:
        patch.setattr(MlflowClient, "search_runs", search)
        assert sender.send(records[0])
        assert sender.send(records[1])
    assert sync(store.workdir) == 2
    assert not sender.send(records[2])
    assert not sender.send(records[3])
    assert sorted(store.seeds("shared")) == [30, 31, 32, 33]
    assert len(store.runs("shared")) == 5


def test_a_row_that_is_there_twice_becomes_one_with_all_seeds(store: Store) -> None:
    for seed in (0, 1):
        make_record(store.workdir, 20 + seed, comparison="twice")
    sync(store.workdir)
    (row,) = store.rows("twice").values()
    experiment = store.client.get_experiment_by_name("twice").experiment_id
    tags = {key: row.data.tags[key] for key in ("harness.parent", "mlflow.note.content")}
    other = store.client.create_run(experiment, row.info.start_time + 1, tags, "SimCSE (twin)")
    moved = store.seeds("twice")[21]
    store.client.set_tag(moved.info.run_id, "mlflow.parentRunId", other.info.run_id)
    store.client.set_terminated(other.info.run_id)

    sync(store.workdir)
    (kept,) = [run for run in store.runs("twice") if "harness.parent" in run.data.tags]
    assert kept.info.run_id == row.info.run_id
    assert kept.data.metrics["seeds"] == 2
    parents = {run.data.tags["mlflow.parentRunId"] for run in store.seeds("twice").values()}
    assert parents == {row.info.run_id}


@pytest.mark.parametrize("name", ["curves.jsonl", "examples.parquet"])
def test_files_that_are_links_or_not_the_records_are_not_sent(
    store: Store, tmp_path: Path, name: str
) -> None:
    secret = tmp_path / "secret.txt"
    secret.write_text("my secret")
    seed = 30 if name == "curves.jsonl" else 31
    record = make_record(store.workdir, seed, comparison="linked")
    file = RunFolder(store.workdir, record.id).path / name
    file.unlink(missing_ok=True)
    file.symlink_to(secret)
    if name == "curves.jsonl":  # not a curve, so no number of it is sent either
        file.unlink()
        file.write_text("changed since")
    sync(store.workdir)
    run = store.seeds("linked")[seed]
    sent = [one.path for one in store.client.list_artifacts(run.info.run_id)]
    assert name not in sent
    assert "record.json" in sent


@pytest.mark.parametrize("name", ["a#b&c=50%3F", "what?mode=ro"])
def test_a_work_directory_of_any_name_has_its_database_inside(tmp_path: Path, name: str) -> None:
    workdir = tmp_path / name
    make_record(workdir)
    assert sync(workdir) == 1
    assert (workdir / "mlflow.db").stat().st_size > 0
    assert [path.name for path in tmp_path.iterdir()] == [name]
    assert len(Store(workdir).seeds()) == 1


def test_a_callers_environment_and_logs_are_as_they_were(tmp_path: Path) -> None:
    make_record(tmp_path)
    names = ("mlflow", "alembic", "urllib3.connectionpool")
    before = dict(os.environ)
    levels = [logging.getLogger(name).level for name in names]
    tracker = Tracker(tmp_path, "demo")
    assert "MLFLOW_HTTP_REQUEST_TIMEOUT" in os.environ
    tracker.log(make_record(tmp_path))
    tracker.close()
    sync(tmp_path)
    assert dict(os.environ) == before
    assert [logging.getLogger(name).level for name in names] == levels


@pytest.mark.parametrize("raised", [SystemExit(0), GeneratorExit(), ValueError("")])
def test_a_tracker_that_ends_in_any_way_is_one_warning(
    store: Store,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    raised: BaseException,
) -> None:
    def send(*_: Any) -> bool:
        raise raised

    monkeypatch.setattr(Mlflow, "send", send)
    shutil.copy(store.workdir / "mlflow.db", tmp_path)  # creating one takes longer than the rest
    tracker = Tracker(tmp_path, "demo")
    tracker.log(make_record(tmp_path))
    tracker.close()
    assert len([one for one in caplog.records if one.levelno >= logging.WARNING]) == 1
    with pytest.raises(RunError, match=r"mlflow\.db"):
        sync(tmp_path)


def test_one_run_shows_in_every_comparison_that_lists_it(store: Store) -> None:
    run = {
        "id": store.seeds()[1].data.tags["harness.id"],
        "row": "SimCSE, tuned",
        "base_model": "embedded:mini-bert",
    }
    listed = ListedRun(**run, seed=1)
    file = ComparisonFile(name="second", tasks=("senteval:STS12",), runs=(listed,))
    write_comparison_file(store.workdir, file)
    sync(store.workdir)
    assert store.seeds("second")[1].data.params["row"] == "SimCSE, tuned"
    assert store.seeds()[1].data.params["row"] == "SimCSE"


def test_numbers_that_are_not_finite_odd_names_and_many_parameters_are_sent(store: Store) -> None:
    config = {"λ·L_C (raw)": 1, **{f"option{number}": "x" * 7000 for number in range(150)}}
    record = make_record(store.workdir, 8, comparison="odd", config=config, status="diverged")
    lines = [
        {
            "step": 1,
            "kind": "train",
            "loss": float("nan"),
            "λ·L_C (raw)": 1.0,
            "note": "text",
            "flag": None,
        }
    ]
    curves = RunFolder(store.workdir, record.id).curves_file
    curves.write_text("".join(json.dumps(line) + "\n" for line in lines))
    assert sync(store.workdir) == 1
    (run,) = store.seeds("odd").values()
    assert run.data.metrics["train/loss"] != run.data.metrics["train/loss"]
    assert [value for name, value in run.data.metrics.items() if "L_C" in name] == [1.0]
    assert len([name for name in run.data.params if name.startswith("config.option")]) == 150


def test_a_damaged_curve_costs_the_curve_alone(store: Store) -> None:
    record = make_record(store.workdir, 9, comparison="damaged")
    RunFolder(store.workdir, record.id).curves_file.write_text("{")
    assert sync(store.workdir) == 1
    metrics = store.seeds("damaged")[9].data.metrics
    assert "train/loss" not in metrics
    assert metrics["sts/STS12"] == pytest.approx(1.4)


def test_a_server_that_is_down_costs_one_warning(
    tmp_path: Path, closed_port: int, caplog: pytest.LogCaptureFixture
) -> None:
    uri = f"http://user:secret@127.0.0.1:{closed_port}/runs"
    tracker = Tracker(tmp_path, "demo", uri)
    for seed in (0, 1, 2):
        tracker.log(make_record(tmp_path, seed))
    tracker.close()
    (warning,) = [entry for entry in caplog.records if entry.levelno >= logging.WARNING]
    assert f"harness track sync --workdir {tmp_path}" in warning.getMessage()
    assert "secret" not in caplog.text
    with pytest.raises(RunError) as raised:
        sync(tmp_path, uri)
    assert "secret" not in str(raised.value)


def test_a_server_that_does_not_answer_keeps_no_run_waiting(
    tmp_path: Path,
    silent_port: int,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_TIMEOUT", "1")
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "0")
    tracker = Tracker(tmp_path, "demo", f"http://127.0.0.1:{silent_port}")
    tracker.log(make_record(tmp_path))
    assert "tracking" in {
        thread.name for thread in threading.enumerate()
    }  # `log` has returned before the answer
    tracker.close()
    assert len([entry for entry in caplog.records if entry.levelno >= logging.WARNING]) == 1


def test_wrong_input(tmp_path: Path) -> None:
    with raises_input_error(file=tmp_path / "absent"):
        sync(tmp_path / "absent")
    assert not (tmp_path / "absent").exists()
    make_record(tmp_path)
    (tmp_path / "mlflow.db").write_bytes(b"no database, whatever its name says" * 100)
    with pytest.raises(RunError, match=r"mlflow\.db"):
        sync(tmp_path)


def test_mlflow_is_imported_with_the_first_record_only() -> None:
    code = "import sys, harness.tracking as t; t.Tracker(t.Path('x'), 'demo'); sys.exit('mlflow' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def sync_and_die(workdir: Path) -> None:
    """Send the runs in a process that is killed while the store is created."""
    from mlflow.store.db import utils

    utils._verify_schema = lambda _: os.kill(os.getpid(), signal.SIGKILL)
    sync(workdir)


def test_a_store_whose_creation_was_killed_is_created_by_the_next_process(tmp_path: Path) -> None:
    make_record(tmp_path)
    assert run_fork(sync_and_die, tmp_path) == -signal.SIGKILL
    assert not (tmp_path / "mlflow.db").exists()
    assert sync(tmp_path) == 1
    assert {file.name for file in tmp_path.glob("*mlflow*")} == {"mlflow.db", ".mlflow.db.lock"}
