"""One small comparison, made by each executor: what must be the same of it everywhere, and how many updates it took."""

from __future__ import annotations

import hashlib
import json
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from harness import api, registry
from harness.executors.executor import Answer, Executor, Job
from harness.results.manifest import read_records
from harness.results.record import Record
from tests.support import jobs, short_runs

SEEDS, STEPS = 2, 8  # a checkpoint after each: of 90 MB
EXPERIMENT = {
    "name": "same",
    "seeds": list(range(1, SEEDS + 1)),
    "suites": ["Embedded-STS-natural"],
    "max_steps": STEPS,
    "precision": "fp32",
    "corpus": {"uri": "embedded:sentences", "limit": 8 * STEPS},
    "dev": None,
    "methods": [{"method": "simcse", "preset": "mini", "config": {"batch_size": 8, "train_length": 12}}],
}
UPDATES = SEEDS * STEPS


def table_of(
    workdir: Path, executor: Mapping[str, Any], log: Path, *, pause: float | None = None, **more: Any
) -> dict[str, str]:
    """Id of a run -> sha256 of its scores, and of the hashes of its pairs, weights and curve; all have finished.

    Args:
        log: gets a line for every update that is made, which names the process.
        pause: as in `tests.support.jobs.counted`.
    """
    kind = _counted(registry.load(registry.EXECUTORS, executor["name"]), log, pause)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(registry, "load", _with(kind, registry.load))
        records = records_of(workdir, executor, **more)
    return _hashed(records)


def records_of(workdir: Path, executor: Mapping[str, Any], **more: Any) -> list[Record]:
    """Those of the comparison."""
    with pytest.MonkeyPatch.context() as patch:
        short_runs.no_report(patch)
        return api.compare({**EXPERIMENT, **more}, workdir=workdir, tracked=False, executor=executor).records


def hashes(workdir: Path, name: str) -> dict[str, str]:
    """As `table_of`, of a comparison that was made."""
    return _hashed(read_records(workdir, name))


def _hashed(records: Sequence[Record]) -> dict[str, str]:
    assert [(r.status, r.reason) for r in records] == [("finished", "")] * len(records)
    said = {r.id: json.dumps([[s.model_dump() for s in r.scores], r.files], sort_keys=True) for r in records}
    return {run: hashlib.sha256(text.encode()).hexdigest() for run, text in said.items()}


def updates(log: Path) -> int:
    """How many updates were made."""
    return len(_makers(log))


def processes(log: Path) -> int:
    """How many processes made them."""
    return len(set(_makers(log)))


def _makers(log: Path) -> list[str]:
    return log.read_text().splitlines() if log.exists() else []


def _with(kind: type[Executor], known: Callable[..., Any]) -> Callable[..., Any]:
    return lambda group, name: kind if group is registry.EXECUTORS else known(group, name)


def _counted(kind: type[Executor], log: Path, pause: float | None) -> type[Executor]:
    """The executor, whose jobs are `tests.support.jobs.counted`."""

    class Counted(kind):  # type: ignore[valid-type, misc]
        def run(self, asked: Sequence[Job], tick: Callable[[], None]) -> Iterator[Answer]:
            told = [
                replace(job, call=jobs.counted, arguments=(str(log), pause, job.call, *job.arguments)) for job in asked
            ]
            yield from super().run(told, tick)

    return Counted


@contextmanager
def one_thread() -> Iterator[None]:
    """This process computes with one thread, as the workers do."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@contextmanager
def in_the_middle(workdir: Path, log: Path | None, end: Callable[[int], None], after: int = 4) -> Iterator[list[int]]:
    """Have `end` called once so many updates were made, with the process of a run that has begun; the list says so."""
    ended: list[int] = []
    over = threading.Event()

    def watch() -> None:
        while not ended and not over.is_set():
            time.sleep(0.02)
            if (log is None or updates(log) >= after) and (pids := _at_work(workdir)):
                end(pids[0])
                ended.append(pids[0])

    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    try:
        yield ended
    finally:
        over.set()
        thread.join()


def _at_work(workdir: Path) -> list[int]:
    """Processes whose runs have made an update."""
    pids = []
    for file in (workdir / "live" / "cells").glob("*.json"):
        with suppress(OSError, ValueError):
            seen = json.loads(file.read_text())
            pids += [int(seen["pid"])] if seen["step"] else []
    return pids
