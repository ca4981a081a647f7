"""The arrows between our modules: the contracts of pyproject.toml hold, and no module imports
itself by a detour.
"""

from __future__ import annotations

import ast
import sys
import tomllib
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name as canonical_name

REPOSITORY = Path(__file__).parents[1]
PACKAGES = ("harness", "methods", "studies", "reports")

# Circles that still stand, each as an arrow that closes it. These lists only shrink: what closes no
# circle any more must leave them.
STANDING: dict[str, set[tuple[str, str]]] = {
    "modules": set(),
    "rooms": set(),
}


def module_of(file: Path) -> str:
    """The dotted name of a file below the repository."""
    parts = file.relative_to(REPOSITORY).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imported(tree: ast.AST, module: str, package: bool) -> Iterator[str]:
    """Every dotted name that the module imports, anywhere in it: also inside functions and under
    TYPE_CHECKING.
    """
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            up = (
                module.split(".")[: len(module.split(".")) - node.level + package]
                if node.level
                else []
            )
            source = ".".join([*up, *([node.module] if node.module else [])])
            yield from (f"{source}.{alias.name}" for alias in node.names)


def arrows() -> dict[str, set[str]]:
    """For each of our modules those of ours that it imports: `from a import b` is an arrow to a.b,
    else to a.

    A package's own `__init__` is no arrow of the modules in it: that they exist takes it for
    granted.
    """
    files = {
        module_of(file): file
        for package in PACKAGES
        for file in (REPOSITORY / package).rglob("*.py")
    }
    targets_of: dict[str, set[str]] = {}
    for module, file in files.items():
        tree = ast.parse(file.read_text(encoding="utf-8"))
        names = imported(tree, module, file.name == "__init__.py")
        targets = {name if name in files else name.rpartition(".")[0] for name in names}
        targets_of[module] = (targets & files.keys()) - {module}
    return targets_of


def circle(graph: dict[str, set[str]]) -> list[str]:
    """The modules of one circle, its first one again at the end; empty where there is none."""
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        return list(reversed(error.args[1]))
    return []


def without(graph: dict[str, set[str]], gone: set[tuple[str, str]]) -> dict[str, set[str]]:
    return {
        module: {target for target in targets if (module, target) not in gone}
        for module, targets in graph.items()
    }


def between_rooms(graph: dict[str, set[str]]) -> dict[str, set[str]]:
    """The same arrows between what lies side by side in a package ("harness.tasks",
    "reports.build").
    """

    def room(module: str) -> str:
        return ".".join(module.split(".")[:2])

    rooms_of: dict[str, set[str]] = {}
    for module, targets in graph.items():
        rooms_of.setdefault(room(module), set()).update(
            {room(target) for target in targets} - {room(module)}
        )
    return rooms_of


def graphs() -> dict[str, dict[str, set[str]]]:
    modules = arrows()
    return {"modules": modules, "rooms": between_rooms(modules)}


@pytest.mark.parametrize("kind", list(STANDING))
def test_nothing_imports_itself_by_a_detour(kind: str) -> None:
    graph = graphs()[kind]
    assert " -> ".join(circle(without(graph, STANDING[kind]))) == ""
    gone = [
        arrow for arrow in STANDING[kind] if not circle(without(graph, STANDING[kind] - {arrow}))
    ]
    assert gone == [], "closes no circle any more: take it out of STANDING"


def test_a_circle_is_seen_wherever_the_import_stands() -> None:
    inside = ast.parse(
        "def f():\n    from harness.b import g\nif TYPE_CHECKING:\n    from . import c\n    import harness.d"
    )
    assert set(imported(inside, "harness.a", False)) == {"harness.b.g", "harness.c", "harness.d"}
    assert set(imported(ast.parse("from .b import g"), "harness.a", True)) == {"harness.a.b.g"}
    assert set(circle({"a": {"b"}, "b": {"c"}, "c": {"a"}, "d": {"a"}})) == {"a", "b", "c"}
    assert circle({"a": {"b"}, "b": {"c"}}) == []


def test_the_contracts_hold(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from importlinter.cli import EXIT_STATUS_SUCCESS, lint_imports

    monkeypatch.chdir(REPOSITORY)
    monkeypatch.setattr(
        "logging.config.dictConfig", lambda config: None
    )  # it silences all loggers of this process
    assert lint_imports(config_filename="pyproject.toml", no_cache=True) == EXIT_STATUS_SUCCESS, (
        capsys.readouterr().out
    )


def test_every_library_that_is_imported_is_declared() -> None:
    """What only comes with another package goes when that package no longer needs it."""
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    requirements = list(project["dependencies"])
    for extra in project["optional-dependencies"].values():
        requirements += extra
    declared = {canonical_name(Requirement(line).name) for line in requirements}

    packages = packages_distributions()
    undeclared = set()
    for package in PACKAGES:
        for file in (REPOSITORY / package).rglob("*.py"):
            tree = ast.parse(file.read_text(encoding="utf-8"))
            for name in imported(tree, module_of(file), file.name == "__init__.py"):
                top = name.partition(".")[0]
                if top in PACKAGES or top in sys.stdlib_module_names:
                    continue
                providers = {canonical_name(provider) for provider in packages.get(top, [])}
                if providers and not providers & declared:
                    undeclared.add(top)
    assert undeclared == {"IPython"}  # used only in a notebook, which has it
