"""Runs in MLflow, written through its public client by the coordinating process alone.

An experiment is a comparison or a study, a parent run is a row of its table on one base model, a
child run is one seed of that row.
"""

from __future__ import annotations

import hashlib
import logging
import os
import re
import shutil
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from datetime import datetime
from glob import escape
from pathlib import Path
from statistics import fmean, stdev
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

from harness.files.hashing import content_id
from harness.files.links import real_path
from harness.files.printable import markdown_text
from harness.files.reading import is_there, require_ordinary
from harness.machine.environment import TELEMETRY, disable_telemetry
from harness.results.flat import Points, curve_points, record_numbers, row_params
from harness.results.record import Record
from harness.results.store import RunFolder
from harness.seeds import seed_text

if TYPE_CHECKING:
    from mlflow import MlflowClient
    from mlflow.entities import Run

SQLITE = "sqlite:///"
SETTINGS = {
    "MLFLOW_HTTP_REQUEST_TIMEOUT": "10",
    "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "1",
    "MLFLOW_HTTP_REQUEST_BACKOFF_FACTOR": "1",
    "MLFLOW_SUPPRESS_PRINTING_URL_TO_STDOUT": "true",
    "GIT_PYTHON_REFRESH": "quiet",
}
_LOGS = ("mlflow", "alembic", "urllib3.connectionpool")
_levels: dict[str, int] = {}  # of these logs, as the caller had them
LAYOUT = (
    6  # part of each content hash: raise it when what is sent changes, and `sync` replaces all runs
)
PARENT = "mlflow.parentRunId"
CONTENT = "harness.content"
OWN_PARAMS = ("seed", "device")  # of a seed; its row has the others, too
ABOUT = """A row of the table shows means over its seeds, which are the runs below it: scores by suite ("sts"), their
standard deviations ("sts sd"), further scores of a task ("sts more"), seconds and memory ("usage")."""


