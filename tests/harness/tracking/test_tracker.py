"""Records in MLflow, read back through MLflow's own client from a real sqlite store."""

from __future__ import annotations

import json
import logging
import socket
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from mlflow.entities import Run
from mlflow.tracking.client import MlflowClient

from harness.errors import InputError, RunError
from harness.files.atomic import write_atomic
from harness.results.manifest import manifest_file
from harness.results.record import Record, Score
from harness.results.run_folder import RunFolder
from harness.tracking.tracked_comparison import TrackedComparison
from harness.tracking.tracker import Tracker, default_uri, sync

STEPS = 1200  # with two numbers a step, more than one of MLflow's batches


def make_record(workdir: Path, **changes: Any) -> Record:
    """A run as `harness compare` leaves it, written to disk."""
    seed = changes.get("seed", 0)

    def score(aggregation: str, value: float) -> Score:
        return Score(
            task="STS12", suite="sts", source="senteval", split="test", metric="spearman", aggregation=aggregation,
            value=value, n=3108, protocol="p1", comparable="c1",
        )  # fmt: skip

    values: dict[str, Any] = {
        "id": f"run-{seed}",
        "comparison": "demo",
        "status": "finished",
        "row": "SimCSE",
        "method": "simcse",
        "config": {"temperature": 0.05, "optimizer": {"lr": 3e-5}},
        "base_model": "embedded:mini-bert",
        "seed": seed,
        "supervision": "unsupervised",
        "corpus": {"uri": "embedded:sentences", "sha256": "ab"},
        "scores": [score("all", 0.5 + seed / 10), score("mean", 0.25)],
        "cost": {"train_seconds": 3.5},
        "training": {"best_step": 400, "best_dev": 0.6},
        "command": "harness compare demo",
        "started": "2026-11-21T10:00:00+00:00",
        "finished": "2026-11-21T10:01:00+00:00",
    }
    record = Record(**(values | changes))
    folder = RunFolder(workdir, record.id)
    folder.write(record)
    lines = [{"step": step, "kind": "train", "loss": 1 / (step + 1), "lr": 1e-5} for step in range(STEPS)]
    lines += [{"step": 400, "kind": "dev", "spearman": 0.6}, {"step": 10, "kind": "early", "spearman": 0.5}]
    folder.curves_file.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return record


@dataclass
class Store:
    workdir: Path
    client: MlflowClient

    def runs(self, experiment: str, condition: str = "") -> list[Run]:
        known = self.client.get_experiment_by_name(experiment)
        return list(self.client.search_runs([known.experiment_id], condition)) if known else []

    def children(self, experiment: str = "demo") -> dict[str, Run]:
        return {r.data.tags["harness.id"]: r for r in self.runs(experiment) if "harness.id" in r.data.tags}

    def parents(self, experiment: str = "demo") -> list[Run]:
        return [run for run in self.runs(experiment) if "harness.id" not in run.data.tags]


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Store:
    """A comparison of two seeds, tracked as it ran. Opening a new store is slow: once for all tests here."""
    workdir = tmp_path_factory.mktemp("work")
    tracker = Tracker(workdir, "demo")
    for seed in (0, 1):
        tracker.log(make_record(workdir, seed=seed))
    tracker.close()
    return Store(workdir, MlflowClient(tracking_uri=default_uri(workdir)))


@pytest.fixture
def closed_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


def test_a_seed_is_a_child_run_with_params_scores_curves_and_artifacts(store: Store) -> None:
    run = store.children()["run-1"]
    assert run.info.run_name == "SimCSE seed 1"
    assert run.info.status == "FINISHED"
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
    assert run.data.tags["harness.protocols"] == "p1"

    loss = store.client.get_metric_history(run.info.run_id, "train/loss")
    assert {point.step: point.value for point in loss} == {step: 1 / (step + 1) for step in range(STEPS)}
    (dev,) = store.client.get_metric_history(run.info.run_id, "train dev/spearman")
    assert (dev.step, dev.value) == (400, 0.6)

    assert {file.path for file in store.client.list_artifacts(run.info.run_id)} == {"record.json", "curves.jsonl"}
    text = Path(store.client.download_artifacts(run.info.run_id, "record.json")).read_text()
    assert Record.model_validate_json(text).seed == 1
    assert run.info.artifact_uri.startswith((store.workdir / "mlartifacts").resolve().as_uri())


