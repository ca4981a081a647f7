"""Names to tasks: what `--suite` and experiment files name, from every package that brings tasks and suites."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.metadata import EntryPoint
from typing import Any

from harness import registry
from harness.config import nearest
from harness.errors import InputError
from harness.sources.pair_sets import Source
from harness.tasks.base import Task
from harness.tasks.family import OpenFamily, TaskFamily
from harness.tasks.suite import Suite

SOURCES: tuple[Source, ...] = ("senteval", "mteb")  # where the tasks with public data sets may read them from
_PARTS = ("name", "suite", "source", "texts", "evaluate")  # of a task


@dataclass(frozen=True)
class Offer:
    """A task by name: the entry point that it comes from, and how it is made from a source."""

    point: EntryPoint
    make: Callable[[Source], Task]


@cache
def offers() -> Mapping[str, tuple[Offer, ...]]:
    """Every task that a package brings, by name. A name with several offers, or one that cannot be imported, stands
    among them: it is an error only where it is used."""
    by_name: dict[str, tuple[Offer, ...]] = {}
    for point in registry.points(registry.TASKS):
        for name, make in _offered(point).items():
            by_name[name] = (*by_name.get(name, ()), Offer(point, make))
    return by_name


def _offered(point: EntryPoint) -> dict[str, Callable[[Source], Task]]:
    """The tasks of one entry point: those of a family, or one of the point's own name."""
    try:
        plugin = registry.opened(registry.TASKS, point)
    except InputError as error:
        return {point.name: _failing(error)}
    if isinstance(plugin, TaskFamily):
        return {name: _member(plugin, name) for name in plugin.names}
    return {point.name: lambda source: _made(plugin, point)}


def _failing(error: InputError) -> Callable[[Source], Task]:
    def make(source: Source) -> Task:
        raise error

    return make


def _member(family: TaskFamily, name: str) -> Callable[[Source], Task]:
    return lambda source: family.make(name, source)


def _made(factory: Callable[[], Any], point: EntryPoint) -> Task:
    """Raises:
    InputError: what the factory gives is no task, or is one of another name.
    """
    task = factory()
    lacking = [part for part in _PARTS if not hasattr(task, part)]
    if lacking:
        raise InputError(
            f'task "{point.name}" ({registry.origin(point)}): gives a {type(task).__name__} without '
            f"{', '.join(lacking)}; expected a harness.tasks.base.Task"
        )
    if task.name != point.name:
        raise InputError(f'task "{point.name}" ({registry.origin(point)}): gives a task named "{task.name}"')
    return task  # type: ignore[no-any-return]


def check(point: EntryPoint) -> None:
    """Raises:
    InputError: another package brings a task of a name that this entry point brings too.
    """
    for name, known in offers().items():
        if len(known) > 1 and any(offer.point == point for offer in known):
            raise InputError(registry.collision(registry.TASKS, name, [offer.point for offer in known]))


def suite(name: str) -> Suite:
    """The suite of that name.

    Raises:
        InputError: as `harness.registry.load`.
    """
    return registry.load(registry.SUITES, name)  # type: ignore[no-any-return]


def suites() -> dict[str, Suite]:
    """The suites of all packages that are sound, by name."""
    sound = {}
    for name in registry.names(registry.SUITES):
        try:
            sound[name] = suite(name)
        except InputError:  # told where it is used, and by `harness list plugins`
            continue
    return sound


def tasks_of(name: str) -> tuple[str, ...]:
    """The tasks of the suite of that name; none where no sound one is installed (a record outlives its package)."""
    try:
        return suite(name).tasks
    except InputError:
        return ()


def resolve_tasks(names: Sequence[str], *, source: str = "senteval") -> list[Task]:
    """Tasks for suite and task names, each once, in the order given. Reads no data.

    `source` says where STS12 to SICK-R come from ("senteval" or "mteb"); the embedded tasks have only their own. Any
    text task of mteb is known too, as "mteb:NAME", "mteb:NAME/SUBSET", or by a NAME that is not ours.

    Raises:
        InputError: unknown name (with the nearest known one), unknown source, no name at all, or a plugin at fault.
    """
    if source not in SOURCES:
        raise InputError(f'unknown source "{source}"{nearest(source, list(SOURCES))}; known: {", ".join(SOURCES)}')
    if not names:
        raise InputError(f"no suite or task named; suites: {', '.join(registry.names(registry.SUITES))}")
    checked: Source = "mteb" if source == "mteb" else "senteval"
    tasks: dict[str, Task] = {}
    for name in names:
        for one in suite(name).tasks if name in registry.names(registry.SUITES) else (name,):
            task = _task(one, checked)
            tasks.setdefault(task.name, task)
    return list(tasks.values())


def _task(name: str, source: Source) -> Task:
    known = offers().get(name, ())
    if len(known) > 1:
        raise InputError(registry.collision(registry.TASKS, name, [offer.point for offer in known]))
    return known[0].make(source) if known else _beyond(name, source)


def _beyond(name: str, source: Source) -> Task:
    """A task of an open family that it does not list.

    The family's prefix may be left out unless the name is much like one that is listed: mteb's "STSB" is Chinese, and
    may well be meant for "STS-B".
    """
    families = _open_families()
    for family in families:
        if family.prefix + name in family.names:
            return family.make(family.prefix + name, source)
    prefixes = tuple(family.prefix for family in families)
    known = [*registry.names(registry.SUITES), *(own for own in offers() if not own.startswith(prefixes))]
    unlike = not difflib.get_close_matches(name, known, n=1, cutoff=0.8)
    for family in families:
        if name.startswith(family.prefix) or unlike:
            try:
                return family.make(family.find(name), source)
            except InputError:
                if name.startswith(family.prefix) or "/" in name:
                    raise
    also = "".join(f", and {family.beyond}" for family in families)
    raise InputError(f'unknown suite or task "{name}"{nearest(name, known)}; known: {", ".join(known)}{also}')


@cache
def _open_families() -> tuple[OpenFamily, ...]:
    """Those of packages that can be imported."""
    families = []
    for point in registry.points(registry.TASKS):
        try:
            plugin = registry.opened(registry.TASKS, point)
        except InputError:
            continue
        if isinstance(plugin, OpenFamily):
            families.append(plugin)
    return tuple(families)
