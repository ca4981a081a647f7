"""Data sets and models of a run, as MLflow holds them."""

from __future__ import annotations

import json
import re
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from harness.results.record import Record
from harness.tracking.fields import MORE, data_sets, description, scores_by_name

if TYPE_CHECKING:
    from mlflow.entities import DatasetInput
    from mlflow.tracking.client import MlflowClient

LONGEST_NAME, LONGEST_DIGEST = 500, 36  # MLflow's limits, in characters
METRICS_A_BATCH = 1000  # and its limit of one request


def inputs_of(record: Record) -> list[DatasetInput]:
    """The data sets that a run read, with what each was for."""
    from mlflow.entities import Dataset, DatasetInput, InputTag

    return [
        DatasetInput(
            Dataset(
                data.name[:LONGEST_NAME], data.digest[:LONGEST_DIGEST], "harness", json.dumps({"uri": data.source})
            ),
            [InputTag("mlflow.data.context", data.use)],
        )
        for data in data_sets(record)
    ]


def log_model(
    client: MlflowClient, experiment: str, run_id: str, record: Record, folder: Path, milliseconds: int
) -> None:
    """A logged model that is a link: its weights stay in their folder as safetensors, its card is the artifact.

    `milliseconds`: when the run ended, at which it has its scores; the model has one of each task.
    """
    from mlflow.entities import LoggedModelOutput, Metric

    tags = {
        "harness.folder": str(folder.resolve()),
        "harness.id": record.id,
        "mlflow.note.content": description(record),
    }
    params = {"method": record.method, "base_model": record.base_model, "seed": str(record.seed)}
    name = re.sub(r"[/:.%\"']", "-", f"{record.row} seed {record.seed}")  # what MLflow refuses
    model = client.create_logged_model(
        experiment, name, source_run_id=run_id, tags=tags, params=params, model_type="sentence-transformers"
    )
    card = folder / "README.md"
    with tempfile.TemporaryDirectory() as staged:
        where = f"The model: {folder.resolve()}\n"
        text = card.read_text("utf-8", errors="replace") if card.is_file() else where
        Path(staged, "README.md").write_text(text, "utf-8")
        client.log_model_artifacts(model.model_id, staged)
    client.finalize_logged_model(model.model_id, "READY")
    scores = {
        name: one.value for name, one in scores_by_name(record).items() if not name.partition("/")[0].endswith(MORE)
    }
    points = [Metric(name, value, milliseconds, 0, model_id=model.model_id) for name, value in scores.items()]
    for begin in range(0, len(points), METRICS_A_BATCH):
        client.log_batch(run_id, metrics=points[begin : begin + METRICS_A_BATCH])
    client.log_outputs(run_id, [LoggedModelOutput(model.model_id, step=0)])


def delete_models(client: MlflowClient, run_id: str) -> None:
    """Delete the links that a run made, before it is replaced."""
    outputs = client.get_run(run_id).outputs
    for output in outputs.model_outputs if outputs is not None else ():
        client.delete_logged_model(output.model_id)
