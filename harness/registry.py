"""Names to plugins, from entry points; clear errors for unknown names."""

from __future__ import annotations

from functools import cache
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from harness.config import nearest
from harness.errors import InputError

METHODS = "harness.methods"
COMMANDS = "harness.commands"
REPORTERS = "harness.reporters"


@cache
def _points(group: str) -> dict[str, EntryPoint]:
    return {point.name: point for point in entry_points(group=group)}


def names(group: str) -> list[str]:
    """The names registered in an entry-point group, sorted; nothing is imported."""
    return sorted(_points(group))


def load(group: str, name: str) -> Any:
    """Import and return the plugin `name` of `group`.

    Raises:
        InputError: unknown name (with the nearest known one), or a plugin that cannot be imported.
    """
    points = _points(group)
    what = group.removeprefix("harness.").removesuffix("s")
    if name not in points:
        known = sorted(points)
        raise InputError(f'unknown {what} "{name}"{nearest(name, known)}; known: {", ".join(known) or "none"}')
    try:
        return points[name].load()
    except (ImportError, AttributeError) as error:
        raise InputError(f'{what} "{name}" ({points[name].value}) cannot be imported: {error}') from error
