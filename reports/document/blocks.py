"""A report as a list of sections of text, tables, figures and facts: what the writers of all
formats share.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from harness.files.hashing import sha256_of_text
from reports.document.table import Table

_LONGEST = 80  # characters of a slug


def slug(text: str) -> str:
    """Return a word that serves as an id and as a file name: "geometry-mteb-STS-B" does not change.

    Where letters of other scripts or a long end are lost, a hash tells two texts apart.
    """
    word = re.sub(r"[^A-Za-z0-9.-]+", "-", text).strip("-.")
    is_lost = any(c.isalnum() and not c.isascii() for c in text) or len(word) > _LONGEST
    if not is_lost:
        return word or "table"
    digest = sha256_of_text(text)[:6]
    return f"{word[: _LONGEST - 7]}-{digest}".lstrip("-")


@dataclass(frozen=True)
class Text:
    """A paragraph, or a list when there are several items."""

    items: tuple[str, ...]
    bullets: bool = False


@dataclass(frozen=True)
class FactList:
    """Named values, folded on the page until opened."""

    key: str
    title: str
    items: tuple[tuple[str, str], ...]
    commands: tuple[str, ...] = ()  # shell commands, shown as code
    runs: tuple[str, ...] = ()  # ids of the runs that this is the card of: their cells link here


@dataclass(frozen=True)
class Figure:
    """A picture, laid out and drawn in a format when first requested; `alt` says what a reader would
    see.

    Attributes:
        lay_out: () -> the plot as matplotlib has it, with everything in its place.
        draw: (plot, "svg", "png" or "pdf") -> the file.
    """

    key: str
    title: str
    caption: str
    alt: str
    lay_out: Callable[[], Any] = field(repr=False, compare=False)
    draw: Callable[[Any, str], bytes] = field(repr=False, compare=False)

    @cached_property
    def plot(self) -> Any:
        """As matplotlib has it."""
        return self.lay_out()

    @cached_property
    def svg(self) -> str:
        """As text with text in it."""
        return self.draw(self.plot, "svg").decode()

    @cached_property
    def png(self) -> bytes:
        """For pages that hold no SVG."""
        return self.draw(self.plot, "png")

    @cached_property
    def pdf(self) -> bytes:
        """For print, with its fonts inside."""
        return self.draw(self.plot, "pdf")


Block = Text | Table | Figure | FactList


@dataclass
class Section:
    key: str
    title: str
    blocks: list[Block] = field(default_factory=list)
    lead: str = ""  # what the section is for, in a sentence
    folded: bool = False  # on the page: closed until a reader opens it


@dataclass
class Document:
    title: str
    headline: str  # what was found, in a few sentences
    facts: list[tuple[str, str]]  # number and what it counts: ("3", "seeds")
    sections: list[Section]
    description: str = ""  # what the experiment file says about itself
    origin: dict[str, Any] = field(
        default_factory=dict
    )  # what repeats the runs behind it: `reports.read.provenance.provenance_of`
    answer: str = ""  # the beginning of the headline, for a terminal

    def tables(self) -> list[Table]:
        return [
            block
            for section in self.sections
            for block in section.blocks
            if isinstance(block, Table)
        ]

    def figures(self) -> list[Figure]:
        return [
            block
            for section in self.sections
            for block in section.blocks
            if isinstance(block, Figure)
        ]


MARK = "[rehearsal]"
HEADLINE = (
    "This is a rehearsal: every row runs with a small base model, little text and few training steps. Of the tasks' "
    "sentences some are encoded, and the others get the vectors of these. The numbers say nothing about the methods "
    "and are compared with no published number."
)
SENTENCE = "A rehearsal, whose numbers say nothing about the methods."


def add_marks(document: Document) -> Document:
    """The document with the mark in every title, the sentence under every table and figure, and
    what a rehearsal is before its conclusion.
    """
    sections = []
    for section in document.sections:
        sections.append(replace(section, blocks=[_add_mark(block) for block in section.blocks]))
    headline = f"{HEADLINE} {document.headline}".strip()
    return replace(
        document,
        title=f"{document.title} {MARK}",
        headline=headline,
        sections=sections,
    )


def _add_mark(block: Block) -> Block:
    if isinstance(block, Table):
        return replace(block, title=f"{block.title} {MARK}", legend=(SENTENCE, *block.legend))
    if isinstance(block, Figure):
        return replace(
            block,
            title=f"{block.title} {MARK}",
            caption=f"{SENTENCE} {block.caption}".strip(),
        )
    return block
