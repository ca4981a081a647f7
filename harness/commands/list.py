"""`harness list`: the methods, tasks, suites, presets, data sets and all other plugins that are
installed.
"""

from __future__ import annotations

import argparse
import json
import tomllib
from dataclasses import asdict
from importlib.metadata import EntryPoint
from pathlib import Path
from shutil import get_terminal_size
from typing import TYPE_CHECKING, Any, NamedTuple

from harness import registry
from harness.commands.options import JSON, Commands, add_command
from harness.commands.terminal import print_columns
from harness.config import Config
from harness.errors import InputError
from harness.files.printable import tell_json, tell_lines
from harness.recipes import Recipe, Recipes
from harness.registry import Group

if TYPE_CHECKING:
    from harness.method import Method

# The columns of the table of what is listed; "about" alone, where it is not named here.
_COLUMNS = {
    "methods": ("about", "supervision", "text"),
    "data": ("kind", "items", "size", "purpose"),
}


def register(commands: Commands) -> None:
    """Add `harness list` to the command line."""
    parser = add_command(
        commands,
        "list",
        run,
        JSON,
        help="list installed methods, tasks, suites, presets and plugins, and the data sets that have names",
        example="harness list methods --verbose",
    )
    parser.add_argument("what", choices=list(_LISTS), help="what to list")
    parser.add_argument(
        "--verbose",
        action="store_true",
        help="everything known about each, as YAML: of methods the "
        "card, options with ranges, presets and published numbers",
    )


def run(args: argparse.Namespace) -> int:
    """Print the list; always 0."""
    listed = _LISTS[args.what]()
    if args.json:
        tell_json(listed)
    elif args.verbose:
        import yaml

        plain = json.loads(json.dumps(listed, default=str))
        tell_lines(
            yaml.safe_dump(
                plain, sort_keys=False, allow_unicode=True, width=get_terminal_size().columns
            )
        )
    else:
        columns = _COLUMNS.get(args.what, ("about",))
        print_columns([(name, *(about[key] for key in columns)) for name, about in listed.items()])
    return 0


def methods() -> dict[str, dict[str, Any]]:
    """Name -> title, card, published numbers, options and presets of every installed method, in
    plain values.
    """
    return {
        name: _method(registry.load(registry.METHODS, name))
        for name in registry.names(registry.METHODS)
    }


def _method(method: type[Method]) -> dict[str, Any]:
    sweeps = method.Config.sweeps()
    bases = (base for base in method.Config.__mro__ if base.__module__.startswith("harness."))
    common = next(base for base in bases if issubclass(base, Config)).model_fields
    card = asdict(method.card)
    presets = {
        name: preset if isinstance(preset, Recipes) else Recipes({"any base model": Recipe(preset)})
        for name, preset in method.presets.items()
    }
    return {
        "about": method.card.title,
        **{key: card[key] for key in ("supervision", "text", "paper")},
        "card": card,
        "published": {key: _published(key) for key in method.card.published},
        "options": {
            key: {
                "default": field.default,
                "help": field.description,
                "range": _range(field.metadata),
                "sweep": sweeps.get(key),
                "shared": key in common and repr(common[key]) == repr(field),
            }
            for key, field in method.Config.model_fields.items()
        },
        "presets": {
            name: {
                "families": {
                    family: {
                        "values": dict(preset.of(family).values),
                        "source": preset.of(family).source,
                    }
                    for family in preset.families
                },
                "aliases": dict(preset.aliases),
            }
            for name, preset in presets.items()
        },
    }


def _published(key: str) -> list[str]:
    from harness.results.published import published_rows, summary

    try:
        return summary(published_rows(key))
    except InputError as error:
        return [f"not installed ({error})"]


def _range(metadata: list[Any]) -> str:
    """ "from 0, below 1" for a field's bounds."""
    words = {"ge": "from", "gt": "above", "le": "to", "lt": "below"}
    bounds = (
        (word, getattr(limit, name, None)) for limit in metadata for name, word in words.items()
    )
    return ", ".join(f"{word} {value:g}" for word, value in bounds if value is not None)


def _suites() -> dict[str, dict[str, Any]]:
    from harness.tasks.catalogue import suites

    return {
        name: {"about": suite.about, "tasks": list(suite.tasks)} for name, suite in suites().items()
    }


def _tasks() -> dict[str, dict[str, Any]]:
    from harness.tasks.catalogue import offers, suites

    return {
        task: {"about": ", ".join(name for name, suite in suites().items() if task in suite.tasks)}
        for task in offers()
    }


class Plugin(NamedTuple):
    """One entry point. `value` is "MODULE:NAME"; `fault` is why it cannot be used, "" where it can."""

    group: str
    name: str
    package: str
    version: str
    value: str
    fault: str


def installed() -> list[Plugin]:
    """The plugins of all groups. Imports each of them, which takes seconds."""
    return [
        Plugin(
            group.entry_points,
            point.name,
            *registry.package(point),
            point.value,
            _fault(group, point),
        )
        for group in registry.GROUPS
        for point in registry.points(group)
    ]


def _fault(group: Group, point: EntryPoint) -> str:
    from harness.tasks import catalogue

    try:
        registry.opened(group, point)
        if group is registry.TASKS:  # the entry point of a family is no name of a task
            catalogue.check(point)
        else:
            registry.load(group, point.name)
    except InputError as error:
        return str(error)
    return ""


def _plugins() -> dict[str, dict[str, Any]]:
    return {
        f"{p.group} {p.name} ({p.package} {p.version})": {
            "about": p.value + (f"  UNUSABLE: {p.fault}" if p.fault else ""),
            **p._asdict(),
        }
        for p in installed()
    }


def _presets() -> dict[str, dict[str, Any]]:
    from harness.runs.experiment import presets

    return _titles(presets())


def _studies() -> dict[str, dict[str, Any]]:
    from studies.definition.study import presets

    return _titles(presets())


def _titles(files: dict[str, Path]) -> dict[str, dict[str, Any]]:
    return {
        name: {"about": tomllib.loads(file.read_text("utf-8")).get("title", ""), "file": str(file)}
        for name, file in files.items()
    }


def _data() -> dict[str, dict[str, Any]]:
    """The corpora and task data that have names."""
    from harness.sources.corpus.catalogue import CATALOGUE
    from harness.sources.senteval.prepared import PREPARED

    listed: dict[str, dict[str, Any]] = {
        name: {
            "kind": corpus.kind,
            "items": f"{corpus.items:,}" if corpus.items else "?",
            "source": corpus.uri,
            "parts": list(corpus.parts),
        }
        for name, corpus in CATALOGUE.items()
    }
    for name, data in PREPARED.items():
        listed[name] = {
            "kind": "task data",
            "items": data.items,
            "source": data.address,
            "parts": [],
        }
    named: dict[str, Any] = {**CATALOGUE, **PREPARED}
    for name, one in named.items():
        listed[name] |= {
            key: getattr(one, key) for key in ("size", "purpose", "licence", "paper", "untried")
        }
        listed[name]["purpose"] += " (not tried on the real server)" if one.untried else ""
    return listed


_LISTS = {
    "methods": methods,
    "tasks": _tasks,
    "suites": _suites,
    "presets": _presets,
    "studies": _studies,
    "data": _data,
    "plugins": _plugins,
}
