"""BibTeX entries of the methods of a report and of the tools that every report uses."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

from harness import registry
from harness.errors import InputError

_FILE = Path(__file__).with_name("references.bib")  # the key "keywords" names methods; "all" is for every report


def bibliography(methods: Iterable[str]) -> str:
    """The entries of methods by name, in the order of the file; a comment for a method that has none.

    >>> bibliography(["scd"]).splitlines()[0]
    '@inproceedings{klein-nabi-2022-scd,'
    """
    wanted, found, cited = set(methods), list[str](), set[str]()
    for entry in _FILE.read_text(encoding="utf-8").strip().split("\n\n"):
        keywords = re.search(r",\s*keywords = \{(.*?)\}", entry)
        names = set(keywords[1].split(", ")) if keywords else set()
        if names & {*wanted, "all"}:
            found.append(entry.replace(keywords[0], "") if keywords else entry)
            cited |= names
    return "\n\n".join([*found, *(f"% {name}: {_paper(name)}" for name in sorted(wanted - cited))]) + "\n"


def _paper(method: str) -> str:
    try:
        return " ".join(str(registry.load(registry.METHODS, method).card.paper).split())
    except InputError:
        return "not installed here"
