"""Negation of an English sentence by rules on its words: SNCSE's soft negatives without a parser.

Source: Wang et al. 2022 (arXiv 2201.05979) and generate_soft_negative_samples.py of
Sense-GVT/SNCSE, which ask spaCy's dependency parser for the first auxiliary or the root of the
sentence.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from harness.files.reading import read_toml

_WORDS = {
    name: text.split() for name, text in read_toml(Path(__file__).with_suffix(".toml")).items()
}
_SETS = {name: frozenset(words) for name, words in _WORDS.items()}
_BASE = dict(zip(_WORDS["irregular"][::2], _WORDS["irregular"][1::2], strict=True))
_CONTRACTED = {"wo": "will", "sha": "shall", "ca": "can", "ai": "is"}
_HAVE_OR_DO = {
    "have": "do not have",
    "has": "does not have",
    "had": "did not have",
    "do": "do not do",
    "does": "does not do",
    "did": "did not do",
}
_NO_SUBJECT = _SETS["open"] | _SETS["one"] | {""}
_NO_VERB = _SETS["fixed"] | _SETS["subject"] | _SETS["adverb"]
_E_STEM = re.compile(  # what is written with an e at its end, more often than not
    r"([^aeiou][aeiou][bdgkmnpz]|[^aeiou]at|ut|[aiou]s|.[cvzu]|[^aeo]i[dnrl]|ur|ar[gk]?|[nrd]g|[^aeioul]l|^..)$"
)
_NO_E_STEM = ("ss", "en", "er", "on", "el", "al", "ow")


class Word(NamedTuple):
    """One word of a sentence: its text and position."""

    text: str
    start: int
    end: int

    @property
    def low(self) -> str:
        return self.text.lower()


def negate(sentence: str) -> str:
    """Return `sentence` with a "not" more or less, and otherwise word for word.

    The first rule that fits: a "not" is left out ("n't" too); "not" comes after the first form of
    be, modal verb, have before a participle, or do before a subject; the first verb that its
    neighbours give away gets "do not", "does not" or "did not"; "Not" comes first.

    >>> negate("She is not here."), negate("They can't swim."), negate("A man is playing a guitar.")
    ('She is here.', 'They can swim.', 'A man is not playing a guitar.')
    >>> negate("He paints tin soldiers."), negate("The hurdler clipped the last barrier.")
    ('He does not paint tin soldiers.', 'The hurdler did not clip the last barrier.')
    >>> negate("Lovely weather today")
    'Not Lovely weather today'
    """
    words = []
    for m in re.finditer(r"[^\W\d_]+(?:[’'-][^\W\d_]+)*", sentence):
        words.append(Word(m.group(), m.start(), m.end()))
    for word in words:
        whole = _without_not(word, sentence)
        if whole is not None:
            return whole
    for place, word in enumerate(words):
        before = sentence[: word.start]
        after = sentence[word.end :]
        if _is_auxiliary(words, place):
            return f"{before}{word.text} not{after}"
        verb = _do_support(words, place, sentence)
        if verb is not None:
            return f"{before}{verb}{after}"
    return f"Not {sentence}"


def _without_not(word: Word, sentence: str) -> str | None:
    before = sentence[: word.start]
    after = sentence[word.end :]
    if word.low == "cannot":
        return before + word.text[:-3] + after
    if word.low == "not":
        return before + after.lstrip(" ")
    if re.search(r"n[’']t$", word.low):
        base = word.text[:-3]
        verb = _CONTRACTED.get(base.lower(), base)
        if base[:1].isupper():
            verb = verb.capitalize()
        return before + verb + after
    return None


def _is_auxiliary(words: Sequence[Word], place: int) -> bool:
    low = words[place].low
    before = ""
    if place:
        before = words[place - 1].low
    following = _next_word(words[place + 1 :])
    if low in ("have", "has", "had"):
        return following in _SETS["participle"] or following.endswith("ed")
    if low in ("do", "does", "did"):
        return following in _SETS["subject"] or not place or before in _SETS["asked"]
    if low == "will" and before in _SETS["fixed"]:  # "a second will"
        return False
    return low in _SETS["auxiliary"]


def _next_word(words: Iterable[Word]) -> str:
    """Return the first of `words` that is no adverb, in lower case; "" if there is none."""
    for word in words:
        if not word.low.endswith("ly") and word.low not in _SETS["adverb"]:
            return word.low
    return ""


def _do_support(words: Sequence[Word], place: int, sentence: str) -> str | None:
    """Return what replaces a verb, such as "does not paint"; None where the word is hardly one."""
    word = words[place]
    low = word.low
    if low in _HAVE_OR_DO:
        return _HAVE_OR_DO[low]

    before = _next_word(reversed(words[:place]))
    follows_pronoun = before in _SETS["subject"]
    follows_third_person = before in _SETS["third"]
    if before in _NO_SUBJECT and not follows_pronoun:
        return None
    if low in _BASE:
        return f"did not {_BASE[low]}"

    looks_like_verb = follows_pronoun or _ends_or_precedes_object(words, place, sentence)
    if low.endswith("ed") and len(low) > 3:
        if looks_like_verb:
            return _negate_past(word, sentence)
        return None
    if low in _NO_VERB or not low.isalpha():
        return None
    has_one_subject = follows_third_person
    if looks_like_verb and not has_one_subject:
        has_one_subject = _one_subject(words[:place])
    follows_plural = follows_pronoun and not follows_third_person
    return _negate_present(low, has_one_subject, follows_plural)


def _negate_present(verb: str, has_one_subject: bool, follows_plural: bool) -> str | None:
    """Return "does not run" or "do not run"; None where the word is hardly a verb of its subject."""
    if _may_be_third_person(verb):
        if has_one_subject:
            return f"does not {_base_of_third(verb)}"
        return None
    if follows_plural and not verb.endswith(("ing", "ly")):
        return f"do not {verb}"
    return None


def _may_be_third_person(verb: str) -> bool:
    """True for a word in -s that is no plain noun or adverb by its ending."""
    if verb.endswith(("ss", "us", "is")):
        return False
    return verb.endswith("s") and len(verb) > 2


def _ends_or_precedes_object(words: Sequence[Word], place: int, sentence: str) -> bool:
    """True if a word ends its clause, or an article or the like comes next."""
    following = words[place + 1 :]
    if not following:
        return True
    rest = sentence[words[place].end :]
    if re.match(r"\s*[,;:.!?]", rest):
        return True
    return _next_word(following) in _SETS["fixed"]


def _negate_past(word: Word, sentence: str) -> str | None:
    """Return the negation of a word in -ed; None for a participle after a comma."""
    before = sentence[: word.start].rstrip()
    if before.endswith(","):  # "her gravy, revealed only then, was"
        return None
    return f"did not {_base_of_past(word.low)}"


def _one_subject(words: Sequence[Word]) -> bool:
    """True if the words end in one thing, as in "the man with a dog" or "a kite surfer"."""
    for distance, word in enumerate(reversed(words)):
        if word.low in _SETS["one"]:
            return distance > 0
        if word.low in _SETS["fixed"] or word.low in _SETS["open"]:
            return False
    return False


def _base_of_third(verb: str) -> str:
    if verb.endswith("ies") and len(verb) > 4:
        return f"{verb[:-3]}y"
    if verb.endswith(("sses", "shes", "ches", "xes", "zzes", "oes")):
        return verb[:-2]
    return verb[:-1]


def _base_of_past(verb: str) -> str:
    stem = verb[:-2]
    if stem.endswith("i"):
        if len(stem) > 2:
            return f"{stem[:-1]}y"
        return f"{stem}e"
    is_doubled = len(stem) > 3 and stem[-1] == stem[-2]
    if is_doubled and stem[-1] not in "lsz":
        return stem[:-1]
    ends_in_e = _E_STEM.search(stem) and not stem.endswith(_NO_E_STEM)
    if stem.endswith("e") or ends_in_e:
        return f"{stem}e"
    return stem
