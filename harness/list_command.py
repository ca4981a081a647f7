"""`harness list`: the methods, tasks, suites and presets that are installed."""

from __future__ import annotations

import argparse
import json
import tomllib
from typing import Any

from harness import registry


def register(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add `harness list` to the command line."""
    parser = subparsers.add_parser("list", help="installed methods, tasks, suites and presets")
    parser.add_argument("what", choices=["methods", "tasks", "suites", "presets"])
    parser.add_argument("--verbose", action="store_true", help="methods: cards, options with ranges, presets")
    parser.add_argument("--json", action="store_true", help="machine-readable")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Print the list; always 0."""
    found = {"methods": _methods, "tasks": _tasks, "suites": _suites, "presets": _presets}[args.what]()
    if args.json:
        print(json.dumps(found, indent=1, default=str))
        return 0
    from rich.console import Console

    console = Console(highlight=False)
    width = max((len(name) for name in found), default=0)
    for name, about in found.items():
        console.print(f"{name:<{width}}  {about['about']}", markup=False, soft_wrap=True)
        if args.verbose and args.what == "methods":
            _details(console, about)
    return 0


def _details(console: Any, about: dict[str, Any]) -> None:
    for key in ("paper", "equations", "reference", "text", "supervision", "cost", "notes"):
        if about["card"].get(key):
            console.print(f"    {key}: {about['card'][key]}", markup=False, soft_wrap=True)
    for key, field in about["options"].items():
        sweep = f" [study: {field['sweep']}]" if field["sweep"] else ""
        console.print(f"    {key} = {field['default']!r}  {field['help']}{sweep}", markup=False, soft_wrap=True)
    for preset, values in about["presets"].items():
        console.print(f"    preset {preset}: {values}", markup=False, soft_wrap=True)
    console.print()


def _methods() -> dict[str, dict[str, Any]]:
    from dataclasses import asdict

    found = {}
    for name in registry.names(registry.METHODS):
        method = registry.load(registry.METHODS, name)
        sweeps = method.Config.sweeps()
        options = {
            key: {"default": field.default, "help": field.description, "sweep": sweeps.get(key)}
            for key, field in method.Config.model_fields.items()
        }
        found[name] = {"about": method.card.title, "card": asdict(method.card), "options": options,
                       "presets": method.presets}  # fmt: skip
    return found


def _suites() -> dict[str, dict[str, Any]]:
    from harness.tasks.suites import SUITES

    return {name: {"about": ", ".join(tasks), "tasks": list(tasks)} for name, tasks in SUITES.items()}


def _tasks() -> dict[str, dict[str, Any]]:
    from harness.tasks.suites import SUITES, task_names

    return {name: {"about": ", ".join(s for s, tasks in SUITES.items() if name in tasks)} for name in task_names()}


def _presets() -> dict[str, dict[str, Any]]:
    from harness.experiment import presets

    found = {}
    for name, file in presets().items():
        tree = tomllib.loads(file.read_text(encoding="utf-8"))
        found[name] = {"about": tree.get("title", ""), "file": str(file)}
    return found
