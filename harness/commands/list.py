"""`harness list`: the methods, tasks, suites, presets, data sets and all other plugins that are installed."""

from __future__ import annotations

import argparse
import tomllib
from dataclasses import asdict
from importlib.metadata import EntryPoint
from shutil import get_terminal_size
from textwrap import fill
from typing import TYPE_CHECKING, Any, NamedTuple

from harness import registry
from harness.commands.options import Commands, add_command, add_json
from harness.commands.terminal import print_columns
from harness.config import Config
from harness.errors import InputError
from harness.files.printable import tell, tell_json, tell_lines
from harness.recipes import Recipe, Recipes
from harness.registry import Group

if TYPE_CHECKING:
    from harness.method import Method

CARD = ("paper", "equations", "reference", "text", "supervision", "deterministic", "cost", "precision", "kept",
        "notes")  # fmt: skip


def register(commands: Commands) -> None:
    """Add `harness list` to the command line."""
    parser = add_command(
        commands, "list", run,
        help="list installed methods, tasks, suites, presets and plugins, and the data sets that have names",
        example="harness list methods --verbose",
    )  # fmt: skip
    parser.add_argument("what", choices=list(_LISTS))
    parser.add_argument("--verbose", action="store_true", help="methods: cards, published numbers, options with "
                        "ranges, presets; suites: their tasks; data: address, parts, licence, paper")  # fmt: skip
    add_json(parser)


def run(args: argparse.Namespace) -> int:
    """Print the list; always 0."""
    listed = _LISTS[args.what]()
    if args.json:
        tell_json(listed)
    elif args.verbose and args.what == "methods":
        for name, about in listed.items():
            _show_method(name, about)
    else:
        brief, more = _COLUMNS.get(args.what, (("about",), ()))
        if not (args.verbose and more):
            print_columns([(name, *(about[key] for key in brief)) for name, about in listed.items()])
            return 0
        for name, about in listed.items():
            tell(f"{name}: {'; '.join(about[key] for key in brief)}")
            for key in more:
                if about[key]:
                    _show_entry(key, ", ".join(about[key]) if isinstance(about[key], list) else about[key])
    return 0


def _show_method(name: str, about: dict[str, Any]) -> None:
    """A method's card, published numbers, options and presets, wrapped to the width of the terminal."""
    card = about["card"]
    tell(f"{name}: {card['title']}")
    for key in CARD:
        if card[key]:
            _show_entry(key, str(card[key]))
    written = {f"{key} = {value_text(field['default'])}": field for key, field in about["options"].items()}
    for option, field in written.items():
        if not field["shared"]:
            sweep = f"study: {_sweep(field['sweep'])}" if field["sweep"] else ""
            _show_entry(f"option {option}", field["help"], field["range"], sweep)
    if shared := ", ".join(option for option, field in written.items() if field["shared"]):
        _show_entry("options of all methods", shared)
    for preset, by_family in about["presets"].items():
        for family, recipe in by_family["families"].items():
            also = ", ".join(alias for alias, meant in by_family["aliases"].items() if meant == family)
            learns = "" if by_family["text"] == "none" else f"learns from {by_family['text']}"
            values = ", ".join(f"{key} = {value_text(value)}" for key, value in recipe["values"].items())
            notes = (f"also called {also}" if also else "", learns, recipe["source"])
            _show_entry(f"preset {preset} ({family})", values or "the defaults", *notes)
    _show_entry("preset default", "the defaults of the options, on any base model")
    for key, lines in about["published"].items():
        for line in lines:
            _show_entry(f"published {key}", line)
    tell()


def _show_entry(key: str, text: str, *notes: str) -> None:
    """A line "key: text [note; note]", continued on indented lines."""
    said = "; ".join(filter(None, notes))
    line = f"{key}: {text}" + (f" [{said}]" if said else "")
    width = get_terminal_size().columns
    tell_lines(fill(line, width, initial_indent="  ", subsequent_indent="      ", break_on_hyphens=False))


def _sweep(sweep: dict[str, Any]) -> str:
    if "choices" in sweep:
        return ", ".join(value_text(choice) for choice in sweep["choices"])
    return f"{sweep['low']} to {sweep['high']}{', logarithmic' if sweep['log'] else ''}"


def value_text(value: Any) -> str:
    """A value as written in a list of options."""
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
    sweeps = method.Config.sweeps()
    bases = (base for base in method.Config.__mro__ if base.__module__.startswith("harness."))
    common = next(base for base in bases if issubclass(base, Config)).model_fields
    card = asdict(method.card)
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
        "presets": {name: _preset(method, name) for name in method.presets},
    }


