"""Runs in MLflow, or in a tracker of another package.

An experiment is a comparison or a study, a parent run is a row of its table on one base model, a child run is one seed
of that row. A study has one run above its rows. Only MLflow's public client is used, by the coordinating process alone.
When MLflow fails, the comparison continues; `sync` later sends the records that are missing.

Another tracker is an entry point of `harness.trackers`: a `Backend` under the scheme of its `--tracking-uri`, as
`harness.trackio_tracker`.
"""

from __future__ import annotations

import hashlib
import logging
import os
import re
import socket
import threading
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from queue import SimpleQueue
from statistics import fmean, stdev
from typing import TYPE_CHECKING, Any, Protocol
from urllib.parse import urlsplit

from harness import registry
from harness.errors import InputError, RunError, root_cause
from harness.files.hashing import content_id
from harness.files.printable import markdown_text
from harness.files.redaction import redacted
from harness.machine.environment import disable_telemetry
from harness.results.record import Record
from harness.results.store import RunFolder, comparison_files, read_records
from harness.seeds import seed_fields, seed_text

if TYPE_CHECKING:
    from mlflow import MlflowClient
    from mlflow.entities import Run

logger = logging.getLogger(__name__)
Points = Mapping[tuple[str, int], float]  # (name, step) -> value

LAYOUT = 5  # part of each content hash: raise it when what is sent changes, and `sync` replaces all runs
CURVE_LINES, NOT_SENT = 100, ("step", "kind", "lr", "grad_norm")  # of the training curve; curves.jsonl has all of it
SQLITE = "sqlite:///"
PARENT, CONTENT = "mlflow.parentRunId", "harness.content"
PORTS = {"postgresql": 5432, "mysql": 3306, "mssql": 1433}
CONNECT_SECONDS, CLOSE_SECONDS = 5, 600
SETTINGS = {
    "MLFLOW_HTTP_REQUEST_TIMEOUT": "10",
    "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "1",
    "MLFLOW_HTTP_REQUEST_BACKOFF_FACTOR": "1",
    "MLFLOW_SUPPRESS_PRINTING_URL_TO_STDOUT": "true",
    "GIT_PYTHON_REFRESH": "quiet",
}
ABOUT = """A row of the table shows means over its seeds, which are the runs below it: scores by suite ("sts"), their
standard deviations ("sts sd"), further scores of a task ("sts more"), seconds and memory ("usage")."""


# What is sent of a record and its run folder.


def _content(record: Record) -> str:
    """The hash of what is sent: the record, which has the hashes of its files."""
    return hashlib.sha256(f"{LAYOUT}\n{record.model_dump_json()}".encode()).hexdigest()


def row_params(record: Record) -> dict[str, Any]:
    """What all seeds of a row share. The row's name is a label; other parameters are another row."""
    parts = {"corpus": record.corpus or {}, "dev": record.dev or {}, "config": record.config}
    own = {name: getattr(record, name) for name in ("row", "method", "base_model", "supervision")}
    return {name: value for name, value in (own | _flat(parts) | seed_fields(record.random_seed)).items()
            if name not in ("seed", "config.seed")}  # fmt: skip


def _milliseconds(moment: str) -> int:
    """Milliseconds since 1970 of an ISO 8601 time; now, where there is none."""
    return int((datetime.fromisoformat(moment).timestamp() if moment else time.time()) * 1000)


def _seed_params(record: Record) -> dict[str, Any]:
    """The seed, and the machine that it ran on; the artifact record.json has the rest."""
    return {"seed": record.seed, "device": str(record.environment.get("device_name", ""))}


def _description(record: Record) -> str:
    """What a row is, in Markdown."""
    row, base_model = markdown_text(record.row), markdown_text(record.base_model)
    return f"**{row}**: `{record.method}` on {base_model}, {record.supervision}\n\ncommand: `{record.command}`"


def _tags(record: Record, folder: Path) -> dict[str, str]:
    tags = {
        "mlflow.source.name": record.command,
        "mlflow.source.type": "LOCAL",
        "mlflow.note.content": f"{markdown_text(record.reason)}\n\n{_description(record)}".strip(),
        "harness.id": record.id,
        "harness.row": record.row,
        "harness.status": record.status,
        "harness.folder": str(folder.resolve()),
        CONTENT: _content(record),
    }
    return {name: value for name, value in tags.items() if value}


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
        (_name(f"train/{name}" if line["kind"] == "train" else f"train {line['kind']}/{name}"), line["step"]): value
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
    return {_name(name): value for name, value in numbers.items() if _is_number(value)}


