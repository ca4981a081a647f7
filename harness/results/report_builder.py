"""The way from records to a report: a plugin's, entry point `comparison` of `harness.reporters`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from harness import registry

BUILDER = "comparison"
FORMATS = ("html", "md", "latex", "csv")  # those that are written unless others are asked for


class ReportBuilder(Protocol):
    """What the entry point names: a module or an object with these functions."""

    def build_report(
        self, name: str, workdir: Path, *, formats: Sequence[str] = ..., out: Path | None = None
    ) -> dict[str, Path]:
        """Write the report called `name` (a paper's, a comparison's, ...) to `out`; format -> what was written."""

    def build_comparison(
        self, workdir: Path, name: str, *, formats: Sequence[str] = ..., out: Path | None = None
    ) -> dict[str, Path]:
        """Write the report of the comparison `name`, as `build_report` does."""

    def summary_table(
        self, workdir: Path, name: str, part: str = ...
    ) -> tuple[list[str], list[list[str]]] | tuple[list[str], list[list[str]], list[str]]:
        """Columns and rows of text: the comparison, or one block of its file, as a terminal shows it; and, where there
        are marks in them, what these mean."""


def report_builder() -> ReportBuilder | None:
    """The installed one, or None."""
    if BUILDER not in registry.names(registry.REPORTERS):
        return None
    builder: ReportBuilder = registry.load(registry.REPORTERS, BUILDER)
    return builder
