"""`harness list`: the methods, tasks, suites, benchmarks, presets, data sets and plugins that are
installed.
"""

from __future__ import annotations

import argparse
import json
import tomllib
from collections.abc import Mapping
from dataclasses import asdict
from importlib.metadata import EntryPoint
from pathlib import Path
from shutil import get_terminal_size
from typing import TYPE_CHECKING, Any, NamedTuple

from harness import registry
from harness.commands.options import JSON, Commands, add_command
from harness.commands.terminal import print_columns
from harness.config import Config, nearest
from harness.errors import InputError
from harness.files.exits import ENDS
from harness.files.printable import first_line, tell_json, tell_lines
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
        help="list installed methods, tasks, suites, presets and plugins, and data sets with names",
        example="harness list methods simcse",
    )
    parser.add_argument("what", choices=list(_LISTS), help="what to list")
    parser.add_argument(
        "name",
        nargs="*",
        help="print everything that is known about these: of a method its card, options with "
        "ranges, presets and published numbers",
    )


def run(args: argparse.Namespace) -> int:
    """Print the list; 1 if one of its plugins cannot be used."""
    listed = _LISTS[args.what]()
    if args.name:
        listed = _select(listed, args.name, args.what)

    if args.json:
        tell_json(listed)
    elif args.name:
        _print_details(listed)
    else:
        columns = _COLUMNS.get(args.what, ("about",))
        rows = []
        for name, about in listed.items():
            values = [about.get(key, "") for key in columns]
            rows.append((name, *values))
        print_columns(rows)
    if any(about.get("unusable") for about in listed.values()):
        return 1
    return 0


def _select(
    listed: dict[str, dict[str, Any]],
    names: list[str],
    what: str,
) -> dict[str, dict[str, Any]]:
    """Return the entries of these names.

    Raises:
        InputError: one of them is not listed.
    """
    for name in names:
        if name not in listed:
            raise InputError(
                f'no "{name}"{nearest(name, list(listed))}',
                key=what,
                remedy=f"harness list {what} shows the names",
            )
    return {name: listed[name] for name in names}


def _print_details(listed: dict[str, dict[str, Any]]) -> None:
    import yaml

    plain = json.loads(json.dumps(listed, default=str))
    width = get_terminal_size().columns
    tell_lines(yaml.safe_dump(plain, sort_keys=False, allow_unicode=True, width=width))


def list_methods() -> dict[str, dict[str, Any]]:
    """Return title, card, published numbers, options and presets of each installed method.

    A method that cannot be imported is listed with the reason under "unusable".
    """
    listed = {}
    names = [*registry.names(registry.METHODS), registry.COMMAND]
    for name in sorted(names, key=str.casefold):
        try:
            listed[name] = _describe_method(registry.load(registry.METHODS, name))
        except InputError as error:
            listed[name] = {"about": f"UNUSABLE: {error}", "unusable": str(error)}
        except ENDS as error:  # of a class of another package, whose card or presets are odd
            why = f"cannot be described ({type(error).__name__}: {first_line(error)})"
            listed[name] = {"about": f"UNUSABLE: {why}", "unusable": why}
    return listed


def _describe_method(method: type[Method]) -> dict[str, Any]:
    card = asdict(method.card)
    return {
        "about": method.card.title,
        "supervision": card["supervision"],
        "text": card["text"],
        "paper": card["paper"],
        "card": card,
        "published": {key: _describe_published(key) for key in method.card.published},
        "options": _describe_options(method.Config),
        "presets": {name: _describe_preset(value) for name, value in method.presets.items()},
    }


def _describe_options(config: type[Config]) -> dict[str, dict[str, Any]]:
    """Return default, help, range and sweep of each option; `shared` where all methods have it."""
    sweeps = config.sweeps()
    bases = (base for base in config.__mro__ if base.__module__.startswith("harness."))
    common = next(base for base in bases if issubclass(base, Config)).model_fields

    options = {}
    for key, field in config.model_fields.items():
        options[key] = {
            "default": field.default,
            "help": field.description,
            "range": _describe_range(field.metadata),
            "sweep": sweeps.get(key),
            "shared": key in common and repr(common[key]) == repr(field),
        }
    return options


def _describe_preset(preset: Recipes | Mapping[str, Any]) -> dict[str, Any]:
    """Return values and source of a preset for each family of base models, and its aliases."""
    if not isinstance(preset, Recipes):
        preset = Recipes({"any base model": Recipe(preset)})
    families = {}
    for family in preset.families:
        recipe = preset.of(family)
        families[family] = {"values": dict(recipe.values), "source": recipe.source}
    return {"families": families, "aliases": dict(preset.aliases)}


def _describe_published(key: str) -> list[str]:
    from harness.results.published import published_rows, summary

    try:
        return summary(published_rows(key))
    except InputError as error:
        return [f"not installed ({error})"]


