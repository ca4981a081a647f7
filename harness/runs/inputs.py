"""The texts, dev sets and tasks that runs read, each loaded once per process."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache

from harness.errors import HarnessError, InputError, OutOfReach
from harness.results.code import Code, task_code
from harness.runs.conditions import CorpusSettings, DevSettings
from harness.sources import Corpus
from harness.sources.embedded import model_fingerprint
from harness.tasks.base import Task, task_key
from harness.tasks.own.data import TaskFile
from harness.tasks.sts import DevSet

_TASKS: dict[str, Task] = {}  # "SOURCE:TASK" -> the task, with its data


@dataclass(frozen=True)
class PlannedFile:
    """A task of a file, as a worker finds it: its settings with the absolute path, and its sha256."""

    settings: TaskFile
    sha256: str

    @property
    def key(self) -> str:
        """ "SOURCE:TASK" of the task."""
        return f"file:{self.settings.prefix}{self.settings.name}"


@lru_cache(maxsize=16)
def load_text(settings: CorpusSettings) -> Corpus:
    """The text that settings name, read once per process.

    Raises:
        InputError: it is not available, or is not what the settings say.
    """
    from harness.sources import load_corpus

    try:
        return load_corpus(
            settings.uri,
            kind=settings.kind,
            columns=settings.columns,
            limit=settings.limit,
        )
    except OutOfReach as error:
        embedded = f'embedded: --set corpus.uri="embedded:{settings.kind}"'
        place = f'corpus "{settings.uri}"'
        raise InputError(f"{error} ({place}; {embedded})", key="corpus") from None


@lru_cache(maxsize=4)
def load_dev(settings: DevSettings) -> DevSet:
    """The set that selects checkpoints, read once per process.

    Raises:
        InputError: it is not available.
    """
    return settings.load()


def open_tasks(suites: Sequence[str | TaskFile], source: str) -> list[Task]:
    """The tasks of suites; a task that was resolved before in this process is the same object, with
    its data.
    """
    from harness.tasks.catalogue import resolve_tasks

    if suites:
        found = resolve_tasks(suites, source=source)
    else:
        found = []
    return [_TASKS.setdefault(task_key(task), task) for task in found]


def find_task(key: str) -> Task:
    """The task "SOURCE:TASK".

    Raises:
        InputError: no such task is installed.
    """
    if key not in _TASKS:
        from harness.tasks.catalogue import SOURCES

        source, _, name = key.partition(":")
        if source not in SOURCES:
            source = SOURCES[0]
        return open_tasks([name], source)[0]
    return _TASKS[key]


def list_planned_files(tasks: Iterable[Task]) -> tuple[PlannedFile, ...]:
    """Return those of some tasks that are files, as their job carries them."""
    files = [(getattr(task, "settings", None), task) for task in tasks]
    return tuple(
        PlannedFile(settings.with_full_path(), task.sha256)
        for settings, task in files
        if isinstance(settings, TaskFile)
    )


def open_planned_files(files: Iterable[PlannedFile]) -> None:
    """Make the tasks of files known to this process.

    Raises:
        InputError: a file is missing, or holds something else than when it was planned.
    """
    from harness.tasks.own.open_file import open_file

    for file in files:
        task = _TASKS.get(file.key) or open_file(file.settings)
        if task.sha256 != file.sha256:
            message = "has changed since the comparison was planned"
            path = file.settings.path
            raise InputError(message, file=path, remedy="give the same command again")
        _TASKS[file.key] = task


@lru_cache(maxsize=4096)
def task_code_of(key: str) -> Code:
    """The code of a task, read once until `forget_loaded`."""
    return task_code(find_task(key))


@lru_cache(maxsize=4096)
def is_readable(key: str, most_sentences: int | None) -> bool:
    """Is the data of a task available now?"""
    from harness.evaluation.scoring import texts_of

    with suppress(HarnessError):
        texts_of(find_task(key), most_sentences)
        return True
    return False


def forget_loaded() -> None:
    """Read text, dev sets and tasks again on their next use: files may have changed since the last
    call.
    """
    for cached in (load_text, load_dev, is_readable, task_code_of):
        cached.cache_clear()
    _TASKS.clear()


def fingerprint_of_start(name: str) -> str:
    """Fingerprint of a base model; of a sentence encoder also with its own length, which is saved."""
    from harness.encoder.loading import own_length

    length = own_length(name)
    return model_fingerprint(name) + (f" cut at {length}" if length else "")
