"""Text as LaTeX that says what the text says, whatever it holds."""

from __future__ import annotations

import re
import unicodedata

_LATEX = {
    "\\": r"\textbackslash{}",
    "{": r"\{",
    "}": r"\}",
    "$": r"\$",
    "&": r"\&",
    "#": r"\#",
    "%": r"\%",
    "_": r"\_\allowbreak{}",
    "/": r"/\allowbreak{}",
    "^": r"\textasciicircum{}",
    "~": r"\textasciitilde{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    '"': r"\textquotedbl{}",
    "'": r"\textquotesingle{}",
    "`": r"\textasciigrave{}",
    "[": "{[}",  # after a line's end and in a list it would begin an argument, as the star would
    "*": "{*}",
    "-": "{-}",  # no ligatures to dashes: "--set" is what it says
    "\u2212": r"\ensuremath{-}",
    "±": r"\ensuremath{\pm}",
    "×": r"\ensuremath{\times}",
    "·": r"\textperiodcentered{}",
    "†": r"\textdagger{}",
    "–": r"\textendash{}",
    "—": r"\textemdash{}",
    "…": r"\dots{}",
    "≥": r"\ensuremath{\geq}",
    "≤": r"\ensuremath{\leq}",
    "→": r"\ensuremath{\to}",
    "Δ": r"\ensuremath{\Delta}",
    "α": r"\ensuremath{\alpha}",
    "λ": r"\ensuremath{\lambda}",
    "τ": r"\ensuremath{\tau}",
    "♣": r"\ensuremath{\clubsuit}",
    "♦": r"\ensuremath{\diamondsuit}",
    "♥": r"\ensuremath{\heartsuit}",
    "♠": r"\ensuremath{\spadesuit}",
    "\u00a0": "~",
    "\ue000": r"\allowbreak{}",
}


def latex_text(text: str) -> str:
    """Text for pdflatex, lualatex or xelatex alike. Letters that no standard font carries become their code point."""
    out = []
    # A fingerprint has no place to break at: give it some. The mark is a private character, dropped from the text.
    text = re.sub(r"[0-9A-Za-z]{24,}", lambda m: re.sub(r"(.{8})(?=.)", "\\1\ue000", m[0]), text.replace("\ue000", ""))
    for c in unicodedata.normalize("NFC", " ".join(text.split())):
        if c in _LATEX:
            out.append(_LATEX[c])
        elif c.isascii() and c.isprintable():
            out.append(c)
        elif (
            "\u00c0" <= c <= "\u017f"
            and c not in "\u0132\u0133\u0138\u013f\u0140\u0149\u017f\u0126\u0127\u0166\u0167\u00d7\u00f7"
        ):
            out.append(c)  # Latin letters of the T1 encoding
        else:
            out.append(rf"\texttt{{\small U+{ord(c):04X}}}")
    return "".join(out)
