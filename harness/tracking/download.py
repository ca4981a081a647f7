"""Records back from MLflow: what the tracker logged as artifacts, as a work directory that reports read."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness.errors import HarnessError, InputError, RunError
from harness.files.atomic import write_atomic
from harness.files.names import name_fault
from harness.files.redaction import redacted
from harness.results.manifest import manifest_file
from harness.results.run_folder import RunFolder
from harness.tracking.client import brief, connect

if TYPE_CHECKING:
    from mlflow.entities import Run
    from mlflow.tracking.client import MlflowClient

FILES = ("record.json", "curves.jsonl", "pairs.parquet", "outcomes.parquet", "figures.json")
_ID = re.compile(r"[0-9A-Za-z_-]{1,64}")  # of a record: it becomes the name of a folder


def download(uri: str, workdir: Path) -> int:
    """Write the runs of every experiment of a store into `workdir`, and a manifest for each; returns their number.

    Raises:
        InputError: the store holds no runs of this harness.
        RunError: the store or an artifact cannot be read.
    """
    try:
        count = _download(uri, workdir)
    except HarnessError:
        raise
    except Exception as error:
        raise RunError(f"tracking: {redacted(uri)} cannot be read ({brief(error)})") from error
    if not count:
        raise InputError(f"--from {redacted(uri)}: no runs there that `harness compare` or `track sync` logged")
    return count


def _download(uri: str, workdir: Path) -> int:
    client = connect(uri)
    count = 0
    for experiment in _pages(client.search_experiments):
        cells: list[dict[str, Any]] = []
        for run in _runs(client, str(experiment.experiment_id)):
            record = run.data.tags.get("harness.id", "")
            if not _ID.fullmatch(record) or "harness.content" not in run.data.tags:
                continue  # a row's own run, another program's, or one whose sending was interrupted
            folder = RunFolder(workdir, record).path
            _fetch(client, run.info.run_id, folder)
            read = json.loads((folder / "record.json").read_text(encoding="utf-8"))
            cell = {"id": record, "row": run.data.tags.get("harness.row", read["row"])}
            cells.append({**cell, "base_model": read["base_model"], "seed": read["seed"]})
            count += 1
        if cells and name_fault(experiment.name) is None:  # ours name their manifest's file
            write_atomic(manifest_file(workdir, experiment.name), json.dumps({"cells": cells}, indent=1) + "\n")
    return count


def _fetch(client: MlflowClient, run_id: str, folder: Path) -> None:
    """The files of one run; those that are there already are left as they are."""
    folder.mkdir(parents=True, exist_ok=True)
    listed = {item.path for item in client.list_artifacts(run_id)}
    for name in FILES:
        if name in listed and not (folder / name).exists():
            got = Path(client.download_artifacts(run_id, name))
            shutil.copyfile(got, folder / name)


def _runs(client: MlflowClient, experiment: str) -> list[Run]:
    runs = _pages(lambda **page: client.search_runs([experiment], "", **page))
    return sorted(runs, key=lambda run: (run.info.start_time or 0, run.info.run_id))


def _pages(search: Any) -> list[Any]:
    entries: list[Any] = []
    token: str | None = None
    while True:
        page = search(max_results=1000, page_token=token)
        entries += page
        token = page.token
        if not token:
            return entries
