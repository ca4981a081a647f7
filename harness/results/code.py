"""The version of the code behind a method or a task: what its class declares, else a hash of its
files.
"""

from __future__ import annotations

import dis
import linecache
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any

from harness import registry
from harness.errors import InputError
from harness.files.code import (
    digest_of,
    find_changed_files,
    find_sources,
    is_own,
    is_shipped,
    read_module,
)
from harness.files.printable import join_some

_PLAIN = (bool, int, float, complex, str, bytes, type(None))


@dataclass(frozen=True)
class Code:
    """The code behind a plugin.

    Attributes:
        version: as declared, else a hash of all files.
        files: name -> hash of each file; empty where the version is declared.
        changed: files that have changed since this process imported them.
    """

    version: int | str
    files: Mapping[str, str] = field(default_factory=dict)
    changed: tuple[Path, ...] = ()

    def check_current(self) -> None:
        """Raises:
        InputError: the files on disk are not what this process has imported.
        """
        if self.changed:
            raise InputError(
                f"changed since this process imported {self.changed[0].stem}, which computes as before",
                file=self.changed[0],
                remedy="start Python again",
            )


def method_code(kind: type) -> Code:
    """Return the code of a method: its version, else its files.

    The files are the module of the class, the modules that it imports of its own package or folder,
    the parents of the class and the class attribute `data_files`. Code of this package has versions
    of its own; that of other installed packages is left out.

    Raises:
        InputError: the class declares no version and its source cannot be read, or a data file is
            missing.
    """
    declared = vars(kind).get("version")  # not that of a parent, whose numbers may differ
    if declared is not None:
        return Code(declared)
    name = getattr(kind, "name", "")
    return _code_of(kind, registry.modules_of(registry.METHODS, name))


def task_code(task: Any) -> Code:
    """Return the code of a task, as `method_code`; tasks of this package that declare no version
    have version 1.

    Raises:
        InputError: as `method_code`.
    """
    kind = type(task)
    declared = vars(kind).get("version")
    if declared is not None:
        return Code(declared)
    makers = registry.modules_of(registry.TASKS, getattr(task, "name", ""))
    makers = [module for module in makers if not _is_of_package(module)]
    if _is_of_package(kind.__module__) and not makers:
        return Code(getattr(kind, "version", 1))
    return _code_of(kind, makers)


def describe_change(before: Code, now: Code) -> str:
    """Return which files differ, or which versions, as "a.py and b.py have changed"."""
    names = sorted(
        name
        for name in before.files.keys() | now.files.keys()
        if before.files.get(name) != now.files.get(name)
    )
    if before.files and now.files and names:
        verb = "has" if len(names) == 1 else "have"
        return f"{join_some(names, 4)} {verb} changed"
    if before.files or now.files:
        return "its code has changed"
    return f"its version has changed from {before.version} to {now.version}"


def _code_of(kind: type, makers: list[str]) -> Code:
    files: dict[str, str] = {}
    roots = [kind.__module__]
    if _is_typed(kind):
        files, roots = _read_typed_code(kind)
    roots += [
        parent.__module__ for parent in kind.__mro__[1:-1] if _is_own_module(parent.__module__)
    ]
    modules = list(dict.fromkeys([*roots, *makers]))
    sources = find_sources(modules)
    files |= {
        file_in_package(module, source.file): source.digest for module, source in sources.items()
    }
    if not files and (source := read_module(kind.__module__)) is not None:
        files[kind.__module__] = source.digest  # a class that this package makes
    if not files:
        raise InputError(
            f"{kind.__name__}: its source cannot be read, so its runs cannot be identified",
            key=kind.__name__,
            remedy="give the class an attribute `version`, and raise it when its numbers change",
        )
    for parent in kind.__mro__[1:-1]:
        declared = vars(parent).get("version")
        if declared is not None and not _is_own_module(parent.__module__):
            name = f"{parent.__module__}.{parent.__qualname__}"
            files[name] = f"version {declared}"
    files |= _data_files(kind)
    digests = sorted(files.values())
    if len(digests) == 1:
        version = digests[0]
    else:
        version = digest_of("\n".join(digests))
    return Code(version, files, tuple(find_changed_files(sources)))


def _is_of_package(name: str) -> bool:
    file = getattr(sys.modules.get(name), "__file__", None)
    return file is not None and is_shipped(file)


def _is_own_module(name: str) -> bool:
    file = getattr(sys.modules.get(name), "__file__", None)
    return file is not None and is_own(file)


def _is_typed(kind: type) -> bool:
    """True of a class that was typed in a notebook or console."""
    main = sys.modules.get("__main__")
    return kind.__module__ == "__main__" and not hasattr(main, "__file__")


def file_in_package(module: str, file: Path) -> str:
    """Return the path of a module from where its package is, the same on every machine."""
    depth = module.count(".") + (file.stem == "__init__")
    return "/".join(file.parts[-1 - depth :])


