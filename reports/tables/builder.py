"""What puts blocks into a comparison's report: ours are a list, those of other packages entry
points.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from harness import registry
from reports.document.blocks import Block
from reports.load import RecordedResults
from reports.stats.significance import Significance

Blocks = Block | Iterable[Block | None] | None


@dataclass(frozen=True)
class TableBuilder:
    """A part of a comparison's report: tables (or figures) made from its runs.

    Attributes:
        section: key of a section of the report ("scores", "certainty", ...:
            `reports.comparison.comparison_document`); any other text is the heading of a section of
            its own, before "How it was run".
        build: gives one block, several, or None where the runs have nothing for it. It is called
            with the comparison and what seeds and examples say of it.
        order: place within the section; ours have 100, 200, ...
        suites: suites whose scores it shows, so that no table by default has to.
    """

    section: str
    build: Callable[[RecordedResults, Significance], Blocks]
    order: int = 1000
    suites: tuple[str, ...] = ()


def from_other_packages() -> list[TableBuilder]:
    """The builders of the entry points `harness.tables`, by name.

    Raises:
        InputError: one that cannot be imported, or is no TableBuilder.
    """
    return [registry.load(registry.TABLES, name) for name in registry.names(registry.TABLES)]
