"""Trackers by choice: trackio by its own client, and any class of another package by the scheme of
its URI.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness import registry
from harness.results.record import Record
from harness.results.store import read_records
from harness.tracking import Tracker, sync
from tests.support import synthetic

pytest.importorskip("trackio")


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Where trackio stores its runs; it reads that once, when it is imported."""
    folder = tmp_path_factory.mktemp("trackio")
    before = os.environ.get("TRACKIO_DIR")
    os.environ["TRACKIO_DIR"] = str(folder)
    yield folder
    os.environ.pop("TRACKIO_DIR") if before is None else os.environ.update(TRACKIO_DIR=before)


@pytest.fixture
def workdir(tmp_path: Path) -> Path:
    made = synthetic.Invented(tmp_path, scale=0.1)
    for seed in (1, 2):
        made.add("SimCSE", seed, tasks=("STS-B",), geometry=False)
    return tmp_path


def test_trackio_gets_every_run_once_with_its_curve_and_scores(place: Path, workdir: Path) -> None:
    import trackio
    from trackio.sqlite_storage import SQLiteStorage

    assert sync(workdir, "trackio://own") == 2
    assert sync(workdir, "trackio://own") == 0
    runs = list(trackio.Api().runs("own"))
    assert len(runs) == 2
    assert {run.config["row"] for run in runs} == {"SimCSE"}  # type: ignore[index]
    logs = SQLiteStorage.get_logs("own", runs[0].name)
    records = {record.seed: record for record in read_records(workdir)}
    score = next(s.value for s in records[int(runs[0].config["seed"])].scores if s.task == "STS-B")  # type: ignore[index]
    assert logs[-1]["sts/STS-B"] == pytest.approx(score)
    assert any("train/loss" in line for line in logs)


def test_a_tracker_of_another_package_is_found_by_its_scheme(
    workdir: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    got: list[tuple[str, str]] = []

    class Own:
        def __init__(self, workdir: Path, name: str, uri: str) -> None:
            self.uri = uri

        def send(self, record: Record) -> bool:
            got.append((self.uri, record.row))
            if record.seed == 2:
                raise OSError("the server is gone")
            return True

        def end_rows(self) -> None: ...

    monkeypatch.setitem(registry._added, registry.TRACKERS.entry_points, {"own": Own})
    tracker = Tracker(workdir, "invented", "own://place")
    for record in read_records(workdir):
        tracker.log(record)
    tracker.close()
    assert got == [("own://place", "SimCSE")] * 2
    assert "the server is gone" in caplog.text