def _data_files(kind: type) -> dict[str, str]:
    """Return name -> hash of the files that a class and its parents declare.

    Raises:
        InputError: one is missing.
    """
    files: dict[str, str] = {}
    for owner in kind.__mro__:
        names = vars(owner).get("data_files", ())
        module = sys.modules.get(owner.__module__)
        file = getattr(module, "__file__", None) or "here"
        folder = Path(file).resolve().parent
        if isinstance(names, str | Path):
            names = (names,)
        for name in names:
            place = folder / name
            if not place.exists():
                raise InputError(
                    f"{owner.__name__}: no such file",
                    file=place,
                    key="data_files",
                    remedy="name files or folders relative to the module of the class",
                )
            if place.is_dir():
                inside = sorted(place.rglob("*"))
            else:
                inside = [place]
            for file in inside:
                if file.is_file():
                    files[(Path(name) / file.relative_to(place)).as_posix()] = digest_of(
                        file.read_bytes()
                    )
    return files


def _read_typed_code(kind: type) -> tuple[dict[str, str], list[str]]:
    """Return what the functions of a class that was typed use: name -> hash of each cell and value
    (numbers, texts, arrays, and lists, sets and dictionaries of these), and the modules.
    """
    files: dict[str, str] = {}
    modules: list[str] = []
    cells: dict[str, None] = {}
    queue = list(_functions_of(kind))
    seen = set(queue)
    while queue:
        function = queue.pop(0)
        cells.setdefault(function.__code__.co_filename)
        for name in _global_names(function.__code__):
            value = function.__globals__.get(name)
            if isinstance(value, ModuleType):
                home = value.__name__
            else:
                home = _home_of(value)
            if home == "__main__":
                if isinstance(value, FunctionType):
                    more = [value]
                else:
                    more = _functions_of(value)
                queue += [one for one in more if one not in seen]
                seen.update(more)
            elif home and _is_own_module(home):
                modules.append(home)
            elif name in function.__globals__:
                content = _content_of(value)
                if content is not None:
                    files[f"value of {name}"] = digest_of(content)
    for number, cell in enumerate(cells, 1):
        linecache.checkcache(cell)
        if source := "".join(linecache.getlines(cell)):
            files[f"cell {number}"] = digest_of(source)
    return files, modules


def _functions_of(kind: Any) -> list[FunctionType]:
    """Return the functions of a class, and of its parents, that were typed."""
    found: list[FunctionType] = []
    for owner in getattr(kind, "__mro__", ()):
        if owner.__module__ == "__main__":
            for part in vars(owner).values():
                of_method = getattr(part, "__func__", part)
                plain = getattr(part, "fget", None) or of_method
                if isinstance(plain, FunctionType):
                    found += [plain]
    return found


def _home_of(value: Any) -> str:
    callable_here = isinstance(value, FunctionType | type)
    return str(value.__module__) if callable_here else ""


def _content_of(value: Any, inside: tuple[int, ...] = ()) -> str | None:
    """Return the content of a value as text, the same in every process; None where it has parts of
    another kind. `inside`: ids of the containers that it is a part of, as a list may hold itself.
    """
    if isinstance(value, _PLAIN):
        return repr(value)
    if hasattr(value, "dtype") and hasattr(value, "shape"):
        return _content_of_array(value)
    if id(value) in inside:
        return f"container {inside.index(id(value))}"
    within = (*inside, id(value))
    parts: list[str | None] = []
    if isinstance(value, Mapping):
        for key, one in value.items():
            parts += [_content_of(key, within), _content_of(one, within)]
    elif isinstance(value, list | tuple | set | frozenset):
        parts = [_content_of(one, within) for one in value]
    else:
        return None
    known = [part for part in parts if part is not None]
    if len(known) < len(parts):
        return None
    if isinstance(value, set | frozenset):
        known.sort()
    return f"{type(value).__name__}({', '.join(known)})"


def _content_of_array(value: Any) -> str | None:
    """Return the content of an array of numpy or a tensor of torch; None of one of objects."""
    import numpy as np

    if hasattr(value, "detach"):
        value = value.detach().to_dense().cpu()  # numpy has no sparse ones
        if value.is_floating_point():  # numpy has no bfloat16
            value = value.double()
    array = np.asarray(value)
    if array.dtype.hasobject:
        return None
    return f"{array.dtype} {array.shape} {digest_of(array.tobytes())}"


def _global_names(code: CodeType) -> list[str]:
    """Return the global names that code reads, with those of the functions inside of it."""
    names = []
    for step in dis.get_instructions(code):
        if step.opname == "LOAD_GLOBAL":
            names.append(step.argval)
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            names += _global_names(constant)
    return list(dict.fromkeys(names))
