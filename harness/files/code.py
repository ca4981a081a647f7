"""The files behind a module: its own source and that of the modules that it imports of its user,
with the hash of each as this process has imported it.
"""

from __future__ import annotations

import ast
import hashlib
import importlib.util
import site
import sys
import sysconfig
import tokenize
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import metadata
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path
from typing import Any

from harness.errors import InputError

_HOME = Path(__file__).parents[2]
_SHIPPED = ("harness", "methods", "studies", "reports")  # what has versions of its own
_INSTALLED = frozenset(
    {"site-packages", "dist-packages"}
)  # also those that PYTHONPATH or a .pth adds


@dataclass(frozen=True)
class Source:
    """A file of code as it was when it was read.

    Attributes:
        digest: 16 hex digits of its sha256.
        tree: its syntax; None of what is no Python.
        imported: what identifies the import that it was read for; None where it was not imported.
    """

    file: Path
    digest: str
    tree: ast.Module | None
    imported: object | None


_IMPORTED: dict[str, Source] = {}
"""Module -> its source when this process imported it: the file may change later, the code does not."""


def digest_of(content: str | bytes) -> str:
    """Return the first 16 hex digits of the sha256."""
    if isinstance(content, str):
        raw = content.encode()
    else:
        raw = content
    return hashlib.sha256(raw).hexdigest()[:16]


def is_shipped(file: str | Path) -> bool:
    """True if the file belongs to this package, whose code has versions of its own."""
    path = Path(file)
    return path.is_relative_to(_HOME) and path.relative_to(_HOME).parts[:1] in {
        (name,) for name in _SHIPPED
    }


@cache
def _library_folders() -> tuple[str, ...]:
    names = ("stdlib", "platstdlib", "purelib", "platlib")
    folders = [sysconfig.get_path(name) for name in names]
    folders += [*site.getsitepackages(), site.getusersitepackages()]
    found = []
    for folder in folders:
        if folder:
            found.append(f"{folder.rstrip('/')}/")
    return tuple(dict.fromkeys(found))


def is_library(file: str | Path) -> bool:
    """True if the file belongs to Python or to an installed package."""
    if not _INSTALLED.isdisjoint(Path(file).parts):
        return True
    return str(file).startswith(_library_folders())


def is_own(file: str | Path) -> bool:
    """True if the file is code of the user: neither of Python, nor installed, nor of this package."""
    return not is_library(file) and not is_shipped(file)


def find_sources(modules: Sequence[str]) -> dict[str, Source]:
    """Return module -> source of the modules and of what they import, directly or not, as far as it
    is code of the user or of the same installed package.

    Imports are found in the syntax, also those inside of functions; nothing is imported. Names that
    a program computes cannot be found.
    """
    near: set[str] = set()
    for module in modules:
        near.update(_packages_beside(module))
    found: dict[str, Source] = {}
    queue = [name for module in modules for name in _with_parents(module)]
    visited = set(queue)
    while queue:
        name = queue.pop()
        spec = _find_spec(name)
        if spec is None:
            continue
        file = _file_of(name, spec)
        if file is None or is_shipped(file):
            continue
        package = name.partition(".")[0]
        if is_library(file) and package not in near:
            continue
        source = _read(name, file)
        if source is None:
            continue
        found[name] = source
        if spec.submodule_search_locations is not None:
            package = name
        else:
            package = name.rpartition(".")[0]
        for other in _imports(source.tree, package):
            queue += [part for part in _with_parents(other) if part not in visited]
            visited.update(_with_parents(other))
    return found


def read_module(name: str) -> Source | None:
    """Return the source of a module that is imported; None where it has no file."""
    file = getattr(sys.modules.get(name), "__file__", None)
    if file is None:
        return None
    return _read(name, Path(file))


def read_again(source: Source) -> Source | None:
    """Return the file of a source as it is now; None if it is gone."""
    try:
        raw = source.file.read_bytes()
    except OSError:
        return None
    tree: ast.Module | None = None
    content: str | bytes = raw
    if source.file.suffix == ".py":
        try:
            with tokenize.open(source.file) as stream:
                text = stream.read()
            if text.endswith("\n") or not text:
                content = text
            else:
                content = text + "\n"
            tree = ast.parse(raw)
        except (OSError, SyntaxError, ValueError):
            content = raw
    return Source(source.file, digest_of(content), tree, source.imported)


def find_changed_files(sources: Mapping[str, Source]) -> list[Path]:
    """Return the files that have changed since this process imported them."""
    changed = []
    for source in sources.values():
        now = read_again(source)
        if source.imported is None:
            continue
        if now is None or now.digest != source.digest:
            changed.append(source.file)
    return changed


