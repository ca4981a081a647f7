"""Rules on words: each trait on texts whose slice a reader can say."""

from __future__ import annotations

import pytest

from reports.explore.traits import TRAITS, names, negations, numbers, overlap

BY_KEY = {trait.key: trait for trait in TRAITS}


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("I don't know", {"don't"}),
        ("He didn’t go, and neither did she", {"didn't", "neither"}),
        ("Nothing without a note", {"nothing", "without"}),  # "note" holds "not", and is no negation
        ("the knot was northern", set()),
    ],
)
def test_negations(text: str, found: set[str]) -> None:
    assert negations(text) == found


def test_numbers_are_digits_and_their_names() -> None:
    assert numbers("Two dogs, 3.5 miles, the 21st") == {"two", "3", "5", "21st"}
    assert numbers("One often sees someone") == set()  # "one" is mostly a pronoun


def test_names_are_capitals_inside_of_a_sentence() -> None:
    assert names("Yesterday Anna met Bob. Then I left Rome.") == {"anna", "bob", "rome"}
    assert names('He said: "Nobody came."') == set()
    assert names("anna met bob") == set()


def test_overlap_is_jaccards_share_of_words() -> None:
    assert overlap("A cat sat.", "a cat ran") == pytest.approx(2 / 4)
    assert overlap("", "") == 0


def test_slices_of_pairs_and_of_single_texts() -> None:
    pairs = [("He has two cats", "He has 2 cats"), ("No cats", "cats"), ("cats", "dogs")]
    assert BY_KEY["numbers"].slices(pairs) == (("none", "the same", "not the same"), [2, 0, 0])
    assert BY_KEY["negation"].slices(pairs) == (("in neither", "in both", "in one alone"), [0, 2, 0])
    assert BY_KEY["overlap"].slices(pairs)[1] == [1, 1, 0]
    assert BY_KEY["length"].slices([("one two",), ("w " * 9,), ("w " * 17,)])[1] == [0, 1, 2]
    assert BY_KEY["negation"].slices([("not so",), ("so",)]) == (("without", "with"), [1, 0])
    assert BY_KEY["overlap"].slices([("one text",)]) == ((), [])


def test_of_lower_cased_text_no_names_are_known() -> None:
    assert BY_KEY["names"].slices([("anna met bob", "bob")]) == ((), [])
    assert BY_KEY["names"].slices([("Yes, Anna", "So Anna")])[1] == [1]
