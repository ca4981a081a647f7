"""Runs in MLflow; the only file that knows it.

Records on disk are the truth, MLflow shows them: experiment = comparison, parent run = one row of the table on one
base model, child run = seed. Whatever MLflow does, a comparison goes on; `sync` sends later what is missing.
"""

from __future__ import annotations

import hashlib
import logging
import os
import re
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from harness.environment import disable_telemetry
from harness.errors import InputError, RunError
from harness.records import Record, RunFolder, read_records

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

    Nothing here raises: the first failure is one warning, after which the tracker is silent. MLflow is imported and
    its store opened (about two seconds, four for a new one) with the first record.
    """

    def __init__(self, workdir: Path, comparison: str, uri: str | None = None) -> None:
        self.workdir = workdir
        self.comparison = comparison
        self.uri = uri or default_uri(workdir)
        self._store: _Experiment | None = None
        self._failed = False

    def log(self, record: Record) -> None:
        """Send one record with its curves and artifacts, unless the store already has it just so."""
        with self._never_raise():
            if not self._failed:
                self._store = self._store or _Experiment(self.workdir, self.comparison, self.uri)
                self._store.send(record)

    def close(self) -> None:
        """End the parent runs: status, and the mean of each score over the seeds."""
        with self._never_raise():
            if self._store is not None and not self._failed:
                self._store.close()

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
    records = read_records(workdir)
    if not records:
        raise InputError(f"{workdir}: no records (runs/*/record.json) there; name a work directory of `harness compare`")
    target = uri or default_uri(workdir)
    sent = 0
    try:
        for comparison in sorted({record.comparison for record in records}):
            experiment = _Experiment(workdir, comparison, target)
            for record in records:
                if record.comparison == comparison:
                    sent += experiment.send(record)
            experiment.close()
    except Exception as error:
        raise RunError(
            f"tracking: {hide_password(target)} cannot be used ({_brief(error)}); "
            f"{sent} of {len(records)} runs were sent; the same command sends the rest"
        ) from error
    return sent


class _Experiment:
    """One comparison in one store. Every method may raise whatever MLflow raises."""

    def __init__(self, workdir: Path, comparison: str, uri: str) -> None:
        self.workdir = workdir
        self.client = _client(uri)
        self.id = self._open(comparison, uri)
        self.runs: dict[str, list[Run]] = defaultdict(list)  # record id -> its runs: one, more after an interruption
        self.parents: dict[str, str] = {}  # parent key -> run id
        self.touched: set[str] = set()  # run ids of the parents that got a child in this session
        for run in self._search(""):
            tags = run.data.tags
            if "harness.id" in tags:
                self.runs[tags["harness.id"]].append(run)
            elif "harness.parent" in tags:
                self.parents[tags["harness.parent"]] = run.info.run_id

    def _open(self, name: str, uri: str) -> str:
        found = self.client.get_experiment_by_name(name)
        if found is not None:
            if found.lifecycle_stage == "deleted":  # its name stays taken, so that it cannot be made anew
                self.client.restore_experiment(found.experiment_id)
            return str(found.experiment_id)
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
        earlier = self.runs[record.id]
        if len(earlier) == 1 and earlier[0].data.tags.get("harness.content") == content:
            return False
        for run in earlier:
            self.client.delete_run(run.info.run_id)
        parent = self._parent(record)
        start, end = _milliseconds(record.started), _milliseconds(record.finished)
        tags = {
            "mlflow.parentRunId": parent,
            "mlflow.source.name": record.command,
            "mlflow.note.content": record.reason,
            "harness.id": record.id,
            "harness.status": record.status,
            "harness.protocols": " ".join(sorted({score.protocol for score in record.scores})),
        }
        run = self.client.create_run(
            self.id, start_time=start, run_name=f"{record.row} seed {record.seed}", tags={k: v for k, v in tags.items() if v}
        )
        run_id = run.info.run_id
        self._log(run_id, params={**row_params(record), **seed_params(record)}, metrics=metrics(record, folder), time=end)
        for file in (folder.record_file, folder.curves_file, folder.pairs_file):
            if file.exists():
                self.client.log_artifact(run_id, str(file))
        self.client.set_terminated(run_id, "FAILED" if record.status == "failed" else "FINISHED", end_time=end)
        self.client.set_tag(run_id, "harness.content", content)  # last: a run without it was interrupted
        self.runs[record.id] = [self.client.get_run(run_id)]
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
                tags={"harness.parent": key},
            )
            self.parents[key] = run.info.run_id
            self._log(run.info.run_id, params=params)
        self.touched.add(self.parents[key])
        return self.parents[key]

    def _log(
        self, run_id: str, *, params: Mapping[str, Any], metrics: Mapping[tuple[str, int], float] | None = None, time: int = 0
    ) -> None:
        from mlflow.entities import Metric, Param

        all_params = [Param(name, str(value)[:LONGEST_PARAM]) for name, value in params.items()]
        for i in range(0, len(all_params), PARAMS_A_BATCH):
            self.client.log_batch(run_id, params=all_params[i : i + PARAMS_A_BATCH])
        points = [Metric(name, value, time, step) for (name, step), value in (metrics or {}).items()]
        for i in range(0, len(points), METRICS_A_BATCH):
            self.client.log_batch(run_id, metrics=points[i : i + METRICS_A_BATCH])

    def close(self) -> None:
        for parent in sorted(self.touched):
            children = list(self._search(f"tags.`mlflow.parentRunId` = '{parent}'"))
            done = [run.data.metrics for run in children if run.data.tags.get("harness.status") == "finished"]
            # Curves belong to their seeds; of the rest, the mean over those seeds that have the number.
            means: dict[tuple[str, int], float] = {("seeds", 0): len(done)}
            for name in sorted({name for values in done for name in values if not name.startswith(("train/", "dev/"))}):
                values = [run[name] for run in done if name in run]
                means[name, 0] = sum(values) / len(values)
            self._log(parent, params={}, metrics=means, time=_milliseconds(""))
            self.client.set_terminated(parent, "FINISHED" if done else "FAILED")
        self.touched.clear()


def row_params(record: Record) -> dict[str, Any]:
    """What all seeds of a row share: method, base model, data, and the method's config as `config.a.b`."""
    config = {name: value for name, value in record.config.items() if name != "seed"}
    return {
        "row": record.row,
        "method": record.method,
        "base_model": record.base_model,
        "supervision": record.supervision,
        **_flat({"corpus": record.corpus or {}, "dev": record.dev or {}, "config": config}),
    }


