"""Sends the runs of a comparison to a tracker: MLflow, or one of another package.

When the tracker fails, the comparison continues; `sync` later sends the records that are missing.
Another tracker is an entry point of `harness.trackers`: a `Backend` under the scheme of its
`--tracking-uri`, as `harness.trackio_tracker`.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from queue import SimpleQueue
from typing import Protocol

from harness import registry
from harness.errors import InputError, RunError, root_cause
from harness.files.exits import ENDS
from harness.files.links import real_path, refuse_links
from harness.files.printable import redacted
from harness.mlflow_tracker import SQLITE, Mlflow, own_settings, sqlite_file, sqlite_uri
from harness.results.record import Record
from harness.results.store import comparison_files, read_records

logger = logging.getLogger(__name__)

CLOSE_SECONDS = 600


class Backend(Protocol):
    """What receives the records of one comparison. Any method may raise: that is one warning, and
    runs continue.

    Made by `Backend(workdir, name, uri)`: the work directory, the comparison's name, the
    `--tracking-uri`.
    """

    def send(self, record: Record) -> bool:
        """Store a record; False if it is there already. A run that has changed is replaced."""

    def end_rows(self) -> None:
        """Nothing more comes for now: give rows the means over their seeds."""


def default_uri(workdir: Path) -> str:
    """The store that is used when none is named: a sqlite file of MLflow in the work directory."""
    return sqlite_uri(real_path(workdir / "mlflow.db"))


def _open(workdir: Path, name: str, uri: str) -> Backend:
    """The tracker of that URI: a plugin by its scheme, else MLflow."""
    scheme = uri.partition(":")[0].lower()
    if scheme in registry.names(registry.TRACKERS):
        make = registry.load(registry.TRACKERS, scheme)
        backend: Backend = make(workdir, name, uri)
        return backend
    return Mlflow(workdir, name, uri)


def open_tracker(workdir: Path, comparison: str, uri: str | None) -> Tracker | None:
    """Return what sends the runs of a comparison to `uri`, by default to `default_uri`; None where
    it is "none".
    """
    if uri == "none":
        return None
    return Tracker(workdir, comparison, uri)


class Tracker:
    """Sends the records of one comparison to its tracker, from a thread of its own, so that runs do
    not wait.

    MLflow is imported and its store opened (seconds) with the first record. Nothing here raises:
    the first failure is one warning, and nothing more is sent.
    """

    def __init__(self, workdir: Path, comparison: str, uri: str | None = None) -> None:
        self.workdir = workdir
        self.comparison = comparison
        self.uri = uri or default_uri(workdir)
        # Before the first run: what is set during a run is undone at its end.
        self._settings = ExitStack()
        self._settings.enter_context(own_settings())
        self._queue: SimpleQueue[Record | None] = SimpleQueue()
        self._thread: threading.Thread | None = None

    def log(self, record: Record) -> None:
        """Have one record sent, unless the store has it."""
        if self._thread is None:
            # A daemon, so that an interrupted process need not wait; what was not sent is sent next
            # time.
            self._thread = threading.Thread(target=self._work, name="tracking", daemon=True)
            self._thread.start()
        self._queue.put(record)

    def close(self) -> None:
        """Wait until everything is sent, at most ten minutes."""
        with self._settings:
            if self._thread is not None:
                self._queue.put(None)
                self._thread.join(CLOSE_SECONDS)
                if self._thread.is_alive():
                    self._warn(TimeoutError(f"not done after {CLOSE_SECONDS} s"))

    def _work(self) -> None:
        """What the thread does until `close`, or until the first failure: no run is lost because of
        a tracker.
        """
        try:
            backend: Backend | None = None
            while (record := self._queue.get()) is not None:
                backend = backend or _open(self.workdir, self.comparison, self.uri)
                backend.send(record)
                if self._queue.empty():
                    backend.end_rows()
            if backend is not None:
                backend.end_rows()
        except ENDS as error:
            self._warn(error)

    def _warn(self, error: BaseException) -> None:
        logger.warning(
            "tracking: %s failed (%s); runs continue and are saved in %s; send them later with: harness track "
            "sync --workdir %s%s",
            redacted(self.uri),
            _cause(error),
            self.workdir / "runs",
            self.workdir,
            "" if self.uri == default_uri(self.workdir) else " --tracking-uri URI",
        )


def sync(workdir: Path, uri: str | None = None) -> int:
    """Send every record of `workdir` that is missing from the store or differs there; returns how
    many were sent.

    Raises:
        InputError: `workdir` holds no records, or links that lead out of it.
        RunError: the store cannot be used; what was sent stays, and the same call sends the rest.
    """
    refuse_links(workdir)
    comparisons = dict(_comparisons(workdir))
    if not any(comparisons.values()):
        raise InputError(
            "no runs/*/record.json there",
            file=workdir,
            remedy="name a work directory of `harness compare`",
        )
    target = uri or default_uri(workdir)
    count = 0
    try:
        with own_settings():
            for comparison, records in comparisons.items():
                backend = _open(workdir, comparison, target)
                for record in records:
                    if backend.send(record):
                        count += 1
                backend.end_rows()
    except ENDS as error:
        local = target.startswith(SQLITE)
        if local:
            remedy = f"; if {sqlite_file(target)} is damaged, remove it first"
        else:
            remedy = ""
        raise RunError(
            f"tracking: {redacted(target)} failed ({_cause(error)}); the same command sends the rest{remedy}"
        ) from error
    return count


def _comparisons(workdir: Path) -> Iterator[tuple[str, list[Record]]]:
    """Each comparison or study with its records: those that its file lists, and others that were
    run for it.
    """
    every = read_records(workdir)
    names = {record.comparison for record in every}
    names.update(comparison_files(workdir))
    known = {record.id: record for record in every}
    for name in sorted(names):
        records = read_records(workdir, name, known=known)
        listed = {record.id for record in records}
        for record in every:
            if record.comparison == name and record.id not in listed:
                records.append(record)
        yield name, records


def _cause(error: BaseException) -> str:
    """The root cause of an error in at most 200 characters, without credentials."""
    cause = root_cause(error)
    words = " ".join(str(cause).split())
    text = redacted(words) or type(cause).__name__
    if len(text) <= 200:
        return text
    return f"{text[:200]}..."