def test_a_row_is_a_parent_run_with_the_mean_over_seeds(store: Store) -> None:
    (parent,) = store.parents()
    assert parent.info.run_name == "SimCSE (mini-bert)"
    assert parent.info.status == "FINISHED"
    assert "seed" not in parent.data.params
    assert parent.data.params["config.temperature"] == "0.05"
    assert parent.data.metrics["sts/STS12"] == pytest.approx(0.55)  # of 0.5 and 0.6
    assert parent.data.metrics["sts sd/STS12"] == pytest.approx(0.1 / 2**0.5)
    assert not [name for name in parent.data.metrics if name.startswith(("usage sd", "training sd"))]
    assert parent.data.metrics["seeds"] == 2
    groups = sorted({name.partition("/")[0] for name in store.children()["run-0"].data.metrics})
    assert groups[-1] == "usage"  # MLflow draws groups by name: costs after scores
    said = parent.data.tags["mlflow.note.content"]
    assert "**SimCSE**: `simcse` on embedded:mini-bert" in said
    assert "seeds: 2 of 2 finished" in said
    assert not [
        name for name in parent.data.metrics if name.startswith(("train/", "train "))
    ]  # curves are a seed's own
    assert {run.data.tags["mlflow.parentRunId"] for run in store.children().values()} == {parent.info.run_id}


def test_the_store_opens_for_training_and_knows_data_and_models(store: Store) -> None:
    """Data sets with what each was for, models as links beside their cards, the report with every row; all once."""
    defined = {"c1": {"data": "0f" * 32}}
    dev = {"task": "STS-B", "source": "senteval", "sha256": "cd" * 32}
    record = make_record(store.workdir, id="whole", comparison="whole", row="A: 50%", protocols=defined, dev=dev)
    model = RunFolder(store.workdir, record.id).model
    model.mkdir()
    (model / "README.md").write_text("# The card\n")
    report = store.workdir / "reports" / "whole" / "index.html"
    report.parent.mkdir(parents=True)
    report.write_text("<p>report")
    for _ in range(2):
        sync(store.workdir)
    experiment = store.client.get_experiment_by_name("whole")
    assert experiment is not None
    assert experiment.tags["mlflow.experimentKind"] == "custom_model_development"
    (run,), (parent,) = store.children("whole").values(), store.parents("whole")
    for shown in (run, parent):
        used = {one.tags[0].value: one.dataset for one in shown.inputs.dataset_inputs}
        assert {use: (data.name, data.digest[:2]) for use, data in used.items()} == {
            "training": ("embedded:sentences", "ab"),
            "selection": ("STS-B dev", "cd"),
            "evaluation": ("STS12 test", "0f"),
        }
    (link,) = store.client.search_logged_models([experiment.experiment_id])
    assert (link.name, link.source_run_id) == ("A- 50- seed 0", run.info.run_id)
    assert link.tags["harness.folder"] == str(model.resolve())
    files = {file.path for file in store.client.list_logged_model_artifacts(link.model_id)}
    assert files == {"README.md"}
    assert [(score.key, score.value) for score in link.metrics or ()] == [("sts/STS12", 0.5)]
    (score,) = store.client.get_metric_history(run.info.run_id, "sts/STS12")  # that of the run, and no second one
    assert score.value == 0.5
    assert "`simcse` on embedded:mini-bert" in link.tags["mlflow.note.content"]
    assert [file.path for file in store.client.list_artifacts(parent.info.run_id, "report")] == ["report/index.html"]

    make_record(store.workdir, id="whole", comparison="whole", row="A: 50%", reason="again", protocols=defined)
    sync(store.workdir)
    assert len(store.client.search_logged_models([experiment.experiment_id])) == 1  # its run was replaced, and it too