def _comparisons(workdir: Path) -> Iterator[tuple[str, list[Record]]]:
    """Each comparison or study with its records: those that its manifest lists, and others that were run for it."""
    every = read_records(workdir)
    for name in sorted({record.comparison for record in every} | set(comparison_files(workdir))):
        listed = read_records(workdir, name)
        known = {record.id for record in listed}
        yield name, listed + [record for record in every if record.comparison == name and record.id not in known]


def _flat(values: Mapping[str, Any], prefix: str = "", separator: str = ".") -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for name, value in values.items():
        nested = isinstance(value, Mapping)
        flat |= _flat(value, f"{prefix}{name}{separator}", separator) if nested else {f"{prefix}{name}": value}
    return flat


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _name(name: str) -> str:
    """The name of a metric or parameter as MLflow allows it."""
    return re.sub(r"[^\w\-. :/]", "_", name)[:250]


# The store.


def default_uri(workdir: Path) -> str:
    """The store that is used when none is named: a sqlite file in the work directory."""
    return f"{SQLITE}{(workdir / 'mlflow.db').resolve()}"


def _set_environment() -> None:
    disable_telemetry()
    for name, value in SETTINGS.items():
        os.environ.setdefault(name, value)


def _connect(uri: str) -> MlflowClient:
    """A client of an initialised store; a server that does not answer raises after seconds, not MLflow's minutes."""
    _set_environment()
    from filelock import FileLock
    from mlflow import MlflowClient

    for name in ("mlflow", "alembic", "urllib3.connectionpool"):
        logging.getLogger(name).setLevel(logging.ERROR)  # after the import, which sets the levels
    address = urlsplit(uri)
    port = PORTS.get(address.scheme.partition("+")[0])
    if port and address.hostname:
        socket.create_connection((address.hostname, address.port or port), timeout=CONNECT_SECONDS).close()
    if not uri.startswith(SQLITE):
        return MlflowClient(tracking_uri=uri)
    database = Path(uri.removeprefix(SQLITE))
    database.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(database.with_name(f".{database.name}.lock"), timeout=120):  # two processes must not both create it
        if not database.exists():  # created under another name and moved, so that a kill leaves no half of a store
            for left in database.parent.glob(f".{database.name}.new-*"):
                left.unlink()
            new = database.with_name(f".{database.name}.new-{time.time_ns()}")  # MLflow caches stores by name
            MlflowClient(tracking_uri=f"{SQLITE}{new}").search_experiments()
            os.replace(new, database)
        return MlflowClient(tracking_uri=uri)


class Backend(Protocol):
    """What receives the records of one comparison. Any method may raise: that is one warning, and runs continue.

    Made by `Backend(workdir, name, uri, root)`: the work directory, the comparison's name, the `--tracking-uri`, and of
    a study the parameters of one run above all others.
    """

    def send(self, record: Record) -> bool:
        """Store a record; False if it is there already. A run that has changed is replaced."""

    def end_rows(self) -> None:
        """Nothing more comes for now: give rows the means over their seeds."""

    def close(self) -> None:
        """Nothing more comes."""

    def attach(self, report: Path) -> None:
        """Keep the page of a report with the runs."""


def _open(workdir: Path, name: str, uri: str, root: Mapping[str, Any] | None = None) -> Backend:
    """The tracker of that URI: a plugin by its scheme, else MLflow."""
    scheme = urlsplit(uri).scheme
    if scheme in registry.names(registry.TRACKERS):
        backend: Backend = registry.load(registry.TRACKERS, scheme)(workdir, name, uri, root)
        return backend
    return _Experiment(workdir, name, uri, root)


