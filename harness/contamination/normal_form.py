"""What makes two texts equal: their words, whatever case, punctuation, white space and Unicode form they have."""

from __future__ import annotations

import re
import unicodedata

# Scripts without spaces between words: every character is a word there.
_ALONE = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
_WORD = re.compile(rf"[{_ALONE}]|[^\W_{_ALONE}]+")
_PLAIN = {code: chr(code).lower() if chr(code).isalnum() else " " for code in range(128)}


def words(text: str) -> list[str]:
    """The words of a text in NFC and casefolded; punctuation, white space and underscores only part them.

    "Don't!" and the tokenised "do n't" differ, "Don't!" and "don 't" do not.
    """
    if text.isascii():  # the same, three times as fast
        return text.translate(_PLAIN).split()
    return _WORD.findall(unicodedata.normalize("NFC", text).casefold())


def normal_form(text: str) -> str:
    """The words with one space between; empty for a text without any."""
    return " ".join(words(text))
