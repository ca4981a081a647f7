"""EDA: its four operations, and synonyms from a tiny WordNet that nltk's own reader reads."""

from __future__ import annotations

import shutil
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.errors import InputError
from harness.views import eda, wordnet
from tests.support import tiny_wordnet
from tests.support.errors import raises_input_error

nltk_data = pytest.importorskip("nltk.data", reason="nltk is not installed")

DRAWS = 10_000
THESAURUS = {"boat": ("sailing vessel", "ship"), "quick": ("fast",), "the": ("them",)}


def lookup(word: str) -> Sequence[str]:
    return THESAURUS.get(word, ())


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tiny_wordnet.write(tmp_path / "nltk_data")
    monkeypatch.setattr(nltk_data, "path", [str(folder)])
    return folder


# ---------------------------------------------------------------- the operations


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Don't stop,  it’s 3 o'clock!", ["dont", "stop", "its", "oclock"]),
        ("A well-known\tfact\n", ["a", "well", "known", "fact"]),
        ("naïve café", ["na", "ve", "caf"]),
        ("日本 42 🙂", []),
    ],
)
def test_cleaning(text: str, words: list[str]) -> None:
    assert eda.clean(text) == words


def test_synonym_replacement_changes_all_occurrences_and_no_stop_word() -> None:
    words = ["the", "boat", "and", "the", "quick", "boat"]
    seen = Counter(
        " ".join(eda.replace_synonyms(words, 1, np.random.default_rng(seed), lookup))
        for seed in range(400)
    )
    # one word of two (boat, quick), then one of its synonyms: 1/4, 1/4 and 1/2
    assert set(seen) == {
        "the ship and the quick ship",
        "the sailing vessel and the quick sailing vessel",
        "the boat and the fast boat",
    }
    assert seen["the boat and the fast boat"] == pytest.approx(200, abs=40)
    both = eda.replace_synonyms(words, 5, np.random.default_rng(0), lookup)
    assert "boat" not in both
    assert "quick" not in both
    assert eda.replace_synonyms(["and", "xylem"], 2, np.random.default_rng(0), lookup) == [
        "and",
        "xylem",
    ]


def test_random_insertion_never_at_the_end() -> None:
    seen = {
        " ".join(eda.insert_synonyms(["a", "quick"], 1, np.random.default_rng(seed), lookup))
        for seed in range(90)
    }
    assert seen - {"a quick"} == {
        "fast a quick",
        "a fast quick",
    }  # unchanged where ten draws in a row gave "a"
    assert eda.insert_synonyms(["xylem"], 3, np.random.default_rng(0), lookup) == ["xylem"]
    assert eda.insert_synonyms(["quick"], 3, np.random.default_rng(0), lookup) == [
        "fast",
        "fast",
        "fast",
        "quick",
    ]


def test_random_swap() -> None:
    words = list("abcde")
    seen = Counter(
        tuple(eda.swap_words(words, 1, np.random.default_rng(seed))) for seed in range(3000)
    )
    moved = [sum(x != y for x, y in zip(words, view, strict=True)) for view in seen]
    assert set(moved) <= {0, 2}
    assert len(seen) == 11  # 10 transpositions, and none in (1/5)^4 of the draws
    assert seen[tuple(words)] < 15  # expected 4.8
    assert eda.swap_words(["one"], 3, np.random.default_rng(0)) == ["one"]


def test_random_deletion_rate_over_draws() -> None:
    rng = np.random.default_rng(0)
    words = [f"w{i}" for i in range(20)]
    lost = np.array([20 - len(eda.delete_words(words, 0.2, rng)) for _ in range(DRAWS)])
    assert lost.mean() == pytest.approx(
        4.0, abs=4 * (3.2 / DRAWS) ** 0.5
    )  # binomial(20, 0.2), four standard errors
    single = Counter(tuple(eda.delete_words(["a", "b"], 0.999999, rng)) for _ in range(400))
    assert set(single) == {("a",), ("b",)}
    assert eda.delete_words(["a"], 0.999999, rng) == ["a"]


