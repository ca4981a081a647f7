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
from harness.commands.options import JSON, Commands, add_command
from harness.commands.terminal import print_columns
from harness.config import Config
from harness.errors import InputError
from harness.files.printable import tell, tell_json, tell_lines
from harness.recipes import Recipe, Recipes
from harness.registry import Group

if TYPE_CHECKING:
    from harness.method import Method

CARD = ("paper", "equations", "reference", "text", "supervision", "deterministic", "cost", "precision", "kept", "notes")
# The columns of the table of what is listed; "about" alone, where it is not named here.
_COLUMNS = {
    "methods": ("about", "supervision", "text"),
    "data": ("kind", "items", "size", "here", "purpose"),
}


def register(commands: Commands) -> None:
    """Add `harness list` to the command line."""
    parser = add_command(
        commands, "list", run, JSON,
        help="list installed methods, tasks, suites, presets and plugins, and the data sets that have names",
        example="harness list methods --verbose",
    )  # fmt: skip
    parser.add_argument("what", choices=list(_LISTS))
    parser.add_argument("--verbose", action="store_true", help="everything known about each: of methods the card, "
                        "options with ranges, presets and published numbers")  # fmt: skip


def run(args: argparse.Namespace) -> int:
    """Print the list; always 0."""
    listed = _LISTS[args.what]()
    columns = _COLUMNS.get(args.what, ("about",))
    if args.json:
        tell_json(listed)
    elif not args.verbose:
        print_columns([(name, *(about[key] for key in columns)) for name, about in listed.items()])
    else:
        for name, about in listed.items():
            entries = _method_entries(about) if args.what == "methods" else about.items()
            tell(name)
            for key, value in entries:
                text = ", ".join(value) if isinstance(value, list) else str(value)
                line = f"{key}: {text}"
                width = get_terminal_size().columns
                tell_lines(fill(line, width, initial_indent="  ", subsequent_indent="      ", break_on_hyphens=False))
    return 0


def _method_entries(about: dict[str, Any]) -> list[tuple[str, str]]:
    """A method's card, options, presets and published numbers."""
    card, options = about["card"], about["options"]
    entries = [("title", card["title"]), *((key, str(card[key])) for key in CARD if card[key])]
    for key, field in options.items():
        if not field["shared"]:
            notes = "; ".join(filter(None, (field["range"], field["sweep"] and f"study: {sweep_text(field['sweep'])}")))
            text = field["help"] + (f" [{notes}]" if notes else "")
            entries.append((f"option {key} = {value_text(field['default'])}", text))
    shared = [f"{key} = {value_text(field['default'])}" for key, field in options.items() if field["shared"]]
    entries.append(("options of all methods", ", ".join(shared)))
    for name, preset in about["presets"].items():
        for family, recipe in preset["families"].items():
            also = [alias for alias, meant in preset["aliases"].items() if meant == family]
            values = ", ".join(f"{key} = {value_text(value)}" for key, value in recipe["values"].items())
            source = f" [{recipe['source']}]" if recipe["source"] else ""
            entries.append((f"preset {' or '.join([name, *also])} ({family})", (values or "the defaults") + source))
    return entries + [(f"published {key}", line) for key, lines in about["published"].items() for line in lines]


def sweep_text(sweep: dict[str, Any]) -> str:
    """The range that a study searches: "0.1 to 10, logarithmic", or its choices."""
    if "choices" in sweep:
        return ", ".join(value_text(choice) for choice in sweep["choices"])
    return f"{sweep['low']:g} to {sweep['high']:g}{', logarithmic' if sweep['log'] else ''}"


def value_text(value: Any) -> str:
    """A value as written in a list of options."""
    if value is None:
        return "empty"
    if isinstance(value, bool):
        return str(value).lower()
    return f"[{', '.join(map(value_text, value))}]" if isinstance(value, list | tuple) else str(value)


def methods() -> dict[str, dict[str, Any]]:
    """Name -> title, card, published numbers, options and presets of every installed method, in plain values."""
    return {name: _method(registry.load(registry.METHODS, name)) for name in registry.names(registry.METHODS)}


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
                    family: {"values": dict(preset.of(family).values), "source": preset.of(family).source}
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
    from harness.sources.senteval.prepared import PREPARED, is_prepared, prepared_root

    listed: dict[str, dict[str, Any]] = {
        name: {"kind": corpus.kind, "items": f"{corpus.items:,}", "here": _cached(corpus.uri), "source": corpus.uri,
               "parts": list(corpus.parts)}
        for name, corpus in CATALOGUE.items()
    }  # fmt: skip
    for name, data in PREPARED.items():
        here = str(prepared_root() / data.folder) if is_prepared(data) else "not here"
        listed[name] = {"kind": "task data", "items": data.items, "here": here, "source": data.address, "parts": []}
    named: dict[str, Any] = {**CATALOGUE, **PREPARED}
    for name, one in named.items():
        listed[name] |= {key: getattr(one, key) for key in ("size", "purpose", "licence", "paper", "untried")}
        listed[name]["purpose"] += " (not tried on the real server)" if one.untried else ""
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