class Mlflow:
    """A `harness.tracking.Backend`. Every method may raise whatever MLflow raises."""

    def __init__(self, workdir: Path, name: str, uri: str) -> None:
        self.workdir = workdir
        self.client = connect(uri)
        self.sending = _sending_lock(workdir, uri)
        self.rows: dict[str, str] = {}  # hash of a row's parameters -> id of its run
        self.sent: dict[
            tuple[str, str], Run
        ] = {}  # record id and row, as one run may be in several rows
        self.changed: set[str] = set()  # ids of the runs of rows that have to be written
        self.lost: set[str] = set()  # of those, rows of which a seed was removed
        self.database = sqlite_file(uri) if uri.startswith(SQLITE) else None
        self.is_alone = self.database is not None  # nobody else has written since the last writing
        self.written: object = None  # how the database was then
        with self.sending():
            self.id = self._experiment(name, uri)
            self._take(self._runs())
            self._note_writing()

    def _take(self, runs: Sequence[Run]) -> None:
        """Learn what the store has, and mend what senders left that were killed, or that sent at
        the same time from other machines.
        """
        oldest_first = sorted(runs, key=lambda run: (run.info.start_time, run.info.run_id))
        for run in oldest_first:
            tags = run.data.tags
            run_id = run.info.run_id
            is_running = run.info.status == "RUNNING"
            key = _key_of(run)
            row = tags.get("harness.parent")
            if row:
                if self.rows.setdefault(row, run_id) != run_id:
                    self._join_rows(self.rows[row], run_id)
                elif is_running:
                    self.changed.add(run_id)
            elif key[0]:
                known = self.sent.get(key)
                is_other = known is not None and known.info.run_id != run_id
                if is_running or is_other:  # its sending was interrupted
                    self.client.delete_run(run_id)
                else:
                    self.sent[key] = run

    def _join_rows(self, row: str, other: str) -> None:
        """Give the seeds of a row that is there twice to its first run, and remove the other."""
        for seed in self._runs(f"tags.`{PARENT}` = '{other}'"):
            self.client.set_tag(seed.info.run_id, PARENT, row)
        self.client.delete_run(other)
        self.changed.add(row)

    def _experiment(self, name: str, uri: str) -> str:
        if (experiment := self.client.get_experiment_by_name(name)) is not None:
            if experiment.lifecycle_stage == "deleted":  # its name cannot be used again
                self.client.restore_experiment(experiment.experiment_id)
            return str(experiment.experiment_id)
        # A server has a place of its own for artifacts; a database would put them into the current
        # folder.
        is_server = uri.partition(":")[0].lower() in ("http", "https", "databricks")
        if is_server:
            place = None
        else:
            place = real_path(self.workdir / "mlartifacts").as_uri()
        tags = {"mlflow.experimentKind": "custom_model_development", "mlflow.note.content": ABOUT}
        return str(self.client.create_experiment(name, artifact_location=place, tags=tags))

    def _runs(self, which: str = "") -> list[Run]:
        """The runs of this experiment that meet a filter of MLflow."""
        runs: list[Run] = []
        token: str | None = None
        while token != "":
            page = self.client.search_runs(
                [self.id],
                which,
                max_results=1000,
                page_token=token,
            )
            runs += page
            token = page.token or ""
        return runs

    def send(self, record: Record) -> bool:
        """Store `record`; False when it is there already. A run that has changed is replaced."""
        content = _content(record)
        if self._has(record, content):
            return False
        row = content_id(row_params(record))
        with self.sending():
            if self._others_wrote():
                self._look_up(record, row)
                if self._has(record, content):
                    return False
            self._send(record, row, content)
            self._note_writing()
            return True

    def _others_wrote(self) -> bool:
        """True where somebody else may have sent runs: always on a server, in a database from the
        first time that it is not as this sender left it.
        """
        if self.is_alone and _read_state(self.database) != self.written:
            self.is_alone = False
        return not self.is_alone

    def _note_writing(self) -> None:
        if self.is_alone:
            self.written = _read_state(self.database)

    def _look_up(self, record: Record, row: str) -> None:
        """Learn what others have sent of a record and its row."""
        found = self._runs(f"tags.`harness.id` = '{record.id}'")
        keys = [_key_of(run) for run in found]
        for key in [(record.id, record.row), *keys]:
            self.sent.pop(key, None)
        self._take(found)
        if row not in self.rows:
            self._take(self._runs(f"tags.`harness.parent` = '{row}'"))

    def _has(self, record: Record, content: str) -> bool:
        known = self.sent.get((record.id, record.row))
        if known is None:
            return False
        return bool(known.data.tags.get(CONTENT) == content)

    def _send(self, record: Record, row: str, content: str) -> None:
        key = record.id, record.row
        folder = RunFolder(self.workdir, record.id)
        if key in self.sent:
            self._delete_seed(self.sent.pop(key))
        start = _milliseconds(record.started)
        end = _milliseconds(record.finished)
        if row not in self.rows:
            parts = re.split("[/:]", record.base_model.rstrip("/"))
            base_model = parts[-1]
            about = {"harness.parent": row, "mlflow.note.content": _description(record)}
            parent = self.client.create_run(
                self.id,
                start,
                about,
                f"{record.row} ({base_model})"[:250],
            )
            self.rows[row] = parent.info.run_id
        tags = _tags(record, folder.path)
        tags |= {PARENT: self.rows[row], CONTENT: content}
        run = self.client.create_run(
            self.id,
            start,
            tags,
            f"{record.row} seed {seed_text(record.random_seed)}"[:250],
        )
        run_id = run.info.run_id
        self._store_files(run, folder.own_files(record))
        own = dict(
            zip(OWN_PARAMS, (record.seed, record.environment.get("device_name", "")), strict=True)
        )
        values = {
            **curve_points(folder),
            **{(name, 0): value for name, value in record_numbers(record).items()},
        }
        self._log(run_id, row_params(record) | own, values, end)
        self.client.set_terminated(
            run_id,
            "FAILED" if record.status == "failed" else "FINISHED",
            end,
        )  # last: all sent
        self.sent[key] = run
        self.changed.add(self.rows[row])

    def _delete_seed(self, run: Run) -> None:
        """Remove the run of a seed, whose row has other means then."""
        self.client.delete_run(run.info.run_id)
        row = run.data.tags.get(PARENT)
        if row:
            self.changed.add(row)
            self.lost.add(row)

    def _store_files(self, run: Run, files: Sequence[Path]) -> None:
        """Store files as artifacts; into a folder without the query by which MLflow would find it."""
        place = urlsplit(run.info.artifact_uri)
        if place.scheme != "file":
            for file in files:
                self.client.log_artifact(run.info.run_id, str(file))
            return
        folder = Path(unquote(place.path))
        folder.mkdir(parents=True, exist_ok=True)
        for file in files:
            shutil.copyfile(file, folder / file.name)

    def end_rows(self) -> None:
        """Give each row that has changed its parameters and the means over its seeds, and end its
        run; a row that has lost all seeds is removed.
        """
        with self.sending():
            self._others_wrote()
            self._end_rows()
            self._note_writing()

    def _end_rows(self) -> None:
        for run_id in sorted(self.changed):
            seeds = self._runs(f"tags.`{PARENT}` = '{run_id}'")
            if seeds:
                done = [
                    run.data.metrics
                    for run in seeds
                    if run.data.tags["harness.status"] == "finished"
                ]
                params = {}
                for name, value in seeds[0].data.params.items():
                    if name not in OWN_PARAMS:
                        params[name] = value
                self._log(run_id, params, _means(done), _milliseconds(""))
                ends = [run.info.end_time or 0 for run in seeds]
                end = max(ends)
                self.client.set_terminated(run_id, "FINISHED" if done else "FAILED", end)
            elif run_id in self.lost:  # and not another sender's, whose first seed comes
                self.client.delete_run(run_id)
                self.rows = {row: known for row, known in self.rows.items() if known != run_id}
            self.changed.discard(run_id)
            self.lost.discard(run_id)

    def _log(self, run_id: str, params: Mapping[str, Any], values: Points, at: int) -> None:
        """Send parameters and numbers in the fewest requests: MLflow takes 100 parameters, 1000
        entries.
        """
        from mlflow.entities import Metric, Param

        entries = []
        for name, value in params.items():
            text = str(value)[:6000]
            entries.append(Param(_name(name), text))
        newest_first = sorted(values.items(), key=lambda point: -point[0][1])  # MLflow is faster so
        points = []
        for (name, step), value in newest_first:
            points.append(Metric(_name(name), value, at, step))
        while entries or points:
            self.client.log_batch(run_id, points[:800], entries[:100])
            points = points[800:]
            entries = entries[100:]


