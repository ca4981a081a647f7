"""Finding texts in others: the normal form, and both rules of "nearly" against a plain
implementation of them.
"""

from __future__ import annotations

import random
from collections import Counter

import numpy as np
import pytest

from harness.contamination import near_texts
from harness.contamination.near_texts import find_texts, normal_form

LONG = (
    "treasury s long range plan is to provide retail buyers of all securities the ability to manage their holdings "
    "online in a single account"
)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("A man isn't  here!", "a man isn 't here"),
        ("Caf\u00e9 M\u00fcller", "cafe\u0301 MU\u0308LLER"),
        ("Straße", "STRASSE"),
        ("snake_case, U.S.", "snake case u s"),
        ("\u6211\u7231\u4f60\u3002", "\u6211\u7231 \u4f60"),
    ],
)
def test_texts_are_equal_whatever_their_case_punctuation_and_unicode_form(
    one: str, other: str
) -> None:
    assert normal_form(one) == normal_form(other)


def test_the_fast_path_for_ascii_gives_the_same_words() -> None:
    """A letter beyond ASCII at the end takes the path of the regular expression."""
    every = "".join(map(chr, range(1, 128)))
    assert normal_form(f"{every} \u00e9") == f"{normal_form(every)} \u00e9"


def test_equal_near_and_other_texts() -> None:
    texts = [
        "A dog runs.",
        "A woman is adding ingredients to a big bowl.",
        "Nothing of the kind",
        "...",
        LONG,
    ]
    stream = [
        "a dog runs",
        "A woman is adding ingredients to a bowl",
        LONG.replace("treasury s", "treasurys"),
    ]
    found = find_texts(texts, stream)
    assert found.equal.tolist() == [True, False, False, False, False]
    assert found.near.tolist() == [False, True, False, False, True]
    assert found.example[1] == "a woman is adding ingredients to a bowl"


def test_a_phrase_in_a_long_sentence_is_no_copy_but_a_long_quotation_is() -> None:
    phrase = "end of the american revolution"
    around = (
        "His father had surveyed land and settled there just after the {} which was some time ago."
    )
    found = find_texts([phrase, LONG], [around.format(phrase), around.format(LONG)])
    assert found.near.tolist() == [False, True]


def plain(texts: list[str], stream: list[str]) -> tuple[list[bool], list[bool]]:
    """Both rules by their definitions, every text against every other."""

    def grams(words: list[str], n: int) -> list[tuple[str, ...]]:
        return [tuple(words[i : i + n]) for i in range(len(words) - n + 1)]

    def near(a: list[str], b: list[str]) -> bool:
        x, y = (grams(["<", "<", *t, ">", ">"], 3) for t in (a, b))
        shared = len(set(x) & set(y))
        wanted = set(grams(a, 8))
        inside = len(a) >= 12 and len(wanted & set(grams(b, 8))) >= 0.7 * len(wanted)
        return shared >= 0.6 * (len(x) + len(y) - shared) or inside

    equal = [text in stream for text in texts]
    return equal, [
        not same and any(near(text.split(), other.split()) for other in stream)
        for text, same in zip(texts, equal, strict=True)
    ]


@pytest.mark.parametrize("chunk", [20, 250_000])
def test_the_search_finds_what_comparing_every_pair_finds(
    chunk: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(near_texts, "_CHUNK", chunk)  # one text at a time, or all at once
    draw = random.Random(3)
    words = [f"w{n}" for n in range(12)]

    def changed(text: str) -> str:
        parts = text.split()
        for _ in range(draw.randint(0, 3)):
            place = draw.randrange(len(parts))
            parts[place : place + draw.randint(0, 1)] = draw.choices(words, k=draw.randint(0, 2))
            parts = parts or ["w0"]
        return " ".join(parts)

    texts = [" ".join(draw.choices(words, k=draw.randint(1, 20))) for _ in range(150)]
    stream = [changed(draw.choice(texts)) for _ in range(150)]
    stream += [f"{' '.join(draw.choices(words, k=9))} {text}" for text in texts[:10]]
    found = find_texts(texts, stream)
    equal, near = plain(texts, stream)
    assert found.equal.tolist() == equal
    assert found.near.tolist() == near
    assert min(Counter(near).values()) > 20  # both outcomes occur


def test_empty_inputs() -> None:
    assert find_texts([], ["a b c"]).equal.tolist() == []
    assert not np.any(find_texts(["a b c"], []).near)
