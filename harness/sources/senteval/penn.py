"""The Penn Treebank's tokenisation by MacIntyre's rules of 1995, as SentEval prepares SNLI with them."""

from __future__ import annotations

import re

# In this order: each sees what the ones before made.
_RULES = [
    (re.compile(pattern), replacement)
    for pattern, replacement in (
        ('^"', "`` "),  # opening quotes: at the start, or after a blank or bracket
        (r'([ (\[{<])"', r"\1 `` "),
        (r"\.\.\.", " ... "),
        (r"([,;:@#$%&])", r" \1 "),
        (r"""([^.])(\.)([\])}>"']*)[ \t]*$""", r"\1 \2\3 "),  # the last period alone: others may end abbreviations
        (r"([?!])", r" \1 "),
        (r"([\]\[(){}<>])", r" \1 "),
        ("--", " -- "),
        ("$", " "),
        ("^", " "),
        ('"', " '' "),  # all other quotes close
        (r"([^'])' ", r"\1 ' "),
        (r"'([sSmMdD]) ", r" '\1 "),
        (r"('ll|'re|'ve|n't|'LL|'RE|'VE|N'T) ", r" \1 "),
        (r" ([Cc])annot ", r" \1an not "),
        (r" ([Dd])'ye ", r" \1' ye "),
        (r" ([Gg])imme ", r" \1im me "),
        (r" ([Gg])onna ", r" \1on na "),
        (r" ([Gg])otta ", r" \1ot ta "),
        (r" ([Ll])emme ", r" \1em me "),
        (r" ([Mm])ore'n ", r" \1ore 'n "),
        (r" '([Tt])is ", r" '\1 is "),
        (r" '([Tt])was ", r" '\1 was "),
        (r" ([Ww])anna ", r" \1an na "),
        (" +", " "),
        ("^ ", ""),
    )
]


def penn_tokens(sentence: str) -> str:
    """A sentence with its tokens separated by blanks, one at its end included."""
    for pattern, replacement in _RULES:
        sentence = pattern.sub(replacement, sentence)
    return sentence
