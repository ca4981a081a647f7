"""Views made from the words of a text, as spaces separate them.

Source: Gao et al., SimCSE (EMNLP 2021), Table 1, whose authors keep or delete whole words
(github.com/princeton-nlp/SimCSE/issues/231). Halves round up; a text of one word is left alone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from harness.views import eda

if TYPE_CHECKING:
    import numpy as np

    from harness.views.settings import ViewConfig

Synonyms = Callable[[str], Sequence[str]]


def crop_words(text: str, share: float, rng: np.random.Generator) -> str:
    """Return a span of the words of `text`: round(share * n) of its n words are cut off its ends.

    Where the span begins is a uniform draw; it holds at least one word.

    >>> import numpy as np
    >>> len(crop_words("one two three four five", 0.2, np.random.default_rng(1)).split())
    4
    """
    words = text.split()
    kept = max(1, len(words) - int(share * len(words) + 0.5))
    if kept >= len(words):
        return text
    start = int(rng.integers(len(words) - kept + 1))
    return " ".join(words[start : start + kept])


def delete_words(text: str, share: float, rng: np.random.Generator) -> str:
    """Return `text` without max(1, round(share * n)) of its n words, drawn uniformly; at least one
    word stays. Share 0 deletes one word.

    >>> import numpy as np
    >>> len(delete_words("one two three four five", 0, np.random.default_rng(1)).split())
    4
    """
    words = text.split()
    wanted = int(share * len(words) + 0.5)
    count = min(max(1, wanted), len(words) - 1)
    if count < 1:
        return text
    gone = set()
    for place in rng.choice(len(words), size=count, replace=False):
        gone.add(int(place))
    return " ".join(word for place, word in enumerate(words) if place not in gone)


def replace_words(text: str, count: int, rng: np.random.Generator, synonyms: Synonyms) -> str:
    """Return `text` with up to `count` words replaced by a synonym, each drawn uniformly from the
    words that have one and are no function words; what surrounds a word's letters stays.
    """
    words = text.split()
    left = count
    for place in rng.permutation(len(words)):
        if not left:
            break
        core = words[place].strip(".,;:!?\"'()[]")
        if core.lower() in eda.STOP_WORDS:
            known = []
        else:
            known = list(synonyms(core.lower()))
        if core and known:
            chosen = known[int(rng.integers(len(known)))]
            words[place] = words[place].replace(core, chosen, 1)
            left -= 1
    if left < count:
        return " ".join(words)
    return text


def change_words(
    text: str,
    config: ViewConfig,
    rng: np.random.Generator,
    synonyms: Synonyms | None,
) -> str:
    """Return `text` after the views of words that `config` names, in their order."""
    for name in config.views:
        if name == "word_crop":
            text = crop_words(text, config.word_crop, rng)
        elif name == "word_deletion":
            text = delete_words(text, config.word_deletion, rng)
        elif name == "synonym":
            assert synonyms is not None
            text = replace_words(text, config.synonyms, rng, synonyms)
    return text
