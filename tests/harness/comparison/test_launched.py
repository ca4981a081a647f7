"""Several processes that a worker starts: what they are told, where they find their modules, and how they leave."""

from __future__ import annotations

import time
from pathlib import Path
from threading import Thread

import pytest

from harness.comparison.launched import launch
from harness.errors import RunError
from harness.executors.leaving import leave, stay

MODULE = "tests.support.launched_jobs"


@pytest.fixture
def four_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "4")


def told(folder: Path, seconds: float) -> dict[str, object]:
    return {"folder": str(folder), "word": "hello", "threads": 4, "seconds": seconds}


@pytest.mark.usefixtures("four_threads")
def test_they_leave_when_their_worker_has_to(tmp_path: Path) -> None:
    thread = Thread(target=launch, args=(MODULE, told(tmp_path, 60.0), 2))
    thread.start()
    try:
        late = time.monotonic() + 60
        while len(list(tmp_path.iterdir())) < 2 and time.monotonic() < late:
            time.sleep(0.05)
        assert not list(tmp_path.glob("left-*"))
        leave()
        thread.join(30.0)  # less than they would stay
    finally:
        stay()
        thread.join()
    assert sorted(file.name for file in tmp_path.glob("left-*")) == ["left-0", "left-1"]


@pytest.mark.usefixtures("four_threads")
def test_they_import_what_their_worker_does_and_nothing_from_the_folder_it_was_started_in(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("torch", "harness", "tests", "json"):
        (tmp_path / f"{name}.py").write_text('raise RuntimeError("a file of the folder")\n')
    monkeypatch.chdir(tmp_path)
    launch(MODULE, told(tmp_path, 0.0), 2)
    assert {file.read_text() for file in tmp_path.glob("begun-*")} == {"hello, 2 of 4"}
    assert len(list(tmp_path.glob("begun-*"))) == 2
    with pytest.raises(RunError, match=r"one of its 2 processes ended: KeyError: 'folder'"):
        launch(MODULE, {}, 2)
