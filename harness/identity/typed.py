"""What a class that was typed in a notebook computes: there is no file of it, and no ledger, to tell it by."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from types import CodeType, FunctionType
from typing import Any

from harness.errors import InputError
from harness.files.hashing import content_id

TYPED = "__main__"


def typed_version(kind: type) -> str:
    """A hash of the text of a class, and of whatever else was typed that its functions name, directly or not.

    Raises:
        InputError: its text is not known, as of what was made by `exec`.
    """
    found: dict[str, str] = {}
    wanted: list[Any] = [kind]
    while wanted:
        thing = wanted.pop()
        name = f"{type(thing).__name__} {thing.__qualname__}"
        if name in found:
            continue
        found[name] = _plain(thing) if isinstance(thing, type) else _text(thing, kind)
        functions = [part for part in _parts(thing) if isinstance(part, FunctionType)]
        wanted += [function for function in functions if function is not thing]
        named = (function.__globals__.get(word) for function in functions for word in _words(function.__code__))
        others = [*named, *_parts(thing), *(thing.__mro__ if isinstance(thing, type) else ())]
        wanted += [other for other in others if _is_typed(other)]
    return content_id(found)


def _is_typed(thing: Any) -> bool:
    return isinstance(thing, type | FunctionType) and thing.__module__ == TYPED


def _parts(thing: Any) -> Iterator[Any]:
    """A function itself; what a class defines, without the wrappers of properties and class methods."""
    if isinstance(thing, FunctionType):
        yield thing
        return
    for part in vars(thing).values():
        yield getattr(part, "__func__", None) or getattr(part, "fget", None) or part


def _plain(kind: type) -> str:
    """The values that a class sets, such as defaults and presets."""
    fields = getattr(kind, "model_fields", {})
    values = {name: value for name, value in vars(kind).items() if isinstance(value, str | int | float | dict | tuple)}
    hidden = {name for name in values if name.startswith("_")} | {"name", "version", "model_fields"}
    return repr(
        ({name: value for name, value in values.items() if name not in hidden}, sorted(map(repr, fields.items())))
    )


def _text(function: Any, kind: type) -> str:
    try:
        return inspect.getsource(function)
    except (OSError, TypeError):
        raise InputError(
            f"{kind.__name__}: the text of {function.__qualname__} is not known, so that runs of it cannot be told "
            "from runs of another; give the class a version, and raise it when its numbers change"
        ) from None


def _words(code: CodeType) -> set[str]:
    """The names that a function uses, those in it too."""
    inner = (word for const in code.co_consts if isinstance(const, CodeType) for word in _words(const))
    return {*code.co_names, *inner}
