"""Names to tasks: what `--suite` and experiment files name, from every package that brings tasks
and suites.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any

from harness import registry
from harness.config import nearest
from harness.errors import InputError
from harness.sources.pair_sets import Source
from harness.tasks.base import Task, task_key
from harness.tasks.own.data import TaskFile, names_file
from harness.tasks.own.open_file import open_file, open_files
from harness.tasks.suite import OpenFamily, Suite, TaskFamily

# where the tasks with public data sets may read them from
SOURCES: tuple[Source, ...] = (
    "senteval",
    "mteb",
)
_SUFFIX = re.compile(
    r"(Pair)?(Classification|Clustering|Retrieval|Reranking)?([PS]2[PS])?(\.v\d+)?$", re.I
)  # of mteb's names
_PARTS = ("name", "suite", "source", "texts", "evaluate")  # of a task


@cache
def offers() -> Mapping[str, tuple[EntryPoint, ...]]:
    """Every task that a package brings, by name, with its entry points. A name with several, or one
    that cannot be
    imported, is among them: it is an error only where it is used.
    """
    by_name: dict[str, tuple[EntryPoint, ...]] = {}
    for point in registry.points(registry.TASKS):
        family = _family(point)
        for name in (point.name,) if family is None else family.names:
            by_name[name] = (*by_name.get(name, ()), point)
    return by_name


def _family(point: EntryPoint) -> TaskFamily | None:
    """The family that an entry point names; None where it names one task, or cannot be imported."""
    try:
        plugin = registry.open_plugin(registry.TASKS, point)
    except InputError:
        return None
    return plugin if isinstance(plugin, TaskFamily) else None


def _make(point: EntryPoint, name: str, source: Source) -> Task:
    """Raises:
    InputError: the entry point cannot be imported, or gives no task or one of another name.
    """
    plugin = registry.open_plugin(registry.TASKS, point)
    if isinstance(plugin, TaskFamily):
        return plugin.make(name, source)
    task = plugin()
    lacking = [part for part in _PARTS if not hasattr(task, part)]
    if lacking:
        raise InputError(
            f'task "{point.name}" ({registry.origin(point)}): gives a {type(task).__name__} without '
            f"{', '.join(lacking)}; expected a harness.tasks.base.Task",
            key=point.name,
        )
    if task.name != point.name:
        raise InputError(
            f'task "{point.name}" ({registry.origin(point)}): gives a task named "{task.name}"',
            key=point.name,
        )
    return task  # type: ignore[no-any-return]


def check(point: EntryPoint) -> None:
    """Raises:
    InputError: another package brings a task of a name that this entry point brings too.
    """
    for name, known in offers().items():
        if len(known) > 1 and point in known:
            message = registry.collision(registry.TASKS, name, list(known))
            raise InputError(message, key=name)


def suite(name: str) -> Suite:
    """The suite of that name.

    Raises:
        InputError: as `harness.registry.load`.
    """
    found = _open_suite(name)
    if found is not None:
        return found(name)
    return registry.load(registry.SUITES, name)  # type: ignore[no-any-return]


def is_suite(name: str) -> bool:
    """True if a name means a suite, and not a task."""
    if name in registry.names(registry.SUITES):
        return True
    return _open_suite(name) is not None


def _open_suite(name: str) -> Callable[[str], Suite] | None:
    """What makes the suite of a name with the prefix of an open family; None for other names."""
    if ":" not in name:
        return None
    for point in registry.points(registry.TASKS):
        family = _family(point)
        if not isinstance(family, OpenFamily) or not family.suite_prefix:
            continue
        if name.startswith(family.suite_prefix):
            return family.open_suite
    return None


def suites() -> dict[str, Suite]:
    """The suites of all packages that are sound, by name."""
    sound = {}
    for name in registry.names(registry.SUITES):
        try:
            sound[name] = suite(name)
        except InputError:  # reported where it is used, and by `harness list plugins`
            continue
    return sound


def tasks_of(name: str) -> tuple[str, ...]:
    """The tasks of the suite of that name; none where no sound one is installed (a record outlives
    its package).
    """
    try:
        return suite(name).tasks
    except InputError:
        return ()


def resolve_tasks(names: Sequence[str | TaskFile | Any], *, source: str = "senteval") -> list[Task]:
    """Tasks for suite and task names, each once, in the order given. Reads no data but that of
    files.

    A name that is no suite or task may be a file or folder (`harness.tasks.own.data`), a path or a
    table of settings as `{"task": "pairs.csv", "share": 0.5}` is one, and a frame of pandas,
    polars, Arrow or `datasets` is read as such a file is.

    `source` says where STS12 to SICK-R come from ("senteval" or "mteb"); the embedded tasks have
    only their own. Any text task of mteb is known too, as "mteb:NAME", "mteb:NAME/SUBSET", or by a
    NAME that is not ours.

    Raises:
        InputError: unknown name (with the nearest known one), unknown source, no name at all, a
            file that is called as another task is, or a plugin at fault.
    """
    if source not in SOURCES:
        raise InputError(
            f'unknown source "{source}"{nearest(source, list(SOURCES))}; known: {", ".join(SOURCES)}',
            key="source",
        )
    if not names:
        raise InputError(
            f"no suite or task named; suites: {', '.join(registry.names(registry.SUITES))}",
            key="suites",
        )
    checked: Source = "mteb" if source == "mteb" else "senteval"
    tasks: dict[str, Task] = {}
    own = [own_file(name) for name in names]
    files = iter(open_files([file for file in own if file is not None]))
    frames = 0
    for name in names:
        if own_file(name) is not None:
            found = [next(files)]
        elif not isinstance(name, str):
            frames += 1
            if frames == 1:
                label = "frame"
            else:
                label = f"frame {frames}"
            found = [open_file(TaskFile(task=label, name=label), name)]
        else:
            found = []
            for one in suite(name).tasks if is_suite(name) else (name,):
                found.append(_task(one, checked))
        for task in found:
            _check_name(task, tasks.setdefault(task.name, task))
    return list(tasks.values())


def _check_name(task: Task, known: Task) -> None:
    """Raises:
    InputError: one of two tasks of one name is a file, and they are not one task.
    """
    if task_key(task) == task_key(known):
        return
    for one in (task, known):
        settings = getattr(one, "settings", None)
        if isinstance(settings, TaskFile):
            message = f'is called "{task.name}", as another task is'
            remedy = 'give it another name, as name = "..."'
            raise InputError(message, file=settings.task, key='key "name"', remedy=remedy)


def own_file(entry: str | TaskFile | Any) -> TaskFile | None:
    """Return an entry of `suites` that is a file or folder of the user's; None for any other."""
    if isinstance(entry, TaskFile):
        return entry
    if isinstance(entry, Mapping) and "task" in entry:
        return TaskFile.parse(entry, "suites")
    if isinstance(entry, Path):
        return TaskFile(task=str(entry))
    if not isinstance(entry, str) or is_suite(entry) or entry in offers():
        return None
    if names_file(entry):
        return TaskFile(task=entry)
    return None