class _Experiment:
    """The runs of one comparison in one store of MLflow. Every method may raise whatever MLflow raises."""

    def __init__(self, workdir: Path, name: str, uri: str, root: Mapping[str, Any] | None = None) -> None:
        self.workdir, self.client = workdir, _connect(uri)
        self.id = self._open(name, uri)
        self.root = ""  # id of the run above all rows, where there is one
        self.rows: dict[str, str] = {}  # hash of a row's parameters -> id of its run
        self.sent: dict[tuple[str, str], Run] = {}  # record id and row, as one run may be in several rows
        # id of a row's run -> record id -> its numbers, also of seeds that earlier calls sent; None: not finished
        self.seeds: dict[str, dict[str, Mapping[str, float] | None]] = defaultdict(dict)
        self.newest: dict[str, Record] = {}  # hash of a row's parameters -> the record of this call that ended last
        self.changed: set[str] = set()  # hashes of rows whose run has to be written
        token: str | None = None
        while token != "":
            page = self.client.search_runs([self.id], max_results=1000, page_token=token)
            for run in page:
                self._add(run)
            token = page.token or ""
        if root is not None and not self.root:
            self.root = self.client.create_run(self.id, run_name=name, tags={"harness.root": name}).info.run_id
            self._log(self.root, root, {}, 0)

    def _add(self, run: Run) -> None:
        """A run that the store holds already."""
        tags, is_running = run.data.tags, run.info.status == "RUNNING"
        key = tags.get("harness.id", ""), tags.get("harness.row", "")
        if "harness.root" in tags:
            self.root = run.info.run_id
        elif row := tags.get("harness.parent"):
            self.rows[row] = run.info.run_id
            self.changed |= {row} if is_running else set()
        elif key[0] and (is_running or key in self.sent):  # its sending was interrupted
            self.client.delete_run(run.info.run_id)
        elif key[0]:
            self.sent[key] = run
            curves = ("train/", "train ")
            numbers = {name: value for name, value in run.data.metrics.items() if not name.startswith(curves)}
            self.seeds[tags.get(PARENT, "")][key[0]] = numbers if tags.get("harness.status") == "finished" else None

    def _open(self, name: str, uri: str) -> str:
        if (experiment := self.client.get_experiment_by_name(name)) is not None:
            if experiment.lifecycle_stage == "deleted":  # its name cannot be used again
                self.client.restore_experiment(experiment.experiment_id)
            return str(experiment.experiment_id)
        # A server has a place of its own for artifacts; a database would put them into the current folder.
        is_server = urlsplit(uri).scheme in ("http", "https", "databricks")
        place = None if is_server else (self.workdir / "mlartifacts").resolve().as_uri()
        tags = {"mlflow.experimentKind": "custom_model_development", "mlflow.note.content": ABOUT}
        return str(self.client.create_experiment(name, artifact_location=place, tags=tags))

    def send(self, record: Record) -> bool:
        """Store `record`; False when it is there already. A run that has changed is replaced."""
        key, row, folder = (record.id, record.row), content_id(row_params(record)), RunFolder(self.workdir, record.id)
        self.newest[row] = max(self.newest.get(row, record), record, key=lambda one: one.finished)
        if (known := self.sent.get(key)) is not None:
            if known.data.tags.get(CONTENT) == _content(record):
                return False
            self.client.delete_run(known.info.run_id)
        start, end = _milliseconds(record.started), _milliseconds(record.finished)
        if row not in self.rows:
            base_model = re.split("[/:]", record.base_model.rstrip("/"))[-1]
            tags = {"harness.parent": row, **({PARENT: self.root} if self.root else {})}
            parent = self.client.create_run(self.id, start, tags, f"{record.row} ({base_model})"[:250])
            self.rows[row] = parent.info.run_id
        tags = _tags(record, folder.path) | {PARENT: self.rows[row]}
        run = self.client.create_run(self.id, start, tags, f"{record.row} seed {seed_text(record.random_seed)}"[:250])
        run_id = run.info.run_id
        for file in (folder.record_file, folder.curves_file, folder.examples_file):
            if file.is_file():
                self.client.log_artifact(run_id, str(file))
        values = {**curve_points(folder), **{(name, 0): value for name, value in record_numbers(record).items()}}
        self._log(run_id, row_params(record) | _seed_params(record), values, end)
        self.client.set_terminated(run_id, "FAILED" if record.status == "failed" else "FINISHED", end)  # last: all sent
        self.sent[key] = run
        self.seeds[self.rows[row]][record.id] = record_numbers(record) if record.status == "finished" else None
        self.changed.add(row)
        return True

    def end_rows(self) -> None:
        """Give each row that has changed its parameters and the means over its seeds, and end its run."""
        for row in [row for row in self.changed if row in self.newest]:
            run_id, record = self.rows[row], self.newest[row]
            done = [numbers for numbers in self.seeds[run_id].values() if numbers is not None]
            note = f"{_description(record)}\n\nseeds: {len(done)} of {len(self.seeds[run_id])} finished"
            self._log(run_id, row_params(record), _means(done), _milliseconds(""), note)
            self.client.set_terminated(run_id, "FINISHED" if done else "FAILED", _milliseconds(record.finished))
            self.changed.discard(row)

    def close(self) -> None:
        """End the runs of all rows and the run above them."""
        self.end_rows()
        if self.root:
            self.client.set_terminated(self.root, "FINISHED")

    def attach(self, report: Path) -> None:
        """Put a report among the artifacts of the run above all rows, else of each row."""
        for run_id in [self.root] if self.root else self.rows.values():
            self.client.log_artifact(run_id, str(report), "report")

    def _log(self, run_id: str, params: Mapping[str, Any], values: Points, at: int, note: str = "") -> None:
        """Send parameters, numbers and a note in the fewest requests: MLflow takes 100 parameters, 1000 entries."""
        from mlflow.entities import Metric, Param, RunTag

        entries = [Param(_name(name), str(value)[:6000]) for name, value in params.items()]
        newest_first = sorted(values.items(), key=lambda point: -point[0][1])  # MLflow is faster so
        points = [Metric(name, value, at, step) for (name, step), value in newest_first]
        tags = [RunTag("mlflow.note.content", note)] if note else []
        while entries or points or tags:
            self.client.log_batch(run_id, points[:800], entries[:100], tags)
            points, entries, tags = points[800:], entries[100:], []


