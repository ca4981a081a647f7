"""What methods say about themselves."""

from __future__ import annotations

from functools import cache
from importlib.util import find_spec

from harness import registry
from harness.errors import InputError
from harness.method import Method, MethodCard
from harness.recipes import RecipeFile


@cache
def read_card(name: str) -> MethodCard | None:
    """Return the card of a method; None where its package is not installed any more.

    >>> read_card("simcse").title
    'SimCSE (unsupervised)'
    """
    if registry.is_shipped(registry.METHODS, name):
        return _read_shipped_card(name)
    try:
        method: type[Method] = registry.load(registry.METHODS, name)
    except InputError:
        return None
    return method.card


def _read_shipped_card(name: str) -> MethodCard:
    """Read the file of a card alone: the module of its method would import torch, which takes
    seconds and 180 MiB.
    """
    (module,) = [one.module for one in registry.points(registry.METHODS) if one.name == name]
    spec = find_spec(module)
    assert spec is not None
    assert spec.origin is not None
    return MethodCard(**RecipeFile.beside(spec.origin).card)