@contextmanager
def own_settings() -> Iterator[None]:
    """Settings of MLflow that the user has not set, until the block ends: no telemetry, short
    waits, no log: what fails is one line of ours.
    """
    names = (*SETTINGS, *TELEMETRY)
    added = [name for name in names if name not in os.environ]
    disable_telemetry()
    for name, value in SETTINGS.items():
        os.environ.setdefault(name, value)
    try:
        yield
    finally:
        for name in added:
            os.environ.pop(name, None)
        while _levels:
            name, level = _levels.popitem()
            logging.getLogger(name).setLevel(level)


def sqlite_uri(file: Path) -> str:
    """Return the URI of a database, whatever its path holds.

    >>> sqlite_uri(Path("/data/what?/mlflow.db"))
    'sqlite:////data/what%3F/mlflow.db'
    """
    path = str(file).replace("%", "%25").replace("?", "%3F")
    return SQLITE + path


def sqlite_file(uri: str) -> Path:
    """Return the file of a database, as SQLAlchemy reads its URI."""
    path = uri.removeprefix(SQLITE).partition("?")[0]
    return Path(unquote(path))


def _sending_lock(workdir: Path, uri: str) -> Callable[[], AbstractContextManager[Any]]:
    """Return what keeps other processes of this machine from sending at the same time."""
    from filelock import FileLock

    if uri.startswith(SQLITE):
        place = sqlite_file(uri).parent
    else:
        place = workdir
    if not os.access(place, os.W_OK):
        return nullcontext
    lock = FileLock(place / ".track.lock")
    return lambda: lock


