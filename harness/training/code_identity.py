"""A hash of what a function, a class or an object computes: its source, and all values in it."""

from __future__ import annotations

import functools
import hashlib
import inspect
import sys
import textwrap
import types
from collections.abc import Mapping, Sequence
from enum import Enum
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

from harness.errors import InputError
from harness.training.loss_state import attributes_of

_PLAIN = (type(None), bool, int, float, complex, str, bytes)
_TABLES = (Mapping, list, set, frozenset, torch.Tensor, np.ndarray)
# Attributes of a class that say nothing of what it computes; the last two are the places of its
# lines, in Python 3.13.
_NO_CONTENT = frozenset(
    {
        "__dict__",
        "__weakref__",
        "__doc__",
        "__annotations__",
        "__module__",
        "__firstlineno__",
        "__static_attributes__",
    }
)


def identify(what: Any) -> str:
    """Return a hash of a function, class or object (16 hexadecimal digits).

    Of code that was installed: its name and the version of its package. Of other code: its source,
    its defaults, the values that it captured, and likewise the functions and values of its module
    that it names.

        >>> def weighted(weight):
        ...     return lambda a, b: weight * (a - b).square().sum()
        >>> identify(weighted(0.1)) == identify(weighted(0.1)), identify(weighted(0.1)) == identify(weighted(9.0))
        (True, False)

    Raises:
        InputError: a value in it has no content that can be hashed, or a source cannot be read.
    """
    return _Identity().of(what)


class _Identity:
    """One hash. A value that occurs within itself is named by the place where it was seen first."""

    def __init__(self) -> None:
        self.seen: dict[int, tuple[int, Any]] = {}

    def of(self, what: Any) -> str:
        described = repr(self.describe(what))
        return hashlib.sha256(described.encode()).hexdigest()[:16]

    def describe(self, what: Any) -> Any:
        """Return texts, numbers and lists that say what a value is."""
        if isinstance(what, _PLAIN):
            return type(what).__name__, repr(what)
        if isinstance(what, torch.dtype | torch.device | Path | Enum):
            return type(what).__name__, str(what)
        if isinstance(what, torch.Tensor):
            array = what.detach().cpu()
            if array.dtype == torch.bfloat16:
                array = array.float()
            return str(what.dtype), self.describe(array.numpy())
        if isinstance(what, np.ndarray) and what.dtype != object:
            content = np.ascontiguousarray(what).tobytes()
            digest = hashlib.sha256(content).hexdigest()
            return str(what.dtype), what.shape, digest
        if isinstance(what, np.generic):
            return type(what).__name__, repr(what.item())
        if id(what) in self.seen:
            number, _ = self.seen[id(what)]
            return "as", number
        self.seen[id(what)] = len(self.seen), what  # held, so that its number stays its own
        return self._describe_whole(what)

    def _describe_whole(self, what: Any) -> Any:
        if isinstance(what, Mapping):
            return "mapping", [
                (self.describe(key), self.describe(value)) for key, value in what.items()
            ]
        if isinstance(what, set | frozenset):
            members = [repr(self.describe(value)) for value in what]
            return "set", sorted(members)
        if isinstance(what, Sequence):
            return type(what).__name__, [self.describe(value) for value in what]
        if isinstance(what, types.ModuleType):
            return "module", what.__name__, _release(what.__name__)
        return self._describe_code(what)

    def _describe_code(self, what: Any) -> Any:
        """Return what says what a function, class, method or other object does."""
        if isinstance(what, functools.partial):
            parts = (what.func, what.args, what.keywords)
            return "partial", [self.describe(part) for part in parts]
        if isinstance(what, types.MethodType):
            return "bound", self.describe(what.__func__), self.describe(what.__self__)
        if isinstance(what, type):
            return self._describe_class(what)
        if isinstance(what, types.FunctionType):
            return self._describe_function(what)
        if isinstance(what, types.BuiltinFunctionType) or release_of(what) is not None:
            name = getattr(what, "__qualname__", None)
            if name is not None:
                return what.__module__, name, _release(what.__module__ or "builtins")
        return self._describe_object(what)

    def _describe_function(self, function: types.FunctionType) -> Any:
        release = release_of(function)
        if release is not None and not function.__closure__:
            return function.__module__, function.__qualname__, release
        function_code = function.__code__
        captured = {}
        cells = function.__closure__ or ()
        for name, cell in zip(function_code.co_freevars, cells, strict=True):
            try:
                captured[name] = cell.cell_contents
            except ValueError:  # not yet filled: a class within its own body
                continue
        captured.pop("__class__", None)
        if release is not None:
            named = {}
        else:
            named = _globals_of(function)
        parts = (captured, function.__defaults__, function.__kwdefaults__, named)
        return source_of(function), [self.describe(part) for part in parts]

    def _describe_class(self, kind: type) -> Any:
        release = release_of(kind)
        if release is not None:
            return kind.__module__, kind.__qualname__, release
        values = {}
        for name, value in vars(kind).items():
            if name in _NO_CONTENT:
                continue
            inner = _inner(value)
            code = getattr(inner, "__code__", None)
            is_made = getattr(code, "co_filename", "").startswith("<")
            is_table = isinstance(inner, _TABLES) and not name.startswith("__")
            is_plain = isinstance(inner, (types.FunctionType, type, tuple, *_PLAIN))
            if not is_made and (is_plain or is_table):
                values[name] = inner
        parents = [base for base in kind.__bases__ if base is not object]
        return source_of(kind), [self.describe(values), self.describe(parents)]

    def _describe_object(self, what: Any) -> Any:
        kind = type(what)
        if isinstance(what, nn.Module):
            return self.describe(kind), [
                self.describe(dict(attributes_of(what))),
                self.describe(dict(what.state_dict())),
                self.describe(dict(what.named_children())),
            ]
        reduced = getattr(kind, "__reduce_ex__", None) is object.__reduce_ex__
        if hasattr(what, "__dict__") and reduced and kind.__module__ != "builtins":
            return self.describe(kind), self.describe(vars(what))
        raise InputError(
            f"a value of type {kind.__name__} is in it, which has no content that can be hashed, so its "
            "runs cannot be identified",
            key="version",
            remedy="give version=1, and raise it when its numbers change",
        )


