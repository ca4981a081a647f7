"""`python -m docs.make`: write what the pages take from the code.

It is between `<!-- made: NAME -->` and `<!-- end -->`. A test fails when a page is not what this
would write.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable
from pathlib import Path
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

import yaml

from docs import answer, api_pages, census, measured, published, robustness, validation
from harness import registry
from harness.config import Config
from harness.executors.executor import ExecutorSettings
from harness.files.reading import read_text
from harness.runs.conditions import Conditions, CorpusSettings, DevSettings
from harness.runs.experiment import Block, Entry, Experiment
from harness.sources.corpus.catalogue import CATALOGUE
from harness.tasks.licences import stated_licences
from harness.tasks.own.data import TaskFile
from studies.definition.study import Study
from tools.benchmarks import estimates

REPOSITORY = Path(__file__).parents[1]
PACKAGES = ("harness", "methods", "studies", "reports")
PAGES = (REPOSITORY / "CONTRIBUTING.md", *sorted((REPOSITORY / "docs").rglob("*.md")))
_MADE = re.compile(r"(?P<head><!-- made: (?P<name>[\w-]+) -->\n).*?(?=<!-- end -->)", re.DOTALL)
_TYPES = {str: "string", int: "integer", float: "float", bool: "boolean", Any: "any value"}
_BOUNDS = {"ge": "≥", "gt": ">", "le": "≤", "lt": "<"}


def table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """A table in Markdown."""
    head = list(head)
    lines = [head, ["---"] * len(head), *rows]
    return "".join(
        f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in line)} |\n" for line in lines
    )


def groups() -> str:
    """The groups of entry points and what each is to name."""
    return table(
        ("entry points", "what they name"),
        ((f"`{group.entry_points}`", group.expected) for group in registry.GROUPS),
    )


def keys(config: type[Config], without: Iterable[str] = ()) -> str:
    """The keys of a config: type, default, help; `without` some.

    Raises:
        ValueError: a key has no help.
    """
    rows = []
    for name, field in config.model_fields.items():
        if name in without:
            continue
        bounds = [
            f"{words} {value:g}"
            for limit in field.metadata
            for key, words in _BOUNDS.items()
            if (value := getattr(limit, key, None)) is not None
        ]
        if not field.description:
            raise ValueError(f"{config.__name__}.{name} does not say what it is for")
        required = (
            field.is_required() and "default:" not in field.description
        )  # a file's name is set by its reader
        default = "required" if required else "" if field.is_required() else _value(field.default)
        rows.append(
            (f"`{name}`", ", ".join([_kind(field.annotation), *bounds]), default, field.description)
        )
    return table(("key", "type", "default", "meaning"), rows)


def _kind(annotation: Any) -> str:
    """A type in words."""
    origin, parts = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        return _kind(parts[0])
    if annotation in _TYPES:
        return _TYPES[annotation]
    if origin is Literal:
        return " or ".join(f"`{json.dumps(choice)}`" for choice in parts)
    if origin in (Union, UnionType):
        return " or ".join(_kind(part) for part in parts if part is not NoneType)
    if origin is list:
        kind = _kind(parts[0])
        return f"list of {kind if get_origin(parts[0]) is Literal else kind + 's'}"
    return "table"


def corpora() -> str:
    """The corpora that have a name; what each holds in words is in `harness list data`."""
    return table(
        ("name", "holds", "items", "parts", "source"),
        (
            (
                f"`{name}`" + " \\*" * c.untried,
                c.kind + (f", written by {c.written_by}" if c.written_by else ""),
                f"{c.items:,}" if c.items else "?",
                ", ".join(c.parts),
                f"`{c.uri}`",
            )
            for name, c in CATALOGUE.items()
        ),
    )


def licences() -> str:
    """The licence of every data set that has a name here, texts to train on first."""
    lines = []
    for name, corpus in CATALOGUE.items():
        lines.append((f"`{name}`", corpus.licence, corpus.uri.partition("?")[0]))
    for name, licence in sorted(stated_licences().items(), key=lambda one: one[0].casefold()):
        lines.append((name, licence.text, licence.link))
    return table(("data set", "licence, as its source states it", "more"), lines)


def _value(default: Any) -> str:
    if isinstance(default, Config):
        default = default.model_dump(exclude_defaults=True)
    return (
        ""
        if default is None or default in ({}, []) or default == ""
        else f"`{json.dumps(default)}`"
    )


def published_totals() -> str:
    """How many numbers of each paper which kind of file makes."""
    return table(
        ("paper", "numbers", "comparisons", "studies", "cannot be had", "no file yet"),
        published.totals(),
    )


def published_numbers() -> str:
    """Every published row with what makes its numbers, or why nothing can."""
    head = ("table", "published rows", "base model", "numbers", "made by, or why not")
    return "\n".join(f"## {title}\n\n{table(head, lines)}" for title, lines in published.papers())


def align_uniform() -> str:
    """The example of a method, which a test installs and runs."""
    text = (REPOSITORY / "tests" / "third_party" / "align_uniform.py").read_text(encoding="utf-8")
    return f'```python title="align_uniform.py"\n{text}```\n'


def action_inputs() -> str:
    """The inputs of the action."""
    text = (REPOSITORY / "action.yml").read_text(encoding="utf-8")
    rows = []
    for name, about in yaml.safe_load(text)["inputs"].items():
        default = about["default"]
        shown = f"`{default}`" if default and "${{" not in default else ""
        rows.append((f"`{name}`", about["description"], shown))
    return table(("input", "meaning", "default"), rows)


MADE: dict[str, Callable[[], str]] = {
    "action-inputs": action_inputs,
    "align-uniform": align_uniform,
    "groups": groups,
    "experiment": lambda: keys(Experiment),
    "methods": lambda: keys(Entry),
    "blocks": lambda: keys(Block),
    "executor": lambda: keys(ExecutorSettings),
    "corpus": lambda: keys(CorpusSettings),
    "corpora": corpora,
    "licences": licences,
    "answer": answer.answer,
    "census": census.all_tables,
    "census-made": census.count_made,
    "census-left": census.describe_missing,
    "dev": lambda: keys(DevSettings),
    "file": lambda: keys(TaskFile),
    "study": lambda: keys(Study, without=Conditions.model_fields.keys() - {"dev"}),
    "published-totals": published_totals,
    "estimates": estimates.read_table,
    **api_pages.MADE,
    **measured.MADE,
    **validation.MADE,
    **robustness.MADE,
}


def filled(page: str) -> str:
    """The text of a page with what it takes from the code as the code is now."""
    return _MADE.sub(lambda part: f"{part['head']}\n{MADE[part['name']]()}\n", page)


if __name__ == "__main__":
    for page in PAGES:
        page.write_text(filled(read_text(page)), encoding="utf-8")
