"""The source of a package by module and by name: what each piece computes, and what else it calls."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from harness.identity.normal_form import Imported, NormalForm, imported_names, normal_form


@dataclass
class Source:
    """A parsed module.

    Attributes:
        module: its dotted name. package: that of the package that it lies in (itself, for a package).
    """

    module: str
    package: str
    tree: ast.Module

    @cached_property
    def imports(self) -> dict[str, Imported]:
        """Local name -> what was imported under it."""
        return imported_names(self.tree, self.package)

    @cached_property
    def defined(self) -> dict[str, list[ast.stmt]]:
        """Name -> the statements that bind it; "" -> those that bind none (loops, calls)."""
        binding: dict[str, list[ast.stmt]] = {}
        for statement in self.tree.body:
            for name in _bound(statement):
                binding.setdefault(name, []).append(statement)
        return binding


class Sources:
    """The modules of some packages, each read once."""

    def __init__(self, folders: Iterable[Path]) -> None:
        """`folders`: a folder for each package (its `__init__.py` in it), or a file for a package of one module."""
        self.tops = {folder.stem: folder for folder in folders}
        self._known: dict[str, Source | None] = {}

    def file(self, module: str) -> Path | None:
        """Where a module stands, None where there is none."""
        top, *below = module.split(".")
        place = self.tops.get(top)
        if place is None or place.suffix:
            return place if not below else None
        folder = place.joinpath(*below)
        file = folder.with_name(folder.name + ".py")
        return folder / "__init__.py" if (folder / "__init__.py").is_file() else file if file.is_file() else None

    def modules(self, top: str) -> list[str]:
        """Every module of a package."""
        place = self.tops[top]
        files = [place] if place.suffix else sorted(place.rglob("*.py"))
        names = (".".join(file.relative_to(place.parent).with_suffix("").parts) for file in files)
        return sorted(name.removesuffix(".__init__") for name in names)

    def source(self, module: str) -> Source | None:
        """A module, parsed; None where there is none."""
        if module not in self._known:
            file = self.file(module)
            package = module if file is not None and file.stem == "__init__" else module.rpartition(".")[0]
            tree = ast.parse(file.read_text(encoding="utf-8")) if file is not None else None
            self._known[module] = Source(module, package, tree) if tree is not None else None
        return self._known[module]

    def imports(self, module: str) -> set[Imported]:
        """All that a module imports, whether it is used or not."""
        source = self.source(module)
        return set(source.imports.values()) if source is not None else set()

    def reached(self, module: str) -> set[str]:
        """The modules that a module imports, directly or through another, and itself."""
        modules: set[str] = set()
        waiting = [module]
        while waiting:
            name = waiting.pop()
            if name not in modules and self.file(name) is not None:
                modules.add(name)
                waiting += [self.home(imported).module for imported in self.imports(name)]
        return modules

    def form(self, module: str, name: str = "", *, without: Iterable[str] = ()) -> NormalForm:
        """The normal form of a module but for some names, or of one name of it; empty where there is no such code."""
        source = self.source(module)
        if source is None:
            return NormalForm([])
        left_out = {id(s) for other in without for s in source.defined.get(other, [])}
        statements = source.defined.get(name, []) if name else [s for s in source.tree.body if id(s) not in left_out]
        return normal_form(statements, source.imports, self._is_ours)

    def home(self, imported: Imported) -> Imported:
        """Where that stands which was imported, however many modules pass it on."""
        whole = f"{imported.module}.{imported.name}" if imported.name else imported.module
        if self.file(whole) is not None:
            return Imported(whole)
        source = self.source(imported.module)
        if source is None or imported.name in source.defined or imported.name not in source.imports:
            return imported
        return self.home(source.imports[imported.name])

    def _is_ours(self, imported: Imported) -> bool | None:
        if imported.module.partition(".")[0] not in self.tops:
            return False
        return None if not self.home(imported).name else True


def folder_of(kind: type) -> Path | None:
    """The folder of the package that a class belongs to, its file where that stands alone, None where it has none."""
    module = kind.__module__
    file = getattr(sys.modules.get(module), "__file__", None)
    if file is None:
        return None
    path = Path(file).resolve()
    steps = module.count(".") + (path.stem == "__init__")  # from the file up to the package
    return path.parents[steps - 1] if steps else path


def _bound(statement: ast.stmt) -> list[str]:
    """The names that a statement of a module binds."""
    if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return [statement.name]
    targets = statement.targets if isinstance(statement, ast.Assign) else [getattr(statement, "target", None)]
    names = [node.id for target in targets if target is not None for node in ast.walk(target)
             if isinstance(node, ast.Name)]  # fmt: skip
    return names or [""]
