"""Fill the caches with all that an experiment reads from elsewhere, so that it runs without a
network.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.errors import HarnessError
from harness.files.model_names import kind_of_model
from harness.runs.plan import Plan
from harness.runs.rows import Row
from harness.sources.remote.cache_folder import cache_root
from harness.tasks.base import Task, task_key


@dataclass(frozen=True)
class Fetched:
    """One thing that an experiment needs.

    Attributes:
        kind: "model", "row" or "task".
        taken: bytes that the caches grew by.
        fault: why it could not be read; empty where it is here.
    """

    kind: str
    name: str
    taken: int = 0
    fault: str = ""


def fetch_plan(plan: Plan) -> Iterator[Fetched]:
    """Read every model and task of a plan; what was found, one after the other. Its texts and its dev
    set were read when it was made.
    """
    for row in plan.rows:
        if row.fault:
            yield Fetched("row", row.label, fault=row.fault)
    for name in dict.fromkeys(name for row in plan.rows for name in _models_of(row)):
        yield _fetch("model", name, _fetch_model, name)
    for task in plan.tasks:
        if task.source not in ("embedded", "file"):
            yield _fetch("task", task_key(task), _fetch_task, task)


def cached_bytes() -> int:
    """Bytes of the caches of the hub and of this package."""
    from huggingface_hub import constants

    places = {Path(constants.HF_HUB_CACHE), Path(constants.HF_HOME) / "datasets", cache_root()}
    return sum(_bytes_below(place) for place in places)


def _bytes_below(folder: Path) -> int:
    total = 0
    for file in folder.rglob("*"):
        if file.is_file() and not file.is_symlink():
            total += file.stat().st_size
    return total


def _models_of(row: Row) -> list[str]:
    """Return the models of a row that may have to be downloaded."""
    if row.fault:
        return []
    names = getattr(row.config, "models", None) or [row.start_model]
    return [name for name in names if not kind_of_model(name)]


def _fetch(kind: str, name: str, read: Callable[[Any], None], what: Any) -> Fetched:
    before = cached_bytes()
    try:
        read(what)
    except HarnessError as error:
        return Fetched(kind, name, cached_bytes() - before, str(error))
    return Fetched(kind, name, cached_bytes() - before)


def _fetch_model(name: str) -> None:
    from harness.encoder.layout import model_folder

    model_folder(name)


def _fetch_task(task: Task) -> None:
    """Read the data of a task; of one of mteb's, what mteb loads when it evaluates it.

    Raises:
        InputError: it cannot be read.
    """
    fetch = getattr(task, "fetch", None)
    if fetch is not None:
        fetch()
    else:
        task.texts()
