"""The loop over jobs: what workers are told while they run."""

from __future__ import annotations

import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from harness.results.store import RunFolder
from harness.runs.runner import Runner


def test_a_request_to_prune_is_whole_when_it_appears(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A worker that saw an empty request would take it for that of a stop."""
    job: Any = SimpleNamespace(label="trial 1", id="r1", steps=10)
    run = SimpleNamespace(dev=[(5, 0.1)])
    progress: Any = SimpleNamespace(
        stopping=False, runs={"trial 1": run}, update=lambda running: None
    )
    executor: Any = SimpleNamespace(parallel=True, room=lambda: 1)
    runner = Runner(tmp_path, executor, progress)
    runner.proposer = SimpleNamespace(prune=lambda job, step, score: "dev 10.00 at step 5")  # type: ignore[assignment]
    runner.waiting = {"r1": [job]}
    request = RunFolder(tmp_path, "r1").stop_file
    request.parent.mkdir(parents=True)

    sizes = []
    replace = os.replace

    def watch(source: Any, target: Any, **options: Any) -> None:
        sizes.append((Path(target) == request, request.exists(), Path(source).stat().st_size))
        replace(source, target, **options)

    monkeypatch.setattr(os, "replace", watch)
    runner._room = 1
    runner._ticked = 0.0
    runner._tick()
    assert request.read_text() == "dev 10.00 at step 5"
    assert sizes == [(True, False, len("dev 10.00 at step 5"))]