def test_one_operation_of_four_equally_often() -> None:
    text, rng = "alpha beta gamma delta epsilon", np.random.default_rng(1)
    kinds: Counter[str] = Counter()
    for _ in range(DRAWS):
        view = eda.augment(
            text, 0.99, rng, synonyms=lambda word: ("zz",)
        ).split()  # n = floor(4.95) = 4
        known = "zz" in view
        if len(view) == 5:
            kinds["replace" if known else "swap"] += 1
        else:
            kinds["insert" if known and len(view) == 9 else "delete"] += 1
    assert set(kinds) == {"replace", "insert", "swap", "delete"}
    assert all(count == pytest.approx(2500, abs=4 * 43.3) for count in kinds.values())


def test_all_operations_in_sequence() -> None:
    text = "alpha beta gamma delta epsilon zeta eta theta iota kappa"
    lengths = [
        len(
            eda.augment(
                text, 0.1, np.random.default_rng(s), synonyms=lambda w: ("zz",), operations="all"
            ).split()
        )
        for s in range(2000)
    ]
    # 10 words, one replaced, one inserted, two swapped, each of 11 kept with probability 0.9
    assert np.mean(lengths) == pytest.approx(9.9, abs=4 * (0.99 / 2000) ** 0.5)


@settings(deadline=None, max_examples=80)
@given(
    text=st.text(max_size=60),
    alpha=st.floats(0.01, 0.99),
    seed=st.integers(0, 2**32),
    operations=st.sampled_from(["one", "all"]),
)
def test_augmented_text_is_never_empty_and_repeats(
    text: str, alpha: float, seed: int, operations: eda.Operations
) -> None:
    views = {
        eda.augment(
            text, alpha, np.random.default_rng(seed), synonyms=lookup, operations=operations
        )
        for _ in range(2)
    }
    assert len(views) == 1
    (view,) = views
    assert bool(view) == bool(text)
    if not eda.clean(text):
        assert view == text


# ---------------------------------------------------------------- WordNet


def test_synonyms_of_all_senses_and_parts_of_speech(installed: Path) -> None:
    words = wordnet.load()
    assert words.path == str(installed / "corpora" / "wordnet")
    assert words.synonyms("boat") == ("sailing vessel", "ship")
    assert words.synonyms("ship") == (
        "boat",
        "parcel",
        "sailing vessel",
        "send off",
    )  # two nouns and a verb
    assert words.synonyms("fast") == ("quick", "quickly")  # adjective and adverb
    assert words.synonyms("pier") == ("quay", "well kept quay")  # "quay2": letters only
    assert words.synonyms("boats") == ("boat", "sailing vessel", "ship")  # a regular plural
    assert words.synonyms("wharves") == (
        "pier",
        "quay",
        "well kept quay",
    )  # an exception of noun.exc
    assert words.synonyms("lamp") == ()
    assert words.synonyms("xylem") == ()


def test_the_archive_that_nltk_downloads_is_read_as_it_is(installed: Path) -> None:
    folder = wordnet.load()
    assert folder.synonyms("ship") == ("boat", "parcel", "sailing vessel", "send off")
    shutil.make_archive(
        str(installed / "corpora" / "wordnet"), "zip", installed / "corpora", "wordnet"
    )
    shutil.rmtree(installed / "corpora" / "wordnet")
    archive = wordnet.load()
    assert archive.path != folder.path
    assert archive.sha256 == folder.sha256
    assert archive.synonyms("ship") == folder.synonyms("ship")


def test_without_data_the_error_names_the_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nltk_data, "path", [])
    with pytest.raises(InputError, match=r"python -m nltk\.downloader wordnet"):
        wordnet.load()


def test_without_nltk_the_error_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("nltk", "nltk.data"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(InputError, match=r"sentence-harness\[eda\]"):
        wordnet.find()


def test_damaged_data_is_named(installed: Path) -> None:
    (installed / "corpora" / "wordnet" / "index.verb").unlink()
    with raises_input_error():
        wordnet.load()


def test_the_folder_of_nltk_is_found(installed: Path) -> None:
    assert wordnet.find()[0] == str(installed / "corpora" / "wordnet")