def _inner(value: Any) -> Any:
    """Return the function behind a method or property of a class; other values as they are."""
    if isinstance(value, property):
        return value.fget
    if isinstance(value, functools.cached_property):
        return value.func
    return getattr(value, "__func__", value)


def source_of(what: Any) -> str:
    """Return the source of a function or class, without its indentation.

    Raises:
        InputError: it cannot be read.
    """
    try:
        source = textwrap.dedent(inspect.getsource(what))
    except (OSError, TypeError):
        raise InputError(
            f"{getattr(what, '__name__', what)}: its source cannot be read, so its runs cannot be identified",
            key="version",
            remedy="give version=1, and raise it when its numbers change",
        ) from None
    is_lambda = getattr(what, "__name__", "") == "<lambda>"
    if is_lambda and source.count("lambda") > 1:
        # Two functions of one line have one source; what they compute tells them apart.
        code = what.__code__
        source += code.co_code.hex() + repr(code.co_consts)
    return source


def _globals_of(function: types.FunctionType) -> dict[str, Any]:
    """Return the values of the module that a function names, methods of the language left out."""
    found = {}
    for name in sorted(_names_in(function.__code__)):
        if name in function.__globals__:
            found[name] = function.__globals__[name]
    return found


def _names_in(code: types.CodeType) -> set[str]:
    names = set(code.co_names)
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            names |= _names_in(constant)
    return names


def release_of(what: Any) -> str | None:
    """Return the release of the installed package that a function or class is from; None for code
    of the user.
    """
    return _release(str(getattr(what, "__module__", None) or ""))


@functools.cache
def _release(module: str) -> str | None:
    top = module.partition(".")[0]
    if top in sys.stdlib_module_names or top == "builtins":
        return "python"
    if not top or top == "__main__":
        return None
    names = metadata.packages_distributions().get(top, [])
    file = getattr(sys.modules.get(top), "__file__", None)
    if not names or file is None:
        return None
    found = metadata.distribution(names[0])
    # What was installed from a folder that its author still edits lies elsewhere.
    folder = Path(str(found.locate_file("")))
    inside = Path(file).is_relative_to(folder)
    return found.version if inside else None
