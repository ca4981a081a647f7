"""Views of words: which words stay, and which are replaced."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from harness.errors import InputError
from harness.views import ViewConfig
from harness.views.words import crop_words, delete_words, replace_words

TEXT = "one two three four five six seven eight nine ten"
WORDS = TEXT.split()


@pytest.mark.parametrize(("share", "left"), [(0.1, 9), (0.2, 8), (0.25, 7), (0.3, 7), (0.99, 1)])
def test_a_crop_is_a_span_of_whole_words(share: float, left: int) -> None:
    rng = np.random.default_rng(1)
    starts = Counter()
    for _ in range(300):
        words = crop_words(TEXT, share, rng).split()
        start = WORDS.index(words[0])
        assert words == WORDS[start : start + left]
        starts[start] += 1
    assert set(starts) == set(range(10 - left + 1))


@pytest.mark.parametrize(("share", "left"), [(0.0, 9), (0.04, 9), (0.1, 9), (0.3, 7), (0.99, 1)])
def test_deletion_leaves_the_others_in_their_order(share: float, left: int) -> None:
    rng = np.random.default_rng(2)
    gone: Counter[str] = Counter()
    for _ in range(300):
        words = delete_words(TEXT, share, rng).split()
        assert len(words) == left
        assert words == [word for word in WORDS if word in words]
        gone.update(set(WORDS) - set(words))
    assert set(gone) == set(WORDS)


def test_a_single_word_stays() -> None:
    rng = np.random.default_rng(3)
    assert [crop_words("word", 0.3, rng), delete_words("word", 0.0, rng)] == ["word", "word"]
    assert delete_words("", 0.3, rng) == ""


def test_as_many_words_as_requested_are_replaced_and_marks_stay() -> None:
    known = {"dog": ["hound"], "runs": ["races"], "fast": ["quickly"]}
    rng = np.random.default_rng(4)
    seen = {
        replace_words('The dog "runs" fast!', 1, rng, lambda w: known.get(w, [])) for _ in range(99)
    }
    assert seen == {'The hound "runs" fast!', 'The dog "races" fast!', 'The dog "runs" quickly!'}
    both = replace_words("A dog runs.", 5, rng, lambda w: known.get(w, []))
    assert both == "A hound races."
    assert replace_words("No  such   words", 1, rng, lambda w: []) == "No  such   words"


def test_words_and_token_crops_are_not_joined() -> None:
    with pytest.raises(InputError):
        ViewConfig.parse({"view": "word_crop+token_crop"}, "test")
    assert ViewConfig.parse({"view": "word_deletion+shuffle"}, "test").views == (
        "word_deletion",
        "shuffle",
    )
