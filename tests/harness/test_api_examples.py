"""Every public name of the reference has an example in its docstring, and the examples say what is
so.
"""

from __future__ import annotations

import doctest
import inspect
import re
import sys
from importlib import import_module
from typing import Any

import pytest

import harness
from docs.make import REPOSITORY
from harness.method import Method
from tests.support import short_runs

DOCUMENTED = [
    module
    for page in sorted((REPOSITORY / "docs" / "api").glob("*.md"))
    for module in re.findall(r"automodule:: (\S+)", page.read_text(encoding="utf-8"))
]
FIRST = ("compare", "study", "load_unfitted")  # what they leave in the work directory, others read
SLOW = ("check_method", "assert_method")


def public(module: str) -> dict[str, Any]:
    """The classes and functions that a page of the reference shows of a module, as it chooses them."""
    place = import_module(module)
    own = [
        name for name, thing in vars(place).items() if getattr(thing, "__module__", "") == module
    ]
    names = getattr(place, "__all__", [name for name in own if not name.startswith("_")])
    things = {name: getattr(place, name) for name in names}
    return {
        name: thing
        for name, thing in things.items()
        if inspect.isclass(thing) or inspect.isfunction(thing)
    }


PUBLIC = {
    f"{thing.__module__}.{name}": thing
    for module in DOCUMENTED
    for name, thing in public(module).items()
}
PUBLIC["harness.method.Method.fit"] = Method.fit


def examples(name: str, **names: Any) -> list[doctest.DocTest]:
    thing = PUBLIC[name]
    own = vars(sys.modules[thing.__module__])
    found = doctest.DocTestFinder(recurse=inspect.isclass(thing)).find(
        thing, name, globs={**own, **names}
    )
    return [test for test in found if test.examples]


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What examples find: a work directory, which those of `compare` and `study` fill first; what
    these returned.
    """
    return {"harness": harness, "work": tmp_path_factory.mktemp("examples") / "work"}


def test_every_public_name_has_an_example() -> None:
    assert len(PUBLIC) > 70
    assert [name for name in PUBLIC if not examples(name)] == []


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=pytest.mark.campaign) if name.rpartition(".")[2] in SLOW else name
        for name in sorted(PUBLIC, key=lambda name: (name.rpartition(".")[2] not in FIRST, name))
    ],
)
def test_an_example_says_what_is_so(
    name: str, shared: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    if name == "harness.api.studies.study":
        short_runs.no_report(monkeypatch)  # its figures take longer than its trials
    said: list[str] = []
    runner = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS)
    for test in examples(name, **shared):
        runner.run(test, out=said.append, clear_globs=False)
        if name == "harness.api.studies.study":
            shared["search"] = test.globs["found"]
        if name == "harness.api.experiments.compare":
            shared["found"] = test.globs["found"]
    assert not runner.summarize(verbose=False).failed, "".join(said)
