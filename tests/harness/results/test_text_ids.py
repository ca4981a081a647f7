"""Equal sentences of different tasks have equal ids, which never become floats."""

from __future__ import annotations

import hashlib

import numpy as np
import pytest

from harness.results.text_ids import pair_units, text_id, text_ids
from harness.tasks.catalogue import resolve_tasks
from harness.tasks.sts import YEARS, STSTask


def test_an_id_is_the_start_of_the_hash_of_the_words() -> None:
    digest = hashlib.blake2b(b"amandoesntplaytheguitar").digest()
    number = int.from_bytes(digest[:8], "little", signed=True)
    assert text_id("A man doesn't  play the guitar.") == number
    assert text_id("a man does n't play the guitar .") == number


def test_writings_of_one_sentence_have_one_id_and_other_sentences_another() -> None:
    assert text_id("Cafe\u0301 Straße") == text_id("CAFÉ  STRASSE")
    assert text_id("`` no ''") == text_id('"no"')
    others = (
        "a b",
        "a c",
        "हिन्दी",
        "हन्द",
        "5 $",
        "5",
        "",
        "...",
        "?!",
    )  # vowel signs are no punctuation
    assert len({text_id(text) for text in others}) == len(others)


def test_ids_of_many_texts_are_those_of_each() -> None:
    texts = ["one", "two", "one", "\ud800 lone surrogate"]
    ids = text_ids(texts)
    assert ids.dtype == np.int64
    assert ids.tolist() == [text_id(text) for text in texts]


def test_pairs_that_share_sentences_are_one_unit_known_by_its_least_sentence() -> None:
    alone = [(f"left {i}", f"right {i}") for i in range(40)]
    chain = [("one", "two"), ("Two.", "three"), ("four", "three")]
    units = pair_units(*zip(*chain, *alone, strict=True))
    assert units[:3].tolist() == [min(map(text_id, ("one", "two", "three", "four")))] * 3
    assert len(set(units.tolist())) == 41
    assert pair_units(*zip(*chain, strict=True)).tolist() == [
        text_id(first) for first, _ in chain
    ]  # all would be one


@pytest.mark.hub
def test_most_of_sts_b_s_test_pairs_also_stand_in_sts12_to_16() -> None:
    """In either order. The count is that of texts without punctuation and spaces, made apart from
    these ids.
    """

    def pairs(task: STSTask) -> list[tuple[int, ...]]:
        sides = [(text_ids(s.sentences1), text_ids(s.sentences2)) for s in task.data.subsets]
        return [
            tuple(sorted(pair))
            for first, second in sides
            for pair in zip(first, second, strict=True)
        ]

    for source in ("senteval", "mteb"):  # tokens in lower case; as they were written
        by_name = {task.name: pairs(task) for task in resolve_tasks(["sts"], source=source)}  # type: ignore[arg-type]
        years = {pair for name in YEARS for pair in by_name[name]}
        assert (sum(pair in years for pair in by_name["STS-B"]), len(by_name["STS-B"])) == (
            1007,
            1379,
        )