def connect(uri: str) -> MlflowClient:
    """A client of an initialised store; a server that does not answer raises after seconds, not
    MLflow's minutes.
    """
    from filelock import FileLock
    from mlflow import MlflowClient

    for name in _LOGS:  # after the import, which sets the levels
        _levels.setdefault(name, logging.getLogger(name).level)
        logging.getLogger(name).setLevel(logging.CRITICAL)
    if not uri.startswith(SQLITE):
        return MlflowClient(tracking_uri=uri)
    database = sqlite_file(uri)
    if is_there(database):
        require_ordinary(database)  # a pipe would be waited for
    database.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(
        database.with_name(f".{database.name}.lock"), timeout=120
    ):  # two processes must not both create it
        # created under another name and moved, so that a kill leaves no half of a store
        if not database.exists():
            for left in database.parent.glob(f".{escape(database.name)}.new-*"):
                left.unlink()
            new = database.with_name(
                f".{database.name}.new-{time.time_ns()}"
            )  # MLflow caches stores by name
            _open_store(sqlite_uri(new))
            os.replace(new, database)
        return _open_store(uri)


def _open_store(uri: str) -> MlflowClient:
    """Return a client of a database that it has opened.

    MLflow makes the folder that the URI names before its escapes are read, beside the real one; it
    is removed again.
    """
    from mlflow import MlflowClient

    folder = Path(uri.removeprefix(SQLITE)).parent
    is_new = not folder.exists()
    client = MlflowClient(tracking_uri=uri)
    client.search_experiments(max_results=1)
    if is_new and folder.is_dir():
        os.removedirs(folder)  # and its parents, as far as they are empty
    return client


def _read_state(database: Path | None) -> tuple[object, ...]:
    """Return what changes with each writing of a database by anybody: SQLite's count of changes, or
    the file of its log in place of that.
    """
    assert database is not None
    with database.open("rb") as file:
        header = file.read(100)
    found: list[object] = [header[24:28]]
    log = database.with_name(f"{database.name}-wal")
    for one in (database, log):
        if one.exists():
            about = one.stat()
            found += [about.st_size, about.st_mtime_ns]
    return tuple(found)


def _key_of(run: Run) -> tuple[str, str]:
    """Return the record id and row of a seed's run."""
    tags = run.data.tags
    return tags.get("harness.id", ""), tags.get("harness.row", "")


def _content(record: Record) -> str:
    """The hash of what is sent: the record, which has the hashes of its files."""
    sent = f"{LAYOUT}\n{record.model_dump_json()}"
    return hashlib.sha256(sent.encode()).hexdigest()


def _tags(record: Record, folder: Path) -> dict[str, str]:
    tags = {
        "mlflow.source.name": record.command,
        "mlflow.source.type": "LOCAL",
        "mlflow.note.content": f"{markdown_text(record.reason)}\n\n{_description(record)}".strip(),
        "harness.id": record.id,
        "harness.row": record.row,
        "harness.status": record.status,
        "harness.folder": str(real_path(folder)),
    }
    return {name: value for name, value in tags.items() if value}


def _description(record: Record) -> str:
    """What a row is, in Markdown."""
    row = markdown_text(record.row)
    base_model = markdown_text(record.base_model)
    made = f"`{record.method}` on {base_model}, {record.supervision}"
    return f"**{row}**: {made}\n\ncommand: `{record.command}`"


def _means(seeds: Sequence[Mapping[str, float]]) -> Points:
    """The mean of each number but the curves over those seeds that have it, of scores also the
    standard deviation.
    """
    means: dict[tuple[str, int], float] = {("seeds", 0): len(seeds)}
    names: dict[str, None] = {}
    for numbers in seeds:
        names |= dict.fromkeys(numbers)
    for name in names:
        group, _, rest = name.partition("/")
        if group.split()[0] == "train":
            continue
        values = [numbers[name] for numbers in seeds if name in numbers]
        means[name, 0] = fmean(values)
        if len(values) > 1 and group not in ("usage", "training"):
            means[f"{group} sd/{rest}", 0] = stdev(values)
    return means


def _milliseconds(moment: str) -> int:
    """Milliseconds since 1970 of an ISO 8601 time; now, where there is none."""
    if moment:
        seconds = datetime.fromisoformat(moment).timestamp()
    else:
        seconds = time.time()
    return int(seconds * 1000)


def _name(name: str) -> str:
    """The name of a metric or parameter as MLflow allows it."""
    return re.sub(r"[^\w\-. :/]", "_", name)[:250]
