"""The examples in the docstrings of the Python API, run."""

from __future__ import annotations

import doctest
import inspect
from pathlib import Path
from typing import Any

import pytest

import harness
from harness import api
from harness.method import Method

FUNCTIONS = [name for name in api.__all__ if inspect.isfunction(getattr(api, name))]


@pytest.fixture(scope="module")
def work(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The work directory that the examples share; `compare` fills it first."""
    return tmp_path_factory.mktemp("examples") / "work"


def run(thing: Any, name: str, work: Path) -> None:
    found = doctest.DocTestFinder(recurse=False).find(thing, name, globs={"harness": harness, "work": work})
    examples = [test for test in found if test.examples]
    assert examples, f"{name} has no example"
    said: list[str] = []
    runner = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS)
    for test in examples:
        runner.run(test, out=said.append)
    assert not runner.summarize(verbose=False).failed, "".join(said)


@pytest.mark.parametrize("name", sorted(FUNCTIONS, key=lambda name: (name != "compare", name)))
def test_a_function_of_the_api_does_what_its_docstring_shows(name: str, work: Path) -> None:
    run(getattr(api, name), name, work)


def test_fit_does_what_its_docstring_shows(work: Path) -> None:
    run(Method.fit, "fit", work)