def _task(name: str, source: Source) -> Task:
    known = offers().get(name, ())
    if len(known) > 1:
        message = registry.collision(registry.TASKS, name, list(known))
        raise InputError(message, key=name)
    if known:
        return _make(known[0], name, source)
    return _beyond(name, source)


def _beyond(name: str, source: Source) -> Task:
    """A task of an open family that it does not list.

    Its listed tasks are found without prefix and suffix, in small letters too: "banking77". Other
    tasks need the prefix where their names are much like a listed one: mteb's "STSB" is Chinese,
    and may be meant for "STS-B".
    """
    families = []
    for point in registry.points(registry.TASKS):
        family = _family(point)
        if isinstance(family, OpenFamily):
            families.append(family)
    for family in families:
        if meant := _find_listed(name, family):
            return family.make(meant, source)
    prefixes = tuple(family.prefix for family in families)
    suites = registry.names(registry.SUITES)
    closed = [own for own in offers() if not own.startswith(prefixes)]
    known = [*suites, *closed]
    is_unlike = not difflib.get_close_matches(name, known, n=1, cutoff=0.8)
    for family in families:
        has_prefix = name.startswith(family.prefix)
        if not has_prefix and not is_unlike:
            continue
        try:
            return family.make(family.find(name), source)
        except InputError as error:
            if "/" in name and not has_prefix:
                message = f"no such file, and no task of that name ({error.message})"
                raise InputError(message, file=name) from None
            if has_prefix:
                raise
    also = "".join(f", and {family.beyond}" for family in families)
    hint = nearest(name, [*known, *_stems_of(families)])
    raise InputError(
        f'unknown suite or task "{name}"{hint}; suites: {", ".join(suites)}',
        key=name,
        remedy=f"see harness list tasks{also}",
    )


def _find_listed(name: str, family: OpenFamily) -> str:
    """Return the listed task of a family that a name without prefix or suffix means; "" if none.

    Raises:
        InputError: it may mean several.
    """
    short = name.removeprefix(family.prefix).lower()
    bare = {}
    for known in family.names:
        bare[known] = known.removeprefix(family.prefix).lower()
    meant = [known for known in bare if bare[known] == short]
    if not meant:
        for known, name_alone in bare.items():
            if _SUFFIX.sub("", name_alone) == short:
                meant.append(known)
    if len(meant) > 1:
        choices = " or ".join(meant)
        raise InputError(f'"{name}" may be {choices}: name one of them', key=name)
    return meant[0] if meant else ""


def _stems_of(families: Sequence[OpenFamily]) -> list[str]:
    """Return the names of their listed tasks without prefix and suffix, in small letters."""
    stems = []
    for family in families:
        for name in family.names:
            stem = _SUFFIX.sub("", name.removeprefix(family.prefix).lower())
            if not stem.startswith("embedded"):
                stems.append(stem)
    return stems
