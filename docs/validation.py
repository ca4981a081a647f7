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
PARTS = {
    "planned": "errors of one planned pair of equal rows, without examples",
    "families": "errors over all pairs of equal rows, without examples",
    "families-with-examples": "errors over all pairs of equal rows, with examples",
    "calm": "what a row that hardly varies costs the other pairs",
    "power": "the difference that `harness power` promises is found in 80 % of comparisons",
    "coverage": "the interval of one mean covers the truth",
    "fifty-seeds": "width of the intervals of published runs of SimCSE, 50 seeds each",
    "accuracies": "misses of the interval of one accuracy",
    "examples": "errors of finished models and of rows of two seeds",
    "ties": "errors where scores of seeds are equal or rounded",
    "until": "errors and power of `--until decided`, in a short form of its rule",
    "until-in-full": "the same by the code that `--until decided` runs",
    "unlike": "wrong and found changes of `harness gate`",
    "labels": "labels of changes do not alter the answer of `harness gate`",
    "loops": "what a loop of `harness gate` keeps, beside simpler rules",
    "published": "coverage of the expected mean of further runs",
    "streams": "coverage of the deviation that one source of chance brings",
    "repeated": "coverage where texts stand in several pairs",
}


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
    """Return what each part of the campaigns measures, how many figures it has, how many break
    their bound, and of how many drawn comparisons they are.
    """
    rows = []
    found = all_figures()
    for part in sorted(found, key=list(PARTS).index):
        figures = found[part]
        bounded = [one for one in figures if one.bound]
        broken = [one for one in bounded if one.is_broken]
        draws = sum(one.draws for one in figures)
        drawn = f"{draws:,}" if draws else "exact"
        counts = (str(len(figures)), str(len(bounded)), str(len(broken)))
        rows.append([PARTS[part], *counts, drawn])
    return markdown(("what is measured", "figures", "with a bound", "beyond it", "draws"), rows)


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
