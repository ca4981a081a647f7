"""Synonyms from WordNet, through nltk's reader. Neither nltk nor its data is a requirement of the
harness.
"""

from __future__ import annotations

import hashlib
import re
import warnings
from contextlib import suppress
from functools import cache
from typing import Any

from harness.errors import InputError

REMEDY = (
    "python -m nltk.downloader wordnet (or set NLTK_DATA to a folder that holds corpora/wordnet)"
)
_FILES = [
    f"{kind}.{pos}" for kind in ("data", "index") for pos in ("noun", "verb", "adj", "adv")
] + [f"{pos}.exc" for pos in ("noun", "verb", "adj", "adv")]
_NOT_LETTERS = re.compile("[^a-z ]")


class WordNet:
    """The synonyms of single words, from the data at `path`; `sha256` is the hash of the database
    files.
    """

    def __init__(self, root: Any) -> None:
        from nltk.corpus.reader.wordnet import WordNetCorpusReader

        class Reader(WordNetCorpusReader):  # type: ignore[misc]
            def map_wn(self, version: str = "wordnet") -> None:
                """No map to other languages' data, which takes seconds to make."""

        self.path = str(root)
        digest = hashlib.sha256()
        for name in _FILES:
            with root.join(name).open() as file:
                digest.update(file.read())
        self.sha256 = digest.hexdigest()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # that the data of other languages is not there
            self._reader = Reader(root, None)
        self._known: dict[str, tuple[str, ...]] = {}

    def synonyms(self, word: str) -> tuple[str, ...]:
        """All names of all senses of `word`, any part of speech, sorted, without `word` itself.

        Also for inflected forms. Underscores and hyphens become spaces, other characters than a-z
        are dropped.
        """
        if word not in self._known:
            names = (name for sense in self._reader.synsets(word) for name in sense.lemma_names())
            plain = set()
            for name in names:
                plain.add(
                    _NOT_LETTERS.sub("", name.lower().replace("_", " ").replace("-", " ")).strip()
                )
            self._known[word] = tuple(sorted(plain - {word, ""}))
        return self._known[word]


def load() -> WordNet:
    """The installed WordNet, read once.

    Raises:
        InputError: nltk or its data is missing (with the remedy), or the data is damaged.
    """
    return _read(find()[0])


@cache
def _read(path: str) -> WordNet:
    try:
        return WordNet(find()[1])
    except (OSError, KeyError, ValueError, AssertionError) as error:
        raise InputError(
            f"WordNet at {path} cannot be read ({error}): get it again with {REMEDY}"
        ) from None


def find() -> tuple[str, Any]:
    """Where WordNet is: as text, and as nltk's path pointer (into a folder or a .zip).

    Raises:
        InputError: nltk or its data is missing, with the remedy.
    """
    try:
        import nltk.data
    except ImportError:
        raise InputError(
            f'EDA views need nltk and WordNet: pip install "sentence-harness[eda]", then {REMEDY}'
        ) from None
    for resource in ("corpora/wordnet", "corpora/wordnet.zip/wordnet/"):
        with suppress(LookupError):
            root = nltk.data.find(resource)
            return str(root), root
    raise InputError(f"EDA views need WordNet, which nltk does not find: {REMEDY}")
