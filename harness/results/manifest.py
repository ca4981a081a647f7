"""Which runs a comparison consists of, and their records."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from harness.errors import InputError
from harness.files.atomic import sweep, write_atomic
from harness.files.names import name_fault
from harness.files.reading import read_json
from harness.results.migrations import MANIFEST
from harness.results.record import Record
from harness.results.run_folder import RunFolder

_FOLDER = "comparisons"


def manifest_file(workdir: Path, comparison: str) -> Path:
    """Which runs a comparison consists of: `{"title", "tasks": ["SOURCE:TASK"], "cells": [{"id", "row"}],
    ...}` in the order of the table. Of a file with parts also `"blocks": [{"name", "title", "tasks"}]`, and with each
    cell the `"blocks"` that it stands in. A cell that is in no file, but the untrained start of rows that are, has
    `"counterpart": true`; a run's `"untrained"` is the id of the run that it starts from. `"schedule"`: after how many
    updates all rows were scored on the dev set (`"every"`), and what some of them say themselves (`"instead_of"`).
    A run that was made elsewhere and set beside has in `"against"` whose it is, and its own `"tasks"`;
    `"not_beside"` says which rows were not.

    Raises:
        InputError: the name can be none of a file.
    """
    if fault := name_fault(comparison):
        raise InputError(f"comparison: {fault}")
    return workdir / _FOLDER / f"{comparison}.json"


def manifest_files(workdir: Path) -> dict[str, Path]:
    """Name of a comparison -> its manifest, of all that a work directory holds."""
    return {file.stem: file for file in sorted((workdir / _FOLDER).glob("*.json"))}


def write_manifest(workdir: Path, manifest: dict[str, Any]) -> None:
    """Write the manifest of the comparison that its "name" says and remove what a kill left of it; its lock is held."""
    file = manifest_file(workdir, manifest["name"])
    sweep(file)
    write_atomic(file, json.dumps(manifest, indent=1) + "\n")


def read_manifest(workdir: Path, comparison: str) -> dict[str, Any] | None:
    """The manifest of a comparison, as a manifest of today, or None when there is none.

    Raises:
        InputError: it is damaged, or a later version wrote it.
    """
    file = manifest_files(workdir).get(comparison)  # looked up, so that no name leads out of the folder
    if file is None:
        return None
    try:
        tree = read_json(file)
        _ = [(cell["id"], cell["row"]) for cell in tree["cells"]]
    except (InputError, KeyError, TypeError):
        raise InputError(f"{file}: damaged; `harness compare` with the same experiment writes it anew") from None
    return MANIFEST.migrated(tree, str(file))


def added_runs(workdir: Path) -> set[str]:
    """Ids of the runs that are in no comparison but as untrained starts that its file does not hold. A damaged manifest
    says nothing."""
    named: dict[str, bool] = {}
    for name in manifest_files(workdir):
        try:
            cells = (read_manifest(workdir, name) or {}).get("cells", ())
        except InputError:
            continue
        for cell in cells:
            named[cell["id"]] = named.get(cell["id"], True) and bool(cell.get("counterpart"))
    return {run for run, added in named.items() if added}


def tasks_of(manifest: dict[str, Any], cell: dict[str, Any]) -> list[str] | None:
    """The tasks ("SOURCE:TASK") that a cell was to be scored on; None in the oldest manifests, which do not say."""
    if "tasks" in cell:
        return list(cell["tasks"])
    if "blocks" not in cell:
        return manifest.get("tasks")
    return [task for block in manifest["blocks"] if block["name"] in cell["blocks"] for task in block["tasks"]]


def asked(record: Record, tasks: Iterable[str] | None) -> Record:
    """The record with the scores of `tasks` ("SOURCE:TASK") alone: others may have scored the same run on more."""
    if tasks is None:
        return record
    tasks = set(tasks)
    names = {task.partition(":")[2] for task in tasks}
    return record.model_copy(
        update={
            "scores": [s for s in record.scores if s.made_by in tasks],
            "missing": {task: why for task, why in record.missing.items() if task in names},
        }
    )


def read_records(
    workdir: Path, comparison: str | None = None, *, damaged: dict[str, str] | None = None
) -> list[Record]:
    """The finished records of a comparison in the order of its manifest, or all records of a work directory.

    A run may belong to several comparisons, under a row label of each and scored on what each asks for: the label and
    the suites are the manifest's. Where `damaged` is given, records that cannot be read are left out and noted in it,
    run id -> what is wrong.

    Raises:
        InputError: a damaged record, without `damaged`.
    """

    def read(run_id: str) -> Record | None:
        try:
            return RunFolder(workdir, run_id).read()
        except InputError as error:
            if damaged is None:
                raise
            damaged[run_id] = str(error)
            return None

    manifest = read_manifest(workdir, comparison) if comparison else None
    if manifest is not None:
        known = [(cell, r) for cell in manifest["cells"] if (r := read(cell["id"])) is not None]
        return [
            asked(record, tasks_of(manifest, cell)).model_copy(
                update={"row": cell["row"], "comparison": comparison}
                | ({"base_model": cell["base_model"]} if "against" in cell else {})  # by its name here
            )
            for cell, record in known
        ]
    kept = [read(file.parent.name) for file in sorted((workdir / "runs").glob("*/record.json"))]
    records = [r for r in kept if r is not None and comparison in (None, r.comparison)]
    return sorted(records, key=lambda r: (r.comparison, r.row, r.base_model, r.seed, r.id))
