"""What users read is plain English: the words that CONTRIBUTING.md replaces are not in pages, help
or messages.
"""

from __future__ import annotations

import ast
import json
import re
from pathlib import Path

import pytest

from docs.make import PACKAGES, REPOSITORY
from docs.notebook_pages import NOTEBOOKS

OLD = re.compile(
    r"\b(told|tells? (of|apart)|asked (of|for|after)|anew|made again|(?<!card\.)kept(?!=)|stands? (on|beside|behind)|"
    r"look(s|ed)? at a difference|word pieces|held against|runs of before|said of|attract)\b",
    re.IGNORECASE,
)
PAGES = [
    page
    for page in (*REPOSITORY.glob("*.md"), *(REPOSITORY / "docs").rglob("*.md"))
    if page.name not in ("CHANGELOG.md", "statistics.md")
]
WORDS_OF_DATA = ("methods/parts/negation.py",)  # lists of English words, not sentences
NAMES = ("kept",)  # a field of cards and an argument: names of code


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_a_page_has_the_words_of_the_field(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    if page.name == "CONTRIBUTING.md":
        text = re.sub(r"^\| not \| but \|\n(\|.*\n)*", "", text, flags=re.MULTILINE)
    assert [found[0] for found in OLD.finditer(text)] == []


@pytest.mark.parametrize("name", sorted(file.stem for file in NOTEBOOKS.glob("*.ipynb")))
def test_a_notebook_has_the_words_of_the_field(name: str) -> None:
    cells = json.loads((NOTEBOOKS / f"{name}.ipynb").read_text(encoding="utf-8"))["cells"]
    text = "\n".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "markdown")
    assert [found[0] for found in OLD.finditer(text)] == []


def messages(source: str) -> list[str]:
    """The texts of a module that are no docstrings."""
    tree = ast.parse(source)
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    docs = {
        ast.get_docstring(node, clean=False)
        for node in ast.walk(tree)
        if isinstance(node, documented)
    }
    texts = [
        node.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    ]
    return [text for text in texts if text not in docs and text not in NAMES]


def test_messages_and_help_have_the_words_of_the_field() -> None:
    found = []
    for package in PACKAGES:
        for file in sorted((REPOSITORY / package).rglob("*.py")):
            name = str(file.relative_to(REPOSITORY))
            if name not in WORDS_OF_DATA:
                found += [
                    f"{name}: {m[0]}: {t}"
                    for t in messages(file.read_text("utf-8"))
                    for m in OLD.finditer(t)
                ]
    assert found == []
