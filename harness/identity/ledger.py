"""The reviewed parts of the numerical code: which there are, in which version, and what each rests on.

A package that keeps a ledger has a file `ledger.toml` beside its `__init__.py`:

    outside = ["PACKAGE.module"]      modules (with all below them) that no id depends on
    [parts.NAME]
    about = "..."                     one line
    version = 1                       raised when its numbers change, and only then
    also = ["PACKAGE.NAME"]           parts that it rests on without importing them
    before = ["..."]                  its code ids in records from before the ledger (Python 3.11, 3.12, 3.13)
    uses = ["PACKAGE.NAME"]           parts that its code calls             (written by `python -m harness.identity`)
    history = ["DATE, version 1: ..."]   why, the newest last                  (the same)
    [parts.NAME.code]
    "PACKAGE.module" = "HASH"         its code: modules, or "PACKAGE.module:NAME" for one name of a module  (the same)
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from importlib.metadata import entry_points
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from harness.identity.normal_form import Imported

FILE = "ledger.toml"
PLUGINS = ("harness.methods", "harness.tasks")  # groups of entry points whose code makes numbers


@dataclass(frozen=True)
class Part:
    """A piece of numerical code with a version of its own."""

    name: str  # "PACKAGE.NAME"
    version: int
    code: dict[str, str]  # "module" or "module:name" -> hash of its normal form
    uses: tuple[str, ...]
    also: tuple[str, ...] = ()
    before: tuple[str, ...] = ()


@dataclass(frozen=True)
class Ledger:
    """The parts of one package."""

    package: str
    file: Path
    parts: dict[str, Part]  # by "PACKAGE.NAME"
    outside: tuple[str, ...]

    @property
    def packages(self) -> set[str]:
        """The packages that its parts lie in or rest on."""
        named = [*self.parts, *(name for part in self.parts.values() for name in (*part.uses, *part.also))]
        return {name.partition(".")[0] for name in named}

    def is_outside(self, module: str) -> bool:
        """Does no id depend on a module?"""
        return any(module == name or (module.startswith(f"{name}.") and name != self.package) for name in self.outside)


def read_ledger(folder: Path) -> Ledger | None:
    """The ledger of the package in `folder`, None where it keeps none."""
    file = folder / FILE
    if not file.is_file():
        return None
    tree = tomllib.loads(file.read_text(encoding="utf-8"))
    package = folder.name
    parts = {f"{package}.{name}": _part(f"{package}.{name}", table) for name, table in tree["parts"].items()}
    return Ledger(package, file, parts, tuple(tree.get("outside", ())))


@cache
def ledger_of(folder: Path) -> Ledger | None:
    """As `read_ledger`, read once a process."""
    return read_ledger(folder)


def _part(name: str, table: dict[str, Any]) -> Part:
    uses, also, before = (tuple(table.get(key, ())) for key in ("uses", "also", "before"))
    return Part(name, table["version"], dict(table["code"]), uses, also, before)


class Parts:
    """The parts of some ledgers together."""

    def __init__(self, ledgers: Iterable[Ledger]) -> None:
        self.by_name = {name: part for ledger in ledgers for name, part in ledger.parts.items()}
        self.by_code = {key: part for part in self.by_name.values() for key in part.code}

    def of(self, module: str, name: str = "") -> Part | None:
        """The part that holds a name of a module, or the module."""
        return self.by_code.get(f"{module}:{name}") or self.by_code.get(module)

    def holding(self, imported: Imported) -> set[str]:
        """The parts that an import reaches: of a whole module, all that hold any of it."""
        if imported.name:
            part = self.of(imported.module, imported.name)
            return {part.name} if part is not None else set()
        module = imported.module
        return {part.name for key, part in self.by_code.items() if key.partition(":")[0] == module}

    def closure(self, names: Iterable[str]) -> dict[str, int]:
        """Part -> version of these parts and of all that they rest on."""
        versions: dict[str, int] = {}
        waiting = list(names)
        while waiting:
            part = self.by_name[waiting.pop()]
            if part.name not in versions:
                versions[part.name] = part.version
                waiting += [*part.uses, *part.also]
        return versions


def kept_ledgers() -> list[Path]:
    """The folders of the installed packages that keep a ledger: the harness, and those whose plugins it finds."""
    plugins = {point.module.partition(".")[0] for group in PLUGINS for point in entry_points(group=group)}
    specs = [spec for name in ("harness", *sorted(plugins)) if (spec := find_spec(name)) is not None]
    folders = dict.fromkeys(Path(place) for spec in specs for place in spec.submodule_search_locations or ())
    return [folder for folder in folders if (folder / FILE).is_file()]
