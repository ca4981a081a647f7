"""`harness list`: the methods, tasks, suites, presets and all other plugins that are installed."""

from __future__ import annotations

import argparse
import tomllib
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from harness import registry
from harness.config import Config
from harness.errors import InputError
from harness.files.printable import tell_json, told, visible
from harness.recipes import Recipe, Recipes

if TYPE_CHECKING:
    from rich.console import Console

    from harness.method import Method

CARD = ("paper", "equations", "reference", "text", "supervision", "deterministic", "cost", "kept", "notes")
ANY = "any base model"


def register(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add `harness list` to the command line."""
    parser = subparsers.add_parser("list", help="installed methods, tasks, suites, presets and plugins")
    parser.add_argument("what", choices=list(_LISTS))
    parser.add_argument(
        "--verbose",
        action="store_true",
        help="methods: cards, published numbers, options with ranges, presets; suites: their tasks",
    )
    parser.add_argument("--json", action="store_true", help="machine-readable")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Print the list; always 0."""
    listed = _LISTS[args.what]()
    if args.json:
        tell_json(listed)
        return 0
    from rich.console import Console

    console = Console(highlight=False)
    width = max((len(name) for name in listed), default=0)
    for name, about in listed.items():
        if args.verbose and args.what == "methods":
            _details(console, name, about)
        else:
            console.print(told(f"{name:<{width}}  {about['about']}"), markup=False, soft_wrap=True)
            if args.verbose and "tasks" in about:
                console.print(
                    told(f"{'':<{width}}  {', '.join(about['tasks'])}"), markup=False, soft_wrap=True, style="dim"
                )
    return 0


def _details(console: Console, name: str, about: dict[str, Any]) -> None:
    """A method's card, published numbers, options and presets, wrapped to the width of the terminal."""
    from rich.rule import Rule

    console.print(Rule(f"[bold]{name}[/bold]", align="left", style="dim"))
    card = about["card"]
    _block(console, None, [("title", card["title"]), *((key, str(card[key])) for key in CARD if card.get(key))])
    _block(console, "published", [(key, "\n".join(lines)) for key, lines in about["published"].items()])
    written = {f"{key} = {value_text(field['default'])}": field for key, field in about["options"].items()}
    rows = [(key, _option(field)) for key, field in written.items() if not field["shared"]]
    shared = ", ".join(key for key, field in written.items() if field["shared"])
    _block(console, "options", [*rows, *([("as for all methods", shared)] if shared else [])])
    presets = [line for key, preset in about["presets"].items() for line in _preset(key, preset)]
    _block(console, "presets", [*presets, *([("default", "the defaults of the options, on any base model")])])
    console.print()


def _block(console: Console, heading: str | None, rows: list[tuple[str, str]]) -> None:
    from rich.padding import Padding
    from rich.table import Table
    from rich.text import Text

    if not rows:
        return
    if heading:
        console.print(f"  [bold]{heading}[/bold]")
    table = Table.grid(padding=(0, 2))
    widest = max(24, console.width // 3)
    table.add_column(overflow="fold", max_width=widest, min_width=min(widest, max(len(left) for left, _ in rows)))
    table.add_column(overflow="fold", ratio=1)
    for left, right in rows:
        table.add_row(Text(visible(left), style="cyan"), Text(visible(right)))
    console.print(Padding(table, (0, 0, 0, 4)))


def _option(field: dict[str, Any]) -> str:
    notes = [note for note in (field["range"], f"study: {_sweep(field['sweep'])}" if field["sweep"] else "") if note]
    return str(field["help"]) + (f" [{'; '.join(notes)}]" if notes else "")


def _sweep(sweep: dict[str, Any]) -> str:
    if "choices" in sweep:
        return ", ".join(value_text(choice) for choice in sweep["choices"])
    return f"{sweep['low']} to {sweep['high']}{', logarithmic' if sweep['log'] else ''}"


def _preset(name: str, preset: dict[str, Any]) -> list[tuple[str, str]]:
    """A preset, then a line for each family of base models."""
    learns = "" if preset["text"] == "none" else f"learns from {preset['text']}"
    lines = []
    for family, recipe in preset["families"].items():
        values = ", ".join(f"{key} = {value_text(value)}" for key, value in recipe["values"].items()) or "the defaults"
        also = ", ".join(alias for alias, meant in preset["aliases"].items() if meant == family)
        notes = [f"also called {also}" if also else "", learns, recipe["source"]]
        lines.append((f"{name} ({family})", f"{values} [{'; '.join(filter(None, notes))}]".removesuffix(" []")))
    return lines


def value_text(value: Any) -> str:
    """A value as it is written in a list of options."""
    if value is None:
        return "empty"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list | tuple):
        return "[" + ", ".join(value_text(part) for part in value) + "]"
    return str(value)


def methods() -> dict[str, dict[str, Any]]:
    """Name -> title, card, published numbers, options and presets of every installed method, in plain values."""
    return {name: _about(registry.load(registry.METHODS, name)) for name in registry.names(registry.METHODS)}


def _about(method: type[Method]) -> dict[str, Any]:
    from dataclasses import asdict

    sweeps = method.Config.sweeps()
    bases = (base for base in method.Config.__mro__ if base.__module__.startswith("harness."))
    common = next(base for base in bases if issubclass(base, Config)).model_fields
    options = {
        key: {
            "default": field.default,
            "help": field.description,
            "range": _range(field.metadata),
            "sweep": sweeps.get(key),
            "shared": key in common and repr(common[key]) == repr(field),
        }
        for key, field in method.Config.model_fields.items()
    }
    presets = {name: _by_family(method, name, preset) for name, preset in method.presets.items()}
    return {
        "about": method.card.title,
        "card": asdict(method.card),
        "published": {key: _published(key) for key in method.card.published},
        "options": options,
        "presets": presets,
    }


def _by_family(method: type[Method], name: str, preset: Mapping[str, Any] | Recipes) -> dict[str, Any]:
    """A preset's families with their values and sources, its other names, and the kind of text it learns from."""
    if isinstance(preset, Recipes):
        recipes = {family: preset.of(family) for family in preset.families}
        aliases = dict(preset.aliases)
    else:
        recipes, aliases = {ANY: Recipe(preset)}, {}
    families = {family: {"values": dict(recipe.values), "source": recipe.source} for family, recipe in recipes.items()}
    return {"text": _text(method, name, next(iter(families))), "families": families, "aliases": aliases}


def _text(method: type[Method], preset: str, family: str) -> str:
    """The kind of corpus under a preset; the card's where the preset needs more than it says."""
    try:
        return method.text_for(method.configure({}, preset=preset, family=family))
    except InputError:
        return method.card.text


def _published(key: str) -> list[str]:
    from harness.results.published import published_rows, summary

    try:
        return summary(published_rows(key))
    except InputError as error:
        return [f"not installed ({error})"]


def _range(metadata: list[Any]) -> str:
    """ "from 0, below 1" of a field's bounds."""
    words = {"ge": "from", "gt": "above", "le": "to", "lt": "below"}
    bounds = [f"{words[name]} {value:g}" for limit in metadata for name in words
              if (value := getattr(limit, name, None)) is not None]  # fmt: skip
    return ", ".join(bounds)


def _suites() -> dict[str, dict[str, Any]]:
    from harness.tasks.catalogue import suites

    packages = {point.name: registry.foreign(point) for point in registry.points(registry.SUITES)}
    return {
        name: {"about": _with_package(suite.about, packages[name]), "tasks": list(suite.tasks)}
        for name, suite in suites().items()
    }


def _tasks() -> dict[str, dict[str, Any]]:
    from harness.tasks.catalogue import offers, suites

    named = suites()
    return {
        task: {
            "about": _with_package(
                ", ".join(name for name, suite in named.items() if task in suite.tasks),
                ", ".join(filter(None, (registry.foreign(offer.point) for offer in offered))),
            )
        }
        for task, offered in offers().items()
    }


def _with_package(about: str, package: str) -> str:
    """A line about a plugin, with the package that brings it where that is not ours."""
    return f"{about} [{package}]".strip() if package else about


def _plugins() -> dict[str, dict[str, Any]]:
    from dataclasses import asdict

    from harness.commands.plugins import installed

    return {
        f"{plugin.group} {plugin.name} ({plugin.package} {plugin.version})": {
            "about": plugin.value + (f"  UNUSABLE: {plugin.fault}" if plugin.fault else ""),
            **asdict(plugin),
        }
        for plugin in installed()
    }


def _presets() -> dict[str, dict[str, Any]]:
    from harness.comparison.experiment import presets

    by_name = {}
    for name, file in presets().items():
        tree = tomllib.loads(file.read_text(encoding="utf-8"))
        by_name[name] = {"about": tree.get("title", ""), "file": str(file)}
    return by_name


_LISTS = {"methods": methods, "tasks": _tasks, "suites": _suites, "presets": _presets, "plugins": _plugins}
