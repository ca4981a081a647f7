"""One page a method for the site: its card, options, recipes and published numbers, from the plugin
itself.
"""

from __future__ import annotations

import importlib
from inspect import getdoc, isfunction
from types import ModuleType
from typing import Any

from docs.make import table
from harness import registry
from harness.commands.list import list_methods
from harness.files.exits import ENDS
from harness.files.printable import describe_error, markdown_text

OBJECTIVES = "methods.objectives"
CARD = (
    "paper",
    "equations",
    "reference",
    "text",
    "supervision",
    "deterministic",
    "cost",
    "precision",
    "kept",
    "notes",
)
_WORDS = {
    "untrained": "nothing is learnt",
    "unsupervised": "without labels",
    "transductive": "fitted to the text of each task, without its labels",
    "supervised": "with labels",
}


def pages() -> tuple[dict[str, str], dict[str, str]]:
    """File name -> Markdown: one for every installed method, and `index.md` with all of them; and
    of each method of a package that has no page the reason.
    """
    found = {}
    described = {}
    without = {}
    for name, about in list_methods().items():
        if about.get("unusable"):
            without[name] = about["unusable"]
            continue
        try:
            found[f"{name}.md"] = _page(name, about)
        except ENDS as error:  # of the code of a package
            without[name] = describe_error(error)
        else:
            described[name] = about
    return {"index.md": _index(described), **found}, without


def _index(described: dict[str, dict[str, Any]]) -> str:
    rows = [
        (
            f"[`{name}`]({name}.md)",
            m["about"],
            m["card"]["text"],
            _WORDS[m["card"]["supervision"]],
            m["card"]["paper"],
        )
        for name, m in described.items()
    ]
    head = ("name", "method", "learns from", "how", "paper")
    return (
        "# Methods\n\nEach is written from its paper and, where there is one, the authors' code; its page says where "
        "the two disagree.\nAdd one of yours: [your own loss](../tutorials/your-own-loss.md).\n\n"
        + table(head, rows)
        + "\n```{toctree}\n:hidden:\n\n"
        + "\n".join(described)
        + "\n```\n"
    )


def _page(name: str, about: dict[str, Any]) -> str:
    card = about["card"]
    facts = [(key, markdown_text(str(card[key]))) for key in CARD if card.get(key)]
    if card["when_it_collapses"]:
        facts.append(("when it collapses", markdown_text(card["when_it_collapses"])))
    module = importlib.import_module(registry.load(registry.METHODS, name).__module__)
    parts = [
        f"# {about['about']}",
        (getdoc(module) or "").split("\n\n")[0],
        f'```toml title="A row of an experiment file"\n[[methods]]\nmethod = "{name}"\n```',
        table(("", ""), facts),
        *_objective(module),
        "## Options\n\n" + _options(about["options"]),
        "## Recipes\n\n" + _recipes(about["presets"]),
    ]
    if about["published"]:
        lines = [
            f"- {markdown_text(line)}" for lines in about["published"].values() for line in lines
        ]
        parts.append(
            "## Published numbers\n\nWhat reports set beside runs of the same recipe.\n\n"
            + "\n".join(lines)
        )
    return "\n\n".join(parts) + "\n"


def _objective(module: ModuleType) -> list[str]:
    """The loss functions that a method is made of, with their equations as their docstrings have
    them.
    """
    used = [
        value
        for value in vars(module).values()
        if isfunction(value) and value.__module__ == OBJECTIVES
    ]
    if not used:
        return []
    lines = "\n".join(
        f".. autofunction:: {OBJECTIVES}.{function.__name__}\n   :no-index:\n" for function in used
    )
    return [f"## Objective\n\n```{{eval-rst}}\n{lines}```"]


def _options(options: dict[str, dict[str, Any]]) -> str:
    rows = [
        (
            f"`{key}`",
            f"`{value_text(field['default'])}`",
            markdown_text(str(field["help"])),
            field["range"],
            sweep_text(field["sweep"]) if field["sweep"] else "",
        )
        for key, field in options.items()
        if not field["shared"]
    ]
    shared = ", ".join(
        f"`{key} = {value_text(f['default'])}`" for key, f in options.items() if f["shared"]
    )
    own = table(("option", "default", "what it does", "range", "in a study"), rows) if rows else ""
    return own + (f"\nAs for all methods: {shared}.\n" if shared else "")


def _recipes(presets: dict[str, dict[str, Any]]) -> str:
    rows = [("`default`", "every base model", "the defaults above", "")]
    for name, preset in presets.items():
        for family, recipe in preset["families"].items():
            values = ", ".join(
                f"`{key} = {value_text(value)}`" for key, value in recipe["values"].items()
            )
            rows.append(
                (
                    f"`{name}`",
                    family,
                    values or "the defaults above",
                    markdown_text(recipe["source"]),
                )
            )
    return table(("preset", "base models", "values", "source"), rows)


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
    return (
        f"[{', '.join(map(value_text, value))}]" if isinstance(value, list | tuple) else str(value)
    )
