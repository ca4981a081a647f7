"""Runs in MLflow; the only file that knows it.

Records on disk are the truth, MLflow shows them: experiment = comparison, parent run = one row of the table on one
base model, child run = seed. Whatever MLflow does, a comparison goes on; `sync` sends later what is missing.
"""

from __future__ import annotations

import hashlib
import logging
import os
import re
import sqlite3
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from datetime import datetime
from itertools import zip_longest
from pathlib import Path
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from harness.errors import InputError, RunError
from harness.machine.environment import disable_telemetry
from harness.results.manifest import manifest_file, read_records
from harness.results.record import Record
from harness.results.run_folder import RunFolder
from harness.tracking.fields import numbers, row_params, seed_params

if TYPE_CHECKING:
    from mlflow.entities import Run
    from mlflow.tracking.client import MlflowClient

logger = logging.getLogger(__name__)

LAYOUT = 1  # part of a run's content hash: raise it when what is sent changes, and `sync` sends everything anew
METRICS_A_BATCH, PARAMS_A_BATCH = 1000, 100  # MLflow's limits of one log_batch request
LONGEST_PARAM = 6000  # MLflow's limit, in characters
SQLITE = "sqlite:///"


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
        self._store: _Experiment | None = None
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

    def _work(self) -> None:
        """What the thread does until `close`."""
        while (item := self._queue.get()) is not None:
            with self._never_raise():
                if not self._failed:
                    self._store = self._store or _Experiment(self.workdir, self.comparison, self.uri, self.root)
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
                hide_password(self.uri),
                _brief(error),
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
    manifests = manifest_file(workdir, "any").parent.glob("*.json")
    sent = 0
    try:
        for comparison in sorted({record.comparison for record in every} | {file.stem for file in manifests}):
            records = read_records(workdir, comparison)  # with runs that another comparison made
            listed = {record.id for record in records}
            earlier = [record for record in every if record.comparison == comparison and record.id not in listed]
            experiment = _Experiment(workdir, comparison, target)
            sent += sum([experiment.send(record) for record in records + earlier])
            experiment.close()
    except Exception as error:
        raise RunError(
            f"tracking: {hide_password(target)} cannot be used ({_brief(error)}); what was sent stays, "
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


class _Experiment:
    """One comparison in one store. Every method may raise whatever MLflow raises."""

    def __init__(self, workdir: Path, comparison: str, uri: str, root: Mapping[str, Any] | None = None) -> None:
        self.workdir = workdir
        self.client = _client(uri)
        self.id = self._open(comparison, uri)
        self.root: str | None = None  # id of the run above all rows, where there is one
        # (record id, row) -> content hash (empty: sending was interrupted) and run id of each run that shows it
        self.runs: dict[tuple[str, str], list[tuple[str, str]]] = defaultdict(list)
        self.parents: dict[str, str] = {}  # parent key -> run id
        self.described: set[str] = set()  # run ids of the parents whose parameters were sent in this session
        self.open: set[str] = set()  # run ids of the parents that got a child since they were ended
        for run in self._search(""):
            tags = run.data.tags
            if "harness.id" in tags:
                shown = (tags.get("harness.content", ""), run.info.run_id)
                self.runs[tags["harness.id"], tags["harness.row"]].append(shown)
            elif "harness.parent" in tags:
                self.parents[tags["harness.parent"]] = run.info.run_id
            elif "harness.root" in tags:
                self.root = run.info.run_id
            if run.info.status == "RUNNING" and "harness.parent" in tags:  # its session was killed
                self.open.add(run.info.run_id)
        if root is not None and self.root is None:
            self.root = self.client.create_run(
                self.id, run_name=comparison, tags={"harness.root": comparison}
            ).info.run_id
            self._log(self.root, root)

    def _open(self, name: str, uri: str) -> str:
        experiment = self.client.get_experiment_by_name(name)
        if experiment is not None:
            if experiment.lifecycle_stage == "deleted":  # its name stays taken, so that it cannot be made anew
                self.client.restore_experiment(experiment.experiment_id)
            return str(experiment.experiment_id)
        # A server has a place of its own for artifacts; a bare database would put them into the current folder.
        is_server = urlsplit(uri).scheme in ("http", "https", "databricks")
        place = None if is_server else (self.workdir / "mlartifacts").resolve().as_uri()
        return str(self.client.create_experiment(name, artifact_location=place))

    def _search(self, condition: str) -> Iterator[Run]:
        token: str | None = None
        while True:
            page = self.client.search_runs([self.id], condition, max_results=1000, page_token=token)
            yield from page
            token = page.token
            if not token:
                return

    def send(self, record: Record) -> bool:
        """Make the store hold `record`; False when it does already. A run in another state is replaced."""
        folder = RunFolder(self.workdir, record.id)
        content = _content_hash(record, folder)
        earlier = self.runs[record.id, record.row]
        if [hash_ for hash_, _ in earlier] == [content]:
            return False
        for _, run_id in earlier:
            self.client.delete_run(run_id)
        parent = self._parent(record)
        start, end = _milliseconds(record.started), _milliseconds(record.finished)
        tags = {
            "mlflow.parentRunId": parent,
            "mlflow.source.name": record.command,
            "mlflow.source.type": "LOCAL",
            "mlflow.note.content": record.reason,
            "harness.id": record.id,
            "harness.row": record.row,
            "harness.status": record.status,
            "harness.protocols": " ".join(sorted({score.protocol for score in record.scores})),
        }
        run = self.client.create_run(
            self.id,
            start_time=start,
            run_name=f"{record.row} seed {record.seed}",
            tags={name: value for name, value in tags.items() if value},
        )
        run_id = run.info.run_id
        self._log(run_id, {**row_params(record), **seed_params(record)}, numbers(record, folder), end)
        for file in (folder.record_file, folder.curves_file, folder.pairs_file, folder.figures_file):
            if file.exists():
                self.client.log_artifact(run_id, str(file))
        self.client.set_terminated(run_id, "FAILED" if record.status == "failed" else "FINISHED", end_time=end)
        self.client.set_tag(run_id, "harness.content", content)  # last: a run without it was interrupted
        self.runs[record.id, record.row] = [(content, run_id)]
        return True

    def _parent(self, record: Record) -> str:
        """The run of the table row, made with its first seed. Another config under the same label is another row."""
        params = row_params(record)
        key = hashlib.sha256(repr(sorted(params.items())).encode()).hexdigest()[:16]
        if key not in self.parents:
            run = self.client.create_run(
                self.id,
                start_time=_milliseconds(record.started),
                run_name=f"{record.row} ({record.base_model})",
                tags={"harness.parent": key, **({"mlflow.parentRunId": self.root} if self.root else {})},
            )
            self.parents[key] = run.info.run_id
        parent = self.parents[key]
        if parent not in self.described:
            self._log(parent, params)  # again where it has them: an interruption may have come before
            self.described.add(parent)
        # Rows come one after the other: with the first run of the next one a row is complete, as far as one can know.
        for complete in self.open - {parent}:
            self._end(complete)
        self.open.add(parent)
        return parent

    def _log(
        self,
        run_id: str,
        params: Mapping[str, Any],
        values: Mapping[tuple[str, int], float] | None = None,
        milliseconds: int = 0,
    ) -> None:
        """Send parameters and numbers in as few requests as MLflow allows."""
        from mlflow.entities import Metric, Param

        entries = [Param(name, str(value)[:LONGEST_PARAM]) for name, value in params.items()]
        points = [Metric(name, value, milliseconds, step) for (name, step), value in (values or {}).items()]
        batches = zip_longest(_parts(points, METRICS_A_BATCH), _parts(entries, PARAMS_A_BATCH), fillvalue=())
        for metrics, some in batches:
            self.client.log_batch(run_id, metrics=metrics, params=some)

    def _end(self, parent: str) -> None:
        """End the run of a row."""
        children = list(self._search(f"tags.`mlflow.parentRunId` = '{parent}'"))
        done = [run.data.metrics for run in children if run.data.tags.get("harness.status") == "finished"]
        # Curves belong to their seeds; of the rest, the mean over those seeds that have the number.
        means: dict[tuple[str, int], float] = {("seeds", 0): len(done)}
        for name in sorted({name for values in done for name in values if not name.startswith(("train/", "dev/"))}):
            values = [run[name] for run in done if name in run]
            means[name, 0] = sum(values) / len(values)
        self._log(parent, {}, means, _milliseconds(""))
        end = max((run.info.end_time for run in children if run.info.end_time), default=None)
        self.client.set_terminated(parent, "FINISHED" if done else "FAILED", end_time=end)
        self.open.discard(parent)

    def close(self) -> None:
        for parent in sorted(self.open):
            self._end(parent)
        if self.root is not None:
            self.client.set_terminated(self.root, "FINISHED")


def _parts(values: list[Any], size: int) -> Iterator[list[Any]]:
    for i in range(0, len(values), size):
        yield values[i : i + size]


def hide_password(uri: str) -> str:
    """The URI without the password it may carry, for messages."""
    return re.sub(r"(://[^/@:]*):[^/@]*@", r"\1:***@", uri)


def _client(uri: str) -> MlflowClient:
    """A client of an initialised store. Two processes must not initialise a new sqlite file at the same time."""
    disable_telemetry()
    # A server that hangs or refuses is given up after seconds, not after MLflow's own many minutes.
    for name, value in (("TIMEOUT", "10"), ("MAX_RETRIES", "1"), ("BACKOFF_FACTOR", "1")):
        os.environ.setdefault(f"MLFLOW_HTTP_REQUEST_{name}", value)
    os.environ.setdefault("GIT_PYTHON_REFRESH", "quiet")  # no complaint where git is not installed
    from filelock import FileLock
    from mlflow.tracking.client import MlflowClient

    quiet = {"mlflow": logging.WARNING, "alembic": logging.WARNING, "urllib3.connectionpool": logging.ERROR}
    for name, level in quiet.items():
        logging.getLogger(name).setLevel(level)  # after the import, which sets them
    if not uri.startswith(SQLITE):
        return MlflowClient(tracking_uri=uri)
    database = Path(uri.removeprefix(SQLITE))
    database.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(database.with_name(f".{database.name}.lock"), timeout=120):
        return MlflowClient(tracking_uri=uri)


def _content_hash(record: Record, folder: RunFolder) -> str:
    digest = hashlib.sha256(f"{LAYOUT}\n{record.model_dump_json()}\n".encode())
    for file in (folder.curves_file, folder.pairs_file, folder.figures_file):
        digest.update(hashlib.sha256(file.read_bytes() if file.exists() else b"").digest())
    return digest.hexdigest()


def _milliseconds(moment: str) -> int:
    """Milliseconds since 1970 of an ISO 8601 time; now, where there is none."""
    return int((datetime.fromisoformat(moment).timestamp() if moment else time.time()) * 1000)


def _brief(error: BaseException) -> str:
    """What lies at the bottom ("Connection refused") says more than what the layers above make of it."""
    while (cause := error.__cause__ or error.__context__) is not None:
        error = cause
    text = " ".join(str(error).split()) or type(error).__name__
    return text if len(text) <= 200 else f"{text[:200]}..."
