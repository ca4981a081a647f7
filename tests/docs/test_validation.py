"""The measured scores of public models are those that were published, to the last printed digit."""

from __future__ import annotations

from docs.validation import RECIPES, TESTS, count_tests
from harness.files.reading import read_toml
from tools.validate.evidence import Evidence, read_evidence, write_evidence
from tools.validate.public_models import PART, case_of, read_published


def test_measured_scores_are_the_published_ones() -> None:
    published = {case_of(*pair): score for pair, score in read_published().items()}
    measured = [one for one in read_evidence() if one.part == PART]
    assert measured
    for one in measured:
        assert f"{one.value:.2f}" == f"{published[one.case]:.2f}", one.case
        assert one.date
        assert "torch" in one.versions


def test_lines_are_read_as_they_were_written(tmp_path) -> None:
    lines = [
        Evidence("models", "a: b", "score", 1.5, 1.25, "2026-01-31", "torch 2"),
        Evidence("other", "c", "difference", 0.1),
    ]
    write_evidence(reversed(lines), tmp_path / "measured.csv")
    assert read_evidence(tmp_path / "measured.csv") == lines


def test_every_method_with_original_code_has_tests() -> None:
    without = []
    for file in RECIPES.glob("*.toml"):
        card = read_toml(file).get("card")
        if card is not None and card.get("reference") and not count_tests(file.stem):
            without.append(file.stem)
    assert without == []


def test_tests_of_a_method_are_counted() -> None:
    text = (TESTS / "test_simcse.py").read_text(encoding="utf-8")
    assert count_tests("simcse")["test_simcse.py"] == text.count("\ndef test_")
    assert count_tests("no_such_method") == {}
