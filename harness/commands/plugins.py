"""Every plugin that is installed, with the package it comes from and what is wrong with it."""

from __future__ import annotations

from dataclasses import dataclass
from importlib.metadata import EntryPoint

from harness import registry
from harness.errors import InputError
from harness.registry import Group


@dataclass(frozen=True)
class Plugin:
    """One entry point. `value` is "MODULE:NAME"; `fault` says why it cannot be used, "" where it can."""

    group: str
    name: str
    package: str
    version: str
    value: str
    fault: str


def installed() -> list[Plugin]:
    """The plugins of all groups. Imports each of them, which takes seconds."""
    return [
        Plugin(group.entry_points, point.name, *registry.package(point), point.value, _fault(group, point))
        for group in registry.GROUPS
        for point in registry.points(group)
    ]


def _fault(group: Group, point: EntryPoint) -> str:
    from harness.tasks import catalogue

    try:
        registry.opened(group, point)
        if group is registry.TASKS:  # a family has many names, and its own is none of them
            catalogue.check(point)
        else:
            registry.load(group, point.name)
    except InputError as error:
        return str(error)
    return ""
