"""MLflow's client, made ready: quiet, impatient with servers, and one process at a time at a new sqlite file."""

from __future__ import annotations

import logging
import os
from pathlib import Path
from typing import TYPE_CHECKING

from harness.errors import root_cause
from harness.files.redaction import redacted
from harness.machine.environment import disable_telemetry
from harness.tracking.database import knock, prepare_file

if TYPE_CHECKING:
    from mlflow.tracking.client import MlflowClient

SQLITE = "sqlite:///"


def connect(uri: str) -> MlflowClient:
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
        if uri.partition(":")[0].partition("+")[0] in ("postgresql", "mysql", "mssql"):
            knock(uri)
        return MlflowClient(tracking_uri=uri)
    database = Path(uri.removeprefix(SQLITE))
    database.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(database.with_name(f".{database.name}.lock"), timeout=120):
        prepare_file(database)
        return MlflowClient(tracking_uri=uri)


def brief(error: BaseException) -> str:
    """The root cause of an error in at most 200 characters, without credentials."""
    cause = root_cause(error)
    text = redacted(" ".join(str(cause).split())) or type(cause).__name__
    return text if len(text) <= 200 else f"{text[:200]}..."
