"""Sends the runs of a comparison to a tracker: MLflow, or one of another package.

When the tracker fails, the comparison continues; `sync` later sends the records that are missing. Another tracker is an
entry point of `harness.trackers`: a `Backend` under the scheme of its `--tracking-uri`, as `harness.trackio_tracker`.
"""

from __future__ import annotations

import logging
import os
import threading
from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path
from queue import SimpleQueue
from typing import Any, Protocol
from urllib.parse import urlsplit

from harness import registry
from harness.errors import InputError, RunError, root_cause
from harness.files.printable import redacted
from harness.machine.environment import disable_telemetry
from harness.results.record import Record
from harness.results.store import RunFolder, comparison_files, read_records
from harness.seeds import seed_fields

logger = logging.getLogger(__name__)
Points = Mapping[tuple[str, int], float]  # (name, step) -> value

CURVE_LINES, NOT_SENT = 100, ("step", "kind", "lr", "grad_norm")  # of the training curve; curves.jsonl has all of it
SQLITE = "sqlite:///"
CLOSE_SECONDS = 600
SETTINGS = {
    "MLFLOW_HTTP_REQUEST_TIMEOUT": "10",
    "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "1",
    "MLFLOW_HTTP_REQUEST_BACKOFF_FACTOR": "1",
    "MLFLOW_SUPPRESS_PRINTING_URL_TO_STDOUT": "true",
    "GIT_PYTHON_REFRESH": "quiet",
}


class Backend(Protocol):
    """What receives the records of one comparison. Any method may raise: that is one warning, and runs continue.

    Made by `Backend(workdir, name, uri)`: the work directory, the comparison's name, the `--tracking-uri`.
    """

    def send(self, record: Record) -> bool:
        """Store a record; False if it is there already. A run that has changed is replaced."""

    def end_rows(self) -> None:
        """Nothing more comes for now: give rows the means over their seeds."""


def default_uri(workdir: Path) -> str:
    """The store that is used when none is named: a sqlite file of MLflow in the work directory."""
    return f"{SQLITE}{(workdir / 'mlflow.db').resolve()}"


def _open(workdir: Path, name: str, uri: str) -> Backend:
    """The tracker of that URI: a plugin by its scheme, else MLflow."""
    scheme = urlsplit(uri).scheme
    if scheme in registry.names(registry.TRACKERS):
        backend: Backend = registry.load(registry.TRACKERS, scheme)(workdir, name, uri)
        return backend
    from harness.mlflow_tracker import Mlflow

    return Mlflow(workdir, name, uri)


def set_environment() -> None:
    """Settings of MLflow that the user has not set: no telemetry, short waits."""
    disable_telemetry()
    for name, value in SETTINGS.items():
        os.environ.setdefault(name, value)


# What is sent of a record and its run folder.


def row_params(record: Record) -> dict[str, Any]:
    """What all seeds of a row share. The row's name is a label; other parameters are another row."""
    parts = {"corpus": record.corpus or {}, "dev": record.dev or {}, "config": record.config}
    own = {name: getattr(record, name) for name in ("row", "method", "base_model", "supervision")}
    return {name: value for name, value in (own | _flat(parts) | seed_fields(record.random_seed)).items()
            if name not in ("seed", "config.seed")}  # fmt: skip