def test_a_store_of_an_earlier_layout_is_sent_anew(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    record = make_record(store.workdir, id="old", comparison="old")

    def sent() -> int:
        session = TrackedComparison(store.workdir, "old", default_uri(store.workdir))
        count = session.send_all([record])
        session.close()
        return count

    with monkeypatch.context() as patch:
        patch.setattr("harness.tracking.tracked_comparison.LAYOUT", 1)
        assert (sent(), sent()) == (1, 0)
    (before,) = store.parents("old")
    assert (sent(), sent()) == (1, 0)
    (after,) = store.parents("old")
    assert after.info.run_id != before.info.run_id
    assert store.children("old")["old"].data.tags["mlflow.parentRunId"] == after.info.run_id


def test_sync_sends_only_what_is_missing_and_replaces_what_changed(store: Store) -> None:
    assert sync(store.workdir) == 0
    before = store.children()
    make_record(store.workdir, seed=0, reason="again", scores=[])
    make_record(store.workdir, seed=2, id="run-2", row="other", status="failed", reason="out of memory", scores=[])
    assert sync(store.workdir) == 2
    after = store.children()
    assert after.keys() == {"run-0", "run-1", "run-2"}
    assert after["run-0"].info.run_id != before["run-0"].info.run_id
    assert "sts/STS12" not in after["run-0"].data.metrics
    assert after["run-1"].info.run_id == before["run-1"].info.run_id
    assert after["run-2"].info.status == "FAILED"
    assert after["run-2"].data.tags["mlflow.note.content"].startswith("out of memory\n\n**other**")
    parents = {parent.data.params["row"]: parent for parent in store.parents()}
    assert parents["other"].info.status == "FAILED"
    assert parents["SimCSE"].data.metrics["sts/STS12"] == pytest.approx(0.6)  # the one seed that has it
    assert sync(store.workdir) == 0


def test_a_run_whose_sending_was_interrupted_is_sent_again_and_not_doubled(
    store: Store, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    workdir = store.workdir
    record = make_record(workdir, id="cut", comparison="cut", status="collapsed", reason="rank 1")
    tracker = Tracker(workdir, "cut")
    with monkeypatch.context() as patch:
        patch.setattr(MlflowClient, "log_artifact", lambda *_: (_ for _ in ()).throw(OSError("unplugged")))
        tracker.log(record)
        tracker.close()
    assert "unplugged" in caplog.text
    assert len(store.children("cut")) == 1
    assert sync(workdir) == 1
    (run,) = store.children("cut").values()
    assert (run.info.status, run.data.tags["harness.status"]) == ("FINISHED", "collapsed")
    assert len(store.parents("cut")) == 1


def test_one_run_shows_in_every_comparison_that_lists_it(store: Store) -> None:
    manifest = {"title": "", "cells": [{"id": "run-1", "row": "SimCSE, tuned"}]}
    write_atomic(manifest_file(store.workdir, "second"), json.dumps(manifest))
    sync(store.workdir)
    (run,) = store.children("second").values()
    assert run.data.params["row"] == "SimCSE, tuned"
    assert store.children()["run-1"].data.params["row"] == "SimCSE"


def test_numbers_that_are_not_finite_and_names_mlflow_refuses_do_not_stop_it(store: Store) -> None:
    record = make_record(store.workdir, id="odd", comparison="odd", status="diverged", reason="loss is nan")
    lines = [{"step": 1, "kind": "train", "loss": float("nan"), "λ·L_C (raw)": 1.0, "note": "text", "flag": None}]
    folder = RunFolder(store.workdir, record.id)
    folder.curves_file.write_text("".join(json.dumps(line) + "\n" for line in lines))
    assert sync(store.workdir) == 1
    (run,) = store.children("odd").values()
    assert run.data.metrics["train/loss"] != run.data.metrics["train/loss"]
    assert [value for name, value in run.data.metrics.items() if "L_C" in name] == [1.0]


def test_a_server_that_is_down_costs_one_warning_and_seconds(
    tmp_path: Path, closed_port: int, caplog: pytest.LogCaptureFixture
) -> None:
    uri = f"http://user:secret@127.0.0.1:{closed_port}"
    tracker = Tracker(tmp_path, "demo", uri)
    start = time.monotonic()
    for seed in (0, 1, 2):
        tracker.log(make_record(tmp_path, seed=seed))
    tracker.close()
    assert time.monotonic() - start < 20
    (warning,) = [entry for entry in caplog.records if entry.levelno >= logging.WARNING]
    assert "refused" in warning.getMessage()
    assert f"harness track sync --from {tmp_path}" in warning.getMessage()
    assert "secret" not in caplog.text
    with pytest.raises(RunError, match="refused"):
        sync(tmp_path, uri)


def test_a_row_is_ended_by_the_next_one_or_by_the_next_session(store: Store) -> None:
    session = TrackedComparison(store.workdir, "rows", default_uri(store.workdir))
    for row in ("A", "B"):
        session.send(make_record(store.workdir, id=f"rows-{row}", comparison="rows", row=row))
    assert {run.data.params["row"]: run.info.status for run in store.parents("rows")} == {
        "A": "FINISHED",
        "B": "RUNNING",
    }
    assert sync(store.workdir) == 0  # the session was killed here; nothing is left to send, but B is ended
    parents = {run.data.params["row"]: run for run in store.parents("rows")}
    assert parents["B"].info.status == "FINISHED"
    assert parents["B"].data.metrics["seeds"] == 1


def test_runs_do_not_wait_for_the_store_and_know_what_it_has(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    done: list[str] = []

    class Slow:
        def __init__(self, *_: object) -> None:
            time.sleep(0.3)

        def send(self, record: Record) -> None:
            if record.seed == 2:
                raise OSError("unplugged")
            done.append(f"sent {record.seed}")

        def close(self) -> None:
            done.append("closed")

    monkeypatch.setattr("harness.tracking.tracker.TrackedComparison", Slow)
    records = [make_record(tmp_path, seed=seed) for seed in (0, 1, 2, 3)]
    tracker = Tracker(tmp_path, "demo")
    for record in records[:2]:
        tracker.log(record, sent=lambda seed=record.seed: done.append(f"knows {seed}"))  # type: ignore[misc]
    assert tracker.waited < 0.2
    tracker.close()
    assert tracker.waited > 0.1
    assert done == ["sent 0", "knows 0", "sent 1", "knows 1", "closed"]
    for record in records[2:]:  # the first failure ends it
        tracker.log(record, sent=lambda: done.append("never"))
    tracker.close()
    assert len(done) == 5
    assert "unplugged" in caplog.text


def test_sync_of_a_folder_without_records_is_wrong_input(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="harness compare"):
        sync(tmp_path / "absent")
    assert not (tmp_path / "absent").exists()


def test_mlflow_is_imported_with_the_first_record_only() -> None:
    code = (
        "import sys, harness.tracking.tracker as t; t.Tracker(t.Path('x'), 'demo'); sys.exit('mlflow' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_many_runs_in_a_database_are_as_those_that_were_sent_one_by_one(store: Store) -> None:
    many = store.workdir
    for comparison, send in (("many", True), ("single", False)):
        records = [make_record(many, id=f"{comparison}-{s}", seed=s, comparison="same", row="r") for s in (5, 6)]
        session = TrackedComparison(many, comparison, default_uri(many))
        if send:
            assert session.send_all(records) == 2
            assert session.send_all(records) == 0
        else:
            assert [session.send(record) for record in records] == [True, True]
        session.close()

    def shown(comparison: str) -> list[Any]:
        own = ("mlflow.parentRunId", "harness.id", "harness.content", "mlflow.user")
        runs = []
        for run in store.runs(comparison):
            tags = {key: value for key, value in run.data.tags.items() if key not in own}
            info = (
                run.info.run_name,
                run.info.status,
                run.info.start_time,
                run.info.end_time,
                run.info.lifecycle_stage,
            )
            files = sorted(file.path for file in store.client.list_artifacts(run.info.run_id))
            curve = [(p.step, p.value) for p in store.client.get_metric_history(run.info.run_id, "train/loss")]
            runs.append((info, tags, run.data.params, run.data.metrics, files, sorted(curve)))
        return sorted(runs, key=lambda run: run[0][0])

    assert shown("many") == shown("single")
    assert len(shown("many")) == 3
    parents = {run.info.run_id for run in store.parents("many")}
    assert {run.data.tags["mlflow.parentRunId"] for run in store.children("many").values()} == parents


HALF_MADE = """
import os, signal, sys
import mlflow.store.db.utils as utils
from harness.tracking.client import connect
if sys.argv[2] == "half":  # as MLflow's own first use of a file leaves it when it is killed
    from alembic.runtime.migration import HeadMaintainer
    steps, update = [], HeadMaintainer.update_to_step
    def deadly(self, step):
        steps.append(step)
        if len(steps) == 8:  # after its tables were made, before that was noted
            os.kill(os.getpid(), signal.SIGKILL)
        update(self, step)
    HeadMaintainer.update_to_step = deadly
    from mlflow.tracking.client import MlflowClient
    MlflowClient(tracking_uri=sys.argv[1])
utils._verify_schema = lambda engine: os.kill(os.getpid(), signal.SIGKILL)
connect(sys.argv[1])
"""


@pytest.mark.parametrize("how", ["beside", "half", "no database"])
def test_a_store_whose_making_was_killed_is_made_by_the_next_run(tmp_path: Path, how: str) -> None:
    record, uri, database = make_record(tmp_path), default_uri(tmp_path), tmp_path / "mlflow.db"
    if how == "no database":
        database.write_bytes(b"no database, whatever its name says" * 100)
    else:
        killed = subprocess.run([sys.executable, "-c", HALF_MADE, uri, how], capture_output=True)
        assert killed.returncode == -9, killed.stderr
        assert database.exists() == (how == "half")
    assert sync(tmp_path) == 1
    client = MlflowClient(tracking_uri=uri)
    experiment = client.get_experiment_by_name("demo")
    assert experiment is not None
    runs = client.search_runs([experiment.experiment_id])
    assert {run.data.tags.get("harness.id") for run in runs} == {record.id, None}
    assert database.with_name("mlflow.db.damaged").exists() == (how != "beside")


def test_a_database_server_that_is_down_is_given_up_after_seconds(tmp_path: Path, closed_port: int) -> None:
    pytest.importorskip("psycopg")
    make_record(tmp_path)
    start = time.monotonic()
    with pytest.raises(RunError, match="refused"):
        sync(tmp_path, f"postgresql+psycopg://someone:secret@127.0.0.1:{closed_port}/runs")
    assert time.monotonic() - start < 20
