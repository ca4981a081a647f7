"""Tables of the public names of modules, for `docs.make`: pages of the API that are read without the
site.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from functools import cache, cached_property, partial
from importlib import import_module
from types import ModuleType
from typing import Any

from docs.measured import markdown
from harness.config import Config

MODULES = (
    "harness.api",
    "harness.results.frames",
    "harness.machine.progress",
    "harness.method",
    "harness.saved_method",
    "harness.recipes",
    "harness.training",
    "harness.encoder",
    "harness.config",
    "harness.testing",
    "methods.objectives",
    "harness.tasks.base",
    "harness.tasks.suite",
    "harness.senteval",
)
"""What the pages of the API document."""
OURS = ("harness.", "reports.")  # packages with bases of the classes


def outline(name: str) -> str:
    """Return a table of the public names of a module, with those of its classes."""
    module = import_module(name)
    lines = []
    for public, thing in _names(module):
        lines.append((f"`{_call(public, thing)}`", _summary(thing)))
        if inspect.isclass(thing):
            for member, inner in _members(thing):
                lines.append((f"`{public}.{_call(member, inner)}`", _summary(inner)))
    return markdown(("name", "what it is"), lines).replace("---:", "---", 1)


def _names(module: ModuleType) -> Iterator[tuple[str, Any]]:
    """Yield what a module names in `__all__`, else the functions and classes that it defines."""
    given = getattr(module, "__all__", None)
    for name in given or vars(module):
        thing = getattr(module, name)
        defined = getattr(thing, "__module__", "") == module.__name__
        if callable(thing) and (given or (defined and not name.startswith("_"))):
            yield name, thing


def _members(kind: type) -> Iterator[tuple[str, Any]]:
    """Yield the public methods and properties that a class has of its own, or of a base that no page
    documents.
    """
    found: dict[str, Any] = {}
    for base in kind.__mro__:
        if base is kind or (base.__module__.startswith(OURS) and base not in _documented()):
            found = {**vars(base), **found}
    for name, member in found.items():
        if isinstance(member, (classmethod, staticmethod)):
            member = member.__func__
        shown = inspect.isfunction(member) or isinstance(member, (property, cached_property))
        if shown and not name.startswith("_") and inspect.getdoc(member):
            yield name, member


@cache
def _documented() -> frozenset[Any]:
    """Return everything that has a page."""
    modules = [import_module(name) for name in MODULES]
    return frozenset(thing for module in modules for _, thing in _names(module))


def _call(name: str, thing: Any) -> str:
    """Return a name with its arguments; what has a default is `key=...`."""
    if not callable(thing) or (inspect.isclass(thing) and issubclass(thing, Config)):
        return name  # fields of a config have a table of their own
    try:
        parameters = list(inspect.signature(thing).parameters.values())
    except ValueError:  # an exception of the library has none
        return name
    arguments = []
    for one in parameters:
        if one.name not in ("self", "cls"):
            arguments.append(_argument(one))
    return f"{name}({', '.join(arguments)})"


def _argument(parameter: inspect.Parameter) -> str:
    """Return an argument as a call has it."""
    if parameter.kind is parameter.VAR_POSITIONAL:
        return f"*{parameter.name}"
    if parameter.kind is parameter.VAR_KEYWORD:
        return f"**{parameter.name}"
    if parameter.default is parameter.empty:
        return parameter.name
    return f"{parameter.name}=..."


def _summary(thing: Any) -> str:
    """Return the first paragraph of a docstring as a cell of a table."""
    text = (inspect.getdoc(thing) or "").partition("\n\n")[0]
    return " ".join(text.split()).replace("|", "\\|")


MADE: dict[str, Callable[[], str]] = {
    f"names-{module.replace('.', '-')}": partial(outline, module) for module in MODULES
}
