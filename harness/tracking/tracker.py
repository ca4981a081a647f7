"""Runs in MLflow.

Records on disk are the truth, MLflow shows them: experiment = comparison, parent run = one row of the table on one
base model, child run = seed. Whatever MLflow does, a comparison goes on; `sync` sends later what is missing.
"""

from __future__ import annotations

import logging
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from queue import SimpleQueue
from typing import Any

from harness.errors import InputError, RunError
from harness.files.redaction import redacted
from harness.results.manifest import manifest_files, read_records
from harness.results.record import Record
from harness.tracking.client import SQLITE, brief
from harness.tracking.tracked_comparison import TrackedComparison

logger = logging.getLogger(__name__)


def default_uri(workdir: Path) -> str:
    """The store that is used when none is named: a sqlite file in the work directory."""
    return f"{SQLITE}{(workdir / 'mlflow.db').resolve()}"


class Tracker:
    """Logs the records of one comparison; used by the coordinating process only.

    A thread of its own sends them, one after the other, so that runs do not wait: MLflow is imported and its store
    opened (about two seconds, four for a new one) with the first record, while the next run goes on.

    Nothing here raises: the first failure is one warning, after which the tracker is silent.
    """

    def __init__(
        self, workdir: Path, comparison: str, uri: str | None = None, *, root: Mapping[str, Any] | None = None
    ) -> None:
        """`root`: parameters of one run above all rows, as a study stands above its trials."""
        self.workdir = workdir
        self.comparison = comparison
        self.uri = uri or default_uri(workdir)
        self.root = root
        self.waited = 0.0  # seconds that `log` and `close` kept their caller
        self.worked = 0.0  # seconds of a processor that the thread took
        self._store: TrackedComparison | None = None
        self._failed = False
        self._queue: SimpleQueue[tuple[Record, Callable[[], None] | None] | None] = SimpleQueue()
        self._thread: threading.Thread | None = None

    def log(self, record: Record, *, sent: Callable[[], None] | None = None) -> None:
        """Have one record sent with its curves and artifacts, unless the store already has it just so.

        `sent` is called (by the thread) as soon as the store has it; never, where it cannot be sent.
        """
        with self._waiting():
            if self._thread is None:
                # A daemon: an interrupted process need not wait for a store; what was not sent is sent next time.
                self._thread = threading.Thread(target=self._work, name="tracking", daemon=True)
                self._thread.start()
            self._queue.put((record, sent))

    def close(self) -> None:
        """Wait until all is sent, and end the parent runs: status, and the mean of each score over the seeds."""
        with self._waiting():
            if self._thread is not None:
                self._queue.put(None)
                self._thread.join()
                self._thread = None

    def attach(self, report: Path) -> None:
        """Put the page of the comparison's report among the artifacts of its rows; after `close`."""
        with self._waiting(), self._never_raise():
            if self._store is not None and not self._failed and report.is_file():
                self._store.attach(report)

    def _work(self) -> None:
        """What the thread does until `close`."""
        while (item := self._queue.get()) is not None:
            with self._never_raise():
                if not self._failed:
                    self._store = self._store or TrackedComparison(self.workdir, self.comparison, self.uri, self.root)
                    self._store.send(item[0])
                    if item[1] is not None:
                        item[1]()
        with self._never_raise():
            if self._store is not None and not self._failed:
                self._store.close()
        self.worked += time.thread_time()

    @contextmanager
    def _waiting(self) -> Iterator[None]:
        start = time.perf_counter()
        try:
            yield
        finally:
            self.waited += time.perf_counter() - start

    @contextmanager
    def _never_raise(self) -> Iterator[None]:
        try:
            yield
        except Exception as error:  # whatever a tracking server does is no reason to lose a comparison
            self._failed = True
            logger.warning(
                "tracking: %s does not answer as it should (%s); runs go on and stay in %s; "
                "send them later with: harness track sync --from %s%s",
                redacted(self.uri),
                brief(error),
                self.workdir / "runs",
                self.workdir,
                "" if self.uri == default_uri(self.workdir) else " --tracking-uri URI",
            )


def sync(workdir: Path, uri: str | None = None) -> int:
    """Send every record of `workdir` that the store lacks or has in another state; returns how many were sent.

    Raises:
        InputError: `workdir` holds no records.
        RunError: the store cannot be used; what was sent stays, and the same call goes on from there.
    """
    every = read_records(workdir)
    if not every:
        raise InputError(f"{workdir}: no runs/*/record.json there; name a work directory of `harness compare`")
    target = uri or default_uri(workdir)
    sent = 0
    try:
        for comparison in sorted({record.comparison for record in every} | set(manifest_files(workdir))):
            records = read_records(workdir, comparison)  # with runs that another comparison made
            listed = {record.id for record in records}
            earlier = [record for record in every if record.comparison == comparison and record.id not in listed]
            experiment = TrackedComparison(workdir, comparison, target)
            sent += experiment.send_all(records + earlier)
            experiment.close()
            report = workdir / "reports" / comparison / "index.html"
            if report.is_file():
                experiment.attach(report)
    except Exception as error:
        raise RunError(
            f"tracking: {redacted(target)} cannot be used ({brief(error)}); what was sent stays, "
            "the same command sends the rest"
        ) from error
    return sent


def logged_runs(workdir: Path) -> dict[tuple[str, str, str], str]:
    """(comparison, row, record id) -> MLflow run id, of all that the work directory's own store shows.

    Read with sqlite3, since MLflow itself takes seconds to import. A store that is absent, busy or laid out in another
    way gives nothing: the tag `harness.id` finds a record's run in any store.
    """
    file = workdir / "mlflow.db"
    query = (
        "SELECT e.name, row.value, id.value, r.run_uuid FROM runs r JOIN experiments e USING (experiment_id)"
        " JOIN tags id ON id.run_uuid = r.run_uuid AND id.key = 'harness.id'"
        " JOIN tags row ON row.run_uuid = r.run_uuid AND row.key = 'harness.row'"
        " WHERE r.lifecycle_stage = 'active' ORDER BY r.start_time, r.run_uuid"
    )
    if not file.is_file():
        return {}
    try:
        with closing(sqlite3.connect(f"{file.resolve().as_uri()}?mode=ro", uri=True, timeout=1)) as store:
            return {(name, row, record): run for name, row, record, run in store.execute(query)}
    except sqlite3.Error:
        return {}
