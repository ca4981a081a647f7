"""What the pages name is there: files, modules, links; and what they take from the code is as the
code is now.
"""

from __future__ import annotations

import importlib
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest

import harness
from docs.make import PAGES, REPOSITORY, filled
from harness import registry
from harness.cli import build_parser

SHELL = (">", "|", "&", "&&", ";")  # a command ends there
TOP = "harness|methods|studies|reports|tests|tools|docs"
READ = (REPOSITORY / "README.md", REPOSITORY / "CHANGELOG.md", *PAGES)
pages = pytest.mark.parametrize("page", READ, ids=lambda page: page.name)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_a_page_is_what_docs_make_would_write(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert filled(text) == text, "run: python -m docs.make"


def paths(text: str) -> set[str]:
    """The paths of the repository that a page names, but for those with a placeholder in capitals."""
    named = re.findall(rf"(?<![\w/.-])(?:{TOP})/[\w./*-]*\w[/*]?", text)
    return {path for path in named if not re.search(r"\b[A-Z]{2,}\b(?!\.md)", path)}


@pages
def test_every_path_is_there(page: Path) -> None:
    named = paths(page.read_text(encoding="utf-8"))
    assert [path for path in sorted(named) if not list(REPOSITORY.glob(path.rstrip("/")))] == []


def test_every_path_that_the_code_names_is_there() -> None:
    missing = []
    for package in ("harness", "methods", "studies", "reports"):
        for file in (REPOSITORY / package).rglob("*.py"):
            quoted = " ".join(re.findall(r"`[^`\n]+`", file.read_text(encoding="utf-8")))
            missing += [
                f"{file}: {path}"
                for path in paths(quoted)
                if not list(REPOSITORY.glob(path.rstrip("/")))
            ]
    assert missing == []


def is_there(name: str) -> bool:
    """Is a dotted name a module, or something in one?"""
    module, inner = name, list[str]()
    while module:
        try:
            place = importlib.import_module(module)
        except ModuleNotFoundError:
            module, _, last = module.rpartition(".")
            inner.insert(0, last)
            continue
        for part in inner:
            if not hasattr(place, part):
                return False
            place = getattr(place, part)
        return True
    return False


@pages
def test_every_module_is_there(page: Path) -> None:
    others = {group.entry_points for group in registry.GROUPS} | {
        "studies.journal",
        "harness.folder",
        "harness.id",
    }
    text = re.sub(r"--set \S+", "", page.read_text(encoding="utf-8"))  # keys of experiment files
    named = set(re.findall(rf"(?<![\w/.@-])(?:{TOP})(?:\.[A-Za-z_]\w*)+", text)) - others
    named = {name for name in named if not name.endswith((".NAME", ".md"))}
    assert [name for name in sorted(named) if not is_there(name)] == []


def slug(heading: str) -> str:
    """The anchor of a heading, as code hosts make it."""
    return re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-")


@pages
def test_every_link_leads_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)\s]+)\)", page.read_text(encoding="utf-8")):
        if target.startswith("https://"):
            continue
        file, _, anchor = target.partition("#")
        there = page.parent / file if file else page
        assert there.exists(), target
        if anchor:
            headings = re.findall(r"^#+ (.+)$", there.read_text(encoding="utf-8"), re.MULTILINE)
            assert anchor in map(slug, headings), target


def test_what_is_not_there_is_seen() -> None:
    assert paths(
        "see `harness/no_such.py`, `reports/`, harness/embedded/README.md and methods/NAME.py"
    ) == {
        "harness/no_such.py",
        "harness/embedded/README.md",
    }
    assert is_there("harness.tasks.suite.Suite.chance_of")
    assert not is_there("harness.tasks.suite.Suit")
    assert not is_there("harness.runner")


def test_the_names_of_the_api_can_be_read_without_the_site() -> None:
    functions = (REPOSITORY / "docs" / "api" / "functions.md").read_text(encoding="utf-8")
    assert [name for name in harness.__all__ if f"\n| `{name}" not in functions] == []
    assert "\n| `Comparison.scores()` | One row a score of a run;" in functions  # of a base
    methods = (REPOSITORY / "docs" / "api" / "methods.md").read_text(encoding="utf-8")
    assert "\n| `Encoder.two_views(a, " in methods
    assert "\n| `nt_xent(anchors, positives, temperature, " in methods


def commands(page: Path) -> Iterator[list[str]]:
    """The words of each `harness` command in the shell blocks of a page, without what a shell does
    with the rest of the line.
    """
    text = page.read_text(encoding="utf-8").replace("\\\n", " ")
    for block in re.findall(
        r"^```(?:sh|bash|console)\b.*?\n(.*?)^```", text, re.DOTALL | re.MULTILINE
    ):
        for line in block.splitlines():
            found = re.match(r"\s*(?:\$ )?(?:[A-Z_]+=\S+ )*(harness .*)", line)
            if found is not None:
                words = shlex.split(found[1], comments=True)
                rest = [place for place, word in enumerate(words) if word in SHELL]
                yield words[1 : rest[0] if rest else None]


@pages
def test_every_command_is_understood(page: Path, capsys: pytest.CaptureFixture[str]) -> None:
    parser = build_parser()
    for words in commands(page):
        try:
            parser.parse_args(words)
        except SystemExit:
            pytest.fail(f"harness {shlex.join(words)}: {capsys.readouterr().err}")
