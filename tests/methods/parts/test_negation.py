"""A sentence said the other way round: each rule, what stays as it was, and texts that are no
sentence.
"""

from __future__ import annotations

import pytest

from harness.sources import load_corpus
from methods.parts.negation import negate

RULES = {
    # A "not" less.
    "She is not here.": "She is here.",
    "Not all of them came.": "all of them came.",
    "It cannot be helped.": "It can be helped.",
    "He won't come, she said.": "He will come, she said.",
    "Don’t wait.": "Do wait.",
    # Behind the first auxiliary, before a later verb.
    "A man is playing a guitar.": "A man is not playing a guitar.",
    "Ticks should be removed with tweezers.": "Ticks should not be removed with tweezers.",
    "The shop has never been closed.": "The shop has not never been closed.",
    "Did she see it?": "Did not she see it?",
    # Do-support, in the tense of the verb.
    "They have a dog.": "They do not have a dog.",
    "The house has two doors.": "The house does not have two doors.",
    "We did the dishes.": "We did not do the dishes.",
    "She often walks to work.": "She often does not walk to work.",
    "He carries water.": "He does not carry water.",
    "A kite surfer skims past the huts.": "A kite surfer does not skim past the huts.",
    "The hurdler clipped the last barrier.": "The hurdler did not clip the last barrier.",
    "I decided to go.": "I did not decide to go.",
    "The dog slept.": "The dog did not sleep.",
    "You know the way.": "You do not know the way.",
    # Neither.
    "Lovely weather today": "Not Lovely weather today",
    "Les chats dorment.": "Not Les chats dorment.",
}


@pytest.mark.parametrize("sentence", RULES)
def test_each_rule(sentence: str) -> None:
    assert negate(sentence) == RULES[sentence]


@pytest.mark.parametrize("text", ["", " ", "...", "123 456", "🙂", "not", "a\nb\tc"])
def test_texts_that_are_no_sentence_come_back_changed_and_whole(text: str) -> None:
    assert negate(text) == ("" if text == "not" else f"Not {text}")


def test_most_sentences_are_negated_at_a_verb_and_keep_their_other_words() -> None:
    sentences = list(load_corpus("embedded:sentences"))
    said = [negate(sentence) for sentence in sentences]
    assert all(a != b for a, b in zip(sentences, said, strict=True))
    in_front = sum(b == f"Not {a}" for a, b in zip(sentences, said, strict=True))
    assert in_front / len(sentences) < 0.2
    changed = [len(set(a.split()) ^ set(b.split())) for a, b in zip(sentences, said, strict=True)]
    assert max(changed) <= 4  # the verb, its base, "do", "not"
