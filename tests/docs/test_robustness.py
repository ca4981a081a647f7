"""The page of faults that were repaired names tests that are there and sentences of the code."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

import pytest

from docs.make import REPOSITORY
from docs.robustness import Repair, attacks, repairs
from tools.campaigns.counted import Count, read_counts, sample, save_count

ALL = [repair for part in ("lost", "ended", "words", "brought") for repair in repairs(part)]
WORDS = repairs("words")


@cache
def names_in(file: str) -> set[str]:
    """Return the names of the tests of a file below the folder of tests."""
    tree = ast.parse((REPOSITORY / "tests" / file).read_text(encoding="utf-8"))
    found = {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}
    return {name for name in found if name.startswith("test_")}


@cache
def texts_of_the_code() -> str:
    """Return every text of the packages, as the parser joins it, and their files of texts."""
    found: list[str] = []
    for package in ("harness", "methods", "studies", "reports"):
        found += [
            file.read_text(encoding="utf-8") for file in (REPOSITORY / package).rglob("*.toml")
        ]
        for file in sorted((REPOSITORY / package).rglob("*.py")):
            for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
                if isinstance(node, ast.JoinedStr):
                    parts = [p.value if isinstance(p, ast.Constant) else "{}" for p in node.values]
                    found.append("".join(map(str, parts)))
                elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                    found.append(node.value)
    return "\n".join(found)


@pytest.mark.parametrize("repair", ALL, ids=lambda repair: repair.case[:60])
def test_the_tests_that_are_named_are_there(repair: Repair) -> None:
    for test in repair.tests:
        file, name = test.split("::")
        assert name in names_in(file), test


@pytest.mark.parametrize("repair", WORDS, ids=lambda repair: repair.case[:60])
def test_the_sentences_are_in_the_code(repair: Repair) -> None:
    assert repair.code in texts_of_the_code()


def test_every_case_but_a_sentence_has_a_test() -> None:
    assert all(repair.tests for repair in ALL if repair not in WORDS)


def test_no_campaign_failed_when_it_last_ran() -> None:
    assert [count for count in read_counts() if count.failed] == []


def test_counts_are_saved_by_campaign_and_shown_as_samples(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "attacks.csv"
    save_count("kills", 20, 1, file=file)
    save_count("damaged", 40, 0, known=95, file=file)
    save_count("kills", 21, 0, file=file)
    day = read_counts(file)[0].day
    assert read_counts(file) == [
        Count("damaged", 40, 0, 95, day),
        Count("kills", 21, 0, 21, day),
    ]
    monkeypatch.setattr("docs.robustness.read_counts", lambda: read_counts(file))
    assert attacks().splitlines()[2:] == [
        f"| `damaged` | 40 of 95 | 0 | {day} |",
        f"| `kills` | 21 | 0 | {day} |",
    ]


def test_a_sample_keeps_the_order_and_is_the_same_for_a_seed() -> None:
    cases = list(range(50))
    drawn = sample(cases, 10, seed=3)
    assert drawn == sorted(drawn) == sample(cases, 10, seed=3)
    assert len(set(drawn)) == 10
    assert drawn != sample(cases, 10, seed=4)
    assert sample(cases, None, seed=3) == sample(cases, 99, seed=3) == cases