class Importing:
    """Around the import of a module: notices files that change meanwhile.

    Raises:
        InputError: at its end, if one did: nobody knows which code was imported.
    """

    def __init__(self, module: str) -> None:
        if module in sys.modules:
            self.before = {}
        else:
            self.before = find_sources([module])

    def check(self) -> None:
        """Compare the files with those of before."""
        for name, source in self.before.items():
            now = read_again(source)
            if now is None or now.digest != source.digest:
                raise InputError(
                    "changed while it was imported",
                    file=source.file,
                    remedy="start the command again",
                )
            if source.imported is None and name in sys.modules:
                _IMPORTED[name] = Source(
                    source.file,
                    source.digest,
                    source.tree,
                    _import_of(sys.modules[name]),
                )


def _with_parents(module: str) -> list[str]:
    """Return a, a.b and a.b.c of a.b.c: importing it executes all of them."""
    parts = module.split(".")
    ends = range(1, len(parts) + 1)
    return [".".join(parts[:end]) for end in ends]


def _packages_beside(module: str) -> list[str]:
    """Return the names at the top of the installed package that a module belongs to."""
    top = module.partition(".")[0]
    spec = _find_spec(top)
    if spec is None or spec.origin is None or not is_library(spec.origin):
        return [top]
    packages = _packages()
    own = set(packages.get(top, ()))
    beside = [top]
    for name, owners in packages.items():
        if own & set(owners):
            beside.append(name)
    return beside


@cache
def _packages() -> Mapping[str, list[str]]:
    return metadata.packages_distributions()


def _find_spec(name: str) -> ModuleSpec | None:
    """Return where a module is, without importing it or its parents."""
    spec = getattr(sys.modules.get(name), "__spec__", None)
    if isinstance(spec, ModuleSpec):
        return spec
    parent = name.rpartition(".")[0]
    try:
        if not parent:
            return importlib.util.find_spec(name)
        up = _find_spec(parent)
        if up is None or up.submodule_search_locations is None:
            return None
        return PathFinder.find_spec(name, list(up.submodule_search_locations))
    except (ImportError, ValueError, AttributeError, KeyError):
        # A namespace package searches for its parent in sys.modules, where it need not be.
        file = getattr(sys.modules.get(name), "__file__", None)  # a script has no specification
        if file:
            return importlib.util.spec_from_file_location(name, file)
        return None


def _file_of(name: str, spec: ModuleSpec) -> Path | None:
    file = getattr(sys.modules.get(name), "__file__", None) or (
        spec.origin if spec.has_location else None
    )
    if file is None:
        return None
    return Path(file)


def _import_of(module: Any) -> object:
    """Return what changes when a module is imported or reloaded."""
    return getattr(module, "__spec__", None) or module


def _read(name: str, file: Path) -> Source | None:
    """Return the source of a module as it was when this process imported it, else as it is now."""
    module = sys.modules.get(name)
    if module is None:
        imported = None
    else:
        imported = _import_of(module)
    known = _IMPORTED.get(name)
    if known is not None and imported is not None and known.imported is imported:
        return known
    source = read_again(Source(file, "", None, imported))
    if source is not None and imported is not None:
        _IMPORTED[name] = source
    return source


def _imports(tree: ast.Module | None, package: str) -> Iterator[str]:
    """Yield the modules that a syntax tree may import, by their full names."""
    for node in ast.walk(tree) if tree is not None else ():
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from _imported_from(node, package)
        elif isinstance(node, ast.Call) and node.args:
            module = _module_of_call(node, package)
            if module:
                yield module


def _imported_from(node: ast.ImportFrom, package: str) -> Iterator[str]:
    """Yield the module of "from module import names", and what its names may be."""
    written = "." * node.level + (node.module or "")
    base = _absolute(written, package)
    if base:
        yield base
        for alias in node.names:
            if alias.name != "*":
                yield f"{base}.{alias.name}"


def _module_of_call(call: ast.Call, package: str) -> str:
    """Return the module that `import_module("name")` imports; empty for other calls."""
    name = getattr(call.func, "id", "")
    function = getattr(call.func, "attr", name)
    if function not in ("import_module", "__import__"):
        return ""
    first = call.args[0]
    if isinstance(first, ast.Constant) and isinstance(first.value, str):
        return _absolute(first.value, package)
    return ""


def _absolute(name: str, package: str) -> str:
    try:
        return importlib.util.resolve_name(name, package)
    except ImportError:  # beyond the top
        return ""