def _describe_range(metadata: list[Any]) -> str:
    """Return the bounds of a field in words, as "from 0, below 1"."""
    bounds = []
    for limit in metadata:
        for name, word in (("ge", "from"), ("gt", "above"), ("le", "to"), ("lt", "below")):
            value = getattr(limit, name, None)
            if value is not None:
                bounds.append(f"{word} {value:g}")
    return ", ".join(bounds)


def _list_suites() -> dict[str, dict[str, Any]]:
    from harness.tasks.catalogue import suites
    from harness.tasks.mteb.benchmarks import BENCHMARK

    listed = {}
    for name, suite in suites().items():
        listed[name] = {"about": suite.about, "tasks": list(suite.tasks)}
    about = "any text benchmark of mteb; the names: harness list benchmarks"
    listed[f"{BENCHMARK}NAME"] = {"about": about, "tasks": []}
    return listed


def _list_benchmarks() -> dict[str, dict[str, Any]]:
    """Return the tasks of each benchmark of mteb, as a suite is called; of those beyond text, why
    they are none.
    """
    from harness.tasks.mteb.adapter import describe_benchmarks  # imports mteb: seconds
    from harness.tasks.mteb.benchmarks import BENCHMARK

    listed = {}
    for benchmark in describe_benchmarks():
        about = f"{len(benchmark.tasks)} tasks"
        if benchmark.beyond:
            about += f"; no suite here: needs {', '.join(benchmark.beyond)}"
        listed[f"{BENCHMARK}{benchmark.name}"] = {"about": about, "tasks": list(benchmark.tasks)}
    return listed


def _list_tasks() -> dict[str, dict[str, Any]]:
    """Return the suites of each task."""
    from harness.tasks.catalogue import offers, suites

    listed = {}
    for task in offers():
        names = [name for name, suite in suites().items() if task in suite.tasks]
        listed[task] = {"about": ", ".join(names)}
    return listed


class Plugin(NamedTuple):
    """One entry point. `value` is "MODULE:NAME"; `fault` says why it cannot be used, "" if it can."""

    group: str
    name: str
    package: str
    version: str
    value: str
    fault: str


def find_plugins() -> list[Plugin]:
    """Return the plugins of all groups. Imports each of them, which takes seconds."""
    plugins = []
    for group in registry.GROUPS:
        for point in registry.points(group):
            package, version = registry.package(point)
            fault = _find_fault(group, point)
            name = point.name
            plugins.append(Plugin(group.entry_points, name, package, version, point.value, fault))
    return plugins


def _find_fault(group: Group, point: EntryPoint) -> str:
    """Return why a plugin cannot be used; empty where it can."""
    from harness.tasks import catalogue

    try:
        registry.open_plugin(group, point)
        if group is registry.TASKS:  # the entry point of a family is no name of a task
            catalogue.check(point)
        else:
            registry.load(group, point.name)
    except InputError as error:
        return str(error)
    return ""


def _list_plugins() -> dict[str, dict[str, Any]]:
    listed = {}
    for plugin in find_plugins():
        about = plugin.value
        if plugin.fault:
            about += f"  UNUSABLE: {plugin.fault}"
        package = f"{plugin.package} {plugin.version}"
        name = f"{plugin.group} {plugin.name} ({package})"
        listed[name] = {"about": about, **plugin._asdict(), "unusable": plugin.fault}
    return listed


def _list_presets() -> dict[str, dict[str, Any]]:
    from harness.runs.experiment import presets

    return _read_titles(presets())


def _list_studies() -> dict[str, dict[str, Any]]:
    from studies.definition.study import presets

    return _read_titles(presets())


def _read_titles(files: dict[str, Path]) -> dict[str, dict[str, Any]]:
    listed = {}
    for name, file in files.items():
        content = tomllib.loads(file.read_text("utf-8"))
        title = content.get("title", "")
        listed[name] = {"about": title, "file": str(file)}
    return listed


def _list_data() -> dict[str, dict[str, Any]]:
    """Return the corpora and task data that have names."""
    from harness.sources.corpus.catalogue import CATALOGUE
    from harness.sources.senteval.prepared import PREPARED

    listed = {}
    for name, corpus in CATALOGUE.items():
        if corpus.items:
            items = f"{corpus.items:,}"
        else:
            items = "?"
        about = {"kind": corpus.kind, "items": items, "source": corpus.uri}
        listed[name] = about | {"parts": list(corpus.parts)} | _describe_data(corpus)
    for name, data in PREPARED.items():
        about = {"kind": "task data", "items": data.items, "source": data.address}
        listed[name] = about | {"parts": []} | _describe_data(data)
    return listed


def _describe_data(data: Any) -> dict[str, Any]:
    keys = ("size", "purpose", "licence", "paper", "untried")
    about = {key: getattr(data, key) for key in keys}
    if data.untried:
        about["purpose"] += " (not tried on the real server)"
    return about


_LISTS = {
    "methods": list_methods,
    "tasks": _list_tasks,
    "suites": _list_suites,
    "benchmarks": _list_benchmarks,
    "presets": _list_presets,
    "studies": _list_studies,
    "data": _list_data,
    "plugins": _list_plugins,
}
