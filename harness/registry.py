"""Names to plugins, from entry points: nothing is imported before it is used, and every fault is
one clear line.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import import_module, metadata
from importlib.machinery import PathFinder
from importlib.metadata import Distribution, EntryPoint, entry_points
from pathlib import Path
from typing import Any

from harness.config import nearest
from harness.errors import InputError
from harness.files.code import Importing
from harness.files.exits import ENDS
from harness.files.imports import names_code
from harness.files.model_names import OBJECT

OWN = "sentence-harness"  # the package that the built-in plugins come from


@dataclass(frozen=True)
class Group:
    """One kind of plugin.

    Attributes:
        entry_points: the group's name in a package's metadata, as "harness.methods".
        noun: what one of them is called in messages.
        expected: what an entry point has to name, in words.
        fits: whether an imported object is that.
    """

    entry_points: str
    noun: str
    expected: str
    fits: Callable[[Any], bool]


def _is_a(kind: type, base: str) -> bool:
    """Does `kind` inherit from the class of that full name? By name: this module must not import
    those classes.
    """
    names = [f"{parent.__module__}.{parent.__qualname__}" for parent in kind.__mro__]
    return base in names


def _subclasses(noun: str, base: str) -> Group:
    return Group(
        f"harness.{noun}s",
        noun,
        f"a subclass of {base}",
        lambda x: isinstance(x, type) and _is_a(x, base),
    )


def _folders(noun: str, entry_points: str, content: str) -> Group:
    return Group(
        entry_points,
        noun,
        f"a folder (pathlib.Path) of {content}",
        lambda plugin: isinstance(plugin, Path),
    )


_FAMILY = "harness.tasks.suite.TaskFamily"
_SUITE = "harness.tasks.suite.Suite"
_BUILDER = "reports.tables.builder.TableBuilder"

METHODS = _subclasses("method", "harness.method.Method")
TASKS = Group(
    "harness.tasks",
    "task",
    f"something callable that gives a task (or a {_FAMILY})",
    lambda plugin: callable(plugin) or _is_a(type(plugin), _FAMILY),
)
SUITES = Group(
    "harness.suites",
    "suite",
    f"a {_SUITE}",
    lambda plugin: _is_a(type(plugin), _SUITE),
)
TABLES = Group(
    "harness.tables",
    "table",
    f"a {_BUILDER}",
    lambda plugin: _is_a(type(plugin), _BUILDER),
)
SAMPLERS = Group(
    "harness.samplers",
    "sampler",
    "a function that makes an Optuna sampler",
    callable,
)
EXECUTORS = _subclasses("executor", "harness.executors.executor.Executor")
PRESETS = _folders("preset", "harness.presets", "experiments or published numbers")
TRACKERS = Group(
    "harness.trackers",
    "tracker",
    "a harness.tracking.Backend, by the scheme of its URI",
    callable,
)

GROUPS = (METHODS, TASKS, SUITES, TABLES, SAMPLERS, EXECUTORS, PRESETS, TRACKERS)


COMMAND = "command"  # the method that runs a training script; it can be no default of anything
LOSS = "loss:"  # before "module:name", a loss that any process can import

_added: dict[str, dict[str, Any]] = {}
"""Group -> name -> a plugin that this process brought itself."""


def add(group: Group, name: str, plugin: Any) -> None:
    """Have a plugin in this process that no package brings; one that was added under that name is
    replaced.

    Raises:
        InputError: a package brings one of that name, or it is not what the group holds.
    """
    if points := _points(group.entry_points).get(name, ()):
        raise InputError(
            f'{group.noun} "{name}": {origin(points[0])} has it already',
            key=name,
            remedy="give it another name",
        )
    if not group.fits(plugin):
        raise InputError(
            f'{group.noun} "{name}": expected {group.expected}, not {type(plugin).__name__}',
            key=name,
        )
    _added.setdefault(group.entry_points, {})[name] = plugin


def names_of_process(group: Group) -> set[str]:
    """The names of the plugins that only this process knows."""
    return set(_added.get(group.entry_points, ()))


def _points(group: str) -> dict[str, tuple[EntryPoint, ...]]:
    """The entry points of a group by name; those of one name are of several packages."""
    return _read_entry_points().get(group, {})


@cache
def _read_entry_points() -> dict[str, dict[str, tuple[EntryPoint, ...]]]:
    """Group -> its entry points, from one look at the packages, which takes long."""
    groups: dict[str, dict[str, tuple[EntryPoint, ...]]] = {
        group.entry_points: {} for group in GROUPS
    }
    everything = entry_points()
    for group, points in groups.items():
        for point in everything.select(group=group):
            others = points.get(point.name, ())
            points[point.name] = (*others, point)
    return groups


def names(group: Group) -> list[str]:
    """The names registered in a group, sorted; nothing is imported."""
    return sorted(
        {*_points(group.entry_points), *_added.get(group.entry_points, ())}, key=str.casefold
    )


def load(group: Group, name: str) -> Any:
    """Import and return the plugin `name` of `group`.

    Raises:
        InputError: unknown name (with the nearest known one), a name that two packages register, a
            plugin that cannot be imported or is not what its group holds.
    """
    if name in (added := _added.get(group.entry_points, {})):
        return added[name]
    if group is METHODS and name.startswith(LOSS):
        maker = import_module("harness.training.own_loss")
        return maker.method_from_path(name.removeprefix(LOSS))
    if group is METHODS and name == COMMAND:
        return import_module("harness.training.command").Command
    if group is METHODS and name.startswith(OBJECT):
        raise InputError(
            f'"{name}" was an object of another process',
            key="methods",
            remedy='give the object again, from Python, or write it as model = "module:function"',
        )
    points = _points(group.entry_points).get(name, ())
    if not points:
        if group is METHODS and names_code(name):
            raise InputError(
                f'a method has a name; "{name}" is code',
                key=name,
                remedy=f'write "{LOSS}{name}"',
            )
        known = names(group)
        raise InputError(
            f'unknown {group.noun} "{name}"{nearest(name, known)}; known: {", ".join(known) or "none"}',
            key=name,
        )
    if len(points) > 1:
        raise InputError(collision(group, name, points), key=name)
    return open_plugin(group, points[0])


def collision(group: Group, name: str, points: Sequence[EntryPoint]) -> str:
    """That several packages bring a plugin of one name, in one line."""
    packages = "; ".join(map(origin, points))
    return f'{group.noun} "{name}" comes from several packages: {packages}: uninstall all but one'


def open_plugin(group: Group, point: EntryPoint) -> Any:
    """What an entry point of `group` names.

    Raises:
        InputError: it cannot be imported, or is not what its group holds.
    """
    try:
        if point.dist is not None and (
            other := unhide(package(point)[0]).get(point.module.partition(".")[0])
        ):
            raise ImportError(
                f"another module of that name was imported before ({other}); rename it"
            )
        if group in (METHODS, TASKS):
            importing = Importing(point.module)
        else:
            importing = None
        plugin = point.load()
        if importing is not None:
            importing.check()
    except InputError:
        raise
    except (ImportError, AttributeError) as error:
        raise InputError(
            f'{group.noun} "{point.name}" ({point.value}) cannot be imported: {error}',
            key=point.name,
        ) from error
    except ENDS as error:  # whatever another package's module does when it is imported
        reason = f"{type(error).__name__}: {error}"
        said = reason.partition("\n")[0]
        raise InputError(
            f'{group.noun} "{point.name}" ({point.value}) cannot be imported: {said}',
            key=point.name,
        ) from error
    if not group.fits(plugin):
        kind = type(plugin).__name__
        place = f'{group.noun} "{point.name}" ({origin(point)})'
        raise InputError(f"{place}: expected {group.expected}, not {kind}", key=point.name)
    if lacking := sorted(getattr(plugin, "__abstractmethods__", ())):
        raise InputError(
            f'{group.noun} "{point.name}" ({origin(point)}): define {", ".join(lacking)}',
            key=point.name,
        )
    return plugin


@cache
def unhide(distribution: str) -> dict[str, str]:
    """Import the modules of a package that the current folder hides, such as a `methods.py` of the
    user's own.

    Returns:
        Those that cannot be had any more, as another module of that name is imported already: name
        -> its file.
    """
    hidden = {}
    found = metadata.distribution(distribution)
    if distribution == OWN:
        root = str(Path(__file__).parents[1])
    else:
        root = str(found.locate_file(""))
    modules = [point.module.partition(".")[0] for point in found.entry_points]
    for top in dict.fromkeys(modules):
        own = PathFinder.find_spec(top, [root])
        if own is None:  # an editable install has its modules elsewhere
            continue
        if top in sys.modules:
            other = getattr(sys.modules[top], "__file__", own.origin)
            if other != own.origin:
                hidden[top] = str(other)
        elif (seen := PathFinder.find_spec(top)) is None or seen.origin != own.origin:
            sys.path.insert(0, root)
            try:
                import_module(top)
            finally:
                sys.path.remove(root)
    return hidden


def modules_of(group: Group, name: str) -> list[str]:
    """Return the imported modules that entry points of a plugin name, or of a family that has it:
    they may make what another module defines.
    """
    found = []
    for point in points(group):
        module = sys.modules.get(point.module)
        plugin = getattr(module, point.attr or "", None)
        family = getattr(plugin, "names", ())
        if module is not None and (point.name == name or name in family):
            found.append(point.module)
    return found


def is_shipped(group: Group, name: str) -> bool:
    """True if this package brings the plugin; nothing is imported."""
    found = _points(group.entry_points).get(name, ())
    packages = [package(point)[0] for point in found]
    return bool(found) and all(name == OWN for name in packages)


def uses_plugins() -> bool:
    """True once this process has imported methods of other packages, or was given some."""
    modules = set()
    for point in points(METHODS):
        if package(point)[0] != OWN:
            modules.add(point.module)
    return bool(_added.get(METHODS.entry_points)) or any(
        module in sys.modules for module in modules
    )


def points(group: Group) -> list[EntryPoint]:
    """All entry points of a group by name, those of one name too; nothing is imported."""
    found: list[EntryPoint] = []
    for name in names(group):
        found.extend(_points(group.entry_points).get(name, ()))
    return found


def package(point: EntryPoint) -> tuple[str, str]:
    """Name and version of the package that an entry point comes from."""
    if point.dist is None:
        return ("", "")
    return _name_and_version(point.dist)


@cache
def _name_and_version(distribution: Distribution) -> tuple[str, str]:
    """Return what the metadata of a package say, which are read from its folder at each look."""
    return (distribution.name, distribution.version)


def origin(point: EntryPoint) -> str:
    """ "sentence-harness 0.1.0, methods.simcse:SimCSE": where a plugin comes from."""
    name_and_version = " ".join(package(point))
    return f"{name_and_version}, {point.value}"
