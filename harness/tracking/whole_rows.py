"""Many runs at once into a database of MLflow's: a row of the table and its seeds in one transaction.

MLflow's client opens a session and asks for the run again with every call, which is most of the time of sending it.
Here the same lines go into the same tables, as `mlflow.store.tracking.dbmodels` defines them, without that. A row is
there whole or not at all. Servers are spoken to through the client alone.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mlflow.store.tracking.sqlalchemy_store import SqlAlchemyStore
    from mlflow.tracking.client import MlflowClient

LONGEST_NAME, LONGEST_TAG = 250, 8000  # the columns' lengths, in characters


@dataclass
class NewRun:
    """A run that the store does not have yet."""

    name: str
    tags: dict[str, str]
    params: dict[str, str]
    metrics: Mapping[tuple[str, int], float]  # (name, step) -> value
    status: str
    start: int  # milliseconds since 1970
    end: int
    files: Sequence[Path] = ()
    id: str = field(default_factory=lambda: uuid.uuid4().hex)


def database_of(client: MlflowClient) -> SqlAlchemyStore | None:
    """The database behind a client, None where it speaks to a server."""
    from mlflow.store.tracking.sqlalchemy_store import SqlAlchemyStore

    store = client._tracking_client.store
    return store if isinstance(store, SqlAlchemyStore) else None


def write(store: SqlAlchemyStore, experiment: str, runs: Sequence[NewRun]) -> None:
    """Add runs with their files; the files first, since nothing shows them before the run is there."""
    from mlflow.store.artifact.artifact_repository_registry import get_artifact_repository
    from mlflow.store.tracking.dbmodels import models

    location = store.get_experiment(experiment).artifact_location.rstrip("/")  # type: ignore[no-untyped-call]
    rows: list[dict[str, Any]] = []
    for run in runs:
        artifacts = f"{location}/{run.id}/artifacts"
        if run.files:
            repository = get_artifact_repository(artifacts)
            for file in run.files:
                repository.log_artifact(str(file))  # type: ignore[no-untyped-call]
        rows.append({
            "run_uuid": run.id, "experiment_id": int(experiment), "name": run.name[:LONGEST_NAME],
            "source_type": "UNKNOWN", "source_name": "", "entry_point_name": "", "source_version": "",
            "user_id": "unknown", "status": run.status, "start_time": run.start, "end_time": run.end,
            "lifecycle_stage": "active", "artifact_uri": artifacts,
        })  # fmt: skip
    tags = [
        {"run_uuid": run.id, "key": key, "value": value[:LONGEST_TAG]}
        for run in runs
        for key, value in {**run.tags, "mlflow.runName": run.name[:LONGEST_NAME]}.items()
    ]
    params = [{"run_uuid": run.id, "key": key, "value": value} for run in runs for key, value in run.params.items()]
    points = [point for run in runs for point in _points(store, run)]
    last = {(point["run_uuid"], point["key"]): point for point in sorted(points, key=lambda point: point["step"])}
    tables: list[tuple[Any, Iterable[dict[str, Any]]]] = [
        (models.SqlRun, rows),
        (models.SqlTag, tags),
        (models.SqlParam, params),
        (models.SqlMetric, points),
        (models.SqlLatestMetric, last.values()),
    ]
    with store.engine.begin() as connection:
        for table, lines in tables:
            if lines := list(lines):
                connection.execute(table.__table__.insert(), lines)


def _points(store: SqlAlchemyStore, run: NewRun) -> Iterable[dict[str, Any]]:
    for (name, step), number in run.metrics.items():
        is_nan, value = store.sanitize_metric_value(number)
        yield {
            "run_uuid": run.id, "key": name, "step": step, "timestamp": run.end, "is_nan": is_nan, "value": value,
        }  # fmt: skip