def _means(done: Sequence[Mapping[str, float]]) -> Points:
    """The mean of each number over those seeds that have it, of scores also the standard deviation."""
    means: dict[tuple[str, int], float] = {("seeds", 0): len(done)}
    for name in dict.fromkeys(name for metrics in done for name in metrics):
        group, _, rest = name.partition("/")
        values = [metrics[name] for metrics in done if name in metrics]
        means[name, 0] = fmean(values)
        if len(values) > 1 and group not in ("usage", "training"):
            means[f"{group} sd/{rest}", 0] = stdev(values)
    return means


# What the coordinator and the command line use.


class Tracker:
    """Sends the records of one comparison to its tracker, from a thread of its own, so that runs do not wait.

    MLflow is imported and its store opened (seconds) with the first record. Nothing here raises: the first failure is
    one warning, and nothing more is sent.

    Args:
        root: parameters of one run above all rows, as of a study above its trials.
    """

    def __init__(
        self, workdir: Path, comparison: str, uri: str | None = None, root: Mapping[str, Any] | None = None
    ) -> None:
        self.workdir, self.comparison, self.uri, self.root = workdir, comparison, uri or default_uri(workdir), root
        _set_environment()  # before the first run: what is set during a run is undone at its end
        self._experiment: Backend | None = None
        self._failed = False
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
        """Wait until everything is sent, at most ten minutes, and end the runs of the rows."""
        with self._warning():
            if self._thread is not None:
                self._queue.put(None)
                self._thread.join(CLOSE_SECONDS)
                if self._thread.is_alive():
                    raise TimeoutError(f"not done after {CLOSE_SECONDS} s")
                self._thread = None

    def attach(self, report: Path) -> None:
        """Put the page of the comparison's report among the artifacts; after `close`."""
        with self._warning():
            if self._experiment is not None and not self._failed and report.is_file():
                self._experiment.attach(report)

    def _work(self) -> None:
        """What the thread does until `close`, or until the first failure."""
        with self._warning():
            while (record := self._queue.get()) is not None:
                if self._experiment is None:
                    self._experiment = _open(self.workdir, self.comparison, self.uri, self.root)
                self._experiment.send(record)
                if self._queue.empty():
                    self._experiment.end_rows()
            if self._experiment is not None:
                self._experiment.close()

    @contextmanager
    def _warning(self) -> Iterator[None]:
        """Turn the first error into a warning, and ignore the others: no run is lost because of a tracking server."""
        try:
            yield
        except Exception as error:
            if not self._failed:
                logger.warning(
                    "tracking: %s failed (%s); runs continue and are saved in %s; send them later with: harness track "
                    "sync --workdir %s%s", redacted(self.uri), _cause(error), self.workdir / "runs", self.workdir,
                    "" if self.uri == default_uri(self.workdir) else " --tracking-uri URI")  # fmt: skip
            self._failed = True


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
            experiment = _open(workdir, comparison, target)
            count += sum(experiment.send(record) for record in records)
            experiment.close()
            report = workdir / "reports" / comparison / "index.html"
            if report.is_file():
                experiment.attach(report)
    except Exception as error:
        file = target.removeprefix(SQLITE)
        remedy = f"; if {file} is damaged, remove it first" if target.startswith(SQLITE) else ""
        raise RunError(
            f"tracking: {redacted(target)} failed ({_cause(error)}); the same command sends the rest{remedy}"
        ) from error
    return count


def _cause(error: BaseException) -> str:
    """The root cause of an error in at most 200 characters, without credentials."""
    cause = root_cause(error)
    text = redacted(" ".join(str(cause).split())) or type(cause).__name__
    return text if len(text) <= 200 else f"{text[:200]}..."
