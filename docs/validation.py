"""Tables of docs/validation.md, from what `python -m tools.validate` and the campaigns measured."""

from __future__ import annotations

import ast
from collections.abc import Callable
from pathlib import Path

from docs.measured import all_figures, markdown
from harness.files.reading import read_toml
from tools.validate.evidence import read_evidence
from tools.validate.public_models import PART, case_of, read_published

REPOSITORY = Path(__file__).parents[1]
RECIPES = REPOSITORY / "methods" / "recipes"
TESTS = REPOSITORY / "tests" / "methods"


def public_models() -> str:
    """Return each published score of a public model with ours; a dash where it is not measured.
    Below the table, the versions with which ours were measured.
    """
    measured = {one.case: one for one in read_evidence() if one.part == PART}
    versions: list[str] = []
    rows = []
    for (model, task), score in read_published().items():
        one = measured.get(case_of(model, task))
        if one is None:
            rows.append([f"{model}, {task}", f"{score:.2f}", "–", "", ""])
            continue
        if one.versions not in versions:
            versions.append(one.versions)
        note = str(1 + versions.index(one.versions))
        rows.append([f"{model}, {task}", f"{score:.2f}", f"{one.value:.2f}", one.date, note])
    table = markdown(("model, task", "published", "ours", "date", "versions"), rows)
    notes = [f"{number}. {text}" for number, text in enumerate(versions, start=1)]
    return "\n".join([table.rstrip(), "", "Versions:", "", *notes, ""])


def campaigns() -> str:
    """Return how many figures each part of the campaigns has, and how many break their bound."""
    rows = []
    for part, figures in all_figures().items():
        bounded = [one for one in figures if one.bound]
        broken = [one for one in bounded if one.is_broken]
        draws = sum(one.draws for one in figures)
        rows.append([part, f"{len(figures)}", f"{len(bounded)}", f"{len(broken)}", f"{draws:,}"])
    return markdown(("part", "figures", "with a bound", "beyond it", "draws"), rows)


def count_tests(name: str) -> dict[str, int]:
    """Return the test files of a method, each with its number of test functions."""
    found = {}
    for file in (TESTS / f"test_{name}.py", TESTS / "test_training_free.py"):
        if not file.is_file():
            continue
        tree = ast.parse(file.read_text(encoding="utf-8"))
        functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
        tests = [one for one in functions if one.name.startswith("test_")]
        if file.stem != f"test_{name}":
            tests = [one for one in tests if name in ast.unparse(one)]
        if tests:
            found[file.name] = len(tests)
    return found


def methods() -> str:
    """Return each method with its original code and the tests of its loss or vectors."""
    rows = []
    for file in sorted(RECIPES.glob("*.toml")):
        card = read_toml(file).get("card")
        if card is None:
            continue
        tests = count_tests(file.stem)
        names = ", ".join(f"`tests/methods/{name}`" for name in tests)
        source = card.get("reference") or "none named"
        rows.append([file.stem, str(source), names or "–", str(sum(tests.values()))])
    return markdown(("method", "original code", "files", "tests"), rows)


MADE: dict[str, Callable[[], str]] = {
    "validation-models": public_models,
    "validation-campaigns": campaigns,
    "validation-methods": methods,
}
