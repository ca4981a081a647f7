"""A report as a list of sections of text, tables, figures and facts: what the writers of all formats share."""

from __future__ import annotations

from dataclasses import dataclass, field

from reports.tables import Table


@dataclass(frozen=True)
class Text:
    """A paragraph, or a list when there are several items."""

    items: tuple[str, ...]
    bullets: bool = False


@dataclass(frozen=True)
class Facts:
    """Named values, folded on the page until asked for."""

    key: str
    title: str
    items: tuple[tuple[str, str], ...]
    commands: tuple[str, ...] = ()  # shell commands, shown as code


@dataclass(frozen=True)
class Figure:
    """A picture in the formats it is kept in. `svg` is text with text in it; `alt` says what a reader would see."""

    key: str
    title: str
    caption: str
    alt: str
    svg: str
    png: bytes
    pdf: bytes


Block = Text | Table | Figure | Facts


@dataclass
class Section:
    key: str
    title: str
    blocks: list[Block] = field(default_factory=list)


@dataclass
class Document:
    title: str
    headline: str  # what was found, in a sentence or two
    facts: list[tuple[str, str]]  # number and what it counts: ("3", "seeds")
    sections: list[Section]
    description: str = ""  # what the experiment file says about itself

    def tables(self) -> list[Table]:
        return [block for section in self.sections for block in section.blocks if isinstance(block, Table)]

    def figures(self) -> list[Figure]:
        return [block for section in self.sections for block in section.blocks if isinstance(block, Figure)]