def curve_points(folder: RunFolder) -> Points:
    """`train/loss` and `train dev/spearman` by step; of a step that a resumed run repeated, the last value."""
    try:
        lines = folder.curves()
    except InputError as error:  # the rest of the run is sent
        logger.warning("%s", error)
        return {}
    train = [line for line in lines if line["kind"] == "train"]
    stride = -(-len(train) // CURVE_LINES) or 1
    lines = [line for line in lines if line["kind"] != "train"] + train[::-1][::stride][::-1]
    return {
        (f"train/{name}" if line["kind"] == "train" else f"train {line['kind']}/{name}", line["step"]): value
        for line in lines
        for name, value in line.items()
        if name not in NOT_SENT and _is_number(value)
    }


def record_numbers(record: Record) -> dict[str, float]:
    """Scores (`sts/STS12`, further ones of a task as `sts more/STS12.spearman.mean`), `training/...` and `usage/...`.

    The first score over all pairs of the test part is the task's. The source is named where a task has several.
    """
    sources = defaultdict(set)
    for score in record.scores:
        sources[score.suite, score.task].add(score.source)
    numbers: dict[str, Any] = {}
    for score in sorted(record.scores, key=lambda s: s.split == "dev" or s.aggregation not in ("", "all")):
        task = f"{score.task} {score.source}" if len(sources[score.suite, score.task]) > 1 else score.task
        split = "" if score.split == "test" else score.split
        more = ".".join(part for part in (task, score.metric, score.aggregation, split) if part)
        name = f"{score.suite}/{task}"
        numbers[f"{score.suite} more/{more}" if name in numbers else name] = score.value
    numbers |= _flat({"usage": record.cost, "training": record.training}, separator="/")
    return {name: value for name, value in numbers.items() if _is_number(value)}


def _flat(values: Mapping[str, Any], prefix: str = "", separator: str = ".") -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for name, value in values.items():
        nested = isinstance(value, Mapping)
        flat |= _flat(value, f"{prefix}{name}{separator}", separator) if nested else {f"{prefix}{name}": value}
    return flat


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


# What the coordinator and the command line use.


class Tracker:
    """Sends the records of one comparison to its tracker, from a thread of its own, so that runs do not wait.

    MLflow is imported and its store opened (seconds) with the first record. Nothing here raises: the first failure is
    one warning, and nothing more is sent.
    """

    def __init__(self, workdir: Path, comparison: str, uri: str | None = None) -> None:
        self.workdir, self.comparison, self.uri = workdir, comparison, uri or default_uri(workdir)
        set_environment()  # before the first run: what is set during a run is undone at its end
        self._queue: SimpleQueue[Record | None] = SimpleQueue()
        self._thread: threading.Thread | None = None

    def log(self, record: Record) -> None:
        """Have one record sent, unless the store has it."""
        if self._thread is None:
            # A daemon, so that an interrupted process need not wait; what was not sent is sent next time.
            self._thread = threading.Thread(target=self._work, name="tracking", daemon=True)
            self._thread.start()
        self._queue.put(record)

    def close(self) -> None:
        """Wait until everything is sent, at most ten minutes."""
        if self._thread is not None:
            self._queue.put(None)
            self._thread.join(CLOSE_SECONDS)
            if self._thread.is_alive():
                self._warn(TimeoutError(f"not done after {CLOSE_SECONDS} s"))

    def _work(self) -> None:
        """What the thread does until `close`, or until the first failure: no run is lost because of a tracker."""
        try:
            backend: Backend | None = None
            while (record := self._queue.get()) is not None:
                backend = backend or _open(self.workdir, self.comparison, self.uri)
                backend.send(record)
                if self._queue.empty():
                    backend.end_rows()
            if backend is not None:
                backend.end_rows()
        except Exception as error:
            self._warn(error)

    def _warn(self, error: Exception) -> None:
        logger.warning(
            "tracking: %s failed (%s); runs continue and are saved in %s; send them later with: harness track "
            "sync --workdir %s%s", redacted(self.uri), _cause(error), self.workdir / "runs", self.workdir,
            "" if self.uri == default_uri(self.workdir) else " --tracking-uri URI")  # fmt: skip


def sync(workdir: Path, uri: str | None = None) -> int:
    """Send every record of `workdir` that is missing from the store or differs there; returns how many were sent.

    Raises:
        InputError: `workdir` holds no records.
        RunError: the store cannot be used; what was sent stays, and the same call sends the rest.
    """
    comparisons = dict(_comparisons(workdir))
    if not any(comparisons.values()):
        raise InputError(f"{workdir}: no runs/*/record.json there; name a work directory of `harness compare`")
    target, count = uri or default_uri(workdir), 0
    try:
        for comparison, records in comparisons.items():
            backend = _open(workdir, comparison, target)
            count += sum(backend.send(record) for record in records)
            backend.end_rows()
    except Exception as error:
        file = target.removeprefix(SQLITE)
        remedy = f"; if {file} is damaged, remove it first" if target.startswith(SQLITE) else ""
        raise RunError(
            f"tracking: {redacted(target)} failed ({_cause(error)}); the same command sends the rest{remedy}"
        ) from error
    return count


def _comparisons(workdir: Path) -> Iterator[tuple[str, list[Record]]]:
    """Each comparison or study with its records: those that its file lists, and others that were run for it."""
    every = read_records(workdir)
    for name in sorted({record.comparison for record in every} | set(comparison_files(workdir))):
        listed = read_records(workdir, name)
        known = {record.id for record in listed}
        yield name, listed + [record for record in every if record.comparison == name and record.id not in known]


def _cause(error: BaseException) -> str:
    """The root cause of an error in at most 200 characters, without credentials."""
    cause = root_cause(error)
    text = redacted(" ".join(str(cause).split())) or type(cause).__name__
    return text if len(text) <= 200 else f"{text[:200]}..."
