"""Points on plugins that fail: tasks (tasks) and executors (executors) of another package."""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from harness import registry
from harness.errors import HarnessError
from harness.executors.executor import Executor, JobResult
from harness.files.exits import refuse_exits
from harness.results.record import Score
from harness.tasks.base import TaskResult
from tools.campaigns import forked
from tools.campaigns.reported import Finding, point
from tools.campaigns.reported_faults import EXPERIMENT
from tools.campaigns.reported_scores import write

# ----------------------------------------------------------------------------------------- tasks


class Odd:
    """A task of which one part is not as it should be."""

    name: Any = "odd"
    suite = "odd"
    source = "own"
    sha256: Any = "0"

    def texts(self) -> Any:
        return ["a"]

    def evaluate(self, vectors: Any, *, pooling: str) -> Any:
        return TaskResult()


def _raise(error: BaseException) -> Any:
    raise error


def _score(**changes: Any) -> TaskResult:
    values = {"task": "odd", "suite": "odd", "source": "own", "split": "test"}
    values |= {"metric": "accuracy", "aggregation": "", "protocol": "p", "comparable": "c"}
    return TaskResult(scores=[Score.model_construct(**{**values, "value": 0.5, "n": 3, **changes})])


ODD: dict[str, dict[str, Any]] = {
    "an infinite score": {"evaluate": lambda *_, **__: _score(value=float("inf"))},
    "a score that is a text": {"evaluate": lambda *_, **__: _score(value="good")},
    "examples that are a text": {"evaluate": lambda *_, **__: _score(n="many")},
    "a generator": {"evaluate": lambda *_, **__: iter(())},
    "too deep": {"evaluate": lambda *_, **__: _raise(RecursionError("deep"))},
    "no memory": {"evaluate": lambda *_, **__: _raise(MemoryError())},
    "exits with a text": {"evaluate": lambda *_, **__: sys.exit("enough")},
    "an error without words": {"evaluate": lambda *_, **__: _raise(AssertionError())},
    "texts of a generator": {"texts": lambda _: (text for text in ("a", 3))},
    "texts of a dictionary": {"texts": lambda _: {"a": 1}},
    "a million of one text": {"texts": lambda _: ["a"] * 1_000_000},
    "no hash": {"sha256": property(lambda _: 1 / 0)},
    "changes the vectors": {"evaluate": lambda _, vectors, **__: vectors(["a"]).fill(7)},
}


@point("tasks")
def tasks_that_fail(folder: Path, room: Path) -> Iterator[Finding]:
    """A task that fails costs its own scores, and no other's."""
    from harness.evaluation.scoring import evaluate
    from harness.sources import PairSet, Subset
    from harness.tasks.sts import STSTask

    def encode(texts: list[str]) -> Any:
        return np.array([[text.count(letter) for letter in "abcd"] for text in texts], dtype=float)

    subset = Subset("test", ["a", "ab", "abc"], ["aab", "cd", "b"], np.array([5.0, 1.0, 2.0]))
    pairs = PairSet("STS12", "mteb", "test", (subset,), "sha", "as written")
    truth = [one.value for one in evaluate(encode, [STSTask.of(pairs)], pooling="x").scores]
    for name, parts in ODD.items():
        odd = type("OddOne", (Odd,), parts)()
        try:
            with refuse_exits():
                result = evaluate(encode, [odd, STSTask.of(pairs)], pooling="x")
        except HarnessError as error:
            yield Finding(name, "scores of the other task", f"one line: {error}"[:200], ok=False)
            continue
        except BaseException as error:
            yield Finding(name, "scores of the other task", repr(error)[:200], ok=False)
            continue
        found = [one.value for one in result.scores if one.task == "STS12"]
        wrong = [one for one in result.scores if one.task == "odd"]
        missing = {key: one.text for key, one in result.missing.items()}
        seen = f"{len(found)} scores, missing {missing}, own {wrong}"
        yield Finding(name, "scores of the other task", seen[:300], found == truth and not wrong)


# ------------------------------------------------------------------------------------- executors


def _twice(function: Any, queue: deque[Any]) -> Iterator[Any]:
    job = queue.popleft()
    answer = JobResult(job, function(job))
    yield answer
    yield answer


def _swapped(function: Any, queue: deque[Any]) -> Iterator[Any]:
    first, second = queue.popleft(), queue.popleft()
    yield JobResult(first, function(second))
    yield JobResult(second, function(first))


def _none(function: Any, queue: deque[Any]) -> Iterator[Any]:
    while queue:
        yield JobResult(queue.popleft(), None)


def _exit_later(function: Any, queue: deque[Any]) -> Iterator[Any]:
    job = queue.popleft()
    yield JobResult(job, function(job))
    sys.exit(0)


EXECUTORS: dict[str, Callable[..., Any]] = {
    "an answer twice": _twice,
    "answers that are swapped": _swapped,
    "no value": _none,
    "exits after the first": _exit_later,
    "an interrupt": lambda *_: _raise(KeyboardInterrupt()),
    "an error without words": lambda *_: _raise(AssertionError()),
}


@point("executors")
def executors_that_fail(folder: Path, room: Path) -> Iterator[Finding]:
    """The command ends with exit code 1 and one line, and finished runs are recorded as theirs."""
    from harness.results.store import read_records

    file = write(room, "small.toml", EXPERIMENT)

    def own(run: Callable[..., Any]) -> type[Executor]:
        class Own(Executor):
            name = "own"
            parallel = False

            def run(self, function: Any, queue: deque[Any], tick: Any) -> Any:
                return run(function, queue)

            def room(self) -> int:
                return 2

        Own.__module__ = "elsewhere"
        return Own

    for name, run in EXECUTORS.items():
        work = room / name
        command = ["compare", str(file), "--workdir", str(work), "--executor", "own", "--quiet"]
        before = partial(registry.add, registry.EXECUTORS, "own", own(run))
        ended = forked.run([*command, "--format", "md"], before=before, seconds=300)
        records = read_records(work) if work.exists() else []
        mixed = [one for one in records if one.id != one.spec.id]
        fault = ended.fault((0, 1, 130))
        last = ended.err.strip().splitlines()[-1:]
        seen = f"{fault} exit {ended.code}, {len(records)} records: {last}"
        yield Finding(name, "exit 1, one line", seen[:300], not fault and not mixed)