def seed_params(record: Record) -> dict[str, Any]:
    """What belongs to one run: its seed, and where it ran."""
    environment = record.environment
    precision = environment.get("precision", "")
    shown = {
        "device": environment.get("device", ""),
        "device_name": environment.get("device_name", ""),
        "precision": precision.get("precision", precision.get("choice", "")) if isinstance(precision, dict) else precision,
        "versions": environment.get("versions", {}),
    }
    return {"seed": record.seed, **{name: value for name, value in _flat(shown).items() if value != ""}}


def metrics(record: Record, folder: RunFolder) -> dict[tuple[str, int], float]:
    """(name, step) -> value: `train/loss`, `dev/spearman` by step; `STS12.spearman.all`, `cost/...`, `training/...`.

    A score's name has its split unless that is "test", and its source where the record has the score from several.
    """
    found: dict[tuple[str, int], float] = {}
    for line in folder.curves():
        for name, value in line.items():
            if name not in ("step", "kind") and _is_number(value):
                found[_name(f"{line['kind']}/{name}"), line["step"]] = value  # a step repeated by a resume: the last
    sources = defaultdict(set)
    for score in record.scores:
        sources[score.task, score.metric, score.aggregation, score.split].add(score.source)
    for score in record.scores:
        split = "" if score.split == "test" else score.split
        several = len(sources[score.task, score.metric, score.aggregation, score.split]) > 1
        parts = (score.task, score.metric, score.aggregation, split, score.source if several else "")
        found[_name(".".join(part for part in parts if part)), 0] = score.value
    for name, value in _flat({"cost": record.cost, "training": record.training}, separator="/").items():
        if _is_number(value):
            found[_name(name), 0] = value
    return found


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

    for name, level in (("mlflow", logging.WARNING), ("alembic", logging.WARNING), ("urllib3.connectionpool", logging.ERROR)):
        logging.getLogger(name).setLevel(level)  # after the import, which sets them
    if not uri.startswith(SQLITE):
        return MlflowClient(tracking_uri=uri)
    database = Path(uri.removeprefix(SQLITE))
    database.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(database.with_name(f".{database.name}.lock"), timeout=120):
        return MlflowClient(tracking_uri=uri)


def _content_hash(record: Record, folder: RunFolder) -> str:
    digest = hashlib.sha256(f"{LAYOUT}\n{record.model_dump_json()}\n".encode())
    for file in (folder.curves_file, folder.pairs_file):
        digest.update(hashlib.sha256(file.read_bytes() if file.exists() else b"").digest())
    return digest.hexdigest()


def _flat(values: Mapping[str, Any], prefix: str = "", separator: str = ".") -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in values.items():
        if isinstance(value, Mapping):
            found |= _flat(value, f"{prefix}{name}{separator}", separator)
        else:
            found[f"{prefix}{name}"] = value
    return found


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _name(name: str) -> str:
    """A metric name MLflow takes: letters, digits and `_-. :/`."""
    return re.sub(r"[^\w\-. :/]", "_", name)[:250]


def _milliseconds(moment: str) -> int:
    """Milliseconds since 1970 of an ISO 8601 time; now, where there is none."""
    return int((datetime.fromisoformat(moment).timestamp() if moment else time.time()) * 1000)


def _brief(error: Exception) -> str:
    text = " ".join(str(error).split()) or type(error).__name__
    return text if len(text) <= 200 else f"{text[:200]}..."