def _preset(method: type[Method], name: str) -> dict[str, Any]:
    """A preset's families with their values and sources, its other names, and the kind of text it learns from."""
    preset = method.presets[name]
    if not isinstance(preset, Recipes):
        preset = Recipes({"any base model": Recipe(preset)})
    recipes = {family: preset.of(family) for family in preset.families}
    try:
        text = method.text_for(method.configure({}, preset=name, family=next(iter(recipes))))
    except InputError:  # the preset needs further values
        text = method.card.text
    families = {family: {"values": dict(recipe.values), "source": recipe.source} for family, recipe in recipes.items()}
    return {"text": text, "families": families, "aliases": dict(preset.aliases)}


def _published(key: str) -> list[str]:
    from harness.results.published import published_rows, summary

    try:
        return summary(published_rows(key))
    except InputError as error:
        return [f"not installed ({error})"]


def _range(metadata: list[Any]) -> str:
    """ "from 0, below 1" for a field's bounds."""
    words = {"ge": "from", "gt": "above", "le": "to", "lt": "below"}
    bounds = ((word, getattr(limit, name, None)) for limit in metadata for name, word in words.items())
    return ", ".join(f"{word} {value:g}" for word, value in bounds if value is not None)


def _suites() -> dict[str, dict[str, Any]]:
    from harness.tasks.catalogue import suites

    packages = {point.name: registry.foreign(point) for point in registry.points(registry.SUITES)}
    return {
        name: {"about": _with_packages(suite.about, packages[name]), "tasks": list(suite.tasks)}
        for name, suite in suites().items()
    }


def _tasks() -> dict[str, dict[str, Any]]:
    from harness.tasks.catalogue import offers, suites

    listed = {}
    for task, offered in offers().items():
        named = ", ".join(name for name, suite in suites().items() if task in suite.tasks)
        listed[task] = {"about": _with_packages(named, *(registry.foreign(offer.point) for offer in offered))}
    return listed


def _with_packages(about: str, *packages: str) -> str:
    """A line about a plugin, with the packages of third parties that register it."""
    foreign = ", ".join(filter(None, packages))
    return f"{about} [{foreign}]".strip() if foreign else about


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
        Plugin(group.entry_points, point.name, *registry.package(point), point.value, _fault(group, point))
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

    return {
        name: {"about": tomllib.loads(file.read_text(encoding="utf-8")).get("title", ""), "file": str(file)}
        for name, file in presets().items()
    }


def _data() -> dict[str, dict[str, Any]]:
    """The corpora and task data that have names; `here`: what is on this machine."""
    from harness.sources.corpus.catalogue import CATALOGUE
    from harness.sources.senteval.prepared import PREPARED, PreparedData, is_prepared, prepared_root

    named: dict[str, Any] = {**CATALOGUE, **PREPARED}
    listed = {}
    for name, one in named.items():
        about = {key: getattr(one, key) for key in ("size", "purpose", "licence", "paper", "untried")}
        about["purpose"] += " (not tried on the real server)" if one.untried else ""
        if isinstance(one, PreparedData):
            here = str(prepared_root() / one.folder) if is_prepared(one) else "not here"
            about |= {"kind": "task data", "items": one.items, "here": here, "source": one.address, "parts": []}
        else:
            about |= {"kind": one.kind, "items": f"{one.items:,}", "here": _cached(one.uri), "source": one.uri,
                      "parts": list(one.parts)}  # fmt: skip
        listed[name] = about
    return listed


def _cached(uri: str) -> str:
    """What of a corpus is on this machine: its file in the hub's cache, or the texts stored of its data set."""
    from huggingface_hub import try_to_load_from_cache

    from harness.sources.corpus.corpus import stored_texts

    organisation, name, *file = uri.partition("?")[0].removeprefix("hf://datasets/").split("/", 2)
    repository = f"{organisation}/{name}"
    if file:
        found = isinstance(try_to_load_from_cache(repository, file[0], repo_type="dataset"), str)
        return "here" if found else "not here"
    sizes = [t["bytes"] for t in stored_texts() if t["request"].get("set", {}).get("repository") == repository]
    return f"{len(sizes)} stored, {sum(sizes) / 1e6:,.1f} MB" if sizes else "not here"


_LISTS = {
    "methods": methods, "tasks": _tasks, "suites": _suites, "presets": _presets, "data": _data, "plugins": _plugins,
}  # fmt: skip
# What is listed -> the keys that are shown, and those that are shown with --verbose.
_COLUMNS: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "methods": (("about", "supervision", "text", "paper"), ()),
    "suites": (("about",), ("tasks",)),
    "data": (("kind", "items", "size", "here", "purpose"), ("source", "parts", "licence", "paper")),
}
