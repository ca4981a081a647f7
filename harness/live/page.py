"""The way from what is told to a page: a plugin's, entry point `page` of `harness.live`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from harness import registry
from harness.live.state import RowScore, State
from harness.results.record import Record

PAGE = "page"


class LivePage(Protocol):
    """What the entry point names: a module or an object with these functions. Both are called by one thread."""

    def scores(self, records: Sequence[Record]) -> list[RowScore]:
        """The scores of the rows so far, by the records of finished runs."""

    def page(self, states: Sequence[State], now: float) -> str:
        """A page in HTML that needs nothing else, of all that a work directory tells of, the latest first."""


def live_page() -> LivePage | None:
    """The installed one, or None."""
    if PAGE not in registry.names(registry.LIVE):
        return None
    page: LivePage = registry.load(registry.LIVE, PAGE)
    return page


def index(workdir: Path) -> Path:
    """Where the page of a work directory lies."""
    return workdir / "live" / "index.html"
