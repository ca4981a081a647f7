"""From a file, folder or frame to its task, by its columns."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from harness.errors import InputError
from harness.files.reading import is_there
from harness.tasks.base import Task
from harness.tasks.own.data import BEIR, TaskFile, is_beir, name_files, read_own

if TYPE_CHECKING:
    import pandas as pd


def open_files(files: list[TaskFile]) -> list[Task]:
    """Return the tasks of files, named so that no two have one name.

    Raises:
        InputError: see `open_file`.
    """
    return [open_file(file) for file in name_files(files)]


def open_file(settings: TaskFile, frame: Any = None) -> Task:
    """Return the task of a file or folder, or of a frame (pandas, polars, Arrow, datasets).

    Raises:
        InputError: there is no such file, or its columns are those of no kind.
    """
    if frame is None:
        table = None
    else:
        table = to_pandas(frame)
    if table is None and settings.path.is_dir():
        return _open_folder(settings)
    if settings.kind == "retrieval" and table is None and not is_there(settings.path):
        raise InputError("no such folder", file=settings.task)
    own = read_own(settings.path if table is None else table, settings)
    of_kind = settings.model_copy(update={"kind": own.kind})
    task: Any = _classes()[own.kind](of_kind, table)
    task.own = own
    _ = task.sha256  # so that what is wrong with the examples is said now
    if settings.prefix:
        return _examine(settings.prefix, task, settings)
    return task  # type: ignore[no-any-return]


def to_pandas(frame: Any) -> pd.DataFrame:
    """Return a frame of pandas, polars, Arrow or `datasets` as one of pandas.

    Raises:
        InputError: it is none of these.
    """
    import pandas as pd

    if isinstance(frame, pd.DataFrame):
        return frame
    convert = getattr(frame, "to_pandas", None)
    converted = convert() if callable(convert) else None
    if isinstance(converted, pd.DataFrame):
        return converted
    message = f"expected a suite, a task, a file or a frame, not {type(frame).__name__}"
    remedy = None
    if isinstance(frame, Mapping):
        remedy = 'give one part of several, as data["test"], or a table that has the key "task"'
    raise InputError(message, key="suites", remedy=remedy)


def _classes() -> dict[str, Any]:
    from harness.tasks.own.classification import FileClassification
    from harness.tasks.own.clustering import FileClustering
    from harness.tasks.own.pair_classification import FilePairClassification
    from harness.tasks.own.similarity import FileSimilarity
    from harness.tasks.own.triplets import FileTriplets

    kinds = (
        FileSimilarity,
        FilePairClassification,
        FileTriplets,
        FileClassification,
        FileClustering,
    )
    return {kind.kind: kind for kind in kinds}


def _open_folder(settings: TaskFile) -> Task:
    if not is_beir(settings.path):
        remedy = "name a table (.csv, .tsv, .jsonl, .parquet)"
        message = f"is no folder of BEIR's, which has {', '.join(BEIR)}"
        raise InputError(message, file=settings.task, remedy=remedy)
    _refuse_settings_of_tables(settings)
    from harness.tasks.own.retrieval import FileRetrieval

    task = FileRetrieval(settings)
    _ = task.sha256
    return task


def _refuse_settings_of_tables(settings: TaskFile) -> None:
    """Refuse what a folder of BEIR's has no use for: its columns are fixed, and all of it is tested.

    Raises:
        InputError: such a key is given.
    """
    given = {
        "kind": settings.kind not in (None, "retrieval"),
        "columns": bool(settings.columns),
        "share": settings.share is not None,
    }
    for key, is_given in given.items():
        if is_given:
            message = "goes with a table, not with a folder of BEIR's"
            place = f'key "{key}"'
            raise InputError(message, file=settings.task, key=place, remedy="leave it out")


def _examine(prefix: str, task: Any, settings: TaskFile) -> Task:
    """Return a task that looks at the same data in another way: compression and the like."""
    if prefix == "knn:":
        return _by_neighbours(task, settings)
    from harness.tasks.compression import CompressionTask
    from harness.tasks.efficiency import EfficiencyTask
    from harness.tasks.layers import LayersTask

    if task.kind != "similarity":
        message = f"{prefix}FILE needs scored pairs; the file is of the kind {task.kind}"
        raise InputError(message, file=settings.task)
    kinds: dict[str, Any] = {
        "compression:": CompressionTask,
        "layers:": LayersTask,
        "efficiency:": EfficiencyTask,
    }
    made = kinds[prefix].of(task.data)
    made.pairs = task
    made.name = f"{prefix}{task.name}"
    return _describe(made, prefix, task, settings)


def _by_neighbours(task: Any, settings: TaskFile) -> Task:
    if task.kind != "classification":
        message = f"knn:FILE needs labelled texts; the file is of the kind {task.kind}"
        raise InputError(message, file=settings.task)
    from harness.tasks.senteval.neighbours import NeighbourTask

    return _describe(NeighbourTask(task), "knn:", task, settings)


def _describe(made: Any, prefix: str, task: Any, settings: TaskFile) -> Task:
    """Give a task what is known of the file."""
    made.settings = settings
    made.described_as = f"{prefix}{task.kind}"
    made.content = task.content
    made.data_remarks = []
    return made  # type: ignore[no-any-return]
