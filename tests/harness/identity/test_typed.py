"""Classes that were typed: their runs are known by the text of the class and of what it calls."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from harness import register, registry
from harness.errors import InputError
from harness.identity.code import code_ids
from harness.identity.typed import typed_version
from harness.method import Method

CELL = """
from harness.config import option
from harness.method import Method, MethodCard, MethodConfig

def shift(x):
    return x + 1.0

class Config(MethodConfig):
    share: float = option(0.5, "words")

class Shifted(Method):
    name = "shifted"
    card = MethodCard("words", "words")
    Config = Config

    def fit(self, corpus=None, context=None):
        return self.done(lambda x: shift(x))

    def done(self, f):
        return self  # of a kind
"""


@pytest.fixture
def typed(tmp_path: Path) -> Any:
    """The class that a cell of a notebook defines."""
    number = 0

    def of(text: str) -> type[Method]:
        nonlocal number
        number += 1
        file = tmp_path / f"cell{number}.py"
        file.write_text(text)
        names = {"__name__": "__main__"}
        exec(compile(text, str(file), "exec"), names)
        return names["Shifted"]  # type: ignore[return-value]

    return of


def test_what_is_typed_anew_is_another_method(typed: Any) -> None:
    first = typed_version(typed(CELL))
    assert typed_version(typed(CELL)) == first
    assert typed_version(typed(CELL + "\nunused = 1\n")) == first
    for old, new in (("x + 1.0", "x + 2.0"), ("(0.5,", "(0.25,"), ("return self  #", "return None  #")):
        assert typed_version(typed(CELL.replace(old, new))) != first, new


def test_the_version_enters_the_ids_of_runs(typed: Any) -> None:
    first, second, changed = typed(CELL), typed(CELL), typed(CELL.replace("+ 1.0", "+ 2.0"))
    for kind in (first, second, changed):
        kind.version = typed_version(kind)
    assert code_ids(first) == code_ids(second) != code_ids(changed)


def test_a_name_that_is_taken_and_what_is_no_method() -> None:
    simcse = registry.load(registry.METHODS, "simcse")
    with pytest.raises(InputError, match=r'method "simcse": sentence-harness .* has it already'):
        register(simcse)
    with pytest.raises(InputError, match=r"a method has a `name`"):
        register(Method)
    with pytest.raises(InputError, match=r'method "other": expected a subclass of harness\.method\.Method'):
        register(type("Other", (), {"name": "other"}))


def test_text_that_is_not_known_asks_for_a_version() -> None:
    names: dict[str, Any] = {"__name__": "__main__"}
    exec(CELL, names)
    with pytest.raises(InputError, match="give the class a version"):
        register(names["Shifted"])
