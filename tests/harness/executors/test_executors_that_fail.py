"""An executor of another package that fails in any way is one line; finished runs are saved."""

from __future__ import annotations

import os
import sys
from collections import deque
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from harness import registry
from harness.errors import RunError
from harness.executors.executor import Executor, JobResult
from harness.results.store import read_records
from tests.support import small_runs

ROWS = [small_runs.CLS]


def _own(run: Callable[..., Any], room: Any = 1) -> type[Executor]:
    class Own(Executor):
        name = "own"
        parallel = False

        def run(self, function: Any, queue: deque[Any], tick: Any) -> Any:
            return run(function, queue)

        def room(self) -> Any:
            return room

    Own.__module__ = "elsewhere"
    return Own


def _raise(error: BaseException) -> Any:
    raise error


def _one_then(what: Callable[[], Any]) -> Callable[..., Iterator[Any]]:
    def run(function: Any, queue: deque[Any]) -> Iterator[Any]:
        job = queue.popleft()
        yield JobResult(job, function(job))
        yield what()

    return run


def _drop(function: Any, queue: deque[Any]) -> Iterator[Any]:
    queue.clear()
    return iter(())


def _empty(function: Any, queue: deque[Any]) -> Iterator[Any]:
    while queue:
        yield JobResult(queue.popleft())


BROKEN = {
    "gives no record": _own(_empty),
    "gives no answer": _own(lambda function, queue: iter(())),
    "loses its jobs": _own(_drop),
    "returns nothing": _own(lambda function, queue: None),
    "raises at once": _own(lambda function, queue: _raise(ValueError("why"))),
    "raises later": _own(_one_then(lambda: _raise(KeyError("x")))),
    "exits": _own(_one_then(lambda: sys.exit(0))),
    "ends the process": _own(_one_then(lambda: os._exit(0))),
    "answers another thing": _own(_one_then(lambda: "done")),
    "answers a job of its own": _own(_one_then(lambda: JobResult("a job"))),
    "has no room": _own(lambda function, queue: iter(()), room=0),
    "has room for a text": _own(lambda function, queue: iter(()), room="many"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_it_is_one_error_and_what_has_finished_is_saved(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    group = registry.EXECUTORS.entry_points
    monkeypatch.setitem(registry._added, group, {"own": BROKEN[name]})
    with pytest.raises(RunError, match='executor "own"'):
        small_runs.compare(tmp_path, methods=ROWS, executor="own")
    finished = 1 if name in ("raises later", "exits", "ends the process") else 0
    if name.startswith("answers"):
        finished = 1
    assert len(read_records(tmp_path)) == finished
